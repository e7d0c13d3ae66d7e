"""What every small, careful MCP server needs."""
