"""Decides which days a caller means, among those with a possible answer."""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from mcp_batteries.errors import Invalid, quote

__all__ = ["Day", "Days", "forecast_day", "past_days", "sky_day"]

FIRST_DAY = date(1940, 1, 1)
"""The first day of the reanalysis behind past weather."""

FORECAST_DAYS = 15
"""Whole days for which there is a forecast by hour, today included."""

FIRST_SKY, LAST_SKY = date(1900, 1, 1), date(2099, 12, 31)
"""The years for which the formulas of NOAA's solar calculator are made."""

_CLOCK = r"[t ]\d{1,2}(?::?\d\d){0,2}(?:[.,]\d+)?(?: ?(?:z|utc|[ap]m|[+-]\d\d(?::?\d\d)?))?"
_DATE = re.compile(rf"(\d{{4}})[-/.](\d{{1,2}})[-/.](\d{{1,2}})(?:{_CLOCK})?|(\d{{4}})(\d\d)(\d\d)")
_DAY_LAST = re.compile(r"(\d{1,2})([./])(\d{1,2})\2(\d{4})")
_DAYS = {
    "yesterday": -1, "today": 0, "tonight": 0, "tomorrow": 1, "day after tomorrow": 2, "day before yesterday": -2,
}  # fmt: skip
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_AWAY = re.compile(r"(in )?(\d{1,4}) days?( ago| from now)?")
_NAMED = re.compile(r"(?:([a-z]{3,9})\.? (\d{1,2})|(\d{1,2})\.? (?:of )?([a-z]{3,9})\.?)(?:,? (\d{4}))?")


@dataclass(frozen=True)
class Day:
    """One calendar day with a possible answer."""

    date: date


@dataclass(frozen=True)
class Days:
    """A span of whole days, the first not after the last."""

    first: date
    last: date

    def starting(self, year: int) -> Days:
        """The same calendar days, the first of them in `year`; a missing leap day becomes the day before it."""
        return Days(_in_year(self.first, year), _in_year(self.last, year + self.last.year - self.first.year))

    def since(self, day: date) -> Days:
        """Those from `day` on, which is one of them."""
        return Days(day, self.last)


def forecast_day(text: str, today: date) -> Day:
    """The day of the next two weeks that `text` means.

    Raises:
        Invalid: it means none, or one for which there is no forecast by hour.
    """
    day = _day(text, today)
    last = today + timedelta(days=FORECAST_DAYS - 1)
    if not today <= day <= last:
        raise Invalid(
            f"There is a forecast by hour from {today} to {last}, not for {day}.",
            "Use `get_history` for days that are past." if day < today else "Ask for an earlier day.",
        )
    return Day(day)


def sky_day(text: str | None, today: date, zone: tzinfo = UTC) -> Day:
    """The day whose sun and moon can be computed; `today` without `text`.

    Raises:
        Invalid: it means none, one for which the formulas are not made, or one that `zone` never had.
    """
    day = today if text is None else _day(text, today)
    if not FIRST_SKY.year <= day.year <= LAST_SKY.year:
        raise Invalid(f"Sun and moon are computed from {FIRST_SKY} to {LAST_SKY}, not for {day}.")
    begin, end = (datetime.combine(on, time.min, zone).timestamp() for on in (day, day + timedelta(days=1)))
    if begin >= end:  # in Samoa, 30 December 2011
        raise Invalid(f"There was no {day} there: the calendar went over the date line.", "Ask for the day before it.")
    return Day(day)


def past_days(start: str, end: str | None, *, today: date, most: int) -> Days:
    """The past days from `start` to `end`, both included; without `end` that one day.

    Raises:
        Invalid: they mean no days, are not past, the wrong way round, too many, or before the records begin.
    """
    first = _day(start, today, past=True)
    last = first if end is None else _day(end, today, past=True)
    if last < first:
        raise Invalid(f"`end` {last} is before `start` {first}.", "Swap them.")
    if last > today:
        raise Invalid(
            f"{last} is not past yet at the place, where it is {today}.", "Use `get_forecast` for days to come."
        )
    if first < FIRST_DAY:
        raise Invalid(f"Records begin on {FIRST_DAY}, `start` is {first}.", f"Start on {FIRST_DAY} or later.")
    if (last - first).days >= most:
        fits = first + timedelta(days=most - 1)
        raise Invalid(
            f"{(last - first).days + 1} days are more than the {most} of one call.",
            f"Ask for {first} to {fits} first.",
        )
    return Days(first, last)


