"""Reviews of pull requests: what they say, where their comments stand, and their threads."""
