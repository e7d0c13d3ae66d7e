"""Undoes what the journal recorded, only where it is still as the call left it."""
