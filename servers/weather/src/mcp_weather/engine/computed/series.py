"""Turns documents into columns: with units, times in the place's zone, and gaps left as gaps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import Any, Literal, cast

from mcp_batteries.errors import Unavailable
from mcp_batteries.remote import Snapshot
from mcp_weather.geography.countries import zone_named
from mcp_weather.models import Origin, Reading, Table, Value
from mcp_weather.policy import OwnUnits, System, Units

__all__ = [
    "OPEN_METEO",
    "convert",
    "dates",
    "has_values",
    "moment_at",
    "moments",
    "origin",
    "reading",
    "rounded",
    "stamp",
    "table",
    "to_come",
    "today",
    "weather",
    "zone_of",
]

OPEN_METEO = ("Open-Meteo.com", "CC BY 4.0")

_INTO: dict[str, dict[str, tuple[float, float]]] = {
    "°C": {"°F": (1.8, 32.0), "K": (1.0, 273.15)},
    "km/h": {"mph": (0.621371, 0.0), "kn": (1 / 1.852, 0.0), "m/s": (1 / 3.6, 0.0)},
    "mm": {"inch": (1 / 25.4, 0.0)},
    "cm": {"inch": (1 / 2.54, 0.0)},
    "m": {"ft": (3.28084, 0.0), "km": (0.001, 0.0), "mi": (1 / 1609.344, 0.0)},
    "hPa": {"inHg": (0.0295299831, 0.0), "mmHg": (0.750061683, 0.0)},
    "m³/s": {"ft³/s": (35.3147, 0.0)},
}
"""By the unit that a service tells: factor and offset of others."""
_OF_SYSTEM: dict[System, dict[str, str]] = {
    "metric": {},
    "nautical": {"km/h": "kn"},
    "imperial": {"°C": "°F", "km/h": "mph", "mm": "inch", "cm": "inch", "m": "ft", "m³/s": "ft³/s"},
}
_HEIGHTS = {"km": "m", "mi": "ft"}
"""What waves and snow on the ground are told in, by the unit of distances."""
_QUANTITY = {
    "°C": "temperature", "km/h": "wind", "mm": "precipitation", "cm": "precipitation", "m": "distance",
    "hPa": "pressure",
}  # fmt: skip
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MISSING = (-999.0, -9999.0)
"""What some sources write where they have nothing."""
_UNKNOWN = "undefined"
"""Open-Meteo's word for the unit of what it does not know."""
_LENGTH = {"hourly": 3600, "daily": 86_400, "minutely_15": 900}
"""Seconds of a step. Where clocks differ by half an hour, hours may begin at half past of the world's."""
_UNIT_NAMES = {"wmo code": "", "iso8601": "", "unixtime": ""}

_WEATHER = {
    0: "clear", 1: "mainly clear", 2: "partly cloudy", 3: "overcast", 45: "fog", 48: "rime fog", 51: "light drizzle",
    53: "drizzle", 55: "dense drizzle", 56: "light freezing drizzle", 57: "freezing drizzle", 61: "light rain",
    63: "rain", 65: "heavy rain", 66: "light freezing rain", 67: "freezing rain", 71: "light snow", 73: "snow",
    75: "heavy snow", 77: "snow grains", 80: "light showers", 81: "showers", 82: "violent showers",
    85: "light snow showers", 86: "heavy snow showers", 95: "thunderstorm", 96: "thunderstorm with hail",
    99: "thunderstorm with heavy hail",
}  # fmt: skip


def zone_of(document: dict[str, Any]) -> tzinfo:
    """The zone a document's times are told in."""
    zone = zone_named(str(document.get("timezone")))
    return zone or timezone(timedelta(seconds=int(document.get("utc_offset_seconds") or 0)))


def moment_at(seconds: float, zone: tzinfo = UTC) -> datetime:
    """The moment so many seconds after the epoch, or before it: Windows's own function knows none before 1970."""
    return (_EPOCH + timedelta(seconds=seconds)).astimezone(zone)


def stamp(seconds: float, zone: tzinfo = UTC) -> str:
    """A moment as RFC 3339, in `zone`, to the minute."""
    return moment_at(seconds, zone).isoformat(timespec="minutes")


def today(now: float, zone: tzinfo) -> date:
    return moment_at(now, zone).date()


def origin(snapshot: Snapshot, source: tuple[str, str] = OPEN_METEO) -> Origin:
    return Origin(
        source=source[0],
        licence=source[1],
        fetched_at=stamp(snapshot.fetched_at),
        age_s=round(snapshot.age),
        stale=snapshot.stale,
        reason=snapshot.error,
    )


def reading(document: dict[str, Any], units: Units, from_: Origin) -> Reading | None:
    """The `current` part of a document."""
    current, said = _part(document, "current"), _part(document, "current_units")
    if current is None:
        return None
    names = [name for name in current if name not in ("time", "interval")]
    columns = [convert(name, [current[name]], _unit(said, name), units) for name in names]
    at = current.get("time")
    return Reading(
        observed_at=stamp(at, zone_of(document)) if isinstance(at, int | float) else None,
        names=[_named(name) for name in names],
        units=[unit for unit, _ in columns],
        values=[values[0] for _, values in columns],
        origin=from_,
    )


