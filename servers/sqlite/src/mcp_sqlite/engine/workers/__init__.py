"""The processes that run SQLite: how they start, what they reach, and which of them answers a call."""
