"""Connections to a database: the pool, sessions, what comes over them, and errors."""
