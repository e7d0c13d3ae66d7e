"""Reads and arranges work trees: status, operations in progress, contents of files, linked worktrees."""
