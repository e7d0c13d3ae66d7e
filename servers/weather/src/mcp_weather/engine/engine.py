"""The services that answers are made from, in one object."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from mcp_batteries.remote import Cache
from mcp_weather.engine.alerts.coverage import AlertServices
from mcp_weather.engine.gather import gather
from mcp_weather.engine.requests import queries
from mcp_weather.engine.services.nws import NationalWeatherService
from mcp_weather.engine.services.open_meteo import OpenMeteo
from mcp_weather.policy.place import Place

__all__ = ["Engine"]


class Engine:
    """The services behind all answers; see `answers`.

    Args:
        cache: answers by the keys of `queries`.
        language: of place names and alerts.
    """

    def __init__(self, cache: Cache, *, language: str) -> None:
        self.cache = cache
        self.open_meteo = OpenMeteo(cache)
        self.nws = NationalWeatherService(cache)
        self.alerts = AlertServices(cache, self.nws, self.open_meteo, language)
        self.language = language

    async def geocode(self, name: str, languages: Sequence[str | None]) -> list[list[dict[str, Any]]]:
        """Return the geocoder's results for `name` in each of `languages`; None is the server's own."""
        requested = dict.fromkeys(language or self.language for language in languages)
        return await gather(*(partial(self.open_meteo.fetch_results, name, language) for language in requested))

    async def cache_keys(self, place: Place, kind: str) -> list[str]:
        """Return the cache keys behind the resource `kind` of `place`, for those who follow it."""
        match kind:
            case "now":
                return [queries.current_key(place)]
            case "hourly":
                return [queries.hourly_key(place, ("basic",), 48, "best_match")]
            case "daily":
                return [queries.daily_key(place, ("basic",), 7, "best_match")]
            case "air":
                return [queries.air_key(place, 2, pollen=False)]
            case _:
                return await self.alerts.cache_keys(place)
