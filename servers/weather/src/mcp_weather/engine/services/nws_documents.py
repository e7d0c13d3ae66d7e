"""What the National Weather Service's documents say: its observations, alerts and forecasts as columns."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import Any, NamedTuple, cast

from mcp_weather.engine.computed.columns import Column, make_reading, make_table
from mcp_weather.engine.computed.timestamps import format_local, parse_timestamp
from mcp_weather.engine.computed.unit_conversion import convert_values
from mcp_weather.engine.json_values import as_object, as_objects
from mcp_weather.engine.services.cap import find_superseded, is_all_clear, is_warning, read_text
from mcp_weather.engine.services.source import Source
from mcp_weather.models import Alert, Origin, Reading, Table, Value
from mcp_weather.policy.place import Place
from mcp_weather.policy.units import Units

__all__ = [
    "NWS", "Station", "forecast_updated_at", "observed_at", "read_alerts", "read_forecast", "read_observation",
    "read_stations",
]  # fmt: skip

NWS = Source("US National Weather Service", "public domain")

# Our names of what a station observes, by the Service's.
_OBSERVED = {
    "temperature": "temperature", "dewpoint": "dew_point", "relativeHumidity": "relative_humidity",
    "windSpeed": "wind_speed", "windDirection": "wind_direction", "windGust": "wind_gusts",
    "barometricPressure": "pressure", "visibility": "visibility", "windChill": "wind_chill", "heatIndex": "heat_index",
}  # fmt: skip
# What exists at some temperatures only, so that it is not missing at others.
_FELT_TEMPERATURES = ("wind_chill", "heat_index")
# The codes of MADIS for what its checks or a forecaster rejected.
_FAILED_QUALITY_CONTROL = ("X", "B")


class _Unit(NamedTuple):
    """How a quantity of the Service gets into one of our units: times a factor, plus an offset."""

    name: str
    factor: float
    offset: float = 0


_UNITS = {
    "degC": _Unit("°C", 1), "degF": _Unit("°C", 5 / 9, -160 / 9), "K": _Unit("°C", 1, -273.15),
    "percent": _Unit("%", 1), "km_h-1": _Unit("km/h", 1), "m_s-1": _Unit("km/h", 3.6),
    "degree_(angle)": _Unit("°", 1), "Pa": _Unit("hPa", 0.01), "hPa": _Unit("hPa", 1), "m": _Unit("m", 1),
    "mm": _Unit("mm", 1),
}  # fmt: skip
# Kilometres an hour of the units in which it tells speeds as text.
_KMH = {"mph": 1.609344, "km/h": 1.0, "kt": 1.852, "m/s": 3.6}


class _Quantity(NamedTuple):
    """A value in one of our units; without unit and value where that of the Service is not known."""

    unit: str
    value: float | None


_NO_GUSTS = _Quantity("km/h", None)
# The wind of a METAR in knots: its direction, speed and, only if there are some, gusts.
_RAW_WIND = re.compile(r"\b(?:\d{3}|VRB)P?\d{2,3}(?:GP?(?P<gusts>\d{2,3}))?KT\b")

# What is done with an event, by its code (VTEC), as in `/O.NEW.KBMX.WI.Y.0001.`: `O` is what counts, others are tests.
_EVENT_ACTION = re.compile(r"/([OTEX]\.[A-Z]{3})\.")
_CANCELLED = "O.CAN"


class Station(NamedTuple):
    """A station that observes.

    Attributes:
        distance_km: from the place that was asked for; None if it does not say where it is.
    """

    identifier: str
    distance_km: float | None


def read_stations(document: dict[str, Any], place: Place) -> list[Station]:
    """Return the stations of a list, the nearest to `place` first, which the Service's own order does not promise."""
    stations: list[Station] = []
    for feature in as_objects(document.get("features")):
        identifier = as_object(feature.get("properties")).get("stationIdentifier")
        if isinstance(identifier, str):
            stations.append(Station(identifier, _measure_distance(feature, place)))
    return sorted(stations, key=_distance_or_infinity)


def _measure_distance(feature: dict[str, Any], place: Place) -> float | None:
    """Return how many kilometres a GeoJSON point is from `place`; None if it is none."""
    match as_object(feature.get("geometry")).get("coordinates"):
        case [int() | float() as longitude, int() | float() as latitude, *_]:
            return place.distance_km(latitude, longitude)
        case _:
            return None


def _distance_or_infinity(station: Station) -> float:
    return math.inf if station.distance_km is None else station.distance_km


