"""The failure of a request, in words for the caller."""

from __future__ import annotations

import os

__all__ = ["Failure", "describe_os_error"]


class Failure(Exception):
    """Raised when a request fails for a reason the caller can understand.

    Args:
        kind: the name of the `Problem` the server makes of it, in lower case.
    """

    def __init__(self, kind: str, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.kind, self.message, self.fix = kind, message, fix


def describe_os_error(error: OSError) -> str:
    """Why the system refused, in the C library's words: those of Windows come in the language of its user."""
    words = os.strerror(error.errno) if error.errno else ""
    return words if words and not words.startswith("Unknown error") else error.strerror or type(error).__name__
