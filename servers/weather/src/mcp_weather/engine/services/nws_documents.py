"""The National Weather Service: the area it covers, and its observations, alerts and forecasts as columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import Any, cast

from mcp_batteries.errors import Unavailable
from mcp_weather.engine.computed.series import convert
from mcp_weather.engine.services.cap import NOT_ACTUAL, local, moment, words
from mcp_weather.models import Alert, Origin, Reading, Table, Value
from mcp_weather.policy import Place, Units

__all__ = ["COUNTRIES", "NWS", "alerts", "forecast", "may_cover", "observation", "observed_at"]

NWS = ("US National Weather Service", "public domain")

COUNTRIES = {"US", "PR", "GU", "VI", "AS", "MP", "UM"}
_BOXES = (
    (24.0, 49.6, -125.5, -66.5), (51.0, 72.0, -180.0, -129.0), (51.0, 56.0, 172.0, 180.0), (18.5, 29.0, -179.0, -154.0),
    (17.0, 19.5, -68.5, -64.0), (13.0, 21.0, 144.0, 147.0), (-15.5, -10.5, -172.0, -168.0),
)  # fmt: skip
"""South, north, west, east of where it may be asked about coordinates of unknown country; it decides."""

_OBSERVED = {
    "temperature": "temperature", "dewpoint": "dew_point", "relativeHumidity": "relative_humidity",
    "windSpeed": "wind_speed", "windDirection": "wind_direction", "windGust": "wind_gusts",
    "barometricPressure": "pressure", "visibility": "visibility", "windChill": "wind_chill", "heatIndex": "heat_index",
}  # fmt: skip
_UNITS: dict[str, tuple[str, float, float]] = {
    "degC": ("°C", 1, 0), "degF": ("°C", 5 / 9, -160 / 9), "K": ("°C", 1, -273.15), "percent": ("%", 1, 0),
    "km_h-1": ("km/h", 1, 0), "m_s-1": ("km/h", 3.6, 0), "degree_(angle)": ("°", 1, 0), "Pa": ("hPa", 0.01, 0),
    "hPa": ("hPa", 1, 0), "m": ("m", 1, 0), "mm": ("mm", 1, 0),
}  # fmt: skip
_SPEEDS = {"mph": 1.609344, "km/h": 1.0, "kt": 1.852, "m/s": 3.6}


def may_cover(place: Place) -> bool:
    """False where it is certain that the Service has nothing."""
    if place.country is not None:
        return place.country in COUNTRIES
    return any(s <= place.latitude <= n and w <= place.longitude <= e for s, n, w, e in _BOXES)


def observed_at(feature: dict[str, Any]) -> datetime | None:
    try:
        at = datetime.fromisoformat(str(feature["properties"]["timestamp"]))
    except (KeyError, TypeError, ValueError):
        return None
    # The year 1 is how some stations say that they do not know.
    return at if at.year > 1900 and at.tzinfo else None


def observation(feature: dict[str, Any], station: str, units: Units, from_: Origin, zone: tzinfo) -> Reading:
    """A station's observation; what failed quality control (`X`) counts as missing."""
    found = _object(feature.get("properties"))
    names: list[str] = []
    said: list[str] = []
    values: list[Value] = []
    for theirs, ours in _OBSERVED.items():
        unit, value = _quantity(found.get(theirs))
        unit, converted = convert(ours, [value], unit, units)
        if value is None and ours in ("wind_chill", "heat_index"):
            continue  # Not missing: there is none at this temperature.
        names.append(ours)
        said.append(unit)
        values.append(converted[0])
    names.append("conditions")
    said.append("")
    values.append(str(found["textDescription"]) if found.get("textDescription") else None)
    at = observed_at(feature)
    when = at.astimezone(zone).isoformat(timespec="minutes") if at else None
    return Reading(observed_at=when, station=station, names=names, units=said, values=values, origin=from_)


