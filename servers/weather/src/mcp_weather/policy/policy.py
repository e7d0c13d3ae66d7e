"""Turns what callers write into the types that the engine takes, or refuses it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from urllib.parse import unquote

from mcp_weather.policy.airport import AirportCode, parse_airport_code
from mcp_weather.policy.alert_cursor import parse_alerts_cursor
from mcp_weather.policy.days import parse_astronomy_day, parse_forecast_day, parse_past_days
from mcp_weather.policy.language import parse_language
from mcp_weather.policy.place import Place
from mcp_weather.policy.place_search import FoundPlace, Geocoder, find_places, resolve_name
from mcp_weather.policy.place_text import PlaceName, parse_place
from mcp_weather.policy.resource_uri import RESOURCE_KINDS, RESOURCE_URI, ResourceUri, resource_uri
from mcp_weather.policy.units import parse_aviation_units, parse_units

__all__ = ["Policy"]


class Policy:
    """Decides what callers may ask.

    Args:
        saved_places: returns the saved places by alias, in lower case; called each time, because they may be edited.
        geocoder: looks a name up.
    """

    parse_language = staticmethod(parse_language)
    parse_units = staticmethod(parse_units)
    parse_aviation_units = staticmethod(parse_aviation_units)
    parse_forecast_day = staticmethod(parse_forecast_day)
    parse_astronomy_day = staticmethod(parse_astronomy_day)
    parse_past_days = staticmethod(parse_past_days)
    parse_alerts_cursor = staticmethod(parse_alerts_cursor)

    def __init__(self, saved_places: Callable[[], Mapping[str, Place]], geocoder: Geocoder) -> None:
        self._saved_places = saved_places
        self._geocoder = geocoder

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
        parsed = self.parse_place(text)
        if isinstance(parsed, Place):
            return [FoundPlace(parsed, None)]
        return await find_places(parsed, language, self._geocoder)

    def parse_airport_code(self, text: str) -> AirportCode | None:
        """Return the airport whose code `text` may be; None if it must be a place."""
        return parse_airport_code(text, self._saved_places())

    def parse_lowercase_airport_code(self, text: str) -> AirportCode | None:
        """Return the airport whose code `text` may be in small letters, if no place has that name."""
        return self.parse_airport_code(text.upper())

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
