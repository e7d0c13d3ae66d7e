"""mcp-postgres: PostgreSQL over MCP."""
