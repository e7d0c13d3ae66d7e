"""Changes in one transaction, what they did to rows, keys and the schema, and how to undo them."""
