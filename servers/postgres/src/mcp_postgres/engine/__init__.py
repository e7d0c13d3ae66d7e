"""The work on trusted types; it knows no MCP."""
