"""Past weather, and what is normal for the days asked about."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta, tzinfo
from functools import partial

import anyio

from mcp_batteries.errors import Problem
from mcp_batteries.remote import Cache, Snapshot
from mcp_weather.engine import queries as ask
from mcp_weather.engine.series import convert, origin, table
from mcp_weather.engine.together import attempt, together
from mcp_weather.models import History, Table
from mcp_weather.policy import Days, Place, Units

__all__ = ["history"]

_NORMAL_YEARS = range(1991, 2021)
"""The period of reference of the World Meteorological Organization."""
_AT_ONCE = 6
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
    if daily.values and any(item is None for values in daily.values for item in values):
        said.append("[Values that are null are not known; the last days come with a delay of up to five days.]")
    normal = await attempt(lambda: _normals(cache, place, days, units)) if normals else None
    if isinstance(normal, Problem):
        said.append(f"[The normal weather is missing: {normal}]")
        normal = None
    return History(place=place.info(str(zone)), daily=daily, normals=normal, notes=said)


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
