"""Points on the globe."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from mcp_batteries.errors import Invalid
from mcp_weather.models import PlaceInfo
from mcp_weather.policy.resource_uri import resource_uri

__all__ = ["DIRECTIONS", "Place", "point_at"]


class _Direction(NamedTuple):
    """How far north and how far east one goes by a distance of one."""

    north: float
    east: float


_DIAGONAL = math.sqrt(0.5)
DIRECTIONS = {
    "north": _Direction(1.0, 0.0), "north-east": _Direction(_DIAGONAL, _DIAGONAL),
    "east": _Direction(0.0, 1.0), "south-east": _Direction(-_DIAGONAL, _DIAGONAL),
    "south": _Direction(-1.0, 0.0), "south-west": _Direction(-_DIAGONAL, -_DIAGONAL),
    "west": _Direction(0.0, -1.0), "north-west": _Direction(_DIAGONAL, -_DIAGONAL),
}  # fmt: skip
_KM_PER_DEGREE = 111.2  # of latitude
_EARTH_RADIUS_KM = 6371.0


@dataclass(frozen=True)
class Place:
    """A named point on the globe: latitude within 90, longitude within 180 degrees, both with four decimals.

    Attributes:
        country: ISO 3166-1 code in capitals, if it is known.
        resolved: how a caller's text became this place.
        elevation: metres above the sea, if known.
    """

    name: str
    latitude: float
    longitude: float
    timezone: str | None
    country: str | None
    resolved: str
    elevation: float | None = None

    @property
    def coordinates(self) -> str:
        """`lat,lon` as the National Weather Service wants it: at most four decimals, no trailing zeros."""
        return f"{_format_degrees(self.latitude)},{_format_degrees(self.longitude)}"

    def to_info(self, timezone: str | None = None, *, elevation: Any = None) -> PlaceInfo:
        """Return the place as results show it.

        Args:
            timezone: what a service says of it.
            elevation: what a service says of it; used where nothing better is known and it is a number.
        """
        elevation_m = self.elevation
        if elevation_m is None and isinstance(elevation, int | float) and math.isfinite(elevation):
            elevation_m = elevation
        return PlaceInfo(
            name=self.name,
            latitude=self.latitude,
            longitude=self.longitude,
            timezone=timezone or self.timezone,
            elevation_m=elevation_m,
            resolved=self.resolved,
        )

    def move(self, km: float, direction: str) -> Place:
        """Return the point at that distance; `direction` is one of `DIRECTIONS`."""
        vector = DIRECTIONS[direction]
        latitude = max(-89.0, min(89.0, self.latitude + km * vector.north / _KM_PER_DEGREE))
        longitude = self.longitude + km * vector.east / _KM_PER_DEGREE / math.cos(math.radians(latitude))
        longitude = (longitude + 180) % 360 - 180
        return point_at(latitude, longitude, name=self.name, country=self.country, resolved=self.resolved)

    def distance_km(self, latitude: float, longitude: float) -> float:
        """Return the distance on the globe to a point, by the haversine formula."""
        own_latitude = math.radians(self.latitude)
        other_latitude = math.radians(latitude)
        longitude_difference = math.radians(longitude - self.longitude)
        haversine = (
            math.sin((other_latitude - own_latitude) / 2) ** 2
            + math.cos(own_latitude) * math.cos(other_latitude) * math.sin(longitude_difference / 2) ** 2
        )
        return 2 * _EARTH_RADIUS_KM * math.asin(math.sqrt(min(1.0, haversine)))

    def uri(self, kind: str) -> str:
        """Return the URI of the resource that shows `kind` of this place."""
        return resource_uri(self.coordinates, kind)


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
    """Return the place at these degrees.

    Raises:
        Invalid: they are out of range, perhaps because they are swapped.
    """
    if not (-90 <= latitude <= 90 and -180 <= longitude <= 180):
        fix = "Latitude is within 90, longitude within 180 degrees."
        if -90 <= longitude <= 90 and -180 <= latitude <= 180:
            fix = f"They look swapped: try `{longitude:g},{latitude:g}`."
        raise Invalid(f"`{latitude:g},{longitude:g}` is not on the globe.", fix)
    # Adding zero makes minus zero zero.
    latitude = round(latitude, 4) + 0.0
    longitude = round(longitude, 4) + 0.0
    if longitude == -180:
        longitude = 180.0  # The date line has one name, so that it has one cache entry.
    if abs(latitude) == 90:
        longitude = 0.0  # So has each pole.
    return Place(name or f"{latitude:g},{longitude:g}", latitude, longitude, timezone, country, resolved, elevation)


def _format_degrees(degrees: float) -> str:
    return f"{degrees:.4f}".rstrip("0").rstrip(".")
