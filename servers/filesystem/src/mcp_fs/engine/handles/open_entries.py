"""How many entries one call may change: each is held open, so that all of them change or none."""

from __future__ import annotations

import sys

from mcp_batteries.descriptors import raise_descriptor_limit

__all__ = ["DESIRED_DESCRIPTORS", "max_open_entries"]

MAX_ENTRIES = 10_000
# Of an entry the folder, the lock, the new content and, when it is taken back, the old one.
_DESCRIPTORS_OF_ENTRY = 4
# Of a tree of 200 levels and its copy, of connections and files that other calls have open.
_OTHER_DESCRIPTORS = 800
# Windows bounds its handles by memory alone, and the C runtime of Python the files that it has open.
_WINDOWS_DESCRIPTORS = 8192
DESIRED_DESCRIPTORS = MAX_ENTRIES * _DESCRIPTORS_OF_ENTRY + _OTHER_DESCRIPTORS


def max_open_entries() -> int:
    """Return how many entries one call may change: fewer where the system lets this process open few files."""
    available = raise_descriptor_limit(0)
    if sys.platform == "win32":
        available = _WINDOWS_DESCRIPTORS
    if available is None:
        return MAX_ENTRIES
    return max(1, min(MAX_ENTRIES, (available - min(_OTHER_DESCRIPTORS, available // 4)) // _DESCRIPTORS_OF_ENTRY))
