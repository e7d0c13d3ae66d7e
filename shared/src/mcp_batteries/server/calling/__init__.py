"""How a call is made: its arguments, a person's confirmation, the tool, its answer."""
