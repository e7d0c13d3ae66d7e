"""Changes a repository: what an operation is, how it is planned and run, and how it is undone."""
