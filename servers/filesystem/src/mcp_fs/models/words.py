"""Words of answers."""

from __future__ import annotations

import re

__all__ = ["counted", "is_one_line", "one_line"]

# Surrogates stand for bytes that are not UTF-8, which no answer can carry.
_BREAKS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def is_one_line(text: str) -> bool:
    """False for text that could pass for the end of a line of an answer."""
    return _BREAKS.search(text) is None


def one_line(text: str) -> str:
    """`text` with what could pass for the end of a line escaped."""
    return _BREAKS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def counted(number: int, noun: str) -> str:
    """`1 file`, `2,000 files`, `3 entries`."""
    if number == 1:
        return f"1 {noun}"
    ending = noun[:-1] + "ies" if noun.endswith("y") else f"{noun}es" if noun.endswith("ch") else f"{noun}s"
    return f"{number:,} {ending}"
