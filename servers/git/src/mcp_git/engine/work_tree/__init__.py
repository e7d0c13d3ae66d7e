"""Reads and arranges work trees: status, operations in progress, filters, linked worktrees."""
