"""The geometry of MeteoAlarm's areas, and rings in general.

The areas are in `meteoalarm_areas.json.gz`, which `servers/weather/write_meteoalarm_areas.py` writes.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from functools import cache
from importlib import resources

__all__ = ["area_contains", "ring_contains"]

# A place counts as inside within so many degrees: more than an outline can be off, so that no warning is missed.
_MARGIN_DEGREES = 0.02
_FULL_TURN_DEGREES = 360

# Longitude and latitude of the corners.
Ring = Sequence[tuple[float, float]]


def area_contains(code: str, latitude: float, longitude: float) -> bool | None:
    """Return whether the area with this EMMA_ID has the point in it; None if no area with that code is known."""
    rings = _load_areas().get(code)
    if rings is None:
        return None
    return any(ring_contains(_decode_corners(ring), latitude, longitude) for ring in rings)


def ring_contains(ring: Ring, latitude: float, longitude: float) -> bool:
    """Return whether the point lies in the ring, or close to it. The ring may cross the date line."""
    corners = _unwrap(ring)
    turns = (-_FULL_TURN_DEGREES, 0, _FULL_TURN_DEGREES)
    return any(_plane_ring_contains(corners, latitude, longitude + turn) for turn in turns)


def _unwrap(ring: Ring) -> list[tuple[float, float]]:
    """Return the corners with longitudes that go on beyond 180 degrees where the ring crosses the date line."""
    corners: list[tuple[float, float]] = []
    for longitude, latitude in ring:
        if corners:
            east = longitude - corners[-1][0]
            longitude -= _FULL_TURN_DEGREES * round(east / _FULL_TURN_DEGREES)
        corners.append((longitude, latitude))
    return corners


def _plane_ring_contains(ring: Ring, latitude: float, longitude: float) -> bool:
    """Return whether the point lies in the ring, or close to it, as if the globe were a plane.

    A ray from the point to the east crosses the ring an odd number of times if the point lies inside.
    """
    is_inside = False
    for (x1, y1), (x2, y2) in zip(ring, [*ring[1:], *ring[:1]], strict=True):
        if (y1 > latitude) != (y2 > latitude) and longitude < (x2 - x1) * (latitude - y1) / (y2 - y1) + x1:
            is_inside = not is_inside
        squared_length = (x2 - x1) ** 2 + (y2 - y1) ** 2
        # Where on the edge the nearest point to ours is: 0 is its begin, 1 its end.
        nearest = 0.0
        if squared_length:
            nearest = ((longitude - x1) * (x2 - x1) + (latitude - y1) * (y2 - y1)) / squared_length
            nearest = max(0.0, min(1.0, nearest))
        x_distance = longitude - x1 - nearest * (x2 - x1)
        y_distance = latitude - y1 - nearest * (y2 - y1)
        if x_distance**2 + y_distance**2 <= _MARGIN_DEGREES**2:
            return True
    return is_inside


@cache
def _load_areas() -> dict[str, list[list[int]]]:
    packed = resources.files("mcp_weather.engine.services").joinpath("meteoalarm_areas.json.gz").read_bytes()
    return json.loads(gzip.decompress(packed))


def _decode_corners(ring: Sequence[int]) -> list[tuple[float, float]]:
    """Return the corners of a ring, which is stored as differences from corner to corner in hundredths of a degree."""
    corners: list[tuple[float, float]] = []
    x = 0
    y = 0
    for east, north in zip(ring[::2], ring[1::2], strict=True):
        x += east
        y += north
        corners.append((x / 100, y / 100))
    return corners
