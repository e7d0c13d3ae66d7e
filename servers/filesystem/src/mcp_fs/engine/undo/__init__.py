"""Undoes what the tools changed: old contents are kept before they are replaced, and survive a crash."""
