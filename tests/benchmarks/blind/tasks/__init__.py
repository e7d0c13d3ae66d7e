"""The tasks, a module a group; none is written by who writes the tools."""
