"""Alerts, air, water, sky and the past, as tools."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from mcp_batteries.concurrency.threads import run_in_thread
from mcp_batteries.server.declaration.decorators import tool
from mcp_batteries.server.declaration.trusted import default, trusted
from mcp_weather.engine.alerts.answer import take_page
from mcp_weather.engine.answers.air_quality import fetch_air_quality
from mcp_weather.engine.answers.history import fetch_history
from mcp_weather.engine.answers.local_time import find_local_time
from mcp_weather.engine.answers.marine import fetch_marine
from mcp_weather.engine.computed.astronomy import compute_astronomy
from mcp_weather.engine.engine import Engine
from mcp_weather.engine.services.aviation import fetch_named_airport
from mcp_weather.models import Airport, AirQuality, Alerts, Astronomy, History, Marine
from mcp_weather.policy.alert_cursor import AlertCursor
from mcp_weather.policy.days import TODAY
from mcp_weather.tools.arguments import (
    AirportOrPlace,
    AviationUnits,
    DayText,
    Hours,
    SomePlace,
    SomeUnits,
    note_limit,
)

__all__ = ["get_air_quality", "get_alerts", "get_astronomy", "get_history", "get_marine", "get_metar"]

# Open-Meteo has the air and the sea of seven days, the first of which may be nearly over.
_MAX_HOURS = 144
_MAX_PAST_DAYS = 92
# Thirty years of more days would use up the minute of the free limit.
_MAX_NORMAL_DAYS = 14


@tool("Alerts", open_world=True)
async def get_alerts(
    engine: Engine,
    *,
    place: SomePlace,
    cursor: Annotated[AlertCursor | None, trusted(AlertCursor.parse)] = None,
) -> Alerts:
    """Get official weather warnings in force (US, Canada, Europe, NZ; also AU, HK, IN, PH, SG), worst first.

    `status` is alerts, none, not_covered (no service there) or unavailable: an empty list alone proves nothing.
    For weather and alerts at once use `get_weather`.
    """
    return take_page(await engine.alerts.fetch(place), cursor)


@tool("Air quality", open_world=True)
async def get_air_quality(
    engine: Engine,
    *,
    place: SomePlace,
    hours: Hours = 24,
    pollen: Annotated[bool, Field(description="Europe only.")] = False,
    units: SomeUnits = default(""),
) -> AirQuality:
    """Get air quality now and by hour: indices, pollutants and, if asked for, `pollen`.

    From a model, not measured at a station. For other weather use `get_weather`.
    """
    air_quality = await fetch_air_quality(engine, place, units, min(hours, _MAX_HOURS), pollen=pollen)
    return note_limit(air_quality, hours, _MAX_HOURS)


@tool("Airport weather", open_world=True)
async def get_metar(engine: Engine, *, place: AirportOrPlace, units: AviationUnits = default("")) -> Airport:
    """Get METAR (measured) and TAF (forecast) of the airport nearest to `place`, a name or an ICAO code.

    Both as issued, METAR decoded too (wind in knots), with other airports near. For weather use `get_weather`.
    """
    return await fetch_named_airport(engine.cache, place, units)


@tool("Sea and rivers", open_world=True)
async def get_marine(
    engine: Engine,
    *,
    place: SomePlace,
    hours: Hours = 24,
    river: Annotated[bool, Field(description="Also river discharge, 30 days.")] = False,
    units: SomeUnits = default(""),
) -> Marine:
    """Get waves, swell, tides, sea temperature and currents, now and by hour; with `river` a river's discharge too.

    From a model. Without sea at the place it is that within 40 km, but not with `river`, which works inland. For wind
    and rain use `get_forecast`.
    """
    marine = await fetch_marine(engine, place, units, min(hours, _MAX_HOURS), river=river)
    if marine.table is None:
        return marine
    return note_limit(marine, hours, _MAX_HOURS)


@tool("Past weather", open_world=True, seconds=120.0)
async def get_history(
    engine: Engine,
    *,
    place: SomePlace,
    start: DayText,
    end: Annotated[DayText | None, Field(description="Default: `start`; 92 days at most.")] = None,
    normals: Annotated[bool, Field(description="Compare with 1991-2020; then 14 days at most.")] = False,
    units: SomeUnits = default(""),
) -> History:
    """Get the weather of past days since 1940, day by day.

    The last days are the forecasts' own, as a note says. For today use `get_weather`, for days to come
    `get_forecast`.
    """
    local_time = await find_local_time(engine, place)
    max_days = _MAX_NORMAL_DAYS if normals else _MAX_PAST_DAYS
    days = start.until(end, today=local_time.today, max_days=max_days)
    return await fetch_history(engine, place, days, local_time, units, normals=normals)


@tool("Sun and moon", open_world=True)
async def get_astronomy(
    engine: Engine,
    *,
    place: SomePlace,
    date: Annotated[DayText | None, Field(description="YYYY-MM-DD; default: today there.")] = None,
) -> Astronomy:
    """Get sunrise, sunset, twilights, moonrise, moonset and moon phase of a day, past or to come.

    Computed, not observed; what does not happen, as in polar night, is null. For clouds use `get_forecast`.
    """
    local_time = await find_local_time(engine, place)
    day = (date or TODAY).in_astronomy(local_time.today, local_time.zone)
    return await run_in_thread(lambda cancel: compute_astronomy(place, day, local_time.zone, local_time.notes))
