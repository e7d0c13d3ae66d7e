"""A calculator and a clock."""
