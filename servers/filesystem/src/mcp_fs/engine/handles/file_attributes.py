"""File attributes beyond the type, read from the list of the folder without opening the entry."""

from __future__ import annotations

import os
import stat
import sys
from bisect import bisect_left
from collections.abc import Sequence

__all__ = ["hidden_among", "is_hidden", "placeholders_among"]

_RECALL_ATTRIBUTES = 0x0040_0000 | 0x0004_0000  # FILE_ATTRIBUTE_RECALL_ON_DATA_ACCESS, FILE_ATTRIBUTE_RECALL_ON_OPEN


def is_hidden(entry: os.DirEntry[str]) -> bool:
    """Whether people don't see it: a name with a dot in front, on Windows also one with the attribute."""
    return entry.name.startswith(".") or (
        sys.platform == "win32" and _has_attributes(entry, stat.FILE_ATTRIBUTE_HIDDEN)
    )


def hidden_among(entries: Sequence[os.DirEntry[str]], *names: Sequence[str]) -> set[str]:
    """Return the names of those that are hidden; `names` has the names of all, in sorted sequences."""
    if sys.platform == "win32":
        return {entry.name for entry in entries if is_hidden(entry)}
    # One after the other, tens of thousands of them are too many to look at.
    hidden: set[str] = set()
    for row in names:
        hidden.update(row[bisect_left(row, ".") : bisect_left(row, "/")])
    return hidden


def placeholders_among(entries: Sequence[os.DirEntry[str]]) -> set[str]:
    """Return the names of placeholders, as of OneDrive, whose content would be fetched by reading it."""
    if sys.platform == "win32":
        return {
            entry.name for entry in entries if _has_attributes(entry, stat.FILE_ATTRIBUTE_OFFLINE | _RECALL_ATTRIBUTES)
        }
    return set()


def _has_attributes(entry: os.DirEntry[str], attributes: int) -> bool:
    try:
        return bool(getattr(entry.stat(follow_symlinks=False), "st_file_attributes", 0) & attributes)
    except OSError:
        return False
