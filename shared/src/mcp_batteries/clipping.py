"""Limits on the size of an answer, and how a text is cut to them."""

from __future__ import annotations

__all__ = ["DEFAULT_PAGE_BYTES", "clip", "head"]

# Text bytes of one answer unless the caller asks otherwise: every measured host passes as much on whole.
DEFAULT_PAGE_BYTES = 10_000


def clip(text: str, limit: int, how: str) -> str:
    """Return `text`, or its first `limit` characters after a line that says so and how to continue.

    The notice comes first because hosts cut the middle and the end of long results.
    """
    if len(text) <= limit:
        return text
    return f"[truncated: {limit} of {len(text)} characters; {how}]\n{text[:limit]}"


def head(text: str, most: int) -> str:
    """Return as much of `text` as fits into `most` bytes of UTF-8."""
    if len(text) <= most and text.isascii():
        return text
    data = text.encode("utf-8", "replace")
    if len(data) <= most:
        return text
    return data[:most].decode("utf-8", "ignore")
