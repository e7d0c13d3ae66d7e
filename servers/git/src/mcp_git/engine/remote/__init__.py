"""Fetches from remotes and pushes to them."""
