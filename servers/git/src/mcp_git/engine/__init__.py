"""Runs git on trusted types and shapes what it says; knows no MCP."""
