"""Past weather, and the normal values for the requested days."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta, tzinfo
from functools import partial

import anyio

from mcp_batteries.errors import Problem
from mcp_batteries.remote import Cache, Snapshot
from mcp_weather.engine.computed.series import convert, moment_at, origin, table
from mcp_weather.engine.gather import attempt, together
from mcp_weather.engine.services import queries as ask
from mcp_weather.models import History, Table
from mcp_weather.policy import Days, Place, Units

__all__ = ["history"]

_NORMAL_YEARS = range(1991, 2021)
"""The period of reference of the World Meteorological Organization."""
_AT_ONCE = 6
_RECENT_DAYS = 90
"""For which the forecasts are kept by Open-Meteo's forecast service."""
_NORMAL_NAMES = (
    "temperature_2m_mean", "temperature_2m_max", "temperature_2m_min", "precipitation_sum", "wind_speed_10m_max",
)  # fmt: skip


async def history(
    cache: Cache, place: Place, days: Days, zone: tzinfo, notes: Sequence[str], units: Units, *, normals: bool
) -> History:
    """The weather of `days`, and the normal one if asked for; without it a note says why."""
    found = await cache.get(ask.archive_key(place, days))
    daily = table(found.json(), "daily", units, origin(found))
    said = list(notes)
    kept = (moment_at(cache.clock()) - timedelta(days=_RECENT_DAYS)).date().isoformat()
    if late := [
        day
        for number, day in enumerate(daily.time)
        if day >= kept and all(values[number] is None for values in daily.values)
    ]:
        daily, note = await _with_recent(cache, place, days, daily, late, units)
        said.append(note)
    if daily.values and any(item is None for values in daily.values for item in values):
        said.append("[Values that are null are not known.]")
    normal = await attempt(lambda: _normals(cache, place, days, units)) if normals else None
    if isinstance(normal, Problem):
        said.append(f"[The normal weather is missing: {normal}]")
        normal = None
    return History(place=place.info(str(zone)), daily=daily, normals=normal, notes=said)


async def _with_recent(
    cache: Cache, place: Place, days: Days, daily: Table, late: Sequence[str], units: Units
) -> tuple[Table, str]:
    """`daily` with the days that are `late` in the archive as the forecasts have them, and a note that says so."""
    why = f"the archive does not have {', '.join(late[:6])}{' and more' if len(late) > 6 else ''} yet"

    async def asked() -> Table:
        found = await cache.get(ask.recent_key(place, days.since(date.fromisoformat(late[0]))))
        return table(found.json(), "daily", units, origin(found))

    recent = await attempt(asked)
    if isinstance(recent, Problem):
        return daily, f"[Missing: {why}. {recent}]"
    known = {
        name: dict(zip(recent.time, values, strict=True))
        for name, values in zip(recent.names, recent.values, strict=True)
    }
    filled = [
        [known.get(name, {}).get(day) if day in late else value for day, value in zip(daily.time, values, strict=True)]
        for name, values in zip(daily.names, daily.values, strict=True)
    ]
    return daily.model_copy(update={"values": filled}), f"[From the forecasts' models: {why}.]"


async def _normals(cache: Cache, place: Place, days: Days, units: Units) -> Table:
    """Means over the years of reference, day by day; a leap day counts with the leap years."""
    columns: dict[str, dict[str, list[float]]] = {name: {} for name in _NORMAL_NAMES}
    said: dict[str, str] = {}
    last: list[Snapshot] = []
    at_once = anyio.CapacityLimiter(_AT_ONCE)

    async def one(year: int) -> None:
        async with at_once:
            found = await cache.get(ask.archive_key(place, days.starting(year), normal=True))
        last.append(found)
        document = found.json()
        shown = table(document, "daily", "metric", origin(found))
        for name, unit, values in zip(shown.names, shown.units, shown.values, strict=True):
            said[name] = unit
            for day, value in zip(shown.time, values, strict=True):
                if isinstance(value, int | float):
                    columns.setdefault(name, {}).setdefault(day[5:], []).append(float(value))

    await together(*(partial(one, year) for year in _NORMAL_YEARS))
    span = [days.first + timedelta(days=number) for number in range((days.last - days.first).days + 1)]
    shown = [
        convert(name, [_mean(columns[name].get(day.isoformat()[5:])) for day in span], said.get(name, ""), units)
        for name in _NORMAL_NAMES
    ]
    return Table(
        time=[day.isoformat()[5:] for day in span],
        names=list(_NORMAL_NAMES),
        units=[unit for unit, _ in shown],
        values=[values for _, values in shown],
        origin=origin(min(last, key=lambda item: (not item.stale, item.fetched_at))),
    )


def _mean(values: list[float] | None) -> float | None:
    return sum(values) / len(values) if values else None
