"""Finds out from the catalog what a statement could do: whose code it runs, and what it shows that is not served."""
