"""Decides which units a caller means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from mcp_batteries.errors import Invalid, quote

__all__ = ["OwnUnits", "System", "Units", "units"]

System = Literal["metric", "imperial", "nautical"]
"""Nautical is metric with knots."""

_SYSTEMS: dict[str, System] = {"metric": "metric", "imperial": "imperial", "nautical": "nautical", "us": "imperial"}
_UNITS = {
    "temperature": {"c": "°C", "°c": "°C", "celsius": "°C", "f": "°F", "°f": "°F", "fahrenheit": "°F", "k": "K"},
    "wind": {
        "km/h": "km/h", "kmh": "km/h", "m/s": "m/s", "ms": "m/s", "mph": "mph", "kn": "kn", "kt": "kn", "knots": "kn",
    },
    "precipitation": {"mm": "mm", "in": "inch", "inch": "inch"},
    "pressure": {"hpa": "hPa", "mbar": "hPa", "inhg": "inHg", "mmhg": "mmHg"},
    "distance": {"m": "m", "ft": "ft", "km": "km", "mi": "mi"},
}  # fmt: skip

_ALONE = {unit: quantity for quantity in ("temperature", "wind", "pressure") for unit in _UNITS[quantity]}
"""Units that are those of one quantity, whose name can be left out."""


@dataclass(frozen=True)
class OwnUnits:
    """A system of units, and exceptions as pairs of quantity and unit."""

    system: System
    own: tuple[tuple[str, str], ...]


Units = System | OwnUnits


def units(text: str | None, default: Units) -> Units:
    """The units in `text`: a system, quantities with separate units, or both.

    Raises:
        Invalid: a quantity or a unit is not known.
    """
    if text is None:
        return default
    system: System = default.system if isinstance(default, OwnUnits) else default
    own: dict[str, str] = dict(default.own) if isinstance(default, OwnUnits) else {}
    for part in filter(None, (item.strip().casefold() for item in text.split(","))):
        quantity, _, unit = (word.strip() for word in part.partition("="))
        if part in _ALONE:
            quantity, unit = _ALONE[part], part
        if part in _SYSTEMS:
            system, own = _SYSTEMS[part], {}
        elif quantity not in _UNITS:
            raise Invalid(
                f"{quote(part)} is neither a system of units nor a quantity.",
                f"Pass {', '.join(get_args(System))}, or {', '.join(_UNITS)} with a unit: `metric,wind=kn`.",
            )
        elif unit not in _UNITS[quantity]:
            known = ", ".join(dict.fromkeys(_UNITS[quantity].values()))
            raise Invalid(f"{quote(unit)} is not a unit of {quantity} here.", f"It can be {known}.")
        else:
            own[quantity] = _UNITS[quantity][unit]
    return OwnUnits(system, tuple(own.items())) if own else system
