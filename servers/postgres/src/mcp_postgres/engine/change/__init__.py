"""Changes of rows and of the schema, and what they did."""
