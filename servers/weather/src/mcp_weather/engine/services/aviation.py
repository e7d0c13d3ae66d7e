"""Airports' reports (METAR) and forecasts (TAF) from NOAA's Aviation Weather Center, for the whole world."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from mcp_batteries.errors import NotFound
from mcp_batteries.remote import Cache, Snapshot
from mcp_weather.engine.computed.columns import Column, make_reading
from mcp_weather.engine.computed.timestamps import format_timestamp, moment_at, zone_of
from mcp_weather.engine.computed.unit_conversion import convert_values
from mcp_weather.engine.json_values import as_objects
from mcp_weather.engine.requests import queries
from mcp_weather.engine.services.metar_visibility import read_visibility
from mcp_weather.engine.services.source import Source, origin_of
from mcp_weather.models import Airport, Origin, Reading
from mcp_weather.policy.airport import AirportCode, NamedAirport
from mcp_weather.policy.place import Place, point_at
from mcp_weather.policy.units import Units

__all__ = ["fetch_airport"]

AVIATION_WEATHER_CENTER = Source("NOAA Aviation Weather Center", "public domain")

_KMH_PER_KNOT = 1.852
_MAX_OTHER_AIRPORTS = 4
_MAX_AGE_SECONDS = 2 * 3600
_MAX_DAYS_IN_MONTH = 31
# The days of the month and the hours between which a TAF is valid, as in `2212/2318`.
_VALIDITY = re.compile(r"\b\d{4}/(?P<day>\d{2})(?P<hour>\d{2})\b")

# A report or forecast that is only the word that there is none, or none any more.
_NO_CONTENT = re.compile(
    r"\s*(?:(?:METAR|SPECI|TAF|AMD|COR) )*[A-Z]\w{3} \d{6}Z (?:(?:AUTO|COR) )*(?:\d{4}/\d{4} )?(?P<word>NIL|CNL)\b"
)
_NO_TAF_NOTES = {"NIL": "[This airport has no TAF now.]", "CNL": "[The TAF was cancelled.]"}


@dataclass(frozen=True)
class _Measurement:
    """A number of a METAR: what it is called there, and how it gets into one of our units."""

    name: str
    key: str
    unit: str
    factor: float = 1.0


_MEASUREMENTS = (
    _Measurement("temperature", "temp", "°C"),
    _Measurement("dew_point", "dewp", "°C"),
    _Measurement("wind_speed", "wspd", "km/h", _KMH_PER_KNOT),
    _Measurement("wind_gusts", "wgst", "km/h", _KMH_PER_KNOT),
    _Measurement("pressure_altimeter", "altim", "hPa"),
)
# A report without a group for gusts or for weather says that there were none.
_OPTIONAL_KEYS = {"wind_gusts": "wgst", "weather": "wxString"}


@dataclass(frozen=True)
class _Report:
    """The newest report of one airport.

    Attributes:
        fields: the report in the service's own names.
        distance_km: from the place that was asked for; 0 for a code.
        snapshot: the answer that the report is from.
    """

    code: str
    fields: dict[str, Any]
    distance_km: float
    snapshot: Snapshot


async def fetch_named_airport(cache: Cache, airport: NamedAirport, units: Units) -> Airport:
    """Return what an airport reports, by its code if there is one with it, else by the place of that name.

    Raises:
        NotFound: there is neither, or no report.
    """
    if airport.code is None:
        return await fetch_airport(cache, await _find_location(airport), units)
    try:
        return await fetch_airport(cache, airport.code, units)
    except NotFound as problem:
        try:
            place = await airport.find_place()
        except NotFound:
            raise problem from None
        return await fetch_airport(cache, place, units)


async def _find_location(airport: NamedAirport) -> Place | AirportCode:
    """Return the place of that name, else the airport whose code it may be in small letters."""
    try:
        return await airport.find_place()
    except NotFound as problem:
        if airport.is_short_code:
            raise NotFound(problem.failure, "Codes of airports have four letters here: `KJFK`, `LSZH`.") from None
        if airport.code_in_small_letters is None:
            raise
        return airport.code_in_small_letters


async def fetch_airport(cache: Cache, location: Place | AirportCode, units: Units) -> Airport:
    """Return what an airport reports, or the nearest to a place that does.

    Raises:
        NotFound: there is no report of that airport, or none near the place.
    """
    distance_km = None
    zone = UTC
    if isinstance(location, AirportCode):
        reports = await _fetch_reports_of(cache, location)
    else:
        reports = await _fetch_reports_near(cache, location)
        distance_km = round(reports[0].distance_km, 1)
        if location.timezone:
            zone = zone_of({"timezone": location.timezone})
    report = reports[0]
    fields = report.fields
    taf = fields.get("rawTaf")
    place = point_at(
        float(fields["lat"]),
        float(fields["lon"]),
        name=f"{fields['icaoId']}, {fields.get('name') or 'name unknown'}",
        resolved="an airport that reports",
    )
    return Airport(
        place=place.to_info(None if zone is UTC else str(zone), elevation=_read_number(fields.get("elev"))),
        distance_km=distance_km,
        metar=str(fields["rawOb"]),
        taf=str(taf) if taf else None,
        decoded=_decode(fields, units, zone, origin_of(report.snapshot, AVIATION_WEATHER_CENTER)),
        beside=[f"{other.code} {other.distance_km:.0f} km" for other in reports[1 : 1 + _MAX_OTHER_AIRPORTS]],
        notes=_write_notes(fields, cache.clock()),
    )


async def _fetch_reports_of(cache: Cache, airport: AirportCode) -> Sequence[_Report]:
    """Return the report of an airport.

    Raises:
        NotFound: there is none.
    """
    snapshot = await cache.get(queries.airport_key(airport.code))
    for fields in _newest_reports(snapshot.json()):
        if fields.get("icaoId") == airport.code:
            return [_Report(airport.code, fields, 0.0, snapshot)]
    raise NotFound(
        f"There is no report of an airport `{airport.code}`.", "Pass the name of a place for the nearest one."
    )


async def _fetch_reports_near(cache: Cache, place: Place) -> Sequence[_Report]:
    """Return the reports of the airports near a place, the nearest first.

    Raises:
        NotFound: there is none.
    """
    snapshots = [await cache.get(key) for key in queries.airports_keys(place)]
    reports: list[_Report] = []
    for snapshot in snapshots:
        reports += _read_reports(snapshot, place)
    if not reports:
        raise NotFound(f"No airport near {place.name} has a report.", "`get_weather` has a model's weather.")
    return sorted(reports, key=lambda report: report.distance_km)


def _read_reports(snapshot: Snapshot, place: Place) -> list[_Report]:
    """Return the reports of an answer."""
    return [
        _Report(str(fields["icaoId"]), fields, place.distance_km(float(fields["lat"]), float(fields["lon"])), snapshot)
        for fields in _newest_reports(snapshot.json())
    ]


def _newest_reports(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the newest report of each airport that says where it is; one without content only for its forecast."""
    newest: dict[str, dict[str, Any]] = {}
    for report in as_objects(document["reports"]):
        if not report.get("rawOb") or not report.get("icaoId"):
            continue
        if not _has_content(report) and not report.get("rawTaf"):
            continue
        if _read_number(report.get("lat")) is None or _read_number(report.get("lon")) is None:
            continue
        code = str(report["icaoId"])
        if code not in newest or _report_order(report) > _report_order(newest[code]):
            newest[code] = report
    return list(newest.values())


