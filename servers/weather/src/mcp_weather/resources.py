"""The weather of each place as resources, which `changes` refreshes."""

from __future__ import annotations

from dataclasses import dataclass

from mcp_types import Resource, TextResourceContents
from pydantic import BaseModel

from mcp_batteries.errors import NotFound, quote
from mcp_batteries.server.calling.results import CacheableContents, to_compact_json
from mcp_batteries.server.declaration.decorators import lists_resources, resource
from mcp_weather.engine.alerts.answer import take_page
from mcp_weather.engine.answers.air_quality import fetch_air_quality
from mcp_weather.engine.answers.forecasts import ForecastQuery, fetch_forecast
from mcp_weather.engine.engine import Engine
from mcp_weather.engine.saved_places import SavedPlaces, list_saved_places
from mcp_weather.policy.place import Place
from mcp_weather.policy.policy import Policy
from mcp_weather.policy.resource_uri import RESOURCE_KINDS
from mcp_weather.policy.units import Units

__all__ = ["PLACES_PROBLEM_URI", "PLACES_URI", "Resources"]

PLACES_URI = "weather://places"
PLACES_PROBLEM_URI = "weather://places/problem"
_JSON = "application/json"
_TITLES = {
    "now": "Weather now", "hourly": "Next 48 hours", "daily": "Next 7 days", "alerts": "Alerts in effect",
    "air": "Air quality",
}  # fmt: skip
# The contents of a resource that the cache knows nothing of last so long.
_DEFAULT_TTL_SECONDS = 3600.0


@dataclass(frozen=True)
class Resources:
    """What there is of each place, and the saved places themselves.

    Attributes:
        units: of all values.
    """

    policy: Policy
    engine: Engine
    saved_places: SavedPlaces
    units: Units

    @lists_resources
    async def list_resources(self) -> list[Resource]:
        """Return what there is of each saved place."""
        resources: list[Resource] = []
        for alias, place in self.saved_places.all().items():
            resources.extend(self._describe(alias, place, kind) for kind in RESOURCE_KINDS)
        return resources

    def _describe(self, alias: str, place: Place, kind: str) -> Resource:
        return Resource(
            uri=self.policy.resource_uri(alias, kind),
            name=f"{alias} {kind}",
            title=f"{_TITLES[kind]}, {place.name}",
            mime_type=_JSON,
        )

    @resource(PLACES_URI, name="places", title="Saved places", mime_type=_JSON)
    async def read_places(self) -> TextResourceContents:
        """The saved places, and what is wrong with their file if anything is."""
        places = list_saved_places(self.saved_places, source="the places file")
        return TextResourceContents(uri=PLACES_URI, mime_type=_JSON, text=_to_json(places))

    @resource(PLACES_PROBLEM_URI, name="problem", title="Why the places file is not used", mime_type="text/plain")
    async def read_problem(self) -> TextResourceContents:
        """Why the places file is not used as it is now."""
        text = "There is none.\n"
        if self.saved_places.problem:
            text = f"The last good version is served: {self.saved_places.problem}\n"
        return TextResourceContents(uri=PLACES_PROBLEM_URI, mime_type="text/plain", text=text)

    @resource("weather://{+place}/now", name="now", title=_TITLES["now"], mime_type=_JSON)
    async def read_now(self, uri: str) -> CacheableContents:
        """The weather now."""
        return await self._read(uri)

    @resource("weather://{+place}/hourly", name="hourly", title=_TITLES["hourly"], mime_type=_JSON)
    async def read_hourly(self, uri: str) -> CacheableContents:
        """The next 48 hours."""
        return await self._read(uri)

    @resource("weather://{+place}/daily", name="daily", title=_TITLES["daily"], mime_type=_JSON)
    async def read_daily(self, uri: str) -> CacheableContents:
        """The next 7 days."""
        return await self._read(uri)

    @resource("weather://{+place}/alerts", name="alerts", title=_TITLES["alerts"], mime_type=_JSON)
    async def read_alerts(self, uri: str) -> CacheableContents:
        """Alerts in effect, or who does not cover the place."""
        return await self._read(uri)

    @resource("weather://{+place}/air", name="air", title=_TITLES["air"], mime_type=_JSON)
    async def read_air(self, uri: str) -> CacheableContents:
        """Air quality now and for 24 hours."""
        return await self._read(uri)

    async def _read(self, uri: str) -> CacheableContents:
        parsed = self.policy.parse_uri(uri)
        if parsed is None:
            raise NotFound(f"No resource has the URI {quote(uri)}.")
        place = await self.policy.resolve_place(parsed.place)
        text = await self._read_text(place, parsed.kind)
        ttls = [await self.engine.cache.ttl(key) for key in await self.engine.cache_keys(place, parsed.kind)]
        contents = TextResourceContents(uri=uri, mime_type=_JSON, text=text)
        return CacheableContents(contents, min(ttls, default=_DEFAULT_TTL_SECONDS), public=True)

    async def _read_text(self, place: Place, kind: str) -> str:
        match kind:
            case "now":
                present = await self.engine.open_meteo.fetch_present(place, self.units)
                info = place.to_info(str(present.zone))
                document = {"place": info.model_dump(), "now": present.reading.model_dump()}
                return to_compact_json(document) + "\n"
            case "hourly":
                query = ForecastQuery(place, "hourly", ("basic",), 48, self.units)
                return _to_json(await fetch_forecast(self.engine, query))
            case "daily":
                query = ForecastQuery(place, "daily", ("basic",), 7, self.units)
                return _to_json(await fetch_forecast(self.engine, query))
            case "air":
                return _to_json(await fetch_air_quality(self.engine, place, self.units, 24, pollen=False))
            case _:
                alerts = await self.engine.alerts.fetch(place)
                return _to_json(take_page(alerts))


def _to_json(model: BaseModel) -> str:
    return model.model_dump_json() + "\n"
