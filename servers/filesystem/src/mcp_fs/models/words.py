"""Text helpers for answers."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["counted", "is_one_line", "one_line", "told_once"]

_FEW = 3
"""Times that cost less than to tell once what is the same in them."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT.*Z")

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


def told_once(times: Sequence[str]) -> str:
    """The common time (UTC, ISO 8601) or day of all `times`; empty if they are few or differ."""
    if len(times) < _FEW or not all(map(_TIME.fullmatch, times)):
        return ""
    return next((told for told in (times[0], times[0][:10]) if all(time.startswith(told) for time in times)), "")
