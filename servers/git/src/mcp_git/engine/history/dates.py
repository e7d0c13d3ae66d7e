"""Translates dates as callers write them, so that git understands them as they are meant.

Git refuses no date: what it does not know it leaves out, and takes today's day or hour in its place. `2024-06` would be
a day in this month's stead, `7d` the seventh of this month, `last 7 days` seven days before the first of it. So only
forms that have one meaning are taken, and git gets a time that it can't misread.
"""

from __future__ import annotations

import re
from calendar import monthrange
from contextlib import suppress
from datetime import date, datetime, timedelta
from time import time
from typing import NamedTuple

from mcp_batteries.errors import Invalid, quote

__all__ = ["to_git_date"]

# What git can count: it would take another year.
_FIRST_DAY = date(1970, 1, 1)
_LAST_DAY = date(2099, 12, 31)
# Git takes so many of any unit for seconds since 1970.
_MAX_NUMBER = 10**8
_EPOCH_SECONDS = re.compile(r"@?\d{9,10}")
_COUNTS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7}
_UNITS = {
    "s": "second", "sec": "second", "second": "second", "min": "minute", "minute": "minute", "h": "hour", "hr": "hour",
    "hour": "hour", "d": "day", "day": "day", "w": "week", "wk": "week", "week": "week", "mo": "month",
    "month": "month", "y": "year", "yr": "year", "year": "year",
}  # fmt: skip
_UNIT_SECONDS = {
    "second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800, "month": 2_629_746, "year": 31_556_952,
}  # fmt: skip
_SPAN = re.compile(
    r"(?:in )?(?:the )?(?:last |past |previous |-)?"
    rf"(?:(?P<count>\d+|(?:{'|'.join(_COUNTS)})\b) ?(?P<unit>{'|'.join(_UNITS)})s?"
    rf"|(?P<one_unit>{'|'.join(_UNIT_SECONDS)}))"
    r"(?: ago)?"
)
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTH = re.compile(r"(?P<year>\d{4})[-/](?P<month>\d\d?)|(?P<month_first>\d\d?)/(?P<year_last>\d{4})")
_DAY = re.compile(r"(?P<year>\d{4})(?P<separator>[-/.])(?P<month>\d\d?)(?P=separator)(?P<day>\d\d?)")
_DAYS_IN_WORDS = ("%B %d %Y", "%b %d %Y", "%d %B %Y", "%d %b %Y")
_MONTHS_IN_WORDS = ("%B %Y", "%b %Y")
# ISO 8601, and as git prints them: `--date=iso`, `--date=default` and `--date=rfc`.
_TIMES = (
    "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%d %H:%M %z", "%Y-%m-%d %H:%M:%S %z",
    "%Y-%m-%d %H:%M:%S.%f %z", "%a %b %d %H:%M:%S %Y %z", "%a, %d %b %Y %H:%M:%S %z",
)  # fmt: skip


class _Period(NamedTuple):
    """The days from the first to the last one, both included."""

    first: date
    last: date


def to_git_date(text: str, name: str, *, to_end: bool = False) -> str:
    """Return a date for one of git's options: a day, a month and a year begin with their first hour, and end with their
    last.

    Args:
        name: of the argument.
        to_end: whether what ends with that time is wanted.

    Raises:
        Invalid: git would take another time for it, or it has more than one meaning.
    """
    words = " ".join(text.strip().lower().removeprefix("since ").split())
    with suppress(ValueError, OverflowError):
        translated = _translate(words, to_end)
        if translated is not None:
            return translated
    raise Invalid(f"{quote(text)} is not a date for `{name}`.", "Write `2026-01-31`, or `2 weeks ago`.")


def _translate(text: str, to_end: bool) -> str | None:
    if _EPOCH_SECONDS.fullmatch(text) or text in ("now", "never"):
        return text
    span = _translate_span(text.replace(".", " "))
    if span is not None:
        return span
    period = _parse_period(text)
    if period is None:
        return _translate_time(text)
    if to_end:
        return f"{_clamp(period.last)} 23:59:59"
    return f"{_clamp(period.first)} 00:00:00"


