"""What is said of files that can't be edited, or would get too large."""

from __future__ import annotations

from mcp_batteries.errors import Refused, TooLarge, quote
from mcp_fs.engine.changing.binary_formats import binary_format, other_form_error, suggest_text_file
from mcp_fs.engine.document_kinds import HEAD_BYTES, LABELS, kind_of
from mcp_fs.engine.text.encodings import MAX_EDIT_BYTES, detect_encoding
from mcp_fs.policy import WritablePath

__all__ = ["MAX_TOTAL_BYTES", "not_text_error", "notebook_end_error", "too_large_error", "too_much_error"]

# Of all that one call changes: it is held in memory until the last is written.
MAX_TOTAL_BYTES = 8 * MAX_EDIT_BYTES


def notebook_end_error(path: WritablePath) -> Refused:
    """Build the answer to what can't be done in the cells of a notebook."""
    return Refused(
        f"{quote(path.display)} is a notebook, whose end is not the end of its file; nothing was changed.",
        "Add to a cell with `edit_file`: quote its last line.",
    )


def not_text_error(path: WritablePath, data: bytes) -> Refused:
    """Build the answer to an edit of what is no text, or could not be written back as it is."""
    encoding = detect_encoding(data)
    kind = kind_of(path.name, data[:HEAD_BYTES])
    if kind in LABELS:
        return other_form_error(path, kind)
    if encoding is None:
        label = binary_format(path.name)
        reason = "is not text" if label is None else f"is {label}, not text"
        return Refused(f"{quote(path.display)} {reason}; nothing was changed.", suggest_text_file(path))
    return Refused(
        f"{quote(path.display)} can't be written back in {encoding} byte for byte; nothing was changed.",
        "Save the text under another name with `write_file`, which uses UTF-8.",
    )


def too_large_error(path: WritablePath) -> TooLarge:
    return TooLarge(
        f"{quote(path.display)} would have more than {MAX_EDIT_BYTES:,} bytes, the most that can be edited; nothing "
        "was written.",
        "Put less in its place.",
    )


def too_much_error() -> TooLarge:
    return TooLarge(f"More than {MAX_TOTAL_BYTES:,} bytes would be written; nothing was.", "Narrow `glob` or `path`.")
