"""Decides which units a caller means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from mcp_batteries.errors import Invalid, quote

__all__ = ["CustomUnits", "System", "Units", "parse_aviation_units", "parse_units"]

# The nautical system is the metric one with knots.
System = Literal["metric", "imperial", "nautical"]

_SYSTEMS: dict[str, System] = {"metric": "metric", "imperial": "imperial", "nautical": "nautical", "us": "imperial"}
_UNITS = {
    "temperature": {"c": "°C", "°c": "°C", "celsius": "°C", "f": "°F", "°f": "°F", "fahrenheit": "°F", "k": "K"},
    "wind": {
        "km/h": "km/h", "kmh": "km/h", "m/s": "m/s", "ms": "m/s", "mph": "mph", "kn": "kn", "kt": "kn", "knots": "kn",
        "bft": "Bft", "beaufort": "Bft",
    },
    "precipitation": {"mm": "mm", "in": "inch", "inch": "inch"},
    "pressure": {"hpa": "hPa", "mbar": "hPa", "inhg": "inHg", "mmhg": "mmHg"},
    "distance": {"m": "m", "ft": "ft", "km": "km", "mi": "mi"},
}  # fmt: skip

# Units of one quantity only, whose name can therefore be left out.
_UNAMBIGUOUS = {
    **dict.fromkeys(_UNITS["temperature"], "temperature"),
    **dict.fromkeys(_UNITS["wind"], "wind"),
    **dict.fromkeys(_UNITS["pressure"], "pressure"),
}


@dataclass(frozen=True)
class CustomUnits:
    """A system of units with exceptions.

    Attributes:
        overrides: pairs of a quantity and its unit.
    """

    system: System
    overrides: tuple[tuple[str, str], ...]


Units = System | CustomUnits


def parse_units(text: str, default: Units) -> Units:
    """Return the units in `text`: a system, quantities with units of their own, or both; `default` if it is empty.

    Raises:
        Invalid: a quantity or a unit is not known.
    """
    if isinstance(default, CustomUnits):
        system = default.system
        overrides = dict(default.overrides)
    else:
        system = default
        overrides: dict[str, str] = {}
    for item in text.split(","):
        word = item.strip().casefold()
        if not word:
            continue
        if word in _SYSTEMS:
            system = _SYSTEMS[word]
            overrides = {}
        else:
            quantity, unit = _parse_override(word)
            overrides[quantity] = unit
    if overrides:
        return CustomUnits(system, tuple(overrides.items()))
    return system


def parse_aviation_units(text: str, default: Units) -> Units:
    """Return the units for airports, where wind is in knots unless a unit of wind is named.

    Raises:
        Invalid: a quantity or a unit is not known.
    """
    units = parse_units(text, default)
    if not isinstance(units, CustomUnits):
        return CustomUnits(units, (("wind", "kn"),))
    if "wind" in dict(units.overrides):
        return units
    return CustomUnits(units.system, (*units.overrides, ("wind", "kn")))


def _parse_override(word: str) -> tuple[str, str]:
    """Return the quantity and the unit of `wind=kn`, or of `kn` alone.

    Raises:
        Invalid: one of them is not known.
    """
    if word in _UNAMBIGUOUS:
        quantity = _UNAMBIGUOUS[word]
        return quantity, _UNITS[quantity][word]
    quantity, _, unit = (side.strip() for side in word.partition("="))
    if quantity not in _UNITS:
        raise Invalid(
            f"{quote(word)} is neither a system of units nor a quantity.",
            f"Pass {', '.join(get_args(System))}, or {', '.join(_UNITS)} with a unit: `metric,wind=kn`.",
        )
    if unit not in _UNITS[quantity]:
        choices = ", ".join(dict.fromkeys(_UNITS[quantity].values()))
        raise Invalid(f"{quote(unit)} is not a unit of {quantity} here.", f"It can be {choices}.")
    return quantity, _UNITS[quantity][unit]
