"""Reads days, weeks, months and years as callers write them."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Sequence
from datetime import date, timedelta
from typing import NamedTuple

__all__ = ["WEEKDAYS", "Period", "parse_period"]

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_RECENT_DAYS = {"today": 0, "yesterday": 1, "day before yesterday": 2}
_LONG_ABBREVIATIONS = {"thurs": "thu", "tues": "tue", "sept": "sep", "thur": "thu"}
_CURRENT_PERIOD = re.compile(r"(?:(?:start|beginning) of )?(?:this|the) (week|month|year)")
_AMERICAN_DATE = re.compile(r"(?P<month>\d\d?)/(?P<day>\d\d?)/(?P<year>\d{4})")
_NUMERIC_DATES = (
    re.compile(r"(?P<year>\d{4})(?:(?P<separator>[-/.])(?P<month>\d\d?)(?:(?P=separator)(?P<day>\d\d?))?)?"),
    re.compile(r"(?P<year>\d{4})(?P<month>\d\d)(?P<day>\d\d)"),
    re.compile(r"(?P<month>\d\d?)[-/.](?P<year>\d{4})"),
    _AMERICAN_DATE,
    re.compile(r"(?P<day>\d\d?)\.(?P<month>\d\d?)\.(?P<year>\d{4})"),
)
_NAMED_MONTH = re.compile(
    r"(?:(?P<year>\d{4})[ -]*)?(?:(?P<day>\d\d?)[ -])?(?:(?P<last>last) )?(?P<month>[a-z]{3,9})"
    r"(?:[ -](?P<day_behind>\d\d?)(?!\d))?(?:[ -]*(?P<year_behind>\d{4})| (?P<last_year>last year))?"
)


class Period(NamedTuple):
    """The days from the first to the last one, both included."""

    first: date
    last: date

    @classmethod
    def of_day(cls, day: date) -> Period:
        return cls(day, day)

    @classmethod
    def of_week(cls, day: date) -> Period:
        """Return the week, from Monday on, in which a day lies."""
        monday = day - timedelta(day.weekday())
        return cls(monday, monday + timedelta(6))

    @classmethod
    def of_month(cls, year: int, month: int) -> Period:
        first = date(year, month, 1)
        _, day_count = monthrange(year, month)
        return cls(first, first.replace(day=day_count))

    @classmethod
    def of_year(cls, year: int) -> Period:
        return cls(date(year, 1, 1), date(year, 12, 31))


def parse_period(text: str) -> Period | None:
    """Return the day, week, month or year that `text` means; None if it means none.

    Raises:
        ValueError: it looks like a date, and the calendar has no such day.
    """
    today = date.today()
    for parse in (_parse_recent_day, _parse_current_period, _parse_weekday, _parse_numeric_date, _parse_named_month):
        period = parse(text, today)
        if period is not None:
            return period
    return None


def _parse_recent_day(text: str, today: date) -> Period | None:
    if text not in _RECENT_DAYS:
        return None
    return Period.of_day(today - timedelta(_RECENT_DAYS[text]))


def _parse_current_period(text: str, today: date) -> Period | None:
    match = _CURRENT_PERIOD.fullmatch(text)
    if match is None:
        return None
    match match[1]:
        case "week":
            return Period.of_week(today)
        case "month":
            return Period.of_month(today.year, today.month)
        case _:
            return Period.of_year(today.year)


def _parse_weekday(text: str, today: date) -> Period | None:
    """Return the latest day before today that has this name."""
    weekday = _find_name(text.removeprefix("last ").removeprefix("past "), WEEKDAYS)
    if weekday is None:
        return None
    days_since = (today.weekday() - weekday - 1) % 7 + 1
    return Period.of_day(today - timedelta(days_since))


def _parse_numeric_date(text: str, today: date) -> Period | None:
    text = _drop_commas(text)
    for pattern in _NUMERIC_DATES:
        match = pattern.fullmatch(text)
        if match is not None:
            return _read_numeric_date(match)
    return None


def _read_numeric_date(match: re.Match[str]) -> Period:
    numbers = {name: int(value) for name, value in match.groupdict("").items() if value.isdigit()}
    year = numbers["year"]
    if "month" not in numbers:
        return Period.of_year(year)
    month = numbers["month"]
    if "day" not in numbers:
        return Period.of_month(year, month)
    day = numbers["day"]
    if match.re is _AMERICAN_DATE and month > 12:
        # There is no such month, so it was written as in Europe.
        return Period.of_day(date(year, day, month))
    return Period.of_day(date(year, month, day))


def _parse_named_month(text: str, today: date) -> Period | None:
    match = _NAMED_MONTH.fullmatch(_drop_commas(text))
    if match is None or _is_ambiguous(match):
        return None
    month_index = _find_name(match["month"], _MONTHS)
    if month_index is None:
        return None
    month = month_index + 1
    day = int(match["day"] or match["day_behind"] or 0)
    year = _find_year(match, month, day, today)
    if not day:
        return Period.of_month(year, month)
    return Period.of_day(date(year, month, day))


def _is_ambiguous(match: re.Match[str]) -> bool:
    """Whether a date has two days, or two years."""
    if match["day"] and match["day_behind"]:
        return True
    return bool(match["year"] and (match["year_behind"] or match["last_year"]))


def _find_year(match: re.Match[str], month: int, day: int, today: date) -> int:
    """Return the year of a date: the one it names, or else the latest in which it is not still to come.

    Args:
        day: 0 if it is a whole month.
    """
    year = match["year"] or match["year_behind"]
    if year:
        return int(year)
    if match["last_year"]:
        return today.year - 1
    asked = (month, day)
    current = (today.month, today.day if day else 0)
    if asked > current or (match["last"] and asked == current):
        return today.year - 1
    return today.year


def _drop_commas(text: str) -> str:
    return text.replace(",", " ").replace("  ", " ")


def _find_name(text: str, names: Sequence[str]) -> int | None:
    """Return the index of the name that `text` is, or whose three first letters."""
    short = _LONG_ABBREVIATIONS.get(text, text)
    for index, name in enumerate(names):
        if short in (name, name[:3]):
            return index
    return None
