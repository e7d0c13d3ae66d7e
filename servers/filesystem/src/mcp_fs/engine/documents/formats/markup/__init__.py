"""What documents of XML are made of: parts of a package, and their elements as lines of text."""
