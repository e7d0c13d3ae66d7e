"""Lists tables with their columns and keys, with counts and values as far as a budget of time goes."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from mcp_batteries.sql.language.identifiers import quote_identifier
from mcp_batteries.sql.language.table_groups import group_numbered_tables
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.language.values import encode_value
from mcp_sqlite.worker.schema.constraints import count_triggers, describe_constraints
from mcp_sqlite.worker.schema.lookup import Column, TableEntry, list_columns, list_objects
from mcp_sqlite.worker.schema.shapes import (
    RowCount,
    count_rows,
    find_plain_columns,
    list_foreign_keys,
    name_kind,
    read_primary_keys,
)
from mcp_sqlite.worker.schema.value_counts import Gap, ValueLimits, count_values, find_gap, find_worse_gap

__all__ = ["list_tables"]

_VALUES_SECONDS = 0.3
# So many times as long are values of few tables looked for: what is missing then costs a call more.
_PROFILE_TIMES = 3
# In the list of tables room is dear.
_VALUE_LIMITS = ValueLimits(rows=1000, counted_rows=0, values=5, characters=14)
# Of a few tables it shows what a look at each column would.
_PROFILE_LIMITS = ValueLimits(rows=1000, values=20)
_MAX_COLUMNS = 30
_MAX_TYPE_LENGTH = 30
_MAX_DEFAULT_LENGTH = 40
# Lines of tables beyond which the list leaves out their columns.
_MAX_LINES_WITH_COLUMNS = 60
# Lines of tables up to which the list has types, NOT NULL, how often values are there, and between which times.
_MAX_DETAILED_LINES = 20
# Lines and columns up to which the list has the range of each column, and how many rows have none of its values.
_MAX_PROFILED_LINES = 6
_MAX_PROFILED_COLUMNS = 60
# Rows of a table whose ranges are looked for.
_MAX_ROWS_WITH_RANGES = 100_000
_MAX_BOUND_LENGTH = 28
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
        defaults: the columns' DEFAULT, where they have one.
        keys: the tables that columns refer to.
    """

    kind: str
    columns: list[str]
    primary: list[str]
    types: list[str]
    needed: list[str]
    defaults: dict[str, str]
    keys: dict[str, str]


@dataclass(frozen=True)
class _Layout:
    """How much the list says of each table.

    Attributes:
        has_columns: whether it has the columns of tables.
        is_detailed: whether it has their types and constraints, and more of their values.
        is_profiled: whether it has the ranges of all columns, and how often they are NULL.
        run_lengths: how many tables stand in the line that begins with one.
    """

    has_columns: bool
    is_detailed: bool
    is_profiled: bool
    run_lengths: dict[str, int]


@dataclass
class _Values:
    """The frequent values of columns, and the ranges of others.

    Attributes:
        ranges: the smallest and the greatest value, and what else is known, such as how many are NULL.
        has_counts: whether counts of values are among them.
        is_sample: whether the values are those of a part of the rows.
        gap: why the values of some columns were not read.
    """

    values: dict[str, list[str]]
    ranges: dict[str, str]
    has_counts: bool
    is_sample: bool = False
    gap: Gap = Gap.NONE


