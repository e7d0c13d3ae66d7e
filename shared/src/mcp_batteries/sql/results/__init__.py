"""What a caller is told: rows, the effects of a change, the comparison of two tables."""
