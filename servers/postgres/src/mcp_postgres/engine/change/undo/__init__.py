"""Statements that undo a change of the schema, and a trial of them."""
