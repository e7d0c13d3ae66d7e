"""Decides which days a caller means, among those with a possible answer."""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from mcp_batteries.errors import Invalid, quote
from mcp_weather.policy.day_words import RelativeDay, find_relative_day, find_weekday

__all__ = ["TODAY", "Day", "Days", "WrittenDay", "parse_astronomy_day", "parse_forecast_day", "parse_past_days"]

# The reanalysis behind past weather begins on this day.
FIRST_PAST_DAY = date(1940, 1, 1)

# Whole days for which there is a forecast by hour, today included.
FORECAST_DAYS = 15

# The formulas of NOAA's solar calculator are made for the years between these days.
FIRST_ASTRONOMY_DAY = date(1900, 1, 1)
LAST_ASTRONOMY_DAY = date(2099, 12, 31)

_CLOCK = r"[t ]\d{1,2}(?::?\d\d){0,2}(?:[.,]\d+)?(?: ?(?:z|utc|[ap]m|[+-]\d\d(?::?\d\d)?))?"
_YEAR_FIRST = re.compile(rf"(\d{{4}})[-/.](\d{{1,2}})[-/.](\d{{1,2}})(?:{_CLOCK})?|(\d{{4}})(\d\d)(\d\d)")
_YEAR_LAST = re.compile(r"(?P<first>\d{1,2})(?P<separator>[./])(?P<second>\d{1,2})(?P=separator)(?P<year>\d{4})")
_DAYS_AWAY = re.compile(r"(?P<ahead>in )?(?P<count>\d{1,4}) days?(?P<direction> ago| from now)?")
_MONTH_AND_DAY = re.compile(
    r"(?:(?P<month>[a-z]{3,9})\.? (?P<day>\d{1,2})|(?P<day_before>\d{1,2})\.? (?:of )?(?P<month_after>[a-z]{3,9})\.?)"
    r"(?:,? (?P<year>\d{4}))?"
)
_FILLER = re.compile(r"^(on|this|the) (?=[a-z])|(?<=\d)(st|nd|rd|th)\b")

# As it is written in Chinese, Japanese and Korean.
_EAST_ASIAN_DATE = re.compile(r"(?:(?P<year>\d{4}) ?[年년] ?)?(?P<month>\d{1,2}) ?[月월] ?(?P<day>\d{1,2}) ?[日号號일]")
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
# Between two leap days there are eight years where a century is no leap year.
_MAX_YEARS_TO_LEAP_DAY = 8
_LEAP_YEAR = 2000


@dataclass(frozen=True)
class Day:
    """One calendar day with a possible answer.

    Attributes:
        is_night: whether its evening and the night that follows are meant, until the next morning.
    """

    date: date
    is_night: bool = False


@dataclass(frozen=True)
class Days:
    """A span of whole days, the first not after the last."""

    first: date
    last: date

    def in_year(self, year: int) -> Days:
        """Return the same calendar days, the first of them in `year`; a missing leap day becomes the day before it."""
        last_year = year + self.last.year - self.first.year
        return Days(_replace_year(self.first, year), _replace_year(self.last, last_year))

    def since(self, day: date) -> Days:
        """Return those from `day` on, which is one of them."""
        return Days(day, self.last)

    def with_next_day(self) -> Days:
        """Return them and the day after the last."""
        return Days(self.first, self.last + timedelta(days=1))

    def list_dates(self) -> list[date]:
        """Return each of the days."""
        return [self.first + timedelta(days=offset) for offset in range((self.last - self.first).days + 1)]


@dataclass(frozen=True)
class WrittenDay:
    """A day as a caller writes it: which one it is depends on the day that it is at the place."""

    text: str

    @classmethod
    def parse(cls, text: str) -> WrittenDay:
        """Take any text: what it means is decided, or refused, once the day at the place is known."""
        return cls(text)

    def in_forecast(self, today: date) -> Day:
        """Return the day of the next two weeks; see `parse_forecast_day`."""
        return parse_forecast_day(self.text, today)

    def in_astronomy(self, today: date, zone: tzinfo) -> Day:
        """Return a day of the years for which sun and moon can be computed; see `parse_astronomy_day`."""
        return parse_astronomy_day(self.text, today, zone)

    def until(self, end: WrittenDay | None, *, today: date, max_days: int) -> Days:
        """Return the past days from this one to `end`; see `parse_past_days`."""
        return parse_past_days(self.text, None if end is None else end.text, today=today, max_days=max_days)


TODAY = WrittenDay("today")


