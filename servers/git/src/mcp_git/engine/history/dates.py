"""Dates as callers write them, said so that git understands them.

Git refuses no date: what it does not know it leaves out, and takes today's day or hour in its place. `2024-06` would be
a day in this month's stead, `7d` the seventh of this month, `last 7 days` seven days before the first of it, `this
week` this very second. So what is taken is what has one meaning, and git is told that one.
"""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import date, datetime, timedelta
from time import time

from mcp_batteries.errors import Invalid, quote

__all__ = ["to_git_date"]

# What git can count: it would take another year.
_FIRST, _LAST = date(1970, 1, 1), date(2099, 12, 31)
_MONTHS = ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
           "november", "december"]  # fmt: skip
_WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
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
_LONG = {
    "second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800, "month": 2_629_746, "year": 31_556_952,
}  # fmt: skip
# What a half of each is made of.
_PARTS = {
    "minute": (60, "second"), "hour": (60, "minute"), "day": (24, "hour"), "week": (7 * 24, "hour"),
    "fortnight": (14, "day"), "year": (12, "month"),
}  # fmt: skip
_COUNTED = rf"(\d+(?:\.\d+)?|(?:{'|'.join(sorted(_COUNTS, key=len, reverse=True))})\b) ?({'|'.join(_UNITS)})s?\b"
_SPAN = re.compile(rf"(?:(?:the )?(?:last|past|previous) |-)?((?:{_COUNTED}(?:,? and |,? |\Z))+)(?:ago)?")
_UNIT = re.compile(r"(?:last |past |previous )?(second|minute|hour|day|week|month|year)(?: ago)?")
_THIS = re.compile(r"(?:(?:start|beginning) of )?(?:this|the) (week|month|year)")
_ISO = re.compile(
    r"(?P<year>\d{4})(?:(?P<mark>[-/.])(?P<month>\d\d?)(?:(?P=mark)(?P<day>\d\d?))?)?"
    r"|(?P<year_2>\d{4})(?P<month_2>\d\d)(?P<day_2>\d\d)|(?P<month_3>\d\d?)[-/.](?P<year_3>\d{4})"
    r"|(?P<month_4>\d\d?)/(?P<day_4>\d\d?)/(?P<year_4>\d{4})|(?P<day_5>\d\d?)\.(?P<month_5>\d\d?)\.(?P<year_5>\d{4})"
)
_SECONDS = re.compile(r"@?\d{9,10}")
_TIMED = re.compile(r"\d{4}-\d\d-\d\d[t ]\d\d(?::?\d\d[\d:., +-]*z?)?")
_OF_MONTH = re.compile(
    r"(?:(?P<year>\d{4})[ -]*)?(?:(?P<day>\d\d?)[ -])?(?:(?P<last>last) )?(?P<month>[a-z]{3,9})"
    r"(?:[ -](?P<day_2>\d\d?)(?!\d))?(?:[ -]*(?P<year_2>\d{4})| (?P<before>last year))?"
)
_ZONE = re.compile(r" ?([+-]\d\d:?\d\d|z|utc|gmt|[ecmp][sd]t|ces?t|bst)\Z")
_TIME = re.compile(r"(?:\bat )?(?:\b(\d\d?:\d\d(?::\d\d)?)(?: ?([ap]m))?|\b(\d\d?) ?([ap]m)|\b(noon|midnight|tea))\b")
# What git takes for the one before the hour that it is now, of whatever day.
_NAMED = {"noon": "12:00", "midnight": "00:00", "tea": "17:00"}


def to_git_date(text: str, name: str, *, to_end: bool = False) -> str:
    """Return a date for one of git's options: a day, a month and a year begin with their first hour, and end with their
    last.

    Args:
        name: of the argument.
        to_end: whether what ends with that time is wanted.

    Raises:
        Invalid: git would take another time for it, or it has more than one meaning.
    """
    said = re.sub(r"(?<=\d)(?:(?:st|nd|rd|th)\b)?(?: of\b)?", "", text.strip().lower())
    said = re.sub(r"(?<=[a-z])\.+(?=\s|$)|(?<=[\da-z])[._](?=[a-z])|(?<=[a-z])[._](?=\d)", " ", said)
    said = re.sub(r"\A(?:(?:since|from|on|over|during|within|in(?= (?:the )?[a-z]{4,})) )?(?:the (?!week|month|year))?",
                  "", " ".join(said.split()))  # fmt: skip
    try:
        if _SECONDS.fullmatch(said) or said in ("now", "never", *_NAMED):
            return said
        if _TIMED.fullmatch(said):
            at = datetime.fromisoformat(said.upper())
            return at.replace(year=max(_FIRST.year, min(_LAST.year, at.year))).isoformat(" ", "seconds")
        if (span := _span(said)) is not None:
            return span
        if (days := _days(said)) is not None:
            return f"{_near(days[to_end])} {'23:59:59' if to_end else '00:00:00'}"
        return _timed(said)
    except (ValueError, OverflowError):
        raise Invalid(f"{quote(text)} is not a date for `{name}`.", "Write `2026-01-31`, or `2 weeks ago`.") from None


