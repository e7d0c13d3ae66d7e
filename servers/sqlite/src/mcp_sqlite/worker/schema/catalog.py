"""Lists tables with their columns and keys, with counts and values as far as a budget of time goes."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from mcp_batteries.sql.language.identifiers import quote_identifier
from mcp_batteries.sql.language.table_groups import group_numbered_tables
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.language.values import encode_value
from mcp_sqlite.worker.schema.lookup import TableEntry, list_columns, list_objects
from mcp_sqlite.worker.schema.shapes import (
    RowCount,
    count_rows,
    find_plain_columns,
    list_foreign_keys,
    name_kind,
    read_primary_keys,
)
from mcp_sqlite.worker.schema.value_counts import ValueLimits, count_values

__all__ = ["list_tables"]

_VALUES_SECONDS = 0.2
# In the list of tables room is dear.
_VALUE_LIMITS = ValueLimits(rows=1000, values=5, characters=14)
_MAX_COLUMNS = 30
_MAX_TYPE_LENGTH = 30
# Lines of tables beyond which the list leaves out their columns.
_MAX_LINES_WITH_COLUMNS = 60
# Lines of tables up to which the list has types, NOT NULL, how often values are there, and between which times.
_MAX_DETAILED_LINES = 20
# Rows among which the first and last time are looked for.
_MAX_ROWS_WITH_TIMES = 100_000
_TIME = re.compile(r'"[0-9]{4}-[01][0-9]-[0-3][0-9](?:[ T][0-9:.Z+-]*)?"')
# Tables whose columns are read to see how many lines all would fill.
_MAX_SHAPED_TABLES = 2000


@dataclass(frozen=True)
class _Shape:
    """What tables have to have in common to be listed as one.

    Attributes:
        primary: the columns of the primary key.
        types: the columns' declared types.
        needed: columns that are NOT NULL.
        keys: the tables that columns refer to.
    """

    kind: str
    columns: list[str]
    primary: list[str]
    types: list[str]
    needed: list[str]
    keys: dict[str, str]


@dataclass(frozen=True)
class _Layout:
    """How much the list says of each table.

    Attributes:
        has_columns: whether it has the columns of tables.
        is_detailed: whether it has their types, and more of their values.
        run_lengths: how many tables stand in the line that begins with one.
    """

    has_columns: bool
    is_detailed: bool
    run_lengths: dict[str, int]


@dataclass
class _Values:
    """The frequent values of columns, the first and last times.

    Attributes:
        has_counts: whether counts of values are among them.
        is_sample: whether the values are those of a part of the rows.
        is_complete: whether there was time to read the values of all columns.
    """

    values: dict[str, list[str]]
    times: dict[str, list[str]]
    has_counts: bool
    is_sample: bool = False
    is_complete: bool = True


def list_tables(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """Return tables and views behind `after` in the order of their names, at most `limit`, with columns and counts.

    Only those in whose name `name` occurs, if it is passed. Columns are left out where there are many lines. Counting
    has `budget` seconds; what is not counted has the estimate of ANALYZE or none.
    """
    database = connections.reader(request["path"])
    name_part = (request["name"] or "").casefold()
    entries = [entry for entry in list_objects(database) if name_part in entry.name.casefold()]
    after = request.get("after")
    following = [entry for entry in entries if after is None or entry.name > after]
    page = following[: request["limit"]]
    shapes = {entry.name: _read_shape(database, entry) for entry in (*entries[:_MAX_SHAPED_TABLES], *page)}
    layout = _choose_layout(entries, page, shapes)
    budget: float = request["budget"]
    deadline = time.monotonic() + min(_VALUES_SECONDS, budget)
    tables: list[dict[str, Any]] = []
    size = 0
    for entry in page:
        rows = count_rows(database, entry.name, entry.kind, budget)
        budget -= rows.seconds
        table = _describe_entry(database, entry, shapes[entry.name], rows, layout, deadline)
        if entry.name in layout.run_lengths:
            size += _measure(table)
        if tables and size > request["max_bytes"]:
            break
        tables.append(table)
    return {
        "tables": tables,
        "total": len(entries),
        "more": len(following) > len(tables),
        "compact": not layout.has_columns,
        "primary": read_primary_keys(database) if layout.has_columns else {},
        "size": size,
        "bytes": database.read_internal("PRAGMA page_count") * database.read_internal("PRAGMA page_size"),
        "journal": database.read_internal("PRAGMA journal_mode"),
        "immutable": database.immutable,
    }


def _read_shape(database: Database, entry: TableEntry) -> _Shape:
    columns = list_columns(database, entry.name)
    keys = list_foreign_keys(database, entry.name) if entry.kind == "table" else []
    return _Shape(
        kind=name_kind(entry.kind, entry.sql),
        columns=[str(column.name) for column in columns],
        primary=[str(column.name) for column in columns if column.key_position],
        types=[str(column.type or "").lower()[:_MAX_TYPE_LENGTH] for column in columns],
        needed=[str(column.name) for column in columns if column.not_null and not column.key_position],
        keys={str(key.column): str(key.parent) for key in keys},
    )


def _choose_layout(entries: Sequence[TableEntry], page: Sequence[TableEntry], shapes: dict[str, _Shape]) -> _Layout:
    def fold(names: list[str]) -> list[list[str]]:
        return group_numbered_tables(names, str, lambda name: repr(shapes[name]))

    line_count = _MAX_SHAPED_TABLES
    if len(entries) <= _MAX_SHAPED_TABLES:
        line_count = len(fold([entry.name for entry in entries]))
    runs = fold([entry.name for entry in page])
    return _Layout(
        has_columns=line_count <= _MAX_LINES_WITH_COLUMNS,
        is_detailed=line_count <= _MAX_DETAILED_LINES,
        run_lengths={run[0]: len(run) for run in runs},
    )


def _describe_entry(
    database: Database, entry: TableEntry, shape: _Shape, rows: RowCount, layout: _Layout, deadline: float
) -> dict[str, Any]:
    columns: list[str] = []
    primary: list[str] = []
    if layout.has_columns:
        columns = shape.columns
        primary = shape.primary
    values = _Values({}, {}, has_counts=False)
    stands_alone = layout.run_lengths.get(entry.name) == 1
    if shape.kind == "table" and columns and stands_alone:
        values = _read_values(database, entry.name, shape, rows, layout, deadline)
    return {
        "name": entry.name,
        "rows": rows.number,
        "exact": rows.is_exact,
        "obstacle": rows.obstacle,
        "more": max(0, len(columns) - _MAX_COLUMNS),
        "values": values.values,
        "times": values.times,
        "counts": values.has_counts,
        "sampled": values.is_sample,
        "values_complete": values.is_complete,
        "detailed": layout.is_detailed,
        "kind": shape.kind,
        "columns": columns[:_MAX_COLUMNS],
        "primary": primary,
        "types": shape.types,
        "needed": shape.needed,
        "keys": shape.keys,
    }


def _read_values(
    database: Database, table: str, shape: _Shape, rows: RowCount, layout: _Layout, deadline: float
) -> _Values:
    columns = find_plain_columns(database, table, list_columns(database, table)[:_MAX_COLUMNS], shape.keys)
    counts = count_values(database, table, columns, rows, deadline - time.monotonic(), _VALUE_LIMITS)
    has_counts = layout.is_detailed and not counts.sample
    values: dict[str, list[str]] = {}
    for column, items in counts.by_column.items():
        values[column] = [f"{item.text}:{item.frequency}" if has_counts else item.text for item in items]
    times = _Times({}, is_complete=True)
    if layout.is_detailed and rows.is_at_most(_MAX_ROWS_WITH_TIMES):
        names = [str(column.name) for column in columns if not column.key_position and column.name not in values]
        times = _read_times(database, table, names, deadline)
    is_complete = counts.is_complete and times.is_complete
    return _Values(values, times.by_column, has_counts, is_sample=bool(counts.sample), is_complete=is_complete)


class _Times(NamedTuple):
    """The first and the last time of columns, and whether there was time to look at all of them."""

    by_column: dict[str, list[str]]
    is_complete: bool


def _read_times(database: Database, table: str, columns: Sequence[str], deadline: float) -> _Times:
    """Return the first and the last time of those of `columns` that hold times as text."""
    times: dict[str, list[str]] = {}
    for name in columns:
        try:
            with database.interrupt.shorten(max(0.001, deadline - time.monotonic())):
                column_times = _read_column_times(database, table, name)
        except sqlite3.Error:
            database.interrupt.check()
            return _Times(times, is_complete=False)
        if column_times:
            times[name] = column_times
    return _Times(times, is_complete=True)


def _read_column_times(database: Database, table: str, column: str) -> list[str]:
    """Return the first and the last time in a column; nothing where it holds something else."""
    name = quote_identifier(column)
    source = quote_identifier(table)
    first = database.run_internal(f"SELECT {name} FROM {source} WHERE {name} IS NOT NULL LIMIT 1")
    if not first or not _TIME.fullmatch(encode_value(first[0][0])):
        return []
    (bounds,) = database.run_internal(f"SELECT min({name}), max({name}) FROM {source}")
    texts = [encode_value(bound) for bound in bounds]
    return texts if all(map(_TIME.fullmatch, texts)) else []


def _measure(table: dict[str, Any]) -> int:
    """Return about how many bytes a table fills in the list."""
    size = 12 + len(table["name"].encode())
    size += sum(len(column.encode()) + 2 for column in table["columns"])
    size += sum(len(parent.encode()) + 4 for parent in table["keys"].values())
    if table["detailed"]:
        size += sum(len(type_name.encode()) + 2 for type_name in table["types"])
    for texts in table["values"].values():
        size += 1 + sum(len(text.encode()) + 1 for text in texts)
    return size
