"""Cuts tables: their first rows, those of a day, those that have not ended."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TypeVar

from mcp_batteries.errors import Unavailable
from mcp_batteries.remote import Snapshot
from mcp_weather.models import Table

__all__ = [
    "list_empty_columns",
    "require_rows",
    "rows_between",
    "rows_from",
    "rows_until",
    "select_columns",
    "take_rows",
]

T = TypeVar("T")


def require_rows(table: Table, snapshot: Snapshot, source: str = "Open-Meteo") -> Table:
    """Return `table`, from which what is past was left out. Every table of the future goes through here.

    Raises:
        Unavailable: nothing is left of an old answer, which is not a forecast without rain.
    """
    if table.time:
        return table
    if snapshot.error:
        raise Unavailable(f"There is no forecast: {snapshot.error}", "Try again in a moment.")
    raise Unavailable(
        f"There is no forecast: {source} sent one of times that are past.",
        "Try again in a moment, and check the clock of the machine that this server runs on.",
    )


def take_rows(table: Table, count: int) -> Table:
    """Return the first `count` rows."""
    return _select_rows(table, range(len(table.time))[:count])


def rows_from(table: Table, day: str) -> Table:
    """Return the rows of a table by day, without the days before `day`, which is written as YYYY-MM-DD."""
    past_days = sum(1 for time in table.time if time < day)
    return _select_rows(table, range(past_days, len(table.time)))


def rows_until(table: Table, day: str) -> Table:
    """Return the rows of a table by day, without the days after `day`, which is written as YYYY-MM-DD."""
    return take_rows(table, sum(1 for time in table.time if time <= day))


def rows_between(table: Table, begin: datetime, end: datetime) -> Table:
    """Return the rows of a table by hour that begin at `begin` or later, and before `end`."""
    rows = [index for index, time in enumerate(table.time) if begin <= datetime.fromisoformat(time) < end]
    return _select_rows(table, rows)


def select_columns(table: Table, variables: Sequence[str]) -> Table:
    """Return the columns of `variables`, in their order; those that the table does not have are left out."""
    names = [name.replace("weather_code", "weather") for name in variables]
    columns = [table.names.index(name) for name in names if name in table.names]
    return table.model_copy(
        update={
            "names": _pick(table.names, columns),
            "units": _pick(table.units, columns),
            "values": _pick(table.values, columns),
        }
    )


def list_empty_columns(table: Table) -> list[str]:
    """Return the names of columns in which nothing is known."""
    empty: list[str] = []
    for name, values in zip(table.names, table.values, strict=True):
        if all(value is None for value in values):
            empty.append(name)
    return empty


def _select_rows(table: Table, rows: Sequence[int]) -> Table:
    values = [_pick(column, rows) for column in table.values]
    return table.model_copy(update={"time": _pick(table.time, rows), "values": values})


def _pick(items: Sequence[T], indexes: Sequence[int]) -> list[T]:
    return [items[index] for index in indexes]