def parse_forecast_day(text: str, today: date) -> Day:
    """Return the day of the next two weeks that `text` means.

    Raises:
        Invalid: it means none, or one for which there is no forecast by hour.
    """
    day = _parse_day(text, today)
    last = today + timedelta(days=FORECAST_DAYS - 1)
    if not today <= day <= last:
        fix = "Use `get_history` for days that are past." if day < today else "Ask for an earlier day."
        raise Invalid(f"There is a forecast by hour from {today} to {last}, not for {day}.", fix)
    relative = _find_relative_day(_normalize(text))
    return Day(day, is_night=relative is not None and relative.is_night)


def parse_astronomy_day(text: str, today: date, zone: tzinfo = UTC) -> Day:
    """Return the day whose sun and moon can be computed.

    Raises:
        Invalid: it means none, one for which the formulas are not made, or one that `zone` never had.
    """
    day = _parse_day(text, today)
    if not FIRST_ASTRONOMY_DAY.year <= day.year <= LAST_ASTRONOMY_DAY.year:
        raise Invalid(f"Sun and moon are computed from {FIRST_ASTRONOMY_DAY} to {LAST_ASTRONOMY_DAY}, not for {day}.")
    if _midnight(day, zone) >= _midnight(day + timedelta(days=1), zone):  # as in Samoa, 30 December 2011
        raise Invalid(f"There was no {day} there: the calendar went over the date line.", "Ask for the day before it.")
    return Day(day)


def _midnight(day: date, zone: tzinfo) -> float:
    """Return when `day` begins, in seconds since the epoch."""
    return datetime.combine(day, time.min, zone).timestamp()


def parse_past_days(start: str, end: str | None, *, today: date, max_days: int) -> Days:
    """Return the past days from `start` to `end`, both included; without `end` that one day.

    Raises:
        Invalid: they mean no days, are not past, the wrong way round, too many, or before the records begin.
    """
    first = _parse_day(start, today, past=True)
    last = first if end is None else _parse_day(end, today, past=True)
    if last < first:
        raise Invalid(f"`end` {last} is before `start` {first}.", "Swap them.")
    if last > today:
        raise Invalid(
            f"{last} is not past yet at the place, where it is {today}.", "Use `get_forecast` for days to come."
        )
    if first < FIRST_PAST_DAY:
        raise Invalid(f"Records begin on {FIRST_PAST_DAY}, `start` is {first}.", f"Start on {FIRST_PAST_DAY} or later.")
    if (last - first).days >= max_days:
        last_of_call = first + timedelta(days=max_days - 1)
        raise Invalid(
            f"{(last - first).days + 1} days are more than the {max_days} of one call.",
            f"Ask for {first} to {last_of_call} first.",
        )
    return Days(first, last)


def _parse_day(text: str, today: date, *, past: bool = False) -> date:
    """Return the day that `text` means where it is `today`: YYYY-MM-DD, or in words.

    Args:
        past: whether a weekday, or a date without a year, means its last occurrence; otherwise the next one.

    Raises:
        Invalid: it means none, or may mean two.
    """
    words = _normalize(text)
    day = _parse_relative(words, today, past=past)
    if day is None:
        day = _parse_weekday(text, words, today, past=past)
    if day is None:
        try:
            day = _parse_date(text, words, today, past=past)
        except ValueError:
            raise Invalid(f"{quote(text)} is not a day of the calendar.", "Pass it as YYYY-MM-DD.") from None
    if day is None:
        raise Invalid(
            f"{quote(text)} can't be read as a day.",
            f"Pass it as YYYY-MM-DD: today is {_WEEKDAYS[today.weekday()].title()}, {today}.",
        )
    return day


def _normalize(text: str) -> str:
    """Return `text` in small letters, without words that say nothing."""
    words = " ".join(text.casefold().replace("–", "-").replace("−", "-").split())
    return _FILLER.sub("", words)


def _parse_relative(words: str, today: date, *, past: bool) -> date | None:
    """Return the day of words such as `tomorrow`, `in 3 days`, `3 days ago`; None if they are something else."""
    relative = _find_relative_day(words)
    if relative is not None:
        return today + timedelta(days=_choose_offset(relative, past=past))
    match = _DAYS_AWAY.fullmatch(words)
    if match is None:
        return None
    if bool(match["ahead"]) == bool(match["direction"]):
        return None  # Neither `3 days` nor `in 3 days ago` is a day.
    distance = timedelta(days=int(match["count"]))
    if match["direction"] == " ago":
        return today - distance
    return today + distance


def _find_relative_day(words: str) -> RelativeDay | None:
    """Return the day that normalized words mean relative to today: those of `this evening` are `evening`."""
    return find_relative_day(words) or find_relative_day(f"this {words}")


def _choose_offset(relative: RelativeDay, *, past: bool) -> int:
    """Return the days from today; of a word for both sides the side that can be meant."""
    if past:
        return min(relative.offsets)
    return max(relative.offsets)


