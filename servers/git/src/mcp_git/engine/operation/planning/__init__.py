"""Plans operations whose command or undo depends on the state of the repository at their turn."""
