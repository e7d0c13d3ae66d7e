"""How the services are asked: queries as cache keys, the client that sends them, and the check of its responses."""
