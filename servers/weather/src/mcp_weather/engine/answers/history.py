"""Past weather, and the normal values for the requested days."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import partial
from typing import NamedTuple

import anyio

from mcp_batteries.errors import Problem
from mcp_batteries.remote import Cache, Snapshot
from mcp_weather.engine.answers.local_time import LocalTime
from mcp_weather.engine.computed.columns import Column, make_table
from mcp_weather.engine.computed.series import rows_until
from mcp_weather.engine.computed.timestamps import moment_at
from mcp_weather.engine.computed.unit_conversion import convert_values
from mcp_weather.engine.engine import Engine
from mcp_weather.engine.gather import attempt, gather
from mcp_weather.engine.requests import queries
from mcp_weather.engine.requests.queries import NORMAL_VARIABLES
from mcp_weather.engine.services.open_meteo_documents import OPEN_METEO, read_table
from mcp_weather.engine.services.source import origin_of
from mcp_weather.models import History, Table, Value
from mcp_weather.policy.days import Days
from mcp_weather.policy.place import Place
from mcp_weather.policy.units import Units

__all__ = ["fetch_history"]

# The period of reference of the World Meteorological Organization.
_NORMAL_YEARS = range(1991, 2021)
# Which only leap years have.
_LEAP_DAY = "02-29"
_MAX_CONCURRENT_YEARS = 6
# Open-Meteo's forecast service keeps the forecasts of so many days.
_RECENT_DAYS = 90
_MAX_NAMED_DAYS = 6


@dataclass(frozen=True)
class _Request:
    """Which days of which place are asked for, in which units.

    Attributes:
        today: at the place. Of it the hours are not all known, and no service has the day after it.
    """

    cache: Cache
    place: Place
    days: Days
    today: date
    units: Units

    def add_last_hour(self, days: Days) -> Days:
        """Return `days` with the next one, in which the last hour of the last stands, if that is past."""
        if days.last < self.today:
            return days.with_next_day()
        return days

    async def fetch_table(self, key: str) -> Table:
        """Return the days of a document that are asked for."""
        snapshot = await self.cache.get(key)
        table = read_table(snapshot.json(), "daily", self.units, origin_of(snapshot, OPEN_METEO))
        return rows_until(table, self.days.last.isoformat())


class _Normals(NamedTuple):
    """Means over the years of reference, and what is to be said of them."""

    table: Table
    notes: list[str]


class _FilledDays(NamedTuple):
    """A table of days, and a note that says which of them are not from the archive."""

    table: Table
    note: str


async def fetch_history(
    engine: Engine, place: Place, days: Days, local_time: LocalTime, units: Units, *, normals: bool
) -> History:
    """Return the weather of `days`, and the normal one if asked for; without it a note says why."""
    request = _Request(engine.cache, place, days, local_time.today, units)
    notes = list(local_time.notes)
    daily = await request.fetch_table(queries.archive_key(place, request.add_last_hour(days)))
    late_days = _find_late_days(daily, engine.cache.clock())
    if late_days:
        filled = await _fill_late_days(request, daily, late_days)
        daily = filled.table
        notes.append(filled.note)
    if days.last >= local_time.today:
        notes.append(f"[{days.last} is not over: its values are of the hours so far and of those that are forecast.]")
    if any(None in values for values in daily.values):
        notes.append("[Values that are null are not known.]")
    normal_days = None
    if normals:
        answer = await attempt(partial(_fetch_normals, request))
        if isinstance(answer, Problem):
            notes.append(f"[The normal weather is missing: {answer}]")
        else:
            normal_days = answer.table
            notes += answer.notes
    return History(place=place.to_info(str(local_time.zone)), daily=daily, normals=normal_days, notes=notes)


def _find_late_days(daily: Table, now: float) -> list[str]:
    """Return the days that the archive does not have yet and the forecasts may have."""
    first_recent = (moment_at(now) - timedelta(days=_RECENT_DAYS)).date().isoformat()
    late_days: list[str] = []
    for row, day in enumerate(daily.time):
        if day >= first_recent and all(values[row] is None for values in daily.values):
            late_days.append(day)
    return late_days


async def _fill_late_days(request: _Request, daily: Table, late_days: Sequence[str]) -> _FilledDays:
    """Return `daily` with the days that are late in the archive as the forecasts have them."""
    day_names = ", ".join(late_days[:_MAX_NAMED_DAYS])
    if len(late_days) > _MAX_NAMED_DAYS:
        day_names += " and more"
    reason = f"the archive does not have {day_names} yet"
    first_late_day = date.fromisoformat(late_days[0])
    key = queries.recent_days_key(request.place, request.add_last_hour(request.days.since(first_late_day)))
    recent = await attempt(partial(request.fetch_table, key))
    if isinstance(recent, Problem):
        return _FilledDays(daily, f"[Missing: {reason}. {recent}]")
    columns: list[list[Value]] = []
    for name, values in zip(daily.names, daily.values, strict=True):
        recent_values = _values_by_day(recent, name)
        column: list[Value] = []
        for day, value in zip(daily.time, values, strict=True):
            if day in late_days:
                column.append(recent_values.get(day))
            else:
                column.append(value)
        columns.append(column)
    filled = daily.model_copy(update={"values": columns})
    return _FilledDays(filled, f"[From the forecasts' models: {reason}.]")


def _values_by_day(table: Table, name: str) -> dict[str, Value]:
    """Return the values of one variable; none if the table does not have it."""
    if name not in table.names:
        return {}
    return dict(zip(table.time, table.values[table.names.index(name)], strict=True))


@dataclass
class _ReferenceValues:
    """The values of the years of reference, by variable and calendar day, which is written as MM-DD.

    Attributes:
        units: of the variables.
        snapshots: the answers that the values are from.
    """

    values: dict[tuple[str, str], list[float]] = field(default_factory=dict[tuple[str, str], list[float]])
    units: dict[str, str] = field(default_factory=dict[str, str])
    snapshots: list[Snapshot] = field(default_factory=list[Snapshot])

    def add(self, snapshot: Snapshot) -> None:
        """Add the days of one year."""
        self.snapshots.append(snapshot)
        table = read_table(snapshot.json(), "daily", "metric", origin_of(snapshot, OPEN_METEO))
        for name, unit, values in zip(table.names, table.units, table.values, strict=True):
            self.units[name] = unit
            for day, value in zip(table.time, values, strict=True):
                if isinstance(value, int | float):
                    self.values.setdefault((name, day[5:]), []).append(float(value))

    def mean(self, name: str, day: str) -> float | None:
        """Return the mean of the years that know the day; None if none does."""
        values = self.values.get((name, day))
        if not values:
            return None
        return sum(values) / len(values)

    def count_fewest_years(self, days: Sequence[str]) -> int:
        """Return of how many years the means are at least, leaving out those that no year knows."""
        counts = [len(values) for (_, day), values in self.values.items() if day in days and day != _LEAP_DAY]
        return min(counts, default=len(_NORMAL_YEARS))

    def least_fresh(self) -> Snapshot:
        """Return the answer that is worth least."""
        return min(self.snapshots, key=lambda snapshot: (not snapshot.stale, snapshot.fetched_at))


async def _fetch_normals(request: _Request) -> _Normals:
    """Return means over the years of reference, day by day; a leap day counts with the leap years."""
    reference = _ReferenceValues()
    limiter = anyio.CapacityLimiter(_MAX_CONCURRENT_YEARS)

    async def fetch_year(year: int) -> None:
        key = queries.archive_key(request.place, request.days.in_year(year).with_next_day(), normal=True)
        async with limiter:
            snapshot = await request.cache.get(key)
        reference.add(snapshot)

    await gather(*(partial(fetch_year, year) for year in _NORMAL_YEARS))
    calendar_days = [day.isoformat()[5:] for day in request.days.list_dates()]
    columns: list[Column] = []
    for name in NORMAL_VARIABLES:
        means = [reference.mean(name, day) for day in calendar_days]
        converted = convert_values(name, means, reference.units.get(name, ""), request.units)
        columns.append(Column(name, *converted))
    notes: list[str] = []
    fewest_years = reference.count_fewest_years(calendar_days)
    if fewest_years < len(_NORMAL_YEARS):
        notes.append(f"[Some normals are of {fewest_years} of the {len(_NORMAL_YEARS)} years: more are not known.]")
    return _Normals(make_table(calendar_days, columns, origin_of(reference.least_fresh(), OPEN_METEO)), notes)
