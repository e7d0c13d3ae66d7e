"""MCP server for Git repositories."""
