"""What a schema holds: its tables, their columns, definitions, row counts and frequent values."""
