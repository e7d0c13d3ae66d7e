"""Applies patches strictly: the old text of a hunk must match exactly.

Only two things are forgiven, because models can't count: the lengths in a hunk's header, and its line number as
long as its text is found once only, or once in the class or function that it names. No context is ever skipped. A
patch in which some lines end in CRLF and others in LF means what it says of them; any other says nothing of line ends,
and they stay as they are in the file.
"""

from __future__ import annotations

from mcp_batteries.errors import Invalid
from mcp_fs.engine.changing.patch.apply import apply_hunks
from mcp_fs.engine.changing.patch.envelope import parse_envelope
from mcp_fs.engine.changing.patch.file_patch import FORMAT_FIX, FilePatch
from mcp_fs.engine.changing.patch.unified_diff import parse_unified_diff

__all__ = ["FilePatch", "apply_hunks", "parse_patch"]


def parse_patch(patch: str) -> list[FilePatch]:
    """Parse a patch and return its files in order.

    Raises:
        Invalid: it is none, or does what text can't: copies, modes, binary contents.
    """
    files = parse_envelope(patch)
    if files is None:
        files = parse_unified_diff(patch)
    if not files:
        raise Invalid("The patch names no file.", FORMAT_FIX)
    return files
