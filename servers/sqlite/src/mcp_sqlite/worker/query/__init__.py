"""Statements of callers that read, and the words for what goes wrong with them."""
