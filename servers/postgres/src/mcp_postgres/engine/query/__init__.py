"""Answers queries page by page, and compares tables."""
