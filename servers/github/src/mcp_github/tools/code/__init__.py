"""Tools for what a repository holds: files, commits, branches, releases, rules and search."""
