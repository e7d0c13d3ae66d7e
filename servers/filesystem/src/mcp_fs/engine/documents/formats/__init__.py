"""The readers of documents, a module a format. They are given open files and know no paths."""
