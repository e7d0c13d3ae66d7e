"""One module per toolset."""
