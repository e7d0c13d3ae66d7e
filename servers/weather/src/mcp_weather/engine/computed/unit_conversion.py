"""Converts values into the units that a caller means. What is not a number is missing, and stays missing."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from mcp_weather.engine.computed.columns import as_number
from mcp_weather.engine.computed.weather_codes import describe_weather
from mcp_weather.models import Value
from mcp_weather.policy.units import CustomUnits, System, Units

__all__ = ["UNKNOWN_UNIT", "ConvertedValues", "convert_values", "is_precipitation", "round_significantly"]

# Open-Meteo's word for the unit of what it does not know.
UNKNOWN_UNIT = "undefined"


class ConvertedValues(NamedTuple):
    """Values and the unit that they are in."""

    unit: str
    values: list[Value]


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
    "m": {
        "ft": _Conversion(3.28084), "km": _Conversion(0.001), "mi": _Conversion(1 / 1609.344),
        "cm": _Conversion(100.0), "inch": _Conversion(1 / 0.0254),
    },
    "hPa": {"inHg": _Conversion(0.0295299831), "mmHg": _Conversion(0.750061683)},
    "m³/s": {"ft³/s": _Conversion(35.3147)},
}  # fmt: skip
_SYSTEM_UNITS: dict[System, dict[str, str]] = {
    "metric": {},
    "nautical": {"km/h": "kn"},
    "imperial": {
        "°C": "°F", "km/h": "mph", "mm": "inch", "cm": "inch", "m": "ft", "hPa": "inHg", "m³/s": "ft³/s",
    },
}  # fmt: skip
# Snow on the ground is told as snow that falls.
_SNOW_DEPTH_UNITS: dict[System, str] = {"metric": "cm", "nautical": "cm", "imperial": "inch"}
# The unit of waves, of the level of the sea and of snow on the ground, by the unit of distances.
_HEIGHT_UNITS = {"km": "m", "mi": "ft"}
_QUANTITIES = {
    "°C": "temperature", "km/h": "wind", "mm": "precipitation", "cm": "precipitation", "m": "distance",
    "hPa": "pressure",
}  # fmt: skip
# What falls can't be less than nothing, though models that are interpolated say so.
_AMOUNTS = ("precipitation", "rain", "showers", "snow")
# The least wind of each force but calm, in tenths of a metre a second (WMO, Manual on Codes, Beaufort scale).
_BEAUFORT = (3, 16, 34, 55, 80, 108, 139, 172, 208, 245, 285, 327)
_BEAUFORT_UNIT = "Bft"
# Units of values that become words or times.
_WORDLESS_UNITS = frozenset({"wmo code", "iso8601", "unixtime"})


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
    if is_precipitation(name):
        numbers = [None if number is None else max(number, 0.0) for number in numbers]
    target = _choose_unit(name, unit, units)
    if target == _BEAUFORT_UNIT and unit == "km/h":
        return ConvertedValues(target, _map_known(_beaufort, numbers))
    conversion = _CONVERSIONS.get(unit, {}).get(target)
    if conversion is None:
        return ConvertedValues(unit, _map_known(_shorten, numbers))
    return ConvertedValues(target, _map_known(conversion.apply, numbers))


def _map_known(convert: Callable[[float], Value], numbers: Sequence[float | None]) -> list[Value]:
    """Return the numbers as `convert` makes them; what is missing stays missing."""
    return [None if number is None else convert(number) for number in numbers]


def is_precipitation(name: str) -> bool:
    """Return whether a variable says how much falls, or lies, or how likely that is: never less than nothing."""
    return name.startswith(_AMOUNTS)


def _beaufort(kmh: float) -> Value:
    """Return the force of a wind on the Beaufort scale."""
    return bisect_right(_BEAUFORT, round(kmh / 0.36))


def round_significantly(number: float) -> float:
    """Return `number` to two decimals, and to two digits at least: 0.1 mm of rain is 0.0039 inch, not none."""
    if number == 0 or abs(number) >= 0.1:
        return round(number, 2)
    return round(number, min(12, 1 - math.floor(math.log10(abs(number)))))


def _choose_unit(name: str, unit: str, units: Units) -> str:
    """Return the unit that `units` has for numbers of the variable `name` in `unit`."""
    if not isinstance(units, CustomUnits):
        return _system_unit(name, unit, units)
    override = dict(units.overrides).get(_QUANTITIES.get(unit, ""))
    if override is None:
        return _system_unit(name, unit, units.system)
    if override == _BEAUFORT_UNIT and "current" in name:
        # The scale is one of winds: a current has none.
        return _system_unit(name, unit, units.system)
    if unit == "m" and ("wave" in name or name in ("snow_depth", "sea_level_height_msl")):
        return _HEIGHT_UNITS.get(override, override)
    return override


def _system_unit(name: str, unit: str, system: System) -> str:
    if name == "visibility" and system == "imperial":
        return "mi"
    if name == "snow_depth":
        return _SNOW_DEPTH_UNITS[system]
    return _SYSTEM_UNITS[system].get(unit, unit)


def _shorten(number: float) -> Value:
    """Return `number` without decimals that say nothing."""
    if number == int(number):
        return int(number)
    return round(number, 3) + 0.0  # Minus zero becomes zero.