def alerts(document: dict[str, Any], zone: tzinfo) -> list[Alert]:
    """Alerts of the Service's list of what is in effect or announced, each once.

    That list alone decides: `expires` is when the message is out of date, not when the danger is over, and `ends`
    may be null. What can't be read is an alert all the same.

    Raises:
        Unavailable: it is not such a list, or not all of it.
    """
    features = document.get("features")
    if document.get("type") != "FeatureCollection" or not isinstance(features, list):
        raise Unavailable("The National Weather Service sent a list of alerts that can't be read.", "Try again soon.")
    if not features and document.get("pagination"):
        raise Unavailable("The National Weather Service sent the list of alerts in parts.", "Try again soon.")
    found: dict[str, Alert] = {}
    for number, feature in enumerate(cast("list[Any]", features)):
        about = _object(_object(feature).get("properties"))
        if about.get("status") in NOT_ACTUAL or about.get("messageType") == "Cancel":
            continue
        alert = Alert(
            id=words(about.get("id")) or f"without an identifier {number}",
            event=words(about.get("event")) or "Alert that can't be read",
            severity=words(about.get("severity")),
            urgency=words(about.get("urgency")),
            headline=words(about.get("headline")),
            area=words(about.get("areaDesc")),
            onset=local(about.get("onset") or about.get("effective"), zone),
            ends=local(about.get("ends"), zone),
            sender=words(about.get("senderName")),
            description=words(about.get("description")),
            instruction=words(about.get("instruction")),
        )
        found.setdefault(alert.id, alert)
    return list(found.values())


def forecast(document: dict[str, Any], units: Units, from_: Origin, zone: tzinfo, most: int, *, now: datetime) -> Table:
    """Periods of its forecast, hours or half days, that have not ended."""
    periods = cast("list[dict[str, Any]]", _object(document.get("properties")).get("periods") or [])
    kept = [item for item in periods if (end := moment(item.get("endTime"))) is None or end > now][:most]
    temperature = [
        _quantity({"unitCode": f"wmoUnit:deg{item.get('temperatureUnit')}", "value": item.get("temperature")})
        for item in kept
    ]
    rain = [_quantity(item.get("probabilityOfPrecipitation"))[1] for item in kept]
    columns: list[tuple[str, str, Sequence[Value]]] = []
    for name, unit, numbers in (
        ("temperature", "°C", [value for _, value in temperature]),
        ("precipitation_probability", "%", rain),
        ("wind_speed", "km/h", [_speed(item.get("windSpeed")) for item in kept]),
    ):
        columns.append((name, *convert(name, numbers, unit, units)))
    columns.append(("wind_from", "", [words(item.get("windDirection")) for item in kept]))
    columns.append(("period", "", [words(item.get("name")) for item in kept]))
    columns.append(("forecast", "", [words(item.get("shortForecast")) for item in kept]))
    columns = [column for column in columns if column[0] != "period" or any(column[2])]
    return Table(
        time=[local(item.get("startTime"), zone) or "" for item in kept],
        names=[name for name, _, _ in columns],
        units=[unit for _, unit, _ in columns],
        values=[list(values) for _, _, values in columns],
        origin=from_,
    )


def _object(said: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", said) if isinstance(said, dict) else {}


def _quantity(said: Any) -> tuple[str, float | None]:
    found = _object(said)
    known = _UNITS.get(str(found.get("unitCode")).rpartition(":")[2])
    if known is None:
        return "", None  # A number whose unit is not known says nothing.
    unit, factor, offset = known
    value = found.get("value")
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            value = None
    if isinstance(value, bool) or not isinstance(value, int | float) or found.get("qualityControl") == "X":
        return unit, None
    return unit, round(value * factor + offset, 2) + 0.0


def _speed(said: Any) -> float | None:
    """The most of "10 mph", "5 to 10 mph" or "9 km/h", in km/h; None in a unit that is not known."""
    if not isinstance(said, str) or not (numbers := re.findall(r"\d+(?:\.\d+)?", said)):
        return _quantity(said)[1]
    factor = next((factor for unit, factor in _SPEEDS.items() if said.rstrip().endswith(unit)), None)
    return None if factor is None else round(max(map(float, numbers)) * factor, 1)
