"""Takes what is in an archive out of it."""
