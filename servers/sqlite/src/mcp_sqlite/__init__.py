"""MCP server for SQLite databases."""
