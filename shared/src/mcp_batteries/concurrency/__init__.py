"""Blocking work on threads, the token that ends it, and one timer for all who wait equally long."""
