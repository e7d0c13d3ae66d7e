"""Requests for what a repository holds: files, commits, branches, releases and rules."""
