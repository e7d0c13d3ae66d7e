"""The National Weather Service of the US: its own forecast, its stations' measurements, its alerts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any

from mcp_batteries.errors import NotFound, Problem, Unavailable
from mcp_batteries.remote import Cache
from mcp_weather.engine.alerts.answer import Look
from mcp_weather.engine.computed.series import moment_at, origin, to_come, zone_of
from mcp_weather.engine.services import nws_documents
from mcp_weather.engine.services import queries as ask
from mcp_weather.models import Forecast, Reading
from mcp_weather.policy import Place, Units

__all__ = ["WeatherService"]

_FRESH_OBSERVATION = 2 * 3600
"""Seconds after which a station's observation is called old."""


@dataclass(frozen=True)
class WeatherService:
    cache: Cache

    async def official(self, place: Place, step: str, span: int, units: Units) -> Forecast:
        """The National Weather Service's own forecast.

        Raises:
            NotFound: it does not cover the place.
        """
        point = await self.point(place)
        if point is None:
            raise NotFound(f"The National Weather Service does not cover {place.name}.", "Call again without `source`.")
        about, zone = point
        grid = ask.grid_key(str(about["gridId"]), int(about["gridX"]), int(about["gridY"]), hourly=step == "hourly")
        found = await self.cache.get(grid)
        most = span if step == "hourly" else 2 * span
        shown = nws_documents.forecast(
            found.json(), units, origin(found, nws_documents.NWS), zone, most, now=self._now()
        )
        shown = to_come(shown, found, "The National Weather Service")
        return Forecast(
            place=place.info(str(zone)), step="hourly" if step == "hourly" else "daily", tables={"nws": shown}
        )

    async def look(self, place: Place) -> Look | None:
        """Its alerts for `place`; None where it certainly has nothing to say."""
        if not nws_documents.may_cover(place):
            return None
        name = nws_documents.NWS[0]
        try:
            found = await self.cache.get(ask.alerts_key(place))
            zone = await self._zone(place)
            active = nws_documents.alerts(found.json(), zone)
        except Problem as problem:
            try:
                if await self.point(place) is None:
                    return None
            except Problem:
                pass
            return Look(name, problem=str(problem))
        if active or place.country in nws_documents.COUNTRIES:
            return Look(name, active, origin(found, nws_documents.NWS), zone)
        # It has no alerts for places elsewhere either: that it covers this one is asked for.
        try:
            covered = await self.point(place) is not None
        except Problem as problem:
            return Look(name, problem=f"It is not known whether it covers this point. {problem}")
        return Look(name, active, origin(found, nws_documents.NWS), zone) if covered else None

    async def _zone(self, place: Place) -> tzinfo:
        if place.timezone:
            return zone_of({"timezone": place.timezone})
        try:
            point = await self.point(place)
        except Problem:
            point = None
        return point[1] if point else UTC

    async def observation(self, place: Place, units: Units) -> Reading | None:
        """What the nearest station of the National Weather Service that has something measured; None where none has."""
        if not nws_documents.may_cover(place):
            return None
        try:
            point = await self.point(place)
            if point is None:
                return None
            about, zone = point
            key = ask.stations_key(str(about["gridId"]), int(about["gridX"]), int(about["gridY"]))
            stations: list[Any] = (await self.cache.get(key)).json().get("features") or []
        except (Unavailable, KeyError, TypeError, ValueError):
            return None
        best: tuple[datetime, Reading] | None = None
        for feature in stations[:3]:
            station = str(feature["properties"]["stationIdentifier"])
            try:
                found = await self.cache.get(ask.observation_key(station))
            except Problem:
                continue
            document = found.json()
            at = nws_documents.observed_at(document)
            shown = nws_documents.observation(document, station, units, origin(found, nws_documents.NWS), zone)
            if at is None or shown.values[0] is None:
                continue
            if (self._now() - at).total_seconds() <= _FRESH_OBSERVATION:
                return shown
            if best is None or at > best[0]:
                best = at, shown
        if best is None:
            return None
        hours = (self._now() - best[0]).total_seconds() / 3600
        old = best[1].origin.model_copy(update={"stale": True, "reason": f"the station reported {hours:.0f} h ago"})
        return best[1].model_copy(update={"origin": old})

    async def point(self, place: Place) -> tuple[dict[str, Any], tzinfo] | None:
        """What the National Weather Service has of the point; None outside its coverage."""
        found = (await self.cache.get(ask.points_key(place))).json()
        if found is None:
            return None
        about: dict[str, Any] = found.get("properties") or {}
        if not {"gridId", "gridX", "gridY"} <= about.keys():
            raise Unavailable("The National Weather Service sent a point without its grid.", "Try again in a moment.")
        return about, zone_of({"timezone": about.get("timeZone")})

    def _now(self) -> datetime:
        return moment_at(self.cache.clock())
