"""The tools, one module a toolset, grouped by the same subjects as `requests`."""
