"""Requests that several toolsets make, and those that take too much to stand in the module of their tools."""
