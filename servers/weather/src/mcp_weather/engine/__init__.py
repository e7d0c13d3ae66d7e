"""Weather data, fetched from services and computed here. Knows no MCP."""