def list_tables(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """Return tables and views behind `after` in the order of their names, at most `limit`, with columns and counts.

    Only those in whose name `name` occurs, if it is passed. Columns are left out where there are many lines. Counting
    has `budget` seconds; what is not counted has the estimate of ANALYZE or none.
    """
    database = connections.reader(request["path"])
    name_part = (request["name"] or "").casefold()
    objects = list_objects(database)
    entries = [entry for entry in objects if name_part in entry.name.casefold()]
    after = request.get("after")
    following = [entry for entry in entries if after is None or entry.name > after]
    page = following[: request["limit"]]
    shapes = {entry.name: _read_shape(database, entry) for entry in (*entries[:_MAX_SHAPED_TABLES], *page)}
    layout = _choose_layout(entries, page, shapes)
    budget: float = request["budget"]
    values_seconds = min(_VALUES_SECONDS, budget)
    if layout.is_profiled:
        values_seconds *= _PROFILE_TIMES
    deadline = time.monotonic() + values_seconds
    trigger_counts = count_triggers(database)
    tables: list[dict[str, Any]] = []
    size = 0
    for entry in page:
        rows = count_rows(database, entry.name, entry.kind, budget)
        budget -= rows.seconds
        table = _describe_entry(database, entry, shapes[entry.name], rows, layout, deadline)
        if layout.is_detailed:
            keys = list_foreign_keys(database, entry.name)
            table["constraints"] = describe_constraints(
                database, entry, keys, trigger_counts[entry.name.lower()], with_indexes=layout.is_profiled
            )
        if entry.name in layout.run_lengths:
            size += _measure(table)
        if tables and size > request["max_bytes"]:
            break
        tables.append(table)
    return {
        "tables": tables,
        "total": len(entries),
        "unlisted": len(objects) - len(entries),
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
        defaults={
            str(column.name): _shorten(str(column.default), _MAX_DEFAULT_LENGTH)
            for column in columns
            if column.default is not None
        },
        keys={str(key.column): str(key.parent) for key in keys},
    )


def _choose_layout(entries: Sequence[TableEntry], page: Sequence[TableEntry], shapes: dict[str, _Shape]) -> _Layout:
    def fold(names: list[str]) -> list[list[str]]:
        return group_numbered_tables(names, str, lambda name: repr(shapes[name]))

    line_count = _MAX_SHAPED_TABLES
    if len(entries) <= _MAX_SHAPED_TABLES:
        line_count = len(fold([entry.name for entry in entries]))
    runs = fold([entry.name for entry in page])
    column_count = sum(len(shapes[run[0]].columns) for run in runs)
    return _Layout(
        has_columns=line_count <= _MAX_LINES_WITH_COLUMNS,
        is_detailed=line_count <= _MAX_DETAILED_LINES,
        is_profiled=line_count <= _MAX_PROFILED_LINES and column_count <= _MAX_PROFILED_COLUMNS,
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
        "ranges": values.ranges,
        "has_ranges": shape.kind != "table" or _can_have_ranges(rows),
        "counts": values.has_counts,
        "sampled": values.is_sample,
        "values_gap": values.gap,
        "detailed": layout.is_detailed,
        "kind": shape.kind,
        "columns": columns[:_MAX_COLUMNS],
        "primary": primary,
        "types": shape.types,
        "needed": shape.needed,
        "defaults": shape.defaults,
        "keys": shape.keys,
        "masked": [column for column in columns if database.is_masked(entry.name, column)],
        "constraints": [],
        "profiled": layout.is_profiled,
    }


def _read_values(
    database: Database, table: str, shape: _Shape, rows: RowCount, layout: _Layout, deadline: float
) -> _Values:
    columns = find_plain_columns(database, table, list_columns(database, table)[:_MAX_COLUMNS], ())
    plain = [column for column in columns if column.name not in shape.keys]
    limits = _PROFILE_LIMITS if layout.is_profiled else _VALUE_LIMITS
    counts = count_values(database, table, plain, rows, deadline - time.monotonic(), limits)
    has_counts = layout.is_detailed and not counts.sample
    values: dict[str, list[str]] = {}
    for column, items in counts.by_column.items():
        values[column] = [f"{item.text}:{item.frequency}" if has_counts else item.text for item in items]
    ranges = _Ranges({}, Gap.NONE)
    if layout.is_detailed and rows.number and _can_have_ranges(rows):
        unlisted = [column for column in columns if not _is_number_key(column) and column.name not in values]
        ranges = _read_ranges(database, table, unlisted, shape.keys, layout, deadline)
    gap = find_worse_gap(counts.gap, ranges.gap)
    return _Values(values, ranges.by_column, has_counts, is_sample=bool(counts.sample), gap=gap)


def _can_have_ranges(rows: RowCount) -> bool:
    """Return whether a table has few enough rows to look for ranges."""
    return rows.is_at_most(_MAX_ROWS_WITH_RANGES)


def _is_number_key(column: Column) -> bool:
    """Return whether a column is a key whose range says less than the number of rows."""
    return bool(column.key_position) and "INT" in str(column.type or "").upper()


class _Ranges(NamedTuple):
    """Between which values those of columns are, as the list shows it, and why it is not known."""

    by_column: dict[str, str]
    gap: Gap


def _read_ranges(
    database: Database,
    table: str,
    columns: Sequence[Column],
    keys: Collection[str],
    layout: _Layout,
    deadline: float,
) -> _Ranges:
    """Return the ranges of columns, and how many are NULL; of those that are no times only in a profile.

    Args:
        keys: the columns that refer to other tables, of which the range says nothing.
    """
    if not columns:
        return _Ranges({}, Gap.NONE)
    names = [quote_identifier(str(column.name)) for column in columns]
    aggregates = ", ".join(f"count({name}), min({name}), max({name})" for name in names)
    try:
        with database.interrupt.shorten(max(0.001, deadline - time.monotonic())):
            # Counted again: somebody may have committed since the list counted them.
            sql = f"SELECT count(*), {aggregates} FROM {quote_identifier(table)}"
            ((row_count, *row),) = database.run_internal(sql)
            ranges: dict[str, str] = {}
            for number, column in enumerate(columns):
                count, *bounds = row[3 * number : 3 * number + 3]
                facts = _describe_range(database, table, column, bounds, keys, layout)
                if count < row_count and (facts or layout.is_profiled):
                    facts.append(f"null:{row_count - count}")
                if facts:
                    ranges[str(column.name)] = ", ".join(facts)
    except sqlite3.Error as error:
        database.interrupt.check()
        return _Ranges({}, find_gap(error))
    return _Ranges(ranges, Gap.NONE)


def _describe_range(
    database: Database, table: str, column: Column, bounds: Sequence[Any], keys: Collection[str], layout: _Layout
) -> list[str]:
    """Return a column's bounds; of texts that are times, how many are written in another way than the first."""
    if column.name in keys or bounds[0] is None or any(isinstance(bound, bytes) for bound in bounds):
        # Where one binary value stands among others says nothing.
        return []
    texts = [_encode_bound(bound) for bound in bounds]
    are_times = all(map(_TIME.fullmatch, texts))
    if not are_times and not layout.is_profiled:
        return []
    facts = [" to ".join(texts)]
    if texts[0] == texts[1] and not _has_other_values(database, table, column, bounds[0]):
        facts = [f"only {texts[0]}"]
    if are_times:
        form = re.sub("[0-9]", "[0-9]", bounds[0])
        name = quote_identifier(str(column.name))
        ((others, example),) = database.run_internal(
            f"SELECT count(*), min({name}) FROM {quote_identifier(table)} WHERE {name} NOT GLOB ?", [form]
        )
        if others:
            facts.append(f"{others} of another form than the first, as {_encode_bound(example)}")
    return facts


def _has_other_values(database: Database, table: str, column: Column, value: Any) -> bool:
    """Return whether a column has more than one value; a collation can take different ones for the same."""
    name = quote_identifier(str(column.name))
    sql = f"SELECT EXISTS (SELECT 1 FROM {quote_identifier(table)} WHERE {name} COLLATE BINARY <> ?)"
    ((has_others,),) = database.run_internal(sql, [value])
    return bool(has_others)


def _encode_bound(bound: Any) -> str:
    """Return a value as JSON; of a long text its beginning."""
    if isinstance(bound, str):
        bound = _shorten(bound, _MAX_BOUND_LENGTH)
    return encode_value(bound)


def _shorten(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}…"


def _measure(table: dict[str, Any]) -> int:
    """Return about how many bytes a table fills in the list."""
    size = 12 + len(table["name"].encode())
    size += sum(len(column.encode()) + 2 for column in table["columns"])
    size += sum(len(parent.encode()) + 4 for parent in table["keys"].values())
    if table["detailed"]:
        size += sum(len(type_name.encode()) + 2 for type_name in table["types"])
    for texts in table["values"].values():
        size += 1 + sum(len(text.encode()) + 1 for text in texts)
    for text in (*table["ranges"].values(), *table["constraints"]):
        size += 2 + len(text.encode())
    return size
