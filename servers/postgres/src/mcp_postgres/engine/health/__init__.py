"""What is wrong with a database, and what it is busy with."""
