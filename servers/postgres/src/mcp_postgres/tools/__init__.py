"""The tools, a module for each set."""
