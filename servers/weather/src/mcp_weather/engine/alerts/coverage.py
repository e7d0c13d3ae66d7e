"""Which services warn of dangers at a place, and their answers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import tzinfo
from functools import partial
from typing import Any, Protocol

from mcp_batteries.errors import Problem
from mcp_batteries.remote import Cache
from mcp_weather.engine.alerts.answer import combine_alerts
from mcp_weather.engine.computed.timestamps import zone_of
from mcp_weather.engine.requests import queries
from mcp_weather.engine.services import canada, cap_feeds, meteoalarm
from mcp_weather.engine.services.canada import CANADA
from mcp_weather.engine.services.cap_feeds import FEEDS, METSERVICE, WMO
from mcp_weather.engine.services.meteoalarm import METEOALARM
from mcp_weather.engine.services.nws import NationalWeatherService, may_cover
from mcp_weather.engine.services.nws_documents import NWS
from mcp_weather.engine.services.open_meteo import OpenMeteo
from mcp_weather.engine.services.service_alerts import ServiceAlerts
from mcp_weather.engine.services.source import Source, origin_of
from mcp_weather.geography.countries import zone_country
from mcp_weather.models import Alert, Alerts
from mcp_weather.policy.place import Place

__all__ = ["AlertServices"]

_SERVICES = (NWS.name, METEOALARM.name, CANADA.name, METSERVICE.name, WMO.name)


class _ReadAlerts(Protocol):
    """Reads a service's document."""

    def __call__(self, document: dict[str, Any], *, zone: tzinfo, language: str) -> list[Alert]: ...


@dataclass(frozen=True)
class _CountryService:
    """The service of a country, where in it the alerts for a place are, and how to read them."""

    source: Source
    key: str
    read_alerts: _ReadAlerts


@dataclass(frozen=True)
class AlertServices:
    """The services for the United States, Europe, Canada, and parts of Asia and Oceania.

    Attributes:
        language: of the alerts, where they are told in it.
    """

    cache: Cache
    nws: NationalWeatherService
    open_meteo: OpenMeteo
    language: str

    async def fetch(self, place: Place) -> Alerts:
        """Return all alerts for `place`; see `combine_alerts`."""
        answer = await self.nws.fetch_alerts(place)
        if answer is None:
            answer = await self._ask_country(place)
        answers: list[ServiceAlerts] = []
        if answer:
            answers.append(answer)
        timezone = place.timezone
        if timezone is None and answer and answer.zone:
            timezone = str(answer.zone)
        services = {answer.service for answer in answers}
        other_services = [name for name in _SERVICES if name not in services]
        return combine_alerts(place.to_info(timezone), answers, other_services, now=self.cache.clock())

    async def cache_keys(self, place: Place) -> list[str]:
        """Return the cache keys of the lists that `fetch` looks at."""
        try:
            if may_cover(place) and await self.nws.fetch_point(place) is not None:
                return [queries.nws_alerts_key(place)]
            country = place.country or zone_country(await self.open_meteo.fetch_zone(place))
            if country in FEEDS:
                return [FEEDS[country].key]
        except Problem:
            if may_cover(place):
                return [queries.nws_alerts_key(place)]
            return []
        service = _find_service(country, place)
        if service is None:
            return []
        return [service.key]

    async def _ask_country(self, place: Place) -> ServiceAlerts | None:
        """Return what the service of the place's country says; None if there is none."""
        country = place.country
        try:
            zone = await self.open_meteo.fetch_zone(place)
        except Problem as problem:
            if country is None:
                return ServiceAlerts("service of this country", problem=f"The country is not known. {problem}")
            zone = zone_of({"timezone": "UTC"})
        country = country or zone_country(zone)
        if country in FEEDS:
            return await cap_feeds.fetch_alerts(self.cache, FEEDS[country], place, zone, self.language)
        service = _find_service(country, place)
        if service is None:
            return None
        try:
            snapshot = await self.cache.get(service.key)
            document = snapshot.json()
            alerts = service.read_alerts(document, zone=zone, language=self.language)
        except Problem as problem:
            return ServiceAlerts(service.source.name, problem=str(problem))
        origin = origin_of(snapshot, service.source)
        return ServiceAlerts.read(service.source.name, document, alerts, origin, zone)


def _find_service(country: str | None, place: Place) -> _CountryService | None:
    """Return the service that warns in `country`, but for the United States."""
    if country == "CA":
        return _CountryService(CANADA, queries.canada_alerts_key(place), canada.read_alerts)
    list_name = meteoalarm.COUNTRIES.get(country or "")
    if list_name is None:
        return None
    key = queries.meteoalarm_warnings_key(list_name)
    return _CountryService(METEOALARM, key, partial(meteoalarm.read_alerts, place=place))