def _near(day: date) -> str:
    return max(_FIRST, min(_LAST, day)).isoformat()


def _span(text: str) -> str | None:
    """Return so long before now; None if it is something else."""
    if found := _UNIT.fullmatch(text):
        return f"1 {found[1]} ago"
    if not (found := _SPAN.fullmatch(text)):
        return None
    counted = [_whole(*each) for each in re.findall(_COUNTED, found[1])]
    if sum(number * _LONG[unit] for number, unit in counted) > time():
        return f"{_FIRST} 00:00:00"  # Git would come out anywhere.
    if max(number for number, _ in counted) >= 10**8:
        raise ValueError  # Git takes so many of anything for seconds since 1970.
    return " ".join(f"{number} {unit}{'s' * (number != 1)}" for number, unit in counted) + " ago"


def _whole(count: str, unit: str) -> tuple[int, str]:
    """Return a number of units in which nothing is halved."""
    number, unit = float(_COUNTS.get(count, count)), _UNITS[unit]
    if (unit == "fortnight" or not number.is_integer()) and unit in _PARTS:
        number, unit = number * _PARTS[unit][0], _PARTS[unit][1]
    if not number.is_integer():
        raise ValueError
    return int(number), unit


def _timed(text: str) -> str:
    """Return a time, of a day, in a zone."""
    zone = _ZONE.search(text)
    text = text[: zone.start()] if zone else text
    at_time = _TIME.search(text)
    if at_time is None:
        raise ValueError
    at = _NAMED.get(at_time[5]) or f"{at_time[1] or at_time[3]} {at_time[2] or at_time[4] or ''}".strip()
    datetime.strptime(at.split(" ")[0], "%H" if ":" not in at else "%H:%M:%S" if at.count(":") > 1 else "%H:%M")
    day = " ".join(f"{text[: at_time.start()]} {text[at_time.end() :]}".replace(",", " ").split())
    if day and (named := re.match(rf"({'|'.join(day[:3] for day in _WEEKDAYS)})[a-z]* (?=.*\d)", day)):
        day = day[named.end() :]
    if day and (span := _span(day)) is not None and not re.search("second|minute|hour", span):
        day = span
    elif day:
        if (days := _days(day)) is None or days[0] != days[1]:
            raise ValueError
        day = _near(days[0])
    return " ".join(filter(None, (day, at, zone[1].upper() if zone else "")))


def _days(text: str) -> tuple[date, date] | None:
    """Return the first and the last day of what is a day, a week, a month or a year; None if it is something else."""
    today = date.today()
    if text in ("today", "yesterday", "day before yesterday"):
        day = today - timedelta(("today", "yesterday", "day before yesterday").index(text))
        return day, day
    if found := _THIS.fullmatch(text):
        if found[1] == "week":
            monday = today - timedelta(today.weekday())
            return monday, monday + timedelta(6)
        return _month(today.year, today.month) if found[1] == "month" else _year(today.year)
    if (weekday := _named(text.removeprefix("last ").removeprefix("past "), _WEEKDAYS)) is not None:
        day = today - timedelta((today.weekday() - weekday - 1) % 7 + 1)
        return day, day
    text = text.replace(",", " ").replace("  ", " ")
    if found := _ISO.fullmatch(text):
        given = {key.partition("_")[0]: int(value) for key, value in found.groupdict("").items() if value.isdigit()}
        year, month, number = given["year"], given.get("month"), given.get("day")
        if month is None:
            return _year(year)
        if number and month > 12 and found["year_4"]:
            month, number = number, month
    elif (found := _OF_MONTH.fullmatch(text)) and (at := _named(found["month"], _MONTHS)) is not None:
        if (found["day"] and found["day_2"]) or (found["year"] and (found["year_2"] or found["before"])):
            return None
        month, number = at + 1, int(found["day"] or found["day_2"] or 0) or None
        is_ahead = (month, number or 0) > (today.month, today.day if number else 0) or (
            found["last"] and (month, number or today.day) == (today.month, today.day)
        )
        given_year = found["year"] or found["year_2"]
        year = int(given_year) if given_year else today.year - bool(is_ahead or found["before"])
    else:
        return None
    if number is None:
        return _month(year, month)
    day = date(year, month, number)
    return day, day


def _named(text: str, names: list[str]) -> int | None:
    """Which of `names` is meant by the whole of it or its beginning."""
    short = {"thurs": "thu", "tues": "tue", "sept": "sep", "thur": "thu"}.get(text, text)
    return next((at for at, name in enumerate(names) if short in (name, name[:3])), None)


def _month(year: int, month: int) -> tuple[date, date]:
    return date(year, month, 1), date(year, month, monthrange(year, month)[1])


def _year(year: int) -> tuple[date, date]:
    return date(year, 1, 1), date(year, 12, 31)
