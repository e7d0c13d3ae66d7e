"""Guarded connections to the served files, and what a statement may see and do on them."""
