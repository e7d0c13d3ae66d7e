"""Searches for names, contents and duplicates."""