def _has_content(fields: dict[str, Any]) -> bool:
    return _NO_CONTENT.match(str(fields["rawOb"])) is None


def _report_order(fields: dict[str, Any]) -> tuple[bool, float]:
    """Return by what a report stands after those that tell less than it."""
    return _has_content(fields), _report_time(fields)


def _report_time(fields: dict[str, Any]) -> float:
    """Return the seconds since the epoch of a report; 0 if they are unknown."""
    return _read_number(fields.get("obsTime")) or 0


def _write_notes(fields: dict[str, Any], now: float) -> list[str]:
    """Say that a forecast is missing, cancelled or over, and how old an old report is."""
    notes: list[str] = []
    taf = fields.get("rawTaf")
    no_content = _NO_CONTENT.match(str(taf))
    if not taf:
        notes.append("[This airport has no TAF.]")
    elif no_content is not None:
        notes.append(_NO_TAF_NOTES[no_content["word"]])
    else:
        end = _find_end(str(taf), moment_at(now))
        if end is not None and end.timestamp() <= now:
            notes.append(f"[OLD: the TAF was valid until {format_timestamp(end.timestamp())}.]")
    observed = fields.get("obsTime")
    if not isinstance(observed, int | float):
        notes.append("[OLD: of an unknown time.]")
    elif now - observed > _MAX_AGE_SECONDS:
        notes.append(f"[OLD: {(now - observed) / 3600:.0f} h ago.]")
    return notes


def _find_end(taf: str, now: datetime) -> datetime | None:
    """Return until when a TAF is valid; None if it does not say. Of its month only the day is told: the nearest one."""
    validity = _VALIDITY.search(taf)
    if validity is None:
        return None
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    for distance in range(_MAX_DAYS_IN_MONTH):
        for day in (today - timedelta(days=distance), today + timedelta(days=distance)):
            if day.day == int(validity["day"]):
                # Midnight at the end of a day is told as its hour 24.
                return day + timedelta(hours=int(validity["hour"]))
    return None


def _decode(fields: dict[str, Any], units: Units, zone: tzinfo, origin: Origin) -> Reading:
    """Return a report in columns."""
    columns = [_convert(measurement, fields, units) for measurement in _MEASUREMENTS]
    columns.append(_read_direction(fields.get("wdir")))
    columns.append(read_visibility(str(fields["rawOb"]), fields.get("visib"), units))
    columns.append(Column("weather", "", [_read_word(fields.get("wxString"))]))
    columns.append(Column("flight_category", "", [_read_word(fields.get("fltCat"))]))
    reported = [column for column in columns if _is_reported(column.name, fields)]
    observed = fields.get("obsTime")
    observed_at = None
    if isinstance(observed, int | float):
        observed_at = format_timestamp(observed, zone)
    return make_reading(reported, observed_at=observed_at, station=str(fields["icaoId"]), origin=origin)


def _read_direction(value: Any) -> Column:
    if value == "VRB":
        return Column("wind_direction", "", ["variable"])
    return Column("wind_direction", "°", [_read_number(value)])


def _convert(measurement: _Measurement, fields: dict[str, Any], units: Units) -> Column:
    number = _read_number(fields.get(measurement.key))
    if number is not None:
        number *= measurement.factor
    converted = convert_values(measurement.name, [number], measurement.unit, units)
    value = converted.values[0]
    if isinstance(value, float):
        value = round(value, 2)
    return Column(measurement.name, converted.unit, [value])


def _is_reported(name: str, fields: dict[str, Any]) -> bool:
    key = _OPTIONAL_KEYS.get(name)
    return key is None or bool(fields.get(key))


def _read_word(value: Any) -> str | None:
    if not value:
        return None
    return str(value)


def _read_number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    if value == int(value):
        return int(value)
    return float(value)
