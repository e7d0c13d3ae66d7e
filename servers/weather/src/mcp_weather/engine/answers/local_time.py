"""Which day it is at a place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, tzinfo

from mcp_batteries.errors import Unavailable
from mcp_weather.engine.computed.timestamps import current_day
from mcp_weather.engine.engine import Engine
from mcp_weather.policy.place import Place

__all__ = ["LocalTime", "find_local_time"]


@dataclass(frozen=True)
class LocalTime:
    """Which day it is at a place.

    Attributes:
        notes: say so if the zone could not be found out.
    """

    zone: tzinfo
    today: date
    notes: Sequence[str] = ()


async def find_local_time(engine: Engine, place: Place) -> LocalTime:
    """Return which day it is at `place`; by UTC if its time zone can't be found out."""
    notes: list[str] = []
    try:
        zone = await engine.open_meteo.fetch_zone(place)
    except Unavailable:
        zone = UTC
        notes.append("[Times are UTC: the place's time zone could not be found out.]")
    return LocalTime(zone, current_day(engine.cache.clock(), zone), notes)
