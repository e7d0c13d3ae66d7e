"""MCP server for folders."""
