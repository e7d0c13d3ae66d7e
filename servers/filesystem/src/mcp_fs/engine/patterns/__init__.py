"""Globs, ignore rules and regular expressions: which names and texts a caller means."""
