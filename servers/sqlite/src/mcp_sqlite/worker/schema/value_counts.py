"""Finds columns with few different values, and the values, to know what a WHERE can ask for."""

from __future__ import annotations

import json
import random
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from mcp_batteries.sql.language.identifiers import quote_identifier
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.language.failure import primary_code
from mcp_sqlite.worker.language.values import encode_value
from mcp_sqlite.worker.schema.lookup import Column, list_columns
from mcp_sqlite.worker.schema.shapes import RowCount

__all__ = ["Gap", "ValueCount", "ValueCounts", "ValueLimits", "count_values", "find_gap", "find_worse_gap"]


class Gap(StrEnum):
    """Why the values of some columns were not read."""

    NONE = ""
    TIME = "no time"
    DAMAGE = "damage"


def find_gap(error: sqlite3.Error) -> Gap:
    """Return why an error ends the reading of all values; none where it is about one column only."""
    match primary_code(error):
        case sqlite3.SQLITE_ERROR:
            return Gap.NONE
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return Gap.DAMAGE
        case _:
            return Gap.TIME


def find_worse_gap(first: Gap, second: Gap) -> Gap:
    """Return the gap of two that more is to be said of."""
    if Gap.DAMAGE in (first, second):
        return Gap.DAMAGE
    return first or second


@dataclass(frozen=True)
class ValueLimits:
    """What a column's values have to be to be listed.

    Attributes:
        rows: rows up to which a table is read whole; of a larger one so many are a sample.
        counted_rows: rows up to which the values that a sample shows are counted in the whole table, if time allows.
        values: different values, at most.
        characters: of a value, at most.
        all_characters: of all values of a column, at most.
    """

    rows: int = 5000
    counted_rows: int = 100_000
    values: int = 8
    characters: int = 24
    all_characters: int = 160


class ValueCount(NamedTuple):
    """A value as JSON, and how often it occurs."""

    text: str
    frequency: int


@dataclass
class ValueCounts:
    """The values of columns that have few, the most frequent first.

    Attributes:
        sample: which rows were read, in words; empty where all were.
        gap: why the values of some columns were not read.
    """

    by_column: dict[str, list[ValueCount]]
    sample: str = ""
    gap: Gap = Gap.NONE


class _Source(NamedTuple):
    """The rows that are read: SQL that follows FROM, its parameters, and words for them where they are not all."""

    sql: str
    parameters: list[str]
    words: str


def count_values(
    database: Database, table: str, columns: Sequence[Column], rows: RowCount, seconds: float, limits: ValueLimits
) -> ValueCounts:
    """Return values and how often they occur, by column; of columns with few of them.

    Args:
        rows: how many the table has.
    """
    deadline = time.monotonic() + seconds
    try:
        with database.interrupt.shorten(max(0.001, seconds)):
            source = _choose_rows(database, table, rows, limits)
    except sqlite3.Error as error:
        database.interrupt.check()
        if not columns:
            return ValueCounts({})
        return ValueCounts({}, gap=find_gap(error) or Gap.TIME)
    counts = _count_in(database, source, columns, deadline, limits)
    if not counts.sample or not rows.is_at_most(limits.counted_rows):
        return counts
    listed_columns = [column for column in columns if str(column.name) in counts.by_column]
    # Half of the time stays for the tables behind this one.
    half_time = (time.monotonic() + deadline) / 2
    exact_counts = _count_in(database, _Source(quote_identifier(table), [], ""), listed_columns, half_time, limits)
    if exact_counts.gap:
        return counts
    exact_counts.gap = counts.gap
    return exact_counts


def _count_in(
    database: Database, source: _Source, columns: Sequence[Column], deadline: float, limits: ValueLimits
) -> ValueCounts:
    """Return the values of those of `columns` that have few, as far as there is time."""
    counts = ValueCounts({})
    for column in columns:
        if column.key_position or column.hidden == 1:
            continue
        seconds_left = deadline - time.monotonic()
        if seconds_left <= 0:
            counts.gap = Gap.TIME
            break
        try:
            with database.interrupt.shorten(seconds_left):
                frequencies = _query_values(database, source, column, limits)
        except sqlite3.Error as error:
            database.interrupt.check()
            counts.gap = find_gap(error)
            if counts.gap:
                break
            continue
        values = [ValueCount(encode_value(value), frequency) for value, frequency in frequencies]
        if _are_worth_listing(values, limits):
            counts.by_column[str(column.name)] = values
            counts.sample = source.words
    return counts


def _choose_rows(database: Database, table: str, rows: RowCount, limits: ValueLimits) -> _Source:
    """Return all rows of a small table; of another some from all over it, or its first where it has no rowids."""
    source = quote_identifier(table)
    if rows.is_at_most(limits.rows):
        return _Source(source, [], "")
    rowid = _find_rowid(database, table)
    if rowid is None:
        return _Source(f"(SELECT * FROM {source} LIMIT {limits.rows})", [], f"the first {limits.rows:,} rows")
    (bounds,) = database.run_internal(
        f"SELECT (SELECT min({rowid}) FROM {source}), (SELECT max({rowid}) FROM {source})"
    )
    first, last = bounds
    if first is None:
        return _Source(source, [], "")
    # At equal distances rows would be alike where values come round by turns.
    offsets = random.Random(0)
    starts = [first + int((last - first) * (place + offsets.random())) // limits.rows for place in range(limits.rows)]
    rows_nearby = database.run_internal(
        f"SELECT DISTINCT (SELECT {rowid} FROM {source} WHERE {rowid} >= e.value ORDER BY {rowid} LIMIT 1)"
        " FROM json_each(?) e",
        [json.dumps(starts)],
    )
    # Rowids with gaps lead from several places to one row.
    chosen = [row[0] for row in rows_nearby if row[0] is not None]
    sql = f"(SELECT * FROM {source} WHERE {rowid} IN (SELECT value FROM json_each(?)))"
    return _Source(sql, [json.dumps(chosen)], f"{len(chosen):,} rows from all over the table")


def _find_rowid(database: Database, table: str) -> str | None:
    """Return a name of the rowid that no column has; None for a table without rowids."""
    columns = {str(column.name).lower() for column in list_columns(database, table)}
    for name in ("rowid", "_rowid_", "oid"):
        if name in columns:
            continue
        try:
            database.run_internal(f"SELECT {name} FROM {quote_identifier(table)} LIMIT 0")
        except sqlite3.OperationalError:
            return None
        return name
    return None


def _query_values(database: Database, source: _Source, column: Column, limits: ValueLimits) -> list[tuple[Any, ...]]:
    """Return values and their counts, one value more than is listed."""
    name = quote_identifier(str(column.name))
    return database.run_internal(
        f"SELECT {name}, count(*) FROM {source.sql} GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {limits.values + 1}",
        source.parameters,
    )


def _are_worth_listing(values: Sequence[ValueCount], limits: ValueLimits) -> bool:
    """Return whether values say something: where each row has its own they don't, and neither do a few rows."""
    if not 0 < len(values) <= limits.values:
        return False
    if sum(value.frequency for value in values) < 2 * len(values):
        return False
    if sum(len(value.text) for value in values) > limits.all_characters:
        return False
    return all(len(value.text) <= limits.characters for value in values)
