"""Finding places, as a tool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from mcp_batteries.server.declaration.decorators import tool
from mcp_weather.engine.saved_places import SavedPlaces, list_saved_places
from mcp_weather.models import Places, Value
from mcp_weather.policy.place_search import GEOCODED
from mcp_weather.policy.policy import Policy

__all__ = ["PlaceTools"]

_COLUMNS = ["place", "latitude", "longitude", "timezone", "population", "elevation_m"]


@dataclass(frozen=True)
class PlaceTools:
    """The tool that finds places.

    Attributes:
        language: of names, unless a call says otherwise.
    """

    policy: Policy
    saved_places: SavedPlaces
    language: str

    @tool("Find a place", open_world=True)
    async def find_place(
        self,
        query: Annotated[
            str | None, Field(max_length=200, description="Default: list the aliases in the places file.")
        ] = None,
        language: Annotated[str | None, Field(pattern="^[a-z]{2}$", description="Two letters.")] = None,
    ) -> Places:
        """Find places by name, with coordinates, time zone, population and elevation.

        Needed only to tell places of one name apart: other tools take names too. Any script is
        understood.
        """
        requested_language = self.policy.parse_language(language, self.language)
        if query is None or not query.strip():
            source = "the places file" if self.saved_places.path else "no places file (set one with --places)"
            return list_saved_places(self.saved_places, source=source)
        matches = await self.policy.find_places(query, requested_language)
        rows: list[list[Value]] = []
        for place, population in matches:
            rows.append([place.name, place.latitude, place.longitude, place.timezone, population, place.elevation])
        if matches and matches[0].place.resolved != GEOCODED:
            return Places(columns=_COLUMNS, rows=rows, source=matches[0].place.resolved)
        return Places(columns=_COLUMNS, rows=rows, source="Open-Meteo.com geocoding (GeoNames)", licence="CC BY 4.0")
