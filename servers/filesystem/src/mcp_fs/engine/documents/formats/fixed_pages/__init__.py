"""PDFs, whose words have places on pages and no order."""
