"""The work on files, on handles only; knows no MCP."""
