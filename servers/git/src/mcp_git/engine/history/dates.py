"""Translates dates as callers write them, so that git understands them as they are meant.

Git refuses no date: what it does not know it leaves out, and takes today's day or hour in its place. `2024-06` would be
a day in this month's stead, `7d` the seventh of this month, `last 7 days` seven days before the first of it, `this
week` this very second. So only what has one meaning is taken, and git gets that one.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from time import time
from typing import NamedTuple

from mcp_batteries.errors import Invalid, quote
from mcp_git.engine.history.calendar_periods import WEEKDAYS, parse_period

__all__ = ["to_git_date"]

# What git can count: it would take another year.
_FIRST_DAY = date(1970, 1, 1)
_LAST_DAY = date(2099, 12, 31)
# Git takes so many of any unit for seconds since 1970.
_MAX_NUMBER = 10**8
_NUMBERS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
            "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"]  # fmt: skip
_COUNTS = {word: str(number) for number, word in enumerate(_NUMBERS)} | {
    "a": "1", "an": "1", "a couple of": "2", "a couple": "2", "couple of": "2", "couple": "2", "thirty": "30",
    "half": "0.5", "half a": "0.5", "half an": "0.5", "a half": "0.5",
}  # fmt: skip
_UNITS = {
    "s": "second", "sec": "second", "second": "second", "min": "minute", "minute": "minute", "h": "hour", "hr": "hour",
    "hour": "hour", "d": "day", "day": "day", "w": "week", "wk": "week", "week": "week", "fortnight": "fortnight",
    "mo": "month", "month": "month", "y": "year", "yr": "year", "year": "year",
}  # fmt: skip
_UNIT_SECONDS = {
    "second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800, "month": 2_629_746, "year": 31_556_952,
}  # fmt: skip
# What a half of each is made of.
_SMALLER_UNITS = {
    "minute": (60, "second"), "hour": (60, "minute"), "day": (24, "hour"), "week": (7 * 24, "hour"),
    "fortnight": (14, "day"), "year": (12, "month"),
}  # fmt: skip
_AMOUNT = rf"(\d+(?:\.\d+)?|(?:{'|'.join(sorted(_COUNTS, key=len, reverse=True))})\b) ?({'|'.join(_UNITS)})s?\b"
_SPAN = re.compile(rf"(?:(?:the )?(?:last|past|previous) |-)?((?:{_AMOUNT}(?:,? and |,? |\Z))+)(?:ago)?")
_UNIT_AGO = re.compile(r"(?:last |past |previous )?(second|minute|hour|day|week|month|year)(?: ago)?")
_EPOCH_SECONDS = re.compile(r"@?\d{9,10}")
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d[t ]\d\d(?::?\d\d[\d:., +-]*z?)?")
_ZONE = re.compile(r" ?([+-]\d\d:?\d\d|z|utc|gmt|[ecmp][sd]t|ces?t|bst)\Z")
_TIME = re.compile(
    r"(?:\bat )?(?:\b(?P<clock>\d\d?:\d\d(?::\d\d)?)(?: ?(?P<clock_half>[ap]m))?"
    r"|\b(?P<hour>\d\d?) ?(?P<hour_half>[ap]m)|\b(?P<name>noon|midnight|tea))\b"
)
# What git takes for the one before the hour that it is now, of whatever day.
_NAMED_TIMES = {"noon": "12:00", "midnight": "00:00", "tea": "17:00"}
_CLOCK_FORMATS = ["%H", "%H:%M", "%H:%M:%S"]
_LEADING_WEEKDAY = re.compile(rf"(?:{'|'.join(name[:3] for name in WEEKDAYS)})[a-z]* (?=.*\d)")
_ORDINAL_ENDING = re.compile(r"(?<=\d)(?:(?:st|nd|rd|th)\b)?(?: of\b)?")
_DOT_OR_UNDERSCORE = re.compile(r"(?<=[a-z])\.+(?=\s|$)|(?<=[\da-z])[._](?=[a-z])|(?<=[a-z])[._](?=\d)")
_PREPOSITION = re.compile(
    r"\A(?:(?:since|from|on|over|during|within|in(?= (?:the )?[a-z]{4,})) )?(?:the (?!week|month|year))?"
)


class _Amount(NamedTuple):
    """So many of a unit."""

    number: int
    unit: str

    @property
    def seconds(self) -> int:
        return self.number * _UNIT_SECONDS[self.unit]

    @property
    def text(self) -> str:
        if self.number == 1:
            return f"1 {self.unit}"
        return f"{self.number} {self.unit}s"


def to_git_date(text: str, name: str, *, to_end: bool = False) -> str:
    """Return a date for one of git's options: a day, a month and a year begin with their first hour, and end with their
    last.

    Args:
        name: of the argument.
        to_end: whether what ends with that time is wanted.

    Raises:
        Invalid: git would take another time for it, or it has more than one meaning.
    """
    try:
        return _translate(_normalize(text), to_end)
    except (ValueError, OverflowError):
        raise Invalid(f"{quote(text)} is not a date for `{name}`.", "Write `2026-01-31`, or `2 weeks ago`.") from None


def _normalize(text: str) -> str:
    """Return a date in small letters, without ordinal endings, dots of abbreviations and a preposition."""
    text = _ORDINAL_ENDING.sub("", text.strip().lower())
    text = _DOT_OR_UNDERSCORE.sub(" ", text)
    return _PREPOSITION.sub("", " ".join(text.split()))


def _translate(text: str, to_end: bool) -> str:
    if _EPOCH_SECONDS.fullmatch(text) or text in ("now", "never", *_NAMED_TIMES):
        return text
    if _TIMESTAMP.fullmatch(text):
        return _translate_timestamp(text)
    span = _translate_span(text)
    if span is not None:
        return span
    period = parse_period(text)
    if period is None:
        return _translate_time(text)
    if to_end:
        return f"{_clamp(period.last)} 23:59:59"
    return f"{_clamp(period.first)} 00:00:00"


def _clamp(day: date) -> str:
    return max(_FIRST_DAY, min(_LAST_DAY, day)).isoformat()


def _translate_timestamp(text: str) -> str:
    timestamp = datetime.fromisoformat(text.upper())
    year = max(_FIRST_DAY.year, min(_LAST_DAY.year, timestamp.year))
    return timestamp.replace(year=year).isoformat(" ", "seconds")


def _translate_span(text: str) -> str | None:
    """Return so long before now; None if it is something else."""
    unit = _UNIT_AGO.fullmatch(text)
    if unit is not None:
        return f"1 {unit[1]} ago"
    span = _SPAN.fullmatch(text)
    if span is None:
        return None
    amounts = [_parse_amount(count, unit) for count, unit in re.findall(_AMOUNT, span[1])]
    if sum(amount.seconds for amount in amounts) > time():
        return f"{_FIRST_DAY} 00:00:00"  # Git would come out anywhere.
    if max(amount.number for amount in amounts) >= _MAX_NUMBER:
        raise ValueError
    return " ".join(amount.text for amount in amounts) + " ago"


def _parse_amount(count: str, unit_name: str) -> _Amount:
    """Return a number of units in which nothing is halved."""
    number = float(_COUNTS.get(count, count))
    unit = _UNITS[unit_name]
    if unit == "fortnight" or (unit in _SMALLER_UNITS and not number.is_integer()):
        factor, unit = _SMALLER_UNITS[unit]
        number *= factor
    if not number.is_integer():
        raise ValueError
    return _Amount(int(number), unit)


def _translate_time(text: str) -> str:
    """Return a time, of a day, in a zone."""
    zone = ""
    zone_match = _ZONE.search(text)
    if zone_match is not None:
        zone = zone_match[1].upper()
        text = text[: zone_match.start()]
    time_match = _TIME.search(text)
    if time_match is None:
        raise ValueError
    day = f"{text[: time_match.start()]} {text[time_match.end() :]}".replace(",", " ")
    words = [_translate_day(" ".join(day.split())), _translate_time_of_day(time_match), zone]
    return " ".join(filter(None, words))


def _translate_time_of_day(match: re.Match[str]) -> str:
    if match["name"]:
        return _NAMED_TIMES[match["name"]]
    clock = match["clock"] or match["hour"]
    datetime.strptime(clock, _CLOCK_FORMATS[clock.count(":")])
    half = match["clock_half"] or match["hour_half"] or ""
    return f"{clock} {half}".strip()


def _translate_day(text: str) -> str:
    """Return the day beside a time; empty if there is none."""
    if not text:
        return ""
    weekday = _LEADING_WEEKDAY.match(text)
    if weekday is not None:
        text = text[weekday.end() :]
    span = _translate_span(text)
    if span is not None and not re.search("second|minute|hour", span):
        return span
    period = parse_period(text)
    if period is None or period.first != period.last:
        raise ValueError
    return _clamp(period.first)
