"""Columns of values, and the readings and tables that they make."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from mcp_weather.models import Origin, Reading, Table, Value

__all__ = ["Column", "as_number", "make_reading", "make_table"]

# What some sources write where they have nothing.
_MISSING = (-999.0, -9999.0)
# Stands for the direction of a wind that does not blow.
_CALM = "calm"
# The speeds of a wind by the names of its directions.
_SPEEDS = {
    "wind_direction": "wind_speed", "wind_from": "wind_speed", "wind_direction_10m": "wind_speed_10m",
    "wind_direction_10m_dominant": "wind_speed_10m_max",
}  # fmt: skip


class Column(NamedTuple):
    """A named series in one unit."""

    name: str
    unit: str
    values: Sequence[Value]


def as_number(value: Any) -> float | None:
    """Return `value` if it is a number that a source knows; None if it means nothing."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not math.isfinite(value) or value in _MISSING:
        return None
    return float(value)


def make_reading(
    columns: Sequence[Column], *, observed_at: str | None, station: str | None = None, origin: Origin
) -> Reading:
    """Return the reading of columns that have one value each."""
    columns = _name_calm(columns)
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
    columns = _name_calm(columns)
    return Table(
        time=list(time),
        names=[column.name for column in columns],
        units=[column.unit for column in columns],
        values=[list(column.values) for column in columns],
        origin=origin,
    )


def _name_calm(columns: Sequence[Column]) -> Sequence[Column]:
    """Return the columns, with a word for the direction of a wind that does not blow.

    Services write it as 0 degrees, which is north, or as the one that the wind had.
    """
    values_by_name = {column.name: column.values for column in columns}
    named: list[Column] = []
    for column in columns:
        speeds = values_by_name.get(_SPEEDS.get(column.name, ""), ())
        if 0 in speeds:
            column = _without_directions(column, speeds)
        named.append(column)
    return named


def _without_directions(column: Column, speeds: Sequence[Value]) -> Column:
    """Return the directions of a wind, with the word for calm where it has no speed."""
    values = [_CALM if speed == 0 else value for value, speed in zip(column.values, speeds, strict=True)]
    unit = column.unit
    if all(value == _CALM for value in values):
        unit = ""
    return Column(column.name, unit, values)
