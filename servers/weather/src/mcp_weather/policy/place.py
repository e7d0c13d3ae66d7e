"""Points on the globe."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote as percent

from mcp_batteries.errors import Invalid
from mcp_weather.models import PlaceInfo

__all__ = ["DIRECTIONS", "Place", "place_uri", "point_at"]

_DIAGONAL = math.sqrt(0.5)
DIRECTIONS = {
    "north": (1.0, 0.0), "north-east": (_DIAGONAL, _DIAGONAL), "east": (0.0, 1.0),
    "south-east": (-_DIAGONAL, _DIAGONAL), "south": (-1.0, 0.0), "south-west": (-_DIAGONAL, -_DIAGONAL),
    "west": (0.0, -1.0), "north-west": (_DIAGONAL, -_DIAGONAL),
}  # fmt: skip
"""How far north and east each of them goes."""
_KM = 111.2
"""Kilometres of a degree of latitude."""


@dataclass(frozen=True)
class Place:
    """A point on the globe: latitude within 90, longitude within 180 degrees, four decimals, named."""

    name: str
    latitude: float
    longitude: float
    timezone: str | None
    country: str | None
    """ISO 3166-1 code in capitals, if known."""
    resolved: str
    elevation: float | None = None
    """Metres above the sea, if known."""

    @property
    def point(self) -> str:
        """`lat,lon` as the National Weather Service wants it: at most four decimals, no trailing zeros."""
        return f"{_plain(self.latitude)},{_plain(self.longitude)}"

    def info(self, timezone: str | None = None, *, elevation: Any = None) -> PlaceInfo:
        """The place as results show it; `elevation` comes from a service."""
        known = isinstance(elevation, int | float) and math.isfinite(elevation)
        return PlaceInfo(
            name=self.name,
            latitude=self.latitude,
            longitude=self.longitude,
            timezone=timezone or self.timezone,
            elevation_m=self.elevation if self.elevation is not None or not known else elevation,
            resolved=self.resolved,
        )

    def beside(self, km: float, direction: str) -> Place:
        """The point at that distance; `direction` is one of `DIRECTIONS`."""
        north, east = DIRECTIONS[direction]
        latitude = max(-89.0, min(89.0, self.latitude + km * north / _KM))
        longitude = self.longitude + km * east / _KM / math.cos(math.radians(latitude))
        longitude = (longitude + 180) % 360 - 180
        return point_at(latitude, longitude, name=self.name, country=self.country, resolved=self.resolved)

    def uri(self, kind: str) -> str:
        """The URI of the resource that shows `kind` of this place."""
        return place_uri(self.point, kind)


def point_at(
    latitude: float,
    longitude: float,
    *,
    name: str | None = None,
    timezone: str | None = None,
    country: str | None = None,
    elevation: float | None = None,
    resolved: str,
) -> Place:
    """The place at these degrees.

    Raises:
        Invalid: they are out of range, perhaps because they are swapped.
    """
    if not (-90 <= latitude <= 90 and -180 <= longitude <= 180):
        swapped = -90 <= longitude <= 90 and -180 <= latitude <= 180
        fix = (
            f"They look swapped: try `{longitude:g},{latitude:g}`."
            if swapped
            else "Latitude is within 90, longitude within 180 degrees."
        )
        raise Invalid(f"`{latitude:g},{longitude:g}` is not on the globe.", fix)
    latitude, longitude = round(latitude, 4) + 0.0, round(longitude, 4) + 0.0
    if longitude == -180:
        longitude = 180.0  # The date line has one name, so that it has one cache entry.
    if abs(latitude) == 90:
        longitude = 0.0  # So has each pole.
    return Place(name or f"{latitude:g},{longitude:g}", latitude, longitude, timezone, country, resolved, elevation)


def place_uri(place: str, kind: str) -> str:
    """The URI of the resource that shows `kind` of a place: its alias, or its coordinates."""
    return f"weather://{percent(place, safe=',')}/{kind}"


def _plain(degrees: float) -> str:
    return f"{degrees:.4f}".rstrip("0").rstrip(".")
