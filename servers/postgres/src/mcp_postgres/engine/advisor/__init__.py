"""Plans of statements, and the indexes that would make them cheaper."""