def _parse_weekday(text: str, words: str, today: date, *, past: bool) -> date | None:
    """Return the day of `monday` or `last monday`; None if the words are something else.

    Raises:
        Invalid: it is `next monday`, which some take for the one after the next.
    """
    which, _, name = words.rpartition(" ")
    weekday = _find_name(_WEEKDAYS, name)
    if weekday is None:
        which = ""
        weekday = find_weekday(words)
    if weekday is None or which not in ("", "next", "last"):
        return None
    days_ahead = (weekday - today.weekday()) % 7
    days_ago = (7 - days_ahead) % 7
    if which == "next":
        nearer = today + timedelta(days=days_ahead or 7)
        raise Invalid(f"{quote(text)} may be {nearer} or {nearer + timedelta(days=7)}.", "Pass the one you mean.")
    if which == "last":
        return today - timedelta(days=days_ago or 7)
    if past:
        return today - timedelta(days=days_ago)
    return today + timedelta(days=days_ahead)


def _parse_date(text: str, words: str, today: date, *, past: bool) -> date | None:
    """Return the day of a date in numbers or with the name of its month; None if the words are something else.

    Raises:
        ValueError: it is not a day of the calendar.
        Invalid: it may be two days, or its weekday is another.
    """
    if match := _YEAR_FIRST.fullmatch(words):
        year, month, day = (int(group) for group in match.groups() if group)
        return date(year, month, day)
    if match := _YEAR_LAST.fullmatch(words):
        return _date_with_year_last(text, match)
    if match := _EAST_ASIAN_DATE.fullmatch(words):
        return _date_of_month(int(match["month"]), int(match["day"]), match["year"], today, past=past)
    return _parse_named_month(text, words, today, past=past)


def _parse_named_month(text: str, words: str, today: date, *, past: bool) -> date | None:
    """Return the day of `5 march`, `march 5, 2024` or `tue, march 5`; None if the words are something else.

    Raises:
        ValueError: it is not a day of the calendar.
        Invalid: its weekday is another.
    """
    first_word, _, after = words.partition(" ")
    weekday = _find_name(_WEEKDAYS, first_word.strip(",")) if after else None
    match = _MONTH_AND_DAY.fullmatch(words if weekday is None else after)
    if match is None:
        return None
    month = _find_name(_MONTHS, match["month"] or match["month_after"])
    if month is None:
        return None
    day_of_month = int(match["day"] or match["day_before"])
    day = _date_of_month(month + 1, day_of_month, match["year"], today, past=past)
    if weekday is not None and weekday != day.weekday():
        name = _WEEKDAYS[day.weekday()].title()
        raise Invalid(f"{day}, for {quote(text)}, is a {name}.", "Pass one or the other.")
    return day


def _date_with_year_last(text: str, match: re.Match[str]) -> date:
    """Return the day of `3.4.2024`. With dots the day comes first; with slashes only if no other order makes a day.

    Raises:
        ValueError: it is not a day of the calendar.
        Invalid: it may be two days.
    """
    first = int(match["first"])
    second = int(match["second"])
    year = int(match["year"])
    has_slashes = match["separator"] == "/"
    if has_slashes and first <= 12 and second <= 12 and first != second:
        both = f"{date(year, second, first)} or {date(year, first, second)}"
        raise Invalid(f"{quote(text)} may be {both}.", "Pass the one you mean.")
    if has_slashes and second > 12:
        return date(year, first, second)
    return date(year, second, first)


def _date_of_month(month: int, day: int, year: str | None, today: date, *, past: bool) -> date:
    """Return that day of `year`; without one the last that was or, if not `past`, the next.

    Raises:
        ValueError: the month has no such day.
    """
    if year:
        return date(int(year), month, day)
    if not 1 <= month <= 12 or day > monthrange(_LEAP_YEAR, month)[1]:
        raise ValueError
    # A leap day may be years away.
    for distance in range(_MAX_YEARS_TO_LEAP_DAY + 1):
        candidate_year = today.year - distance if past else today.year + distance
        if day > monthrange(candidate_year, month)[1]:
            continue
        candidate = date(candidate_year, month, day)
        if past and candidate <= today:
            return candidate
        if not past and candidate >= today:
            return candidate
    raise ValueError


def _find_name(names: tuple[str, ...], name: str) -> int | None:
    """Return the index in `names` of `name`, written out or by at least three first letters."""
    if len(name) < 3:
        return None
    for index, full_name in enumerate(names):
        if full_name.startswith(name):
            return index
    return None


def _replace_year(day: date, year: int) -> date:
    try:
        return day.replace(year=year)
    except ValueError:
        return date(year, 2, 28)
