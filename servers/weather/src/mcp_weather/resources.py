"""The weather of each place as resources, which `changes` refreshes."""

from __future__ import annotations

import json
from dataclasses import dataclass

from mcp_types import Resource, TextResourceContents
from pydantic import BaseModel

from mcp_batteries.errors import NotFound, quote
from mcp_batteries.server.declare import lists_resources, resource
from mcp_batteries.server.results import Lasting
from mcp_weather.engine.engine import Engine
from mcp_weather.engine.saved_places import SavedPlaces
from mcp_weather.models import Places
from mcp_weather.policy import KINDS, Place, Policy, Subject, Units

__all__ = ["PLACES", "PROBLEM", "Resources"]

PLACES = "weather://places"
PROBLEM = "weather://places/problem"
_JSON = "application/json"
_TITLES = {
    "now": "Weather now", "hourly": "Next 48 hours", "daily": "Next 7 days", "alerts": "Alerts in effect",
    "air": "Air quality",
}  # fmt: skip


@dataclass(frozen=True)
class Resources:
    policy: Policy
    engine: Engine
    saved: SavedPlaces
    units: Units

    @lists_resources
    async def of_saved_places(self) -> list[Resource]:
        """What there is of each saved place."""
        return [
            Resource(
                uri=self.policy.uri(alias, kind),
                name=f"{alias} {kind}",
                title=f"{_TITLES[kind]}, {place.name}",
                mime_type=_JSON,
            )
            for alias, place in self.saved.all().items()
            for kind in KINDS
        ]

    @resource(PLACES, name="places", title="Saved places", mime_type=_JSON)
    async def read_places(self) -> TextResourceContents:
        """The saved places, and what is wrong with their file if anything is."""
        rows = [[alias, at.name, at.latitude, at.longitude, at.timezone] for alias, at in self.saved.all().items()]
        columns = ["alias", "name", "latitude", "longitude", "timezone"]
        found = Places(columns=columns, rows=rows, source="the places file", problem=self.saved.problem)
        return TextResourceContents(uri=PLACES, mime_type=_JSON, text=_json(found))

    @resource(PROBLEM, name="problem", title="Why the places file is not used", mime_type="text/plain")
    async def read_problem(self) -> TextResourceContents:
        """Why the places file is not used as it is now."""
        if not self.saved.problem:
            return TextResourceContents(uri=PROBLEM, mime_type="text/plain", text="There is none.\n")
        return TextResourceContents(
            uri=PROBLEM, mime_type="text/plain", text=f"The last good version is served: {self.saved.problem}\n"
        )

    @resource("weather://{+place}/now", name="now", title=_TITLES["now"], mime_type=_JSON)
    async def read_now(self, uri: str) -> Lasting:
        """The weather now."""
        return await self._read(uri)

    @resource("weather://{+place}/hourly", name="hourly", title=_TITLES["hourly"], mime_type=_JSON)
    async def read_hourly(self, uri: str) -> Lasting:
        """The next 48 hours."""
        return await self._read(uri)

    @resource("weather://{+place}/daily", name="daily", title=_TITLES["daily"], mime_type=_JSON)
    async def read_daily(self, uri: str) -> Lasting:
        """The next 7 days."""
        return await self._read(uri)

    @resource("weather://{+place}/alerts", name="alerts", title=_TITLES["alerts"], mime_type=_JSON)
    async def read_alerts(self, uri: str) -> Lasting:
        """Alerts in effect, or who does not cover the place."""
        return await self._read(uri)

    @resource("weather://{+place}/air", name="air", title=_TITLES["air"], mime_type=_JSON)
    async def read_air(self, uri: str) -> Lasting:
        """Air quality now and for 24 hours."""
        return await self._read(uri)

    async def where(self, subject: Subject) -> Place:
        """The current place of `subject`."""
        return await self.policy.place(subject.place)

    async def _read(self, uri: str) -> Lasting:
        subject = self.policy.subject(uri)
        if subject is None:
            raise NotFound(f"No resource has the URI {quote(uri)}.")
        place = await self.where(subject)
        text = await self._shown(place, subject.kind)
        waits = [await self.engine.cache.ttl(key) for key in await self.engine.keys(place, subject.kind)]
        contents = TextResourceContents(uri=uri, mime_type=_JSON, text=text)
        return Lasting(contents, min(waits, default=3600.0), public=True)

    async def _shown(self, place: Place, kind: str) -> str:
        match kind:
            case "now":
                now, zone = await self.engine.now(place, self.units)
                parts = {"place": place.info(str(zone)).model_dump(), "now": now.model_dump()}
                return json.dumps(parts, ensure_ascii=False, separators=(",", ":")) + "\n"
            case "hourly":
                return _json(await self.engine.forecast(place, "hourly", ("basic",), 48, ("best_match",), self.units))
            case "daily":
                return _json(await self.engine.forecast(place, "daily", ("basic",), 7, ("best_match",), self.units))
            case "air":
                return _json(await self.engine.air(place, self.units, 24, pollen=False))
            case _:
                return _json(await self.engine.alerts_page(place, self.policy.alerts_after(None, place)))


def _json(found: BaseModel) -> str:
    return found.model_dump_json() + "\n"
