"""Folders: walks, pages, trees, and the differences between two of them or between two moments."""