def observed_at(feature: dict[str, Any]) -> datetime | None:
    """Return when a station observed; None if it does not say."""
    return parse_timestamp(as_object(feature.get("properties")).get("timestamp"))


def read_observation(feature: dict[str, Any], station: Station, units: Units, origin: Origin, zone: tzinfo) -> Reading:
    """Return a station's observation; what failed quality control counts as missing."""
    properties = as_object(feature.get("properties"))
    columns: list[Column] = []
    for key, name in _OBSERVED.items():
        quantity = _read_quantity(properties.get(key))
        if quantity.value is None and name == "wind_gusts":
            quantity = _read_raw_gusts(properties, quantity)
        if quantity.value is None and (name in _FELT_TEMPERATURES or quantity is _NO_GUSTS):
            continue
        columns.append(Column(name, *convert_values(name, [quantity.value], quantity.unit, units)))
    conditions = properties.get("textDescription")
    columns.append(Column("conditions", "", [str(conditions) if conditions else None]))
    observed = format_local(properties.get("timestamp"), zone)
    reading = make_reading(columns, observed_at=observed, station=station.identifier, origin=origin)
    if station.distance_km is None:
        return reading
    return reading.model_copy(update={"distance_km": round(station.distance_km, 1)})


def _read_raw_gusts(properties: dict[str, Any], quantity: _Quantity) -> _Quantity:
    """Return the gusts of the station's own report, which the Service does not always take over.

    Args:
        quantity: what is returned where the station has no report, or its wind is not in it.
    """
    wind = _RAW_WIND.search(str(properties.get("rawMessage") or ""))
    if wind is None:
        return quantity
    if wind["gusts"] is None:
        return _NO_GUSTS
    return _Quantity("km/h", float(wind["gusts"]) * _KMH["kt"])


def read_alerts(document: dict[str, Any], zone: tzinfo) -> list[Alert]:
    """Return the alerts of the Service's list of what is in effect or announced, each once.

    That list alone decides, not what a message says of its end. What another alert of the list has replaced is left
    out; the list keeps such alerts for a while.
    """
    entries = [as_object(feature.get("properties")) for feature in as_objects(document["features"])]
    superseded = _find_superseded(entries)
    alerts: dict[str, Alert] = {}
    for number, properties in enumerate(entries):
        if not is_warning(_to_cap(properties)) or _is_over(properties):
            continue
        if str(properties.get("id")) in superseded:
            continue
        alert = _read_alert(properties, number, zone)
        alerts.setdefault(alert.id, alert)
    return list(alerts.values())


def _is_over(properties: dict[str, Any]) -> bool:
    """Return whether an alert only cancels, whatever it calls itself; without a code, whether it is an all-clear."""
    actions = _EVENT_ACTION.findall(str(as_object(properties.get("parameters")).get("VTEC")))
    if not actions:
        return is_all_clear(properties.get("response"))
    return all(action == _CANCELLED for action in actions)


def _find_superseded(entries: Sequence[dict[str, Any]]) -> set[str]:
    """Return the identifiers of the alerts that a later one of the list replaces.

    One that is replaced by what is not in the list stays: it may go on at this point.
    """
    identified = [properties for properties in entries if isinstance(properties.get("id"), str)]
    messages = {str(properties["id"]): _to_cap(properties) for properties in identified}
    for properties in identified:
        successor_id = str(properties.get("replacedBy") or "").rpartition("/")[2]
        successor = messages.get(successor_id)
        if successor is not None:
            successor["msgType"] = "Update"
            successor["references"] += f" -,{properties['id']},-"
    return find_superseded(list(messages.values()))


def _to_cap(properties: dict[str, Any]) -> dict[str, Any]:
    """Return what an alert says of itself and of earlier ones, in the names of CAP."""
    references: list[str] = []
    for reference in as_objects(properties.get("references") or []):
        if isinstance(reference.get("identifier"), str):
            references.append(f"-,{reference['identifier']},-")
    # Those that are out of date by their `expires`, as `sender,identifier,time` each.
    expired: Any = as_object(properties.get("parameters")).get("expiredReferences")
    if isinstance(expired, list):
        references += [str(item) for item in cast("list[Any]", expired)]
    return {
        "identifier": properties.get("id"),
        "msgType": properties.get("messageType"),
        "status": properties.get("status"),
        "sent": properties.get("sent"),
        "references": " ".join(references),
    }


