"""Replaces texts in many files: tries each of them, writes all or none, and shows the lines that differ."""
