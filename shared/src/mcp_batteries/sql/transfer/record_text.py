"""The text of a file of records: in which encoding it is read, and what is said where that fails.

This module imports nothing of the common package but `sql.transfer.files`, so that a small process can import it alone.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Generator
from contextlib import contextmanager
from typing import BinaryIO

from mcp_batteries.sql.transfer.files import Fails

__all__ = ["MAX_LINE_CHARACTERS", "explain_unreadable", "open_text"]

# A line, a field or a JSON array has at most so many characters read at once.
MAX_LINE_CHARACTERS = 64_000_000


@contextmanager
def open_text(raw: BinaryIO, encoding: str) -> Generator[io.TextIOWrapper]:
    """Read a file as text from its beginning; the file itself stays open.

    Args:
        encoding: the one that was named; if empty, UTF-8, or UTF-16 where a byte order mark says so.
    """
    raw.seek(0)
    text = io.TextIOWrapper(raw, encoding=encoding or _detect_encoding(raw), newline="")
    try:
        yield text
    finally:
        if not raw.closed:
            text.detach()


def _detect_encoding(raw: BinaryIO) -> str:
    start = raw.read(2)
    raw.seek(0)
    if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "utf-16"
    return "utf-8-sig"


def explain_unreadable(number: int, error: Exception, fix: str, fails: Fails) -> Exception:
    """Return the failure for what ended the reading behind record `number`.

    Args:
        fix: the next move, unless the encoding is what is wrong.
    """
    message = str(error) or type(error).__name__
    if isinstance(error, UnicodeError):
        fix = "Name its `encoding`, such as cp1252, in which Excel often writes."
    return fails("invalid", f"Behind record {number} the file can't be read: {message[:200]}.", fix)
