"""Air quality, now and by hour."""

from __future__ import annotations

import math

from mcp_weather.engine.computed.timestamps import zone_of
from mcp_weather.engine.engine import Engine
from mcp_weather.engine.requests import queries
from mcp_weather.engine.services.open_meteo import days_covering
from mcp_weather.engine.services.open_meteo_documents import OPEN_METEO, read_present
from mcp_weather.engine.services.source import origin_of
from mcp_weather.models import AirQuality, Reading
from mcp_weather.policy.place import Place
from mcp_weather.policy.units import Units

__all__ = ["fetch_air_quality"]

# The European air quality index, as the European Environment Agency names its bands, by the most of each.
_BANDS = {20: "good", 40: "fair", 60: "moderate", 80: "poor", 100: "very poor", math.inf: "extremely poor"}


async def fetch_air_quality(engine: Engine, place: Place, units: Units, hours: int, *, pollen: bool) -> AirQuality:
    """Return the air quality now and for the next hours."""
    snapshot = await engine.cache.get(queries.air_key(place, days_covering(hours), pollen=pollen))
    present = read_present(snapshot.json(), units, origin_of(snapshot, OPEN_METEO))
    hourly = engine.open_meteo.read_rows_to_come(snapshot, "hourly", hours, units)
    zone = zone_of(snapshot.json())
    return AirQuality(place=place.to_info(str(zone)), now=present, hourly=hourly, category=_categorize(present))


def _categorize(present: Reading) -> str | None:
    """Return the band of the European index; None if the index is unknown."""
    if "european_aqi" not in present.names:
        return None
    index = present.values[present.names.index("european_aqi")]
    if not isinstance(index, int | float):
        return None
    return next(band for most, band in _BANDS.items() if index <= most)
