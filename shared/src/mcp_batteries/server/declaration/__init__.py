"""How a server declares its tools, resources, prompts and views."""
