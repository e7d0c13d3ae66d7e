"""Copies rows between tables and files."""