def table(
    document: dict[str, Any],
    step: Literal["hourly", "daily", "minutely_15"],
    units: Units,
    from_: Origin,
    *,
    now: float | None = None,
) -> Table:
    """The series of a document; what ended by `now` is left out.

    Raises:
        Unavailable: they are missing or not of one length.
    """
    part, said = _part(document, step), _part(document, f"{step}_units")
    times: Any = (part or {}).get("time")
    if part is None or not isinstance(times, list):
        raise Unavailable("Open-Meteo sent an answer without its series.", "Try again in a moment.")
    seconds = cast("list[Any]", times)
    names = [name for name in part if name != "time"]
    if any(not isinstance(part[name], list) or len(part[name]) != len(seconds) for name in names):
        raise Unavailable("Open-Meteo sent series of different lengths.", "Try again in a moment.")
    labels = dates(seconds, document) if step == "daily" else moments(seconds, document)
    # What has no time, or one that was there before, says nothing: two days that are one.
    seen: set[str] = set()
    kept: list[int] = []
    for index, label in enumerate(labels):
        if label is None or label in seen or (now is not None and seconds[index] + _LENGTH[step] <= now):
            continue
        seen.add(label)
        kept.append(index)
    columns = [convert(name, [part[name][index] for index in kept], _unit(said, name), units) for name in names]
    return Table(
        time=[cast(str, labels[index]) for index in kept],
        names=[_named(name) for name in names],
        units=[unit for unit, _ in columns],
        values=[values for _, values in columns],
        origin=from_,
    )


def to_come(shown: Table, found: Snapshot, source: str = "Open-Meteo") -> Table:
    """`shown`, of which what is past was left out.

    Raises:
        Unavailable: nothing is left of an old answer, which is not a forecast without rain.
    """
    if shown.time:
        return shown
    why = found.error or f"{source} sent a forecast of times that are past."
    raise Unavailable(f"There is no forecast: {why}", "Try again in a moment.")


def has_values(document: dict[str, Any], step: str) -> bool:
    """Whether any of its series knows anything."""
    part = _part(document, step) or {}
    return any(
        _number(value) is not None
        for name, values in part.items()
        if name != "time" and isinstance(values, list)
        for value in cast("list[Any]", values)
    )


def moments(seconds: Sequence[Any], document: dict[str, Any]) -> list[str | None]:
    zone = zone_of(document)
    return [stamp(item, zone) if isinstance(item, int | float) else None for item in seconds]


def dates(seconds: Sequence[Any], document: dict[str, Any]) -> list[str | None]:
    """The days that begin at `seconds`. The offset is that of one day of the span, so a change of clocks moves the
    others by an hour: six hours later it is the same day whichever it was."""
    offset = int(document.get("utc_offset_seconds") or 0)
    return [
        moment_at(item + offset + 6 * 3600).date().isoformat() if isinstance(item, int | float) else None
        for item in seconds
    ]


def convert(name: str, values: Sequence[Any], unit: str, units: Units) -> tuple[str, list[Value]]:
    """`values` in the unit of `units`, and that unit. What is not a number is missing, and stays missing."""
    unit = _UNIT_NAMES.get(unit, unit)
    numbers = [_number(value) for value in values]
    if name.removesuffix("_dominant").endswith("weather_code"):
        return "", [None if number is None else weather(number) for number in numbers]
    if unit == _UNKNOWN:
        return "", [None] * len(numbers)  # A number whose unit is not known says nothing.
    other = _other(name, unit, units)
    if other in _INTO.get(unit, {}):
        factor, offset = _INTO[unit][other]
        shown = (None if number is None else number * factor + offset for number in numbers)
        # Of a temperature two decimals are enough: its zero is no nothing.
        return other, [None if at is None else (round(at, 2) if offset else rounded(at)) + 0.0 for at in shown]
    return unit, [
        None if number is None else (int(number) if number == int(number) else round(number, 3) + 0.0)
        for number in numbers
    ]


def rounded(number: float) -> float:
    """`number` to two decimals, and to two digits at least: 0.1 mm of rain is 0.0039 inch, not none."""
    if number == 0 or abs(number) >= 0.1:
        return round(number, 2)
    return round(number, min(12, 1 - math.floor(math.log10(abs(number)))))


def _other(name: str, unit: str, units: Units) -> str:
    """The unit that is wanted for numbers in `unit`."""
    system, own = (units.system, dict(units.own)) if isinstance(units, OwnUnits) else (units, {})
    wanted = own.get(_QUANTITY.get(unit, ""))
    if wanted is None:
        return "mi" if name == "visibility" and system == "imperial" else _OF_SYSTEM[system].get(unit, unit)
    return _HEIGHTS.get(wanted, wanted) if unit == "m" and ("wave" in name or name == "snow_depth") else wanted


def weather(code: float) -> str:
    """A WMO weather interpretation code (WMO 4677, as Open-Meteo uses it) in words."""
    return _WEATHER.get(int(code), f"code {int(code)}")


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value in _MISSING:
        return None
    return float(value)


def _named(name: str) -> str:
    return name.replace("weather_code", "weather")  # By now it is words.


def _part(document: dict[str, Any], name: str) -> dict[str, Any] | None:
    part: Any = document.get(name)
    return cast("dict[str, Any]", part) if isinstance(part, dict) else None


def _unit(said: dict[str, Any] | None, name: str) -> str:
    found = (said or {}).get(name)
    return found if isinstance(found, str) else _UNKNOWN
