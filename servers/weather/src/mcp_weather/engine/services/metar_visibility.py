"""The visibility of an airport's report (WMO, Manual on Codes, FM 15), which each country tells in its own unit."""

from __future__ import annotations

import re
from enum import Enum
from fractions import Fraction
from typing import Any, NamedTuple

from mcp_weather.engine.computed.columns import Column, as_number
from mcp_weather.engine.computed.unit_conversion import convert_values
from mcp_weather.policy.units import Units

__all__ = ["read_visibility"]

_METRES_PER_STATUTE_MILE = 1609.344
_METRES_PER_KM = 1000
# From here on a report does not say how far one sees: `9999`, and `CAVOK`, ceiling and visibility all right.
_FAR_METRES = 10_000
_FAR_METRES_GROUP = 9999
# `0000`
_NEAR_METRES = 50
# The group after the wind, and after the directions between which that varies. Some countries add the direction in
# which one sees so far.
_GROUP = re.compile(
    r"\b(?:\d{3}|VRB|///)P?(?:\d{2,3}|//)(?:GP?\d{2,3})?(?:KT|MPS|KMH)(?: \d{3}V\d{3})? "
    r"(?:(?P<cavok>CAVOK)|(?P<metres>\d{4})(?:NDV|[NS]?[EW]|[NS])?|(?P<km>\d{1,2})KM"
    r"|(?P<limit>[MP])?(?P<miles>(?:\d{1,2} )?\d/\d{1,2}|\d{1,2})SM)(?= |=|$)"
)
# What follows is expected, or a remark: no observation.
_END_OF_OBSERVATION = re.compile(r" (?:BECMG|TEMPO|RMK)\b")


class _Limit(Enum):
    """Which way a distance is open."""

    NONE = "{:g}"
    AT_LEAST = "{:g}+"
    LESS_THAN = "<{:g}"


class _Visibility(NamedTuple):
    """How far one sees."""

    metres: float
    limit: _Limit


def read_visibility(report: str, miles: Any, units: Units) -> Column:
    """Return the visibility of a report: `10+` is ten or more, and nobody says how much more.

    Args:
        report: as it was issued.
        miles: what the service reads in it, which are statute miles, as a number or as a text with a plus.
    """
    visibility = _read_group(report) or _read_miles(miles)
    if visibility is None:
        return Column("visibility", convert_values("visibility", [], "m", units).unit, [None])
    if isinstance(miles, str) and miles.endswith("+"):
        # Stations of the US call ten miles what is ten or more.
        visibility = visibility._replace(limit=_Limit.AT_LEAST)
    unit, (distance,) = convert_values("visibility", [round(visibility.metres)], "m", units)
    if visibility.limit is not _Limit.NONE and isinstance(distance, int | float):
        distance = visibility.limit.value.format(distance)
    return Column("visibility", unit, [distance])


def _read_group(report: str) -> _Visibility | None:
    """Return what the report itself says; None if it has no such group."""
    observation = _END_OF_OBSERVATION.split(report, maxsplit=1)[0]
    group = _GROUP.search(observation)
    if group is None:
        return None
    if group["cavok"]:
        return _Visibility(_FAR_METRES, _Limit.AT_LEAST)
    if group["metres"]:
        return _read_metres(int(group["metres"]))
    if group["km"]:
        return _Visibility(int(group["km"]) * _METRES_PER_KM, _Limit.NONE)
    try:
        miles = sum(map(Fraction, group["miles"].split()))
    except ZeroDivisionError:
        return None
    limits = {"M": _Limit.LESS_THAN, "P": _Limit.AT_LEAST}
    return _Visibility(float(miles) * _METRES_PER_STATUTE_MILE, limits.get(group["limit"], _Limit.NONE))


def _read_metres(metres: int) -> _Visibility:
    if metres == _FAR_METRES_GROUP:
        return _Visibility(_FAR_METRES, _Limit.AT_LEAST)
    if metres == 0:
        return _Visibility(_NEAR_METRES, _Limit.LESS_THAN)
    return _Visibility(metres, _Limit.NONE)


def _read_miles(value: Any) -> _Visibility | None:
    """Return what the service reads in a report; None if that is nothing."""
    if isinstance(value, str):
        try:
            value = float(value.removesuffix("+"))
        except ValueError:
            return None
    miles = as_number(value)
    if miles is None:
        return None
    return _Visibility(miles * _METRES_PER_STATUTE_MILE, _Limit.NONE)
