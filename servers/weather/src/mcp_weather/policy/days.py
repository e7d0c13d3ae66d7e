"""Which days are asked for, of those for which there can be an answer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta

from mcp_batteries.errors import Invalid, quote

__all__ = ["Day", "Days", "forecast_day", "past_days", "sky_day"]

FIRST_DAY = date(1940, 1, 1)
"""The first day of the reanalysis behind past weather."""

FORECAST_DAYS = 15
"""Whole days for which there is a forecast by hour, today included."""

FIRST_SKY, LAST_SKY = date(1900, 1, 1), date(2099, 12, 31)
"""The years for which the formulas of NOAA's solar calculator are made."""

_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[T ].*)?|(\d{4})(\d\d)(\d\d)", re.DOTALL)
_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}


@dataclass(frozen=True)
class Day:
    """One day of the calendar, of those for which there can be an answer."""

    date: date


@dataclass(frozen=True)
class Days:
    """A span of whole days, the first not after the last."""

    first: date
    last: date

    def starting(self, year: int) -> Days:
        """The same days of the calendar, the first of them in `year`; without a leap day, the day before it."""
        return Days(_in_year(self.first, year), _in_year(self.last, year + self.last.year - self.first.year))


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


def sky_day(text: str | None, today: date) -> Day:
    """The day whose sun and moon can be computed; `today` without `text`.

    Raises:
        Invalid: it means none, or one for which the formulas are not made.
    """
    day = today if text is None else _day(text, today)
    if not FIRST_SKY.year <= day.year <= LAST_SKY.year:
        raise Invalid(f"Sun and moon are computed from {FIRST_SKY} to {LAST_SKY}, not for {day}.")
    return Day(day)


def past_days(start: str, end: str | None, *, today: date, most: int) -> Days:
    """The past days from `start` to `end`, both included; without `end` that one day.

    Raises:
        Invalid: they mean no days, are not past, the wrong way round, too many, or before the records begin.
    """
    first = _day(start, today)
    last = first if end is None else _day(end, today)
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


def _day(text: str, today: date) -> date:
    """The day that `text` means where it is `today`: YYYY-MM-DD, yesterday, today or tomorrow.

    Raises:
        Invalid: it means none.
    """
    if (offset := _DAYS.get(text.strip().casefold())) is not None:
        return today + timedelta(days=offset)
    found = _DATE.fullmatch(text.strip())
    if found is None:
        raise Invalid(f"{quote(text)} is no day.", f"Pass it as YYYY-MM-DD, such as {today}, or as `yesterday`.")
    try:
        return date(*map(int, filter(None, found.groups())))
    except ValueError:
        raise Invalid(f"{quote(text)} is no day of the calendar.", "Pass it as YYYY-MM-DD.") from None


def _in_year(day: date, year: int) -> date:
    try:
        return day.replace(year=year)
    except ValueError:
        return date(year, 2, 28)
