"""Reads one entry: pages of text, ranges of lines, media, and what is known without reading."""
