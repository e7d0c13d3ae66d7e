"""The geometry of MeteoAlarm's areas, and rings in general.

The areas are in `meteoalarm_areas.json.gz`, which `servers/weather/write_meteoalarm_areas.py` writes.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from functools import cache
from importlib import resources

__all__ = ["covers", "inside"]

_MARGIN = 0.02
"""Degrees within which a place counts as inside: more than an outline can be off, so that none is missed."""

Ring = Sequence[tuple[float, float]]
"""Longitude and latitude of the corners."""


def covers(code: str, latitude: float, longitude: float) -> bool | None:
    """Whether the area with this EMMA_ID has the point in it; None if no area with that code is known."""
    rings = _regions().get(code)
    if rings is None:
        return None
    return any(inside(_corners(ring), latitude, longitude) for ring in rings)


def inside(ring: Ring, latitude: float, longitude: float) -> bool:
    """Whether the point lies in the ring, or close to it."""
    within = False
    for (x1, y1), (x2, y2) in zip(ring, [*ring[1:], *ring[:1]], strict=True):
        if (y1 > latitude) != (y2 > latitude) and longitude < (x2 - x1) * (latitude - y1) / (y2 - y1) + x1:
            within = not within
        length = (x2 - x1) ** 2 + (y2 - y1) ** 2
        along = ((longitude - x1) * (x2 - x1) + (latitude - y1) * (y2 - y1)) / length if length else 0.0
        along = max(0.0, min(1.0, along))
        off = (longitude - x1 - along * (x2 - x1)) ** 2 + (latitude - y1 - along * (y2 - y1)) ** 2
        if off <= _MARGIN**2:
            return True
    return within


@cache
def _regions() -> dict[str, list[list[int]]]:
    return json.loads(
        gzip.decompress(
            resources.files("mcp_weather.engine.services").joinpath("meteoalarm_areas.json.gz").read_bytes()
        )
    )


def _corners(ring: Sequence[int]) -> list[tuple[float, float]]:
    corners: list[tuple[float, float]] = []
    x = y = 0
    for east, north in zip(ring[::2], ring[1::2], strict=True):
        x, y = x + east, y + north
        corners.append((x / 100, y / 100))
    return corners
