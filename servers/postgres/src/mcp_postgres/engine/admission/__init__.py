"""Admits callers' statements: what opens their transactions, and what may run in them."""
