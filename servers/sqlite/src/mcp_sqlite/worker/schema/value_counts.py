"""Finds columns with few different values, and the values, to know what a WHERE can ask for."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from mcp_batteries.sql.language.identifiers import quote_identifier
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.language.values import encode_value
from mcp_sqlite.worker.schema.lookup import Column

__all__ = ["ValueCount", "ValueLimits", "count_values"]


@dataclass(frozen=True)
class ValueLimits:
    """What a column's values have to be to be listed.

    Attributes:
        rows: the rows that are read, the first of the table.
        values: different values, at most.
        characters: of a value, at most.
    """

    rows: int = 5000
    values: int = 8
    characters: int = 24


class ValueCount(NamedTuple):
    """A value as JSON, and how often it occurs."""

    text: str
    frequency: int


def count_values(
    database: Database, table: str, columns: Sequence[Column], seconds: float, limits: ValueLimits
) -> dict[str, list[ValueCount]]:
    """Return values and how often they occur, by column, the most frequent first; of columns with few of them."""
    counts: dict[str, list[ValueCount]] = {}
    deadline = time.monotonic() + seconds
    for column in columns:
        seconds_left = deadline - time.monotonic()
        if column.key_position or column.hidden == 1 or seconds_left <= 0:
            continue
        try:
            with database.interrupt.shorten(seconds_left):
                rows = _query_values(database, table, column, limits)
        except sqlite3.Error:
            database.interrupt.check()
            break
        values = [ValueCount(encode_value(value), frequency) for value, frequency in rows]
        if _are_worth_listing(values, limits):
            counts[str(column.name)] = values
    return counts


def _query_values(database: Database, table: str, column: Column, limits: ValueLimits) -> list[tuple[Any, ...]]:
    """Return values and their counts, one value more than is listed."""
    name = quote_identifier(str(column.name))
    return database.run_internal(
        f"SELECT {name}, count(*) FROM (SELECT {name} FROM {quote_identifier(table)} LIMIT {limits.rows}) GROUP BY 1 "
        f"ORDER BY 2 DESC, 1 LIMIT {limits.values + 1}"
    )


def _are_worth_listing(values: Sequence[ValueCount], limits: ValueLimits) -> bool:
    """Return whether values say something: where each row has its own they don't, and neither do a few rows."""
    if not 0 < len(values) <= limits.values:
        return False
    if sum(value.frequency for value in values) < 2 * len(values):
        return False
    return all(len(value.text) <= limits.characters for value in values)
