"""Text helpers for answers."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["common_time_prefix", "escape_line_breaks", "is_one_line", "pluralize"]

_MIN_TIMES = 3
"""Times that cost less than to tell once what is the same in them."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT.*Z")

# Surrogates stand for bytes that are not UTF-8, which no answer can carry.
_LINE_BREAKING = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def is_one_line(text: str) -> bool:
    """False for text that could pass for the end of a line of an answer."""
    return _LINE_BREAKING.search(text) is None


def escape_line_breaks(text: str) -> str:
    """`text` with what could pass for the end of a line escaped."""
    return _LINE_BREAKING.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def pluralize(count: int, noun: str) -> str:
    """`1 file`, `2,000 files`, `3 entries`."""
    if count == 1:
        return f"1 {noun}"
    ending = noun[:-1] + "ies" if noun.endswith("y") else f"{noun}es" if noun.endswith("ch") else f"{noun}s"
    return f"{count:,} {ending}"


def common_time_prefix(times: Sequence[str]) -> str:
    """The common time (UTC, ISO 8601) or day of all `times`; empty if they are few or differ."""
    if len(times) < _MIN_TIMES or not all(map(_TIME.fullmatch, times)):
        return ""
    return next((told for told in (times[0], times[0][:10]) if all(time.startswith(told) for time in times)), "")
