"""What a database contains: lists, descriptions, and suggestions for names that it does not have."""
