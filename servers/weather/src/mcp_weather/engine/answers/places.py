"""Places of a name."""

from __future__ import annotations

from mcp_weather.engine.engine import Engine
from mcp_weather.engine.requests.queries import MAX_PLACES
from mcp_weather.models import Places, Value
from mcp_weather.policy.place import Place
from mcp_weather.policy.place_search import GEOCODED, find_places
from mcp_weather.policy.place_text import PlaceName

__all__ = ["find_named_places"]

_COLUMNS = ["place", "latitude", "longitude", "timezone", "population", "elevation_m"]


async def find_named_places(engine: Engine, name: Place | PlaceName, language: str) -> Places:
    """Return all places that a name may mean.

    Args:
        language: of their names, ISO 639-1.
    """
    matches = await find_places(name, language, engine.geocode)
    rows: list[list[Value]] = []
    for place, population in matches:
        rows.append([place.name, place.latitude, place.longitude, place.timezone, population, place.elevation])
    if matches and matches[0].place.resolved != GEOCODED:
        return Places(columns=_COLUMNS, rows=rows, source=matches[0].place.resolved)
    source = "Open-Meteo.com geocoding (GeoNames)"
    if len(rows) >= MAX_PLACES:
        source += ", which lists no more"
    return Places(columns=_COLUMNS, rows=rows, source=source, licence="CC BY 4.0")
