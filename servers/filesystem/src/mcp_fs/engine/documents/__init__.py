"""The text of documents and archives: taken out by a process of its own, which knows no paths and can be killed."""
