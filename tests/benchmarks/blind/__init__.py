"""What tasks take an agent that sees the tools, or a shell, for the first time."""
