"""The plan of a statement, and the indexes that would make a better one."""
