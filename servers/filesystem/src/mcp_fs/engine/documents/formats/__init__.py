"""The readers of documents, in a package for each kind; they are given open files and know no paths.

What stands beside the packages serves several kinds: archives, encodings, raised figures, pages of HTML and notebooks.
"""
