"""How a server declares its tools, resources and prompts."""
