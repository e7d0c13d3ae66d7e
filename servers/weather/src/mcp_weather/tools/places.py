"""Finding places, as a tool."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from mcp_batteries.server.declaration.decorators import tool
from mcp_batteries.server.declaration.trusted import trusted
from mcp_weather.engine.answers.places import find_named_places
from mcp_weather.engine.engine import Engine
from mcp_weather.engine.saved_places import SavedPlaces, list_saved_places
from mcp_weather.models import Places
from mcp_weather.policy.language import parse_language
from mcp_weather.policy.place import Place
from mcp_weather.policy.place_text import MAX_PLACE_CHARACTERS, PlaceName
from mcp_weather.policy.policy import Policy

__all__ = ["find_place"]


@tool("Find a place", open_world=True)
async def find_place(
    engine: Engine,
    saved_places: SavedPlaces,
    *,
    query: Annotated[
        Place | PlaceName | None,
        trusted(Policy.parse_search),
        Field(max_length=MAX_PLACE_CHARACTERS, description="Default: list the aliases in the places file."),
    ] = None,
    language: Annotated[
        str | None, trusted(parse_language), Field(pattern="^[a-z]{2}$", description="Two letters.")
    ] = None,
) -> Places:
    """Find places by name, with coordinates, time zone, population and elevation.

    Only to tell places of one name apart: other tools take names too, in any script.
    """
    if query is None:
        source = "the places file" if saved_places.path else "no places file (set one with --places)"
        return list_saved_places(saved_places, source=source)
    return await find_named_places(engine, query, language or engine.language)
