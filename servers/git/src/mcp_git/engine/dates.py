"""Dates as callers write them, said so that git understands them.

Git refuses no date: what it does not know it leaves out, and takes today's day or hour in its place. `2024-06` would be
a day in this month's stead, `7d` the seventh of this month, `today` this very second.
"""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import date, datetime

from mcp_batteries.errors import Invalid, quote

__all__ = ["for_git"]

_FIRST, _LAST = date(1970, 1, 1), date(2099, 12, 31)
"""What git can count: it would take another year."""
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_UNITS = {
    "s": "second", "sec": "second", "min": "minute", "h": "hour", "hr": "hour", "d": "day", "w": "week", "wk": "week",
    "mo": "month", "y": "year", "yr": "year",
}  # fmt: skip
_SHORT = re.compile(rf"(\d+) ?({'|'.join(_UNITS)})s?\b", re.I)
_ISO = re.compile(
    r"(?P<year>\d{4})(?:(?P<mark>[-/.])(?P<month>\d\d?)(?:(?P=mark)(?P<day>\d\d?))?)?"
    r"|(?P<year_2>\d{4})(?P<month_2>\d\d)(?P<day_2>\d\d)|(?P<month_3>\d\d?)[-/.](?P<year_3>\d{4})"
)
_SECONDS = re.compile(r"@?\d{9,10}")
_TIMED = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d(?::?\d\d[\d:., +-]*[Zz]?)?")
_OF_MONTH = re.compile(r"(?:(\d{4})[ -]*)?([a-z]{3,9})(?:[ .,-]*(\d{4}))?", re.I | re.A)
_WEEKDAY = re.compile(r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?(?= \d\d?(?::\d\d)+\Z|\Z)", re.I)
_DAY = re.compile(
    r"\d{4}([-/.])\d\d?\1\d\d?|\d\d? [a-z]{3,9},? \d{4}|[a-z]{3,9} \d\d?,? \d{4}|\d\d?[/.]\d\d?[/.]\d{4}"
    rf"|\d\d? (?:{'|'.join(_MONTHS)})[a-z]*|(?:{'|'.join(_MONTHS)})[a-z]* \d\d?"
    r"|today|yesterday|last (?!week|month|year)[a-z]{3,9}",
    re.I | re.A,
)
"""A day without an hour: git would take the hour that it is now."""
_WORD = re.compile(r"[^\W\d_]+")
_KNOWN = re.compile(
    r"jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sept?(ember)?|oct(ober)?|nov(ember)?"
    r"|dec(ember)?|mon(day)?|tue(s|sday)?|wed(nesday)?|thu(r|rs|rsday)?|fri(day)?|sat(urday)?|sun(day)?"
    r"|now|today|yesterday|noon|midnight|tea|never|last|ago|at|on|the|and|am|pm|z|utc|gmt|[ecmp][sd]t|cest|cet|bst"
    r"|(second|minute|hour|day|week|month|year)s?|one|two|three|four|five|six|seven|eight|nine|ten",
    re.I,
)
"""The words that git knows in dates, and small ones that it may leave out."""
_STRANGE = re.compile(r"[^\W\dTt]\d|\d[.,]\d+ [a-z]|[^\w\s:+,./-]|\b\d\d-\d\d-\d\d\b|\A\W*\Z", re.I)
"""A letter before a digit, half of a unit, a year of two figures."""


def for_git(text: str, name: str, *, to_end: bool = False) -> str:
    """A date for one of git's options: a day, a month and a year begin with their first hour, and end with their last.

    Args:
        name: of the argument.
        to_end: whether what ends with that time is wanted.

    Raises:
        Invalid: git would take another time for it.
    """
    said = re.sub(r"(?<=\d)(?:st|nd|rd|th)\b|\bof\b", "", text.strip(), flags=re.I)
    said = re.sub(r"\b(?:an?) (?=[a-z]+ ago)", "1 ", " ".join(said.split()), flags=re.I)
    said = _SHORT.sub(lambda found: f"{found[1]} {_UNITS[found[2].lower()]}s", said)
    said = _WEEKDAY.sub(lambda found: f"last {found[0]}", said) if _WEEKDAY.match(said) else said
    if _SECONDS.fullmatch(said):
        return said
    try:
        if (day := _day(said, to_end)) is not None:
            said = max(_FIRST, min(_LAST, day)).isoformat()
        elif _TIMED.fullmatch(said):
            at = datetime.fromisoformat(said.upper())
            return at.replace(year=max(_FIRST.year, min(_LAST.year, at.year))).isoformat(" ", "seconds")
    except ValueError:
        raise _no_date(text, name) from None
    words = _WORD.findall(said)
    if _STRANGE.search(said) or (not words and said.isdigit()) or not all(map(_KNOWN.fullmatch, words)):
        raise _no_date(text, name)
    return f"{said} {'23:59:59' if to_end else '00:00:00'}" if _DAY.fullmatch(said) else said


def _day(text: str, to_end: bool) -> date | None:
    """The day that a day, month or year begins or ends with, where that is all there is; None if it is not."""
    if (
        (found := _OF_MONTH.fullmatch(text))
        and (name := found[2][:3].lower()) in _MONTHS
        and not (found[1] and found[3])
    ):
        if not _KNOWN.fullmatch(found[2]):
            return None
        month, day, today = _MONTHS.index(name) + 1, None, date.today()
        year = int(found[1] or found[3] or today.year - (month > today.month))
    elif found := _ISO.fullmatch(text):
        given = {key.partition("_")[0]: int(value) for key, value in found.groupdict("").items() if value.isdigit()}
        year, month, day = given["year"], given.get("month") or (12 if to_end else 1), given.get("day")
    else:
        return None
    return date(year, month, day or (monthrange(year, month)[1] if to_end else 1))


def _no_date(text: str, name: str) -> Invalid:
    return Invalid(f"{quote(text)} is not a date for `{name}`.", "Write `2026-01-31`, or `2 weeks ago`.")
