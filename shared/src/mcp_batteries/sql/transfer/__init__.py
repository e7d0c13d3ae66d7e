"""Rows from files and to files: where they may lie, one module a format, and what the fields of a file are like."""
