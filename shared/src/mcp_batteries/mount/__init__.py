"""Several servers mounted in one process, behind one entry or endpoint: `mcp-batteries fs /path -- sqlite my.db`."""
