"""What is known of the weather, asked of others and computed here. Knows no MCP."""
