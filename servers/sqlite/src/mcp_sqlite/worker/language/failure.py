"""The failure of a request in words for the caller, and the codes of the errors behind it."""

from __future__ import annotations

import os
import re
import sqlite3

__all__ = [
    "Failure",
    "describe_os_error",
    "explain_unreadable",
    "extended_code",
    "is_locked",
    "primary_code",
    "refuse_half_character",
]

# SQLite's words for what programs register in it, and a file made by one may need.
_MISSING_PARTS = (
    re.compile("no such (collation) sequence: (.+)"),
    re.compile("no such (function): (.+)"),
    re.compile("no such (module): (.+)"),
    re.compile(r"unknown (function): (.+)\(\)"),
)


class Failure(Exception):
    """Raised when a request fails for a reason that the caller can understand.

    Attributes:
        kind: the name of the `Problem` that the server makes of it, in lower case.
        message: what failed.
        fix: what the caller can do next.
    """

    def __init__(self, kind: str, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.fix = fix


def refuse_half_character(place: str = "") -> Failure:
    """Return that a text can't be stored, as Python can't encode it; `place` says where it is."""
    return Failure(
        "invalid",
        f"{place}There is half of a character (a lone surrogate, as `\\ud83d`), which no text of a database can hold.",
        "Write the whole character, or `\\ufffd`.",
    )


def describe_os_error(error: OSError) -> str:
    """Return why the system refused, in the C library's words: Windows has its own in the language of its user."""
    message = os.strerror(error.errno) if error.errno else ""
    if message and not message.startswith("Unknown error"):
        return message
    return error.strerror or type(error).__name__


def extended_code(error: BaseException) -> int:
    """Return SQLite's extended result code (https://sqlite.org/rescode.html); 0 where the error has none."""
    return getattr(error, "sqlite_errorcode", 0)


def primary_code(error: BaseException) -> int:
    """Return SQLite's primary result code; 0 where the error has none."""
    return extended_code(error) & 0xFF


def is_locked(error: BaseException) -> bool:
    """Return whether somebody else holds a lock that the statement needs."""
    return primary_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def explain_unreadable(error: BaseException) -> str:
    """Return why an object of a schema can't be read: what it needs of the application that made it."""
    for pattern in _MISSING_PARTS:
        match = pattern.fullmatch(str(error))
        if match is not None:
            return f"needs the {match[1]} `{match[2]}` of its application"
    if str(error) == "no query solution":
        return "needs a collation of its application"
    return f"SQLite says: `{error}`"
