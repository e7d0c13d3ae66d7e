"""The work, on trusted types: one client per worker, with our own policy for retries, limits and redirects."""
