"""The work, on trusted types: one client per worker, our own policy of tries, limits and redirects."""
