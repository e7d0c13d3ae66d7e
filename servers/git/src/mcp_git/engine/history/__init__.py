"""Reads what is committed: logs, diffs, blame, files, refs."""
