"""Keeps the state before a change, names the calls that lead back to it, and refuses one once that state is another."""
