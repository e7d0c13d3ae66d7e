"""SQLite's values, text and parameters, and the failure of a request: what every room of a worker speaks."""
