"""Runs of Actions: why one failed, and what its jobs left behind."""
