"""Official warnings: which services cover a place, and what they say together."""
