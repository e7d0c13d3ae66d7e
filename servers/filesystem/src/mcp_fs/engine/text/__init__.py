"""Text as bytes: encodings, line ends, lines of large files, and exact edits of them."""