def _day(text: str, today: date, *, past: bool = False) -> date:
    """The day that `text` means where it is `today`: YYYY-MM-DD, or in words.

    Args:
        past: whether a weekday, or a date without a year, means its last occurrence; otherwise the next one.

    Raises:
        Invalid: it means none, or may mean two.
    """
    said = " ".join(text.casefold().replace("–", "-").replace("−", "-").split())
    said = re.sub(r"^(on|this|the) (?=[a-z])|(?<=\d)(st|nd|rd|th)\b", "", said)
    if (offset := _DAYS.get(said)) is not None:
        return today + timedelta(days=offset)
    if (found := _AWAY.fullmatch(said)) and bool(found[1]) != bool(found[3]):
        return today + timedelta(days=int(found[2])) * (-1 if found[3] == " ago" else 1)
    which, _, name = said.rpartition(" ")
    if which in ("", "next", "last") and (number := _index(_WEEKDAYS, name)) is not None:
        return _weekday(text, which, number, today, past=past)
    try:
        if found := _DATE.fullmatch(said):
            return date(*map(int, filter(None, found.groups())))
        if found := _DAY_LAST.fullmatch(said):
            return _day_last(text, found)
        first, _, rest = said.partition(" ")
        weekday = _index(_WEEKDAYS, first.strip(",")) if rest else None
        if (found := _NAMED.fullmatch(said if weekday is None else rest)) and (
            month := _index(_MONTHS, found[1] or found[4])
        ) is not None:
            day = _of_month(month + 1, int(found[2] or found[3]), found[5], today, past=past)
            if weekday in (None, day.weekday()):
                return day
            raise Invalid(
                f"{day}, for {quote(text)}, is a {_WEEKDAYS[day.weekday()].title()}.", "Pass one or the other."
            )
    except (ValueError, StopIteration):
        raise Invalid(f"{quote(text)} is not a day of the calendar.", "Pass it as YYYY-MM-DD.") from None
    raise Invalid(
        f"{quote(text)} can't be read as a day.",
        f"Pass it as YYYY-MM-DD: today is {_WEEKDAYS[today.weekday()].title()}, {today}.",
    )


def _of_month(month: int, day: int, year: str | None, today: date, *, past: bool) -> date:
    """That day of `year`; without one the last that was or, if not `past`, the next: a leap day may be years away."""
    if year:
        return date(int(year), month, day)
    if day > monthrange(2000, month)[1]:
        raise ValueError
    years = (today.year + (-more if past else more) for more in range(9))
    days = (date(one, month, day) for one in years if day <= monthrange(one, month)[1])
    return next(one for one in days if (one <= today if past else one >= today))


def _weekday(text: str, which: str, number: int, today: date, *, past: bool) -> date:
    ahead = (number - today.weekday()) % 7
    if which == "next":
        both = [str(today + timedelta(days=ahead or 7)), str(today + timedelta(days=(ahead or 7) + 7))]
        raise Invalid(f"{quote(text)} may be {' or '.join(both)}.", "Pass the one you mean.")
    back = (7 - ahead) % 7
    if which == "last":
        return today - timedelta(days=back or 7)
    return today - timedelta(days=back) if past else today + timedelta(days=ahead)


def _day_last(text: str, found: re.Match[str]) -> date:
    """Dots mean that the day comes first; slashes only if no other order makes a day."""
    one, other, year = int(found[1]), int(found[3]), int(found[4])
    if found[2] == "/" and one <= 12 and other <= 12 and one != other:
        both = f"{date(year, other, one)} or {date(year, one, other)}"
        raise Invalid(f"{quote(text)} may be {both}.", "Pass the one you mean.")
    return date(year, one, other) if found[2] == "/" and other > 12 else date(year, other, one)


def _index(names: tuple[str, ...], name: str) -> int | None:
    """The index in `names` of `name`, written out or by at least three first letters."""
    return next((n for n, full in enumerate(names) if len(name) > 2 and full.startswith(name)), None)


def _in_year(day: date, year: int) -> date:
    try:
        return day.replace(year=year)
    except ValueError:
        return date(year, 2, 28)
