"""Airports' reports (METAR) and forecasts (TAF) from NOAA's Aviation Weather Center, for the whole world."""

from __future__ import annotations

import math
from datetime import UTC, tzinfo
from typing import Any, cast

from mcp_batteries.errors import NotFound, Unavailable
from mcp_batteries.remote import Cache
from mcp_weather.engine.computed.series import convert, origin, stamp, zone_of
from mcp_weather.engine.services import queries as ask
from mcp_weather.models import Airport, Origin, Reading, Value
from mcp_weather.policy import Place, Station, Units, point_at

__all__ = ["airport"]

AWC = ("NOAA Aviation Weather Center", "public domain")
_KNOT = 1.852
_MOST_BESIDE = 4
_OLD = 2 * 3600
_IF_ANY = {"wind_gusts": "wgst", "weather": "wxString"}
_EARTH_KM = 6371.0


async def airport(cache: Cache, where: Place | Station, units: Units) -> Airport:
    """What an airport reports, or the nearest to a place that does.

    Raises:
        NotFound: there is no report of that airport, or none near the place.
    """
    keys = [ask.airport_key(where.code)] if isinstance(where, Station) else ask.airports_keys(where)
    listed = [(found, item) for found in [await cache.get(key) for key in keys] for item in _reports(found.json())]
    if isinstance(where, Station):
        near = [(0.0, *one) for one in listed if one[1].get("icaoId") == where.code]
        if not near:
            raise NotFound(
                f"There is no report of an airport `{where.code}`.", "Pass the name of a place for the nearest one."
            )
    else:
        near = sorted(((_distance(where, one[1]), *one) for one in listed), key=lambda one: one[0])
        if not near:
            raise NotFound(f"No airport near {where.name} has a report.", "`get_weather` has a model's weather.")
    distance, found, report = near[0]
    zone = zone_of({"timezone": where.timezone}) if isinstance(where, Place) and where.timezone else UTC
    at = report.get("obsTime")
    age = cache.clock() - at if isinstance(at, int | float) else None
    taf = report.get("rawTaf")
    notes = [] if taf else ["[This airport has no TAF.]"]
    if age is None or age > _OLD:
        notes.append(f"[OLD: {'of an unknown time' if age is None else f'{age / 3600:.0f} h ago'}.]")
    name = f"{report['icaoId']}, {report.get('name') or 'name unknown'}"
    place = point_at(float(report["lat"]), float(report["lon"]), name=name, resolved="an airport that reports")
    return Airport(
        place=place.info(None if zone is UTC else str(zone), elevation=_number(report.get("elev"))),
        distance_km=None if isinstance(where, Station) else round(distance, 1),
        metar=str(report["rawOb"]),
        taf=str(taf) if taf else None,
        decoded=_decoded(report, units, zone, origin(found, AWC)),
        beside=[f"{item['icaoId']} {km:.0f} km" for km, _, item in near[1 : 1 + _MOST_BESIDE]],
        notes=notes,
    )


def _reports(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The newest report of each airport."""
    listed = document.get("reports")
    if not isinstance(listed, list):
        raise Unavailable("The Aviation Weather Center sent something that can't be read.", "Try again in a moment.")
    found: dict[str, dict[str, Any]] = {}
    for entry in cast("list[Any]", listed):
        if not isinstance(entry, dict):
            continue
        item = cast("dict[str, Any]", entry)
        point = _number(item.get("lat")), _number(item.get("lon"))
        if not item.get("rawOb") or not item.get("icaoId") or None in point:
            continue
        code = str(item["icaoId"])
        if code not in found or (_number(item.get("obsTime")) or 0) > (_number(found[code].get("obsTime")) or 0):
            found[code] = item
    return list(found.values())


def _decoded(report: dict[str, Any], units: Units, zone: tzinfo, from_: Origin) -> Reading:
    columns: list[tuple[str, str, Value]] = []
    for name, theirs, unit, factor in (
        ("temperature", "temp", "°C", 1.0),
        ("dew_point", "dewp", "°C", 1.0),
        ("wind_speed", "wspd", "km/h", _KNOT),
        ("wind_gusts", "wgst", "km/h", _KNOT),
        ("pressure_altimeter", "altim", "hPa", 1.0),
    ):
        number = _number(report.get(theirs))
        shown, values = convert(name, [None if number is None else number * factor], unit, units)
        columns.append((name, shown, round(values[0], 2) if isinstance(values[0], float) else values[0]))
    direction = report.get("wdir")
    columns.append(("wind_direction", "°", "variable" if direction == "VRB" else _number(direction)))
    # "10+" is ten or more: how much more nobody says.
    seen = report.get("visib")
    columns.append(("visibility", "statute miles", seen if isinstance(seen, str) else _number(seen)))
    columns.append(("weather", "", str(report["wxString"]) if report.get("wxString") else None))
    columns.append(("flight_category", "", str(report["fltCat"]) if report.get("fltCat") else None))
    # A report without a group for gusts or for weather says that there were none.
    columns = [column for column in columns if (theirs := _IF_ANY.get(column[0])) is None or report.get(theirs)]
    at = report.get("obsTime")
    return Reading(
        observed_at=stamp(at, zone) if isinstance(at, int | float) else None,
        station=str(report["icaoId"]),
        names=[name for name, _, _ in columns],
        units=[unit for _, unit, _ in columns],
        values=[value for _, _, value in columns],
        origin=from_,
    )


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return int(value) if value == int(value) else float(value)


def _distance(place: Place, report: dict[str, Any]) -> float:
    """Kilometres on the globe."""
    one, two = math.radians(place.latitude), math.radians(float(report["lat"]))
    across = math.radians(float(report["lon"]) - place.longitude)
    part = math.sin((two - one) / 2) ** 2 + math.cos(one) * math.cos(two) * math.sin(across / 2) ** 2
    return 2 * _EARTH_KM * math.asin(math.sqrt(min(1.0, part)))
