"""The failure of a request, in words for the caller."""

from __future__ import annotations

import os

__all__ = ["Failure", "reason"]


class Failure(Exception):
    """Raised when a request fails for a reason the caller can understand.

    Args:
        kind: the name of the `Problem` the server makes of it, in lower case.
    """

    def __init__(self, kind: str, what: str, fix: str = "") -> None:
        super().__init__(what)
        self.kind, self.what, self.fix = kind, what, fix


def reason(error: OSError) -> str:
    """Why the system refused, in the C library's words: those of Windows come in the language of its user."""
    words = os.strerror(error.errno) if error.errno else ""
    return words if words and not words.startswith("Unknown error") else error.strerror or type(error).__name__
