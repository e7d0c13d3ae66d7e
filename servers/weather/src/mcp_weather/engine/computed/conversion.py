"""Converts values into the units that a caller means. What is not a number is missing, and stays missing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from mcp_weather.models import Origin, Reading, Table, Value
from mcp_weather.policy.units import CustomUnits, System, Units

__all__ = [
    "UNKNOWN_UNIT", "Column", "ConvertedValues", "as_number", "convert_values", "describe_weather", "make_reading",
    "make_table", "round_significantly",
]  # fmt: skip

# Open-Meteo's word for the unit of what it does not know.
UNKNOWN_UNIT = "undefined"


class ConvertedValues(NamedTuple):
    """Values and the unit that they are in."""

    unit: str
    values: list[Value]


class Column(NamedTuple):
    """A named series in one unit."""

    name: str
    unit: str
    values: Sequence[Value]


class _Conversion(NamedTuple):
    """How a number gets into another unit: times a factor, plus an offset."""

    factor: float
    offset: float = 0.0

    def apply(self, number: float) -> float:
        """Return `number` in the other unit, rounded."""
        converted = number * self.factor + self.offset
        # Minus zero becomes zero by adding it.
        if self.offset:
            # Two decimals are enough for a temperature, whose zero does not mean nothing.
            return round(converted, 2) + 0.0
        return round_significantly(converted) + 0.0


# By the unit that a service tells.
_CONVERSIONS: dict[str, dict[str, _Conversion]] = {
    "°C": {"°F": _Conversion(1.8, 32.0), "K": _Conversion(1.0, 273.15)},
    "km/h": {"mph": _Conversion(0.621371), "kn": _Conversion(1 / 1.852), "m/s": _Conversion(1 / 3.6)},
    "mm": {"inch": _Conversion(1 / 25.4)},
    "cm": {"inch": _Conversion(1 / 2.54)},
    "m": {"ft": _Conversion(3.28084), "km": _Conversion(0.001), "mi": _Conversion(1 / 1609.344)},
    "hPa": {"inHg": _Conversion(0.0295299831), "mmHg": _Conversion(0.750061683)},
    "m³/s": {"ft³/s": _Conversion(35.3147)},
}
_SYSTEM_UNITS: dict[System, dict[str, str]] = {
    "metric": {},
    "nautical": {"km/h": "kn"},
    "imperial": {"°C": "°F", "km/h": "mph", "mm": "inch", "cm": "inch", "m": "ft", "m³/s": "ft³/s"},
}
# The unit of waves and of snow on the ground, by the unit of distances.
_HEIGHT_UNITS = {"km": "m", "mi": "ft"}
_QUANTITIES = {
    "°C": "temperature", "km/h": "wind", "mm": "precipitation", "cm": "precipitation", "m": "distance",
    "hPa": "pressure",
}  # fmt: skip
# Units of values that become words or times.
_WORDLESS_UNITS = frozenset({"wmo code", "iso8601", "unixtime"})
# What some sources write where they have nothing.
_MISSING = (-999.0, -9999.0)

_WEATHER = {
    0: "clear", 1: "mainly clear", 2: "partly cloudy", 3: "overcast", 45: "fog", 48: "rime fog", 51: "light drizzle",
    53: "drizzle", 55: "dense drizzle", 56: "light freezing drizzle", 57: "freezing drizzle", 61: "light rain",
    63: "rain", 65: "heavy rain", 66: "light freezing rain", 67: "freezing rain", 71: "light snow", 73: "snow",
    75: "heavy snow", 77: "snow grains", 80: "light showers", 81: "showers", 82: "violent showers",
    85: "light snow showers", 86: "heavy snow showers", 95: "thunderstorm", 96: "thunderstorm with hail",
    99: "thunderstorm with heavy hail",
}  # fmt: skip


def convert_values(name: str, values: Sequence[Any], unit: str, units: Units) -> ConvertedValues:
    """Return the values of the variable `name`, which are in `unit`, in the unit that `units` has for them."""
    numbers = [as_number(value) for value in values]
    if name.removesuffix("_dominant").endswith("weather_code"):
        return ConvertedValues("", _map_known(describe_weather, numbers))
    if unit == UNKNOWN_UNIT:
        # A number whose unit is not known says nothing.
        return ConvertedValues("", [None] * len(numbers))
    if unit in _WORDLESS_UNITS:
        unit = ""
    target = _choose_unit(name, unit, units)
    conversion = _CONVERSIONS.get(unit, {}).get(target)
    if conversion is None:
        return ConvertedValues(unit, _map_known(_shorten, numbers))
    return ConvertedValues(target, _map_known(conversion.apply, numbers))


def _map_known(convert: Callable[[float], Value], numbers: Sequence[float | None]) -> list[Value]:
    """Return the numbers as `convert` makes them; what is missing stays missing."""
    return [None if number is None else convert(number) for number in numbers]


def as_number(value: Any) -> float | None:
    """Return `value` if it is a number that a source knows; None if it means nothing."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not math.isfinite(value) or value in _MISSING:
        return None
    return float(value)


def round_significantly(number: float) -> float:
    """Return `number` to two decimals, and to two digits at least: 0.1 mm of rain is 0.0039 inch, not none."""
    if number == 0 or abs(number) >= 0.1:
        return round(number, 2)
    return round(number, min(12, 1 - math.floor(math.log10(abs(number)))))


def describe_weather(code: float) -> str:
    """Return a WMO weather interpretation code (WMO 4677, as Open-Meteo uses it) in words."""
    return _WEATHER.get(int(code), f"code {int(code)}")


def make_reading(
    columns: Sequence[Column], *, observed_at: str | None, station: str | None = None, origin: Origin
) -> Reading:
    """Return the reading of columns that have one value each."""
    return Reading(
        observed_at=observed_at,
        station=station,
        names=[column.name for column in columns],
        units=[column.unit for column in columns],
        values=[column.values[0] for column in columns],
        origin=origin,
    )


def make_table(time: Iterable[str], columns: Sequence[Column], origin: Origin) -> Table:
    """Return the table of columns that have a value for each time."""
    return Table(
        time=list(time),
        names=[column.name for column in columns],
        units=[column.unit for column in columns],
        values=[list(column.values) for column in columns],
        origin=origin,
    )


def _choose_unit(name: str, unit: str, units: Units) -> str:
    """Return the unit that `units` has for numbers of the variable `name` in `unit`."""
    if not isinstance(units, CustomUnits):
        return _system_unit(name, unit, units)
    override = dict(units.overrides).get(_QUANTITIES.get(unit, ""))
    if override is None:
        return _system_unit(name, unit, units.system)
    if unit == "m" and ("wave" in name or name == "snow_depth"):
        return _HEIGHT_UNITS.get(override, override)
    return override


def _system_unit(name: str, unit: str, system: System) -> str:
    if name == "visibility" and system == "imperial":
        return "mi"
    return _SYSTEM_UNITS[system].get(unit, unit)


def _shorten(number: float) -> Value:
    """Return `number` without decimals that say nothing."""
    if number == int(number):
        return int(number)
    return round(number, 3) + 0.0  # Minus zero becomes zero.
