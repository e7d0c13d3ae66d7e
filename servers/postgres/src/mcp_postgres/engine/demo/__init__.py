"""The sample database of `--demo`, in a PostgreSQL of our own."""
