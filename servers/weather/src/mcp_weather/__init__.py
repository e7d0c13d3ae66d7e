"""MCP server for weather."""