def _clamp(day: date) -> str:
    return max(_FIRST_DAY, min(_LAST_DAY, day)).isoformat()


def _translate_span(text: str) -> str | None:
    """Return so long before now, such as `2 weeks ago`, `last 7 days` or `24h`; None if it is something else."""
    match = _SPAN.fullmatch(text)
    if match is None:
        return None
    word = match["count"] or "1"
    number = _COUNTS.get(word) or int(word)
    unit = _UNITS[match["unit"] or match["one_unit"]]
    if number * _UNIT_SECONDS[unit] > time():
        return f"{_FIRST_DAY} 00:00:00"  # Git would come out anywhere.
    if number >= _MAX_NUMBER:
        raise ValueError
    return f"{number} {unit}s ago"


def _parse_period(text: str) -> _Period | None:
    """Return the day, month or year that `text` means; None if it means none.

    Raises:
        ValueError: the calendar has no such day.
    """
    return _parse_recent_day(text, date.today()) or _parse_numbers(text) or _parse_words(text)


def _parse_recent_day(text: str, today: date) -> _Period | None:
    """Return today, yesterday, or the latest day before today that has this name; None if it is something else."""
    weekday = text.removeprefix("last ")
    if text == "today":
        return _day(today)
    if text == "yesterday":
        return _day(today - timedelta(1))
    if weekday in _WEEKDAYS:
        return _day(today - timedelta((today.weekday() - _WEEKDAYS.index(weekday) - 1) % 7 + 1))
    return None


def _parse_numbers(text: str) -> _Period | None:
    """Return the year, month or day that is written in numbers; None if it is something else.

    Raises:
        ValueError: the calendar has no such day.
    """
    if re.fullmatch(r"\d{4}", text):
        return _Period(date(int(text), 1, 1), date(int(text), 12, 31))
    if match := _MONTH.fullmatch(text):
        return _month(date(int(match["year"] or match["year_last"]), int(match["month"] or match["month_first"]), 1))
    if match := _DAY.fullmatch(text):
        year, month, day_of_month = (int(number) for number in match.group("year", "month", "day"))
        return _day(date(year, month, day_of_month))
    if re.fullmatch(r"\d{8}", text):
        return _day(date.fromisoformat(text))
    return None


def _parse_words(text: str) -> _Period | None:
    """Return the day or month that is written as `June 1st, 2024` or `Jun 2024`; None if it is something else."""
    words = re.sub(r"(?<=\d)(st|nd|rd|th)\b|,|\bof ", "", text)
    for form in _DAYS_IN_WORDS:
        with suppress(ValueError):
            return _day(datetime.strptime(words, form).date())
    for form in _MONTHS_IN_WORDS:
        with suppress(ValueError):
            return _month(datetime.strptime(words, form).date())
    return None


def _day(day: date) -> _Period:
    return _Period(day, day)


def _month(first: date) -> _Period:
    _, day_count = monthrange(first.year, first.month)
    return _Period(first, first.replace(day=day_count))


def _translate_time(text: str) -> str | None:
    """Return a time of a day, in its zone or else that of git; None if it is something else."""
    words = re.sub(r"(?<=\d)t(?=\d)", " ", text)
    words = re.sub(r"(?<=:\d\d) ?(utc|gmt|z)$", " +0000", words)
    words = re.sub(r"(?<=[\d]) ?([+-]\d\d):?(\d\d)$", r" \1\2", words)
    for form in _TIMES:
        with suppress(ValueError):
            moment = datetime.strptime(words, form)
            year = max(_FIRST_DAY.year, min(_LAST_DAY.year, moment.year))
            return moment.replace(year=year).isoformat(" ", "seconds")
    return None
