"""Extracts the text of documents and archives in a separate process, which knows no paths and can be killed."""
