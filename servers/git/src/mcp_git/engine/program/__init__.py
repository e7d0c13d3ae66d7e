"""Runs the `git` program, sandboxed, on a private git directory per repository, and reads what it prints."""
