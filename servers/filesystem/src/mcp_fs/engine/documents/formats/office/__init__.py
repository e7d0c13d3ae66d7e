"""Texts, sheets and slides of Office (ECMA-376) and OpenDocument, as lines from a stream of elements."""