def _read_alert(properties: dict[str, Any], number: int, zone: tzinfo) -> Alert:
    """Return an alert; what can't be read is an alert all the same.

    Args:
        number: which of the list it is.
    """
    return Alert(
        id=read_text(properties.get("id")) or f"without an identifier {number}",
        event=read_text(properties.get("event")) or "Alert that can't be read",
        severity=read_text(properties.get("severity")),
        urgency=read_text(properties.get("urgency")),
        headline=read_text(properties.get("headline")),
        area=read_text(properties.get("areaDesc")),
        onset=format_local(properties.get("onset") or properties.get("effective"), zone),
        ends=format_local(_find_end(properties), zone),
        sender=read_text(properties.get("senderName")),
        description=read_text(properties.get("description")),
        instruction=read_text(properties.get("instruction")),
    )


def _find_end(properties: dict[str, Any]) -> Any:
    """Return when the danger is over; None if that is open.

    `expires` is when the message is out of date. In a message without a code for its event (VTEC) there is no other
    end; one with such a code and without an end is in force until further notice.
    """
    if properties.get("ends") or as_object(properties.get("parameters")).get("VTEC"):
        return properties.get("ends")
    return properties.get("expires")


def forecast_updated_at(document: dict[str, Any]) -> datetime | None:
    """Return when an office last changed its forecast; None if it does not say."""
    return parse_timestamp(as_object(document.get("properties")).get("updateTime"))


def read_forecast(
    document: dict[str, Any], units: Units, origin: Origin, zone: tzinfo, max_periods: int, *, now: datetime
) -> Table:
    """Return the periods of its forecast, hours or half days, that have not ended."""
    periods = _select_periods(document, now)[:max_periods]
    temperature: list[Value] = []
    precipitation: list[Value] = []
    for period in periods:
        unit = f"wmoUnit:deg{period.get('temperatureUnit')}"
        temperature.append(_read_quantity({"unitCode": unit, "value": period.get("temperature")}).value)
        precipitation.append(_read_quantity(period.get("probabilityOfPrecipitation")).value)
    wind_speed = [_read_speed(period.get("windSpeed")) for period in periods]
    columns = [
        Column("temperature", *convert_values("temperature", temperature, "°C", units)),
        Column("precipitation_probability", *convert_values("precipitation_probability", precipitation, "%", units)),
        Column("wind_speed", *convert_values("wind_speed", wind_speed, "km/h", units)),
        Column("wind_from", "", _read_texts(periods, "windDirection")),
    ]
    period_names = _read_texts(periods, "name")
    if any(period_names):
        columns.append(Column("period", "", period_names))
    columns.append(Column("forecast", "", _read_texts(periods, "shortForecast")))
    times = [format_local(period.get("startTime"), zone) or "" for period in periods]
    return make_table(times, columns, origin)


def _select_periods(document: dict[str, Any], now: datetime) -> list[dict[str, Any]]:
    """Return the periods of a forecast that say when they begin and have not ended."""
    periods = as_objects(as_object(document.get("properties")).get("periods"))
    selected: list[dict[str, Any]] = []
    for period in periods:
        if parse_timestamp(period.get("startTime")) is None:
            continue
        end = parse_timestamp(period.get("endTime"))
        if end is None or end > now:
            selected.append(period)
    return selected


def _read_texts(periods: Sequence[dict[str, Any]], key: str) -> list[Value]:
    return [read_text(period.get(key)) for period in periods]


def _read_quantity(value: Any) -> _Quantity:
    quantity = as_object(value)
    unit = _UNITS.get(str(quantity.get("unitCode")).rpartition(":")[2])
    if unit is None:
        # A number whose unit is not known says nothing.
        return _Quantity("", None)
    number = _parse_number(quantity.get("value"))
    # Older answers have a prefix, as in `qc:X`.
    quality = str(quantity.get("qualityControl")).rpartition(":")[2]
    if number is None or quality in _FAILED_QUALITY_CONTROL:
        return _Quantity(unit.name, None)
    converted = round(number * unit.factor + unit.offset, 2)
    return _Quantity(unit.name, converted + 0.0)  # Minus zero becomes zero.


def _parse_number(value: Any) -> float | None:
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value


def _read_speed(value: Any) -> float | None:
    """Return the most of "10 mph", "5 to 10 mph" or "9 km/h", in km/h; None in a unit that is not known."""
    if not isinstance(value, str):
        return _read_quantity(value).value
    numbers = re.findall(r"\d+(?:\.\d+)?", value)
    if not numbers:
        return None
    for unit, factor in _KMH.items():
        if value.rstrip().endswith(unit):
            return round(max(map(float, numbers)) * factor, 1)
    return None
