"""MCP server for GitHub."""
