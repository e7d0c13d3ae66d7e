"""What SQL itself is made of: identifiers, qualified names, row keys, joins, and names that were misspelt."""
