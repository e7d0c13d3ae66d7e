"""The services that warn of dangers at a place, and their answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import tzinfo
from functools import partial
from typing import Any

from mcp_batteries.errors import Problem
from mcp_batteries.remote import Cache
from mcp_weather.engine.alerts.answer import Look, answer
from mcp_weather.engine.computed.series import origin, zone_of
from mcp_weather.engine.services import canada, meteoalarm, nws_documents
from mcp_weather.engine.services import queries as ask
from mcp_weather.engine.services.canada import CANADA
from mcp_weather.engine.services.meteoalarm import METEOALARM
from mcp_weather.engine.services.nws import WeatherService
from mcp_weather.engine.services.nws_documents import NWS
from mcp_weather.geography.countries import country_of
from mcp_weather.models import Alert, Alerts
from mcp_weather.policy import Place

__all__ = ["AlertServices"]

_SERVICES = (NWS[0], METEOALARM[0], CANADA[0])


@dataclass(frozen=True)
class AlertServices:
    """The services for the United States, Europe and Canada.

    Args:
        language: of the alerts, where they are told in it.
    """

    cache: Cache
    nws: WeatherService
    language: str

    async def alerts(self, place: Place) -> Alerts:
        """All alerts for `place`; see `answer`."""
        look = await self.nws.look(place)
        if look is None:
            look = await self._elsewhere(place)
        looks = [look] if look else []
        zone = place.timezone or next((str(item.zone) for item in looks if item.zone), None)
        asked = {item.service for item in looks}
        others = [name for name in _SERVICES if name not in asked]
        return answer(place.info(zone), looks, others, now=self.cache.clock())

    async def keys(self, place: Place) -> list[str]:
        """The cache keys of the lists that `alerts` looks at."""
        try:
            if nws_documents.may_cover(place) and await self.nws.point(place) is not None:
                return [ask.alerts_key(place)]
            country = place.country or country_of(await self._zone(place))
        except Problem:
            return [ask.alerts_key(place)] if nws_documents.may_cover(place) else []
        if country == "CA":
            return [ask.canada_key(place)]
        return [ask.meteoalarm_key(name)] if (name := meteoalarm.COUNTRIES.get(country or "")) else []

    async def _elsewhere(self, place: Place) -> Look | None:
        country = place.country
        zone: tzinfo | None = None
        if country is None or place.timezone is None:
            try:
                zone = await self._zone(place)
            except Problem as problem:
                if country is None:
                    return Look("service of this country", problem=f"The country is not known. {problem}")
        zone = zone or zone_of({"timezone": place.timezone or "UTC"})
        country = country or country_of(zone)
        if country == "CA":
            read = partial(canada.alerts, zone=zone, language=self.language)
            return await self._look(CANADA, ask.canada_key(place), zone, read)
        if name := meteoalarm.COUNTRIES.get(country or ""):
            read = partial(meteoalarm.alerts, place=place, zone=zone, language=self.language)
            return await self._look(METEOALARM, ask.meteoalarm_key(name), zone, read)
        return None

    async def _look(self, service: tuple[str, str], key: str, zone: tzinfo, read: Callable[[Any], list[Alert]]) -> Look:
        try:
            found = await self.cache.get(key)
            return Look(service[0], read(found.json()), origin(found, service), zone)
        except Problem as problem:
            return Look(service[0], problem=str(problem))

    async def _zone(self, place: Place) -> tzinfo:
        """The time zone of `place`, which also tells the country."""
        if place.timezone:
            return zone_of({"timezone": place.timezone})
        return zone_of((await self.cache.get(ask.current_key(place))).json())
