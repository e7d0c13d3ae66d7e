"""The National Weather Service of the US: its own forecast, its stations' observations, its alerts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any, NamedTuple

from mcp_batteries.errors import NotFound, Problem, Unavailable
from mcp_batteries.remote import Cache
from mcp_weather.engine.computed.series import require_rows
from mcp_weather.engine.computed.timestamps import moment_at, zone_of
from mcp_weather.engine.requests import queries
from mcp_weather.engine.services.nws_documents import (
    NWS,
    Station,
    forecast_updated_at,
    observed_at,
    read_alerts,
    read_forecast,
    read_observation,
    read_stations,
)
from mcp_weather.engine.services.service_alerts import ServiceAlerts
from mcp_weather.engine.services.source import origin_of
from mcp_weather.models import Forecast, Origin, Reading
from mcp_weather.policy.place import Place
from mcp_weather.policy.units import Units

__all__ = ["COUNTRIES", "NationalWeatherService", "may_cover"]

COUNTRIES = {"US", "PR", "GU", "VI", "AS", "MP", "UM"}
# It has no grid for most of these: whether an empty list says anything of a place there, only its point tells.
_PARTLY_COVERED = {"AS", "UM"}

_MAX_STATIONS = 3
# A station's observation is called old after so many seconds.
_MAX_OBSERVATION_AGE_SECONDS = 2 * 3600
# An office writes its forecast anew every twelve hours at least; an old one comes of a server that is behind.
_MAX_FORECAST_AGE_SECONDS = 18 * 3600


class _Box(NamedTuple):
    """A part of the globe, by the degrees of its edges."""

    south: float
    north: float
    west: float
    east: float

    def contains(self, place: Place) -> bool:
        """Return whether `place` lies in it."""
        return self.south <= place.latitude <= self.north and self.west <= place.longitude <= self.east


# Where the Service may be asked about coordinates of unknown country; it decides.
_COVERAGE = (
    _Box(24.0, 49.6, -125.5, -66.5), _Box(51.0, 72.0, -180.0, -129.0), _Box(51.0, 56.0, 172.0, 180.0),
    _Box(18.5, 29.0, -179.0, -154.0), _Box(17.0, 19.5, -68.5, -64.0), _Box(13.0, 21.0, 144.0, 147.0),
    _Box(-15.5, -10.5, -172.0, -168.0),
)  # fmt: skip


def may_cover(place: Place) -> bool:
    """Return False where it is certain that the Service has nothing."""
    if place.country is not None:
        return place.country in COUNTRIES
    return any(box.contains(place) for box in _COVERAGE)


@dataclass(frozen=True)
class GridPoint:
    """What the Service has of a point.

    Attributes:
        properties: in the Service's own names; which office's grid it lies in, and where.
        zone: the time zone there.
    """

    properties: dict[str, Any]
    zone: tzinfo

    def forecast_key(self, *, hourly: bool) -> str:
        """Return the cache key of the forecast by hour or by half day."""
        return queries.nws_forecast_key(*self._cell(), hourly=hourly)

    def stations_key(self) -> str:
        """Return the cache key of the stations near it."""
        return queries.nws_stations_key(*self._cell())

    def _cell(self) -> tuple[str, int, int]:
        """Return the office and the cell of its grid.

        Raises:
            NotFound: the Service covers the point and has no grid there.
        """
        match self.properties:
            case {"gridId": str() as office, "gridX": int() as x, "gridY": int() as y}:
                return office, x, y
            case _:
                raise NotFound(
                    "The National Weather Service has no forecast and no stations for this point.",
                    "Call again without `source`.",
                )


class _Observation(NamedTuple):
    """An observation with the moment that it is of."""

    moment: datetime
    reading: Reading


@dataclass(frozen=True)
class NationalWeatherService:
    """Asks the Service, with an answer of the cache where it has one."""

    cache: Cache

    async def fetch_forecast(self, place: Place, step: str, span: int, units: Units) -> Forecast:
        """Return the Service's own forecast.

        Args:
            step: `hourly`, or by day, whose periods are half days.
            span: hours or days.

        Raises:
            NotFound: it does not cover the place.
            Unavailable: it has none now.
        """
        is_hourly = step == "hourly"
        try:
            point = await self.fetch_point(place)
            if point is None:
                raise NotFound(
                    f"The National Weather Service does not cover {place.name}.", "Call again without `source`."
                )
            snapshot = await self.cache.get(point.forecast_key(hourly=is_hourly))
        except Unavailable as problem:
            # An office that is late leaves its grid without a forecast for hours.
            fix = f"{problem.fix} Open-Meteo has one: leave out `source`."
            raise Unavailable(problem.failure, fix, retry_after=problem.retry_after) from problem
        max_periods = span if is_hourly else 2 * span
        document = snapshot.json()
        origin = self._mark_old_forecast(origin_of(snapshot, NWS), forecast_updated_at(document))
        table = read_forecast(document, units, origin, point.zone, max_periods, now=self._now())
        table = require_rows(table, snapshot, "The National Weather Service")
        return Forecast(
            place=place.to_info(str(point.zone)), step="hourly" if is_hourly else "daily", tables={"nws": table}
        )

    async def fetch_alerts(self, place: Place) -> ServiceAlerts | None:
        """Return the Service's alerts for `place`; None where it certainly has nothing to say."""
        if not may_cover(place):
            return None
        try:
            snapshot = await self.cache.get(queries.nws_alerts_key(place))
            zone = await self._fetch_zone(place)
            document = snapshot.json()
            alerts = read_alerts(document, zone)
        except Problem as problem:
            if await self._certainly_lacks(place):
                return None
            return ServiceAlerts(NWS.name, problem=str(problem))
        answer = ServiceAlerts.read(NWS.name, document, alerts, origin_of(snapshot, NWS), zone)
        if alerts or place.country in COUNTRIES - _PARTLY_COVERED:
            return answer
        # It has no alerts for places elsewhere either, so ask whether it covers this one.
        try:
            point = await self.fetch_point(place)
        except Problem as problem:
            return ServiceAlerts(NWS.name, problem=f"It is not known whether it covers this point. {problem}")
        if point is None:
            return None
        return answer

    async def fetch_observation(self, place: Place, units: Units) -> Reading | None:
        """Return what the nearest station that has something measured; None where the Service has no stations.

        Raises:
            Unavailable: none of the nearest has anything, or they can't be asked.
        """
        point = await self._find_covered_point(place)
        if point is None:
            return None
        document = (await self.cache.get(point.stations_key())).json()
        stations = read_stations(document, place)[:_MAX_STATIONS]
        reading = await self._fetch_best_reading(stations, units, point.zone)
        if reading is None:
            names = ", ".join(station.identifier for station in stations)
            raise Unavailable(f"no data from the stations near ({names or 'there are none'}).", "Try again later.")
        return reading

    async def _find_covered_point(self, place: Place) -> GridPoint | None:
        """Return what the Service has of a place; None outside its coverage, or where that may be and is not known."""
        if not may_cover(place):
            return None
        try:
            return await self.fetch_point(place)
        except Unavailable:
            if place.country in COUNTRIES:
                raise
            return None

    async def _fetch_best_reading(self, stations: Sequence[Station], units: Units, zone: tzinfo) -> Reading | None:
        """Return the first recent observation, else the newest, marked as old; None if no station has any.

        Args:
            stations: the nearest first.
        """
        newest: _Observation | None = None
        for station in stations:
            observation = await self._fetch_station(station, units, zone)
            if observation is None:
                continue
            if self._age_seconds(observation) <= _MAX_OBSERVATION_AGE_SECONDS:
                return observation.reading
            if newest is None or observation.moment > newest.moment:
                newest = observation
        if newest is None:
            return None
        return self._mark_old(newest)

    async def fetch_point(self, place: Place) -> GridPoint | None:
        """Return what the Service has of the point; None outside its coverage."""
        document = (await self.cache.get(queries.nws_point_key(place))).json()
        if document is None:
            return None
        properties: dict[str, Any] = document["properties"]
        return GridPoint(properties, zone_of({"timezone": properties.get("timeZone")}))

    async def _certainly_lacks(self, place: Place) -> bool:
        try:
            return await self.fetch_point(place) is None
        except Problem:
            return False

    async def _fetch_zone(self, place: Place) -> tzinfo:
        """Return the time zone of `place`; UTC if it can't be found out."""
        if place.timezone:
            return zone_of({"timezone": place.timezone})
        try:
            point = await self.fetch_point(place)
        except Problem:
            return UTC
        if point is None:
            return UTC
        return point.zone

    async def _fetch_station(self, station: Station, units: Units, zone: tzinfo) -> _Observation | None:
        """Return the latest observation of a station; None if it has no temperature or no time."""
        try:
            snapshot = await self.cache.get(queries.nws_observation_key(station.identifier))
        except Problem:
            return None
        document = snapshot.json()
        moment = observed_at(document)
        reading = read_observation(document, station, units, origin_of(snapshot, NWS), zone)
        if moment is None or reading.values[0] is None:
            return None
        return _Observation(moment, reading)

    def _mark_old_forecast(self, origin: Origin, updated: datetime | None) -> Origin:
        """Return the origin of a forecast, with a word about it if nobody has updated it for long."""
        if updated is None:
            return origin
        age_seconds = (self._now() - updated).total_seconds()
        if age_seconds <= _MAX_FORECAST_AGE_SECONDS:
            return origin
        return origin.model_copy(
            update={"stale": True, "reason": f"the office updated its forecast {age_seconds / 3600:.0f} h ago"}
        )

    def _mark_old(self, observation: _Observation) -> Reading:
        reason = f"the station reported {self._age_seconds(observation) / 3600:.0f} h ago"
        origin = observation.reading.origin.model_copy(update={"stale": True, "reason": reason})
        return observation.reading.model_copy(update={"origin": origin})

    def _age_seconds(self, observation: _Observation) -> float:
        return (self._now() - observation.moment).total_seconds()

    def _now(self) -> datetime:
        return moment_at(self.cache.clock())
