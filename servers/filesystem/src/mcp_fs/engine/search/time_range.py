"""When files were changed, as callers write it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from mcp_batteries.errors import Invalid, quote

__all__ = ["TimeRange", "parse_time_range"]

_AGE = re.compile(r"(\d{1,6})\s*(min|h|d|w)")
_UNITS = {
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}


@dataclass(frozen=True, slots=True)
class TimeRange:
    """From one time to another, in seconds since the epoch.

    Attributes:
        until: not included.
    """

    since: float | None
    until: float | None

    def holds(self, seconds: float) -> bool:
        if self.since is not None and seconds < self.since:
            return False
        return self.until is None or seconds < self.until


def parse_time_range(since: str | None, until: str | None) -> TimeRange | None:
    """Return the range from the beginning of one day, or a time, to the end of another; None without both.

    Args:
        since: a date, a time or an age, such as `2026-11-28`, `2026-11-28T09:30` or `3d`. A date is one of this
            machine's time zone.
        until: the same; of a date the whole day is included.

    Raises:
        Invalid: one can't be read.
    """
    if since is None and until is None:
        return None
    return TimeRange(_parse(since, "since", is_end=False), _parse(until, "until", is_end=True))


def _parse(text: str | None, name: str, *, is_end: bool) -> float | None:
    if text is None:
        return None
    age = _AGE.fullmatch(text.strip())
    try:
        if age is not None:
            return (datetime.now(UTC) - int(age[1]) * _UNITS[age[2]]).timestamp()
        time = datetime.fromisoformat(text.strip())
        if is_end and len(text.strip()) <= len("2026-11-28"):
            time += timedelta(days=1)
        return time.astimezone().timestamp()
    except (ValueError, OverflowError, OSError):
        raise Invalid(
            f"`{name}` {quote(text)} is no time.",
            "Write a date, a time or an age: `2026-11-28`, `2026-11-28T09:30`, `3d`, `90min`.",
        ) from None
