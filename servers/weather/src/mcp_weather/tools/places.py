"""Finding places, as a tool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from mcp_batteries.server.declare import tool
from mcp_weather.engine.saved_places import SavedPlaces
from mcp_weather.models import Places
from mcp_weather.policy import FOUND, Policy

__all__ = ["PlaceTools", "saved_places"]


@dataclass(frozen=True)
class PlaceTools:
    policy: Policy
    saved: SavedPlaces
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
        if query is None or not query.strip():
            return saved_places(self.saved)
        found = await self.policy.places(query, language or self.language)
        columns = ["place", "latitude", "longitude", "timezone", "population", "elevation_m"]
        rows = [[at.name, at.latitude, at.longitude, at.timezone, people, at.elevation] for at, people in found]
        if found and found[0][0].resolved != FOUND:
            return Places(columns=columns, rows=rows, source=found[0][0].resolved)
        return Places(columns=columns, rows=rows, source="Open-Meteo.com geocoding (GeoNames)", licence="CC BY 4.0")


def saved_places(saved: SavedPlaces) -> Places:
    """The saved places as a result."""
    rows = [[alias, at.name, at.latitude, at.longitude, at.timezone] for alias, at in saved.all().items()]
    return Places(
        columns=["alias", "name", "latitude", "longitude", "timezone"],
        rows=rows,
        source="the places file" if saved.path else "no places file (set one with --places)",
        problem=saved.problem,
    )
