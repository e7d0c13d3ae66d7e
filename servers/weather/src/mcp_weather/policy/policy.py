"""Turns what callers write into the types that the engine takes, or refuses it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from urllib.parse import unquote

from mcp_weather.policy.airport import NamedAirport, is_iata_code, parse_airport_code
from mcp_weather.policy.place import Place
from mcp_weather.policy.place_search import FoundPlace, Geocoder, find_places, resolve_name
from mcp_weather.policy.place_text import PlaceName, parse_place
from mcp_weather.policy.resource_uri import RESOURCE_KINDS, RESOURCE_URI, ResourceUri, resource_uri
from mcp_weather.policy.units import Units, parse_aviation_units, parse_units

__all__ = ["Policy"]


class Policy:
    """Decides what callers may ask.

    Args:
        saved_places: returns the saved places by alias, in lower case; called each time, because they may be edited.
        geocoder: looks a name up.
        units: of all values, unless a call says otherwise.
    """

    def __init__(
        self, saved_places: Callable[[], Mapping[str, Place]], geocoder: Geocoder, units: Units = "metric"
    ) -> None:
        self._saved_places = saved_places
        self._geocoder = geocoder
        self._units: Units = units

    def saved_places(self) -> Mapping[str, Place]:
        """Return the saved places by alias, in lower case."""
        return self._saved_places()

    def parse_place(self, text: str) -> Place | PlaceName:
        """Return what `text` names: a saved alias, coordinates, or a name to look up.

        Raises:
            Invalid: it is none of them, or not a point on the globe.
        """
        return parse_place(text, self._saved_places())

    async def resolve_place(self, text: str) -> Place:
        """Return the place that `text` means, looked up if it is a name.

        Raises:
            Invalid: it is not the name of a place, or that of several.
            NotFound: no place has this name.
            Unavailable: names can't be looked up.
        """
        parsed = self.parse_place(text)
        if isinstance(parsed, Place):
            return parsed
        return await resolve_name(parsed, self._geocoder)

    async def find_places(self, text: str, language: str) -> list[FoundPlace]:
        """Return all places that `text` may mean, and how many people live there.

        Raises:
            Invalid: it can't be the name of a place.
        """
        return await find_places(self.parse_place(text), language, self._geocoder)

    def parse_search(self, text: str) -> Place | PlaceName | None:
        """Return what is searched for; None if `text` is blank.

        Raises:
            Invalid: it can't be the name of a place.
        """
        if not text.strip():
            return None
        return self.parse_place(text)

    def parse_airport(self, text: str) -> NamedAirport:
        """Return the airport whose code `text` may be, or near whose place it is."""
        aliases = self._saved_places()
        return NamedAirport(
            code=parse_airport_code(text, aliases),
            code_in_small_letters=parse_airport_code(text.upper(), aliases),
            is_short_code=is_iata_code(text),
            find_place=partial(self.resolve_place, text),
        )

    def parse_units(self, text: str) -> Units:
        """Return the units in `text`; see `units.parse_units`."""
        return parse_units(text, self._units)

    def parse_aviation_units(self, text: str) -> Units:
        """Return the units in `text`, for airports; see `units.parse_aviation_units`."""
        return parse_aviation_units(text, self._units)

    def parse_uri(self, uri: str) -> ResourceUri | None:
        """Return the canonical form of `uri`; None if it is of another kind.

        Raises:
            Problem: no such place can exist.
        """
        match = RESOURCE_URI.fullmatch(uri)
        if match is None or match["kind"] not in RESOURCE_KINDS:
            return None
        text = unquote(match["place"])
        place = self.parse_place(text)
        if isinstance(place, Place) and place.resolved == "coordinates":
            canonical = place.coordinates
        else:
            canonical = " ".join(text.split()).casefold()
        return ResourceUri(resource_uri(canonical, match["kind"]), canonical, match["kind"])

    def resource_uri(self, alias: str, kind: str) -> str:
        """Return the URI of the resource that shows `kind` of the saved place `alias`."""
        return resource_uri(alias, kind)
