"""Columns of values, and the readings and tables that they make."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from mcp_weather.models import Origin, Reading, Table, Value

__all__ = ["CALM", "Column", "as_number", "make_reading", "make_table"]

# What some sources write where they have nothing.
_MISSING = (-999.0, -9999.0)
# Stands for the direction of a wind that does not blow.
CALM = "calm"


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
    if _is_calm(columns):
        columns = [_without_direction(column) for column in columns]
    return Reading(
        observed_at=observed_at,
        station=station,
        names=[column.name for column in columns],
        units=[column.unit for column in columns],
        values=[column.values[0] for column in columns],
        origin=origin,
    )


def _is_calm(columns: Sequence[Column]) -> bool:
    """Return whether the wind is known to be none."""
    return any(column.name.startswith("wind_speed") and column.values[0] == 0 for column in columns)


def _without_direction(column: Column) -> Column:
    """Return `column`, or the word for calm if it is a direction of the wind, which services write as 0 degrees."""
    if column.name.startswith("wind_direction"):
        return Column(column.name, "", [CALM])
    return column


def make_table(time: Iterable[str], columns: Sequence[Column], origin: Origin) -> Table:
    """Return the table of columns that have a value for each time."""
    return Table(
        time=list(time),
        names=[column.name for column in columns],
        units=[column.unit for column in columns],
        values=[list(column.values) for column in columns],
        origin=origin,
    )
