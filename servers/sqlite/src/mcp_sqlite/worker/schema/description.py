"""Describes one table with everything that depends on it."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, NamedTuple

from mcp_batteries.sql.language.identifiers import quote_identifier
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.language.failure import primary_code
from mcp_sqlite.worker.language.values import RowEncoder
from mcp_sqlite.worker.schema.lookup import Column, find_table, query_unless_broken, read_all_columns
from mcp_sqlite.worker.schema.shapes import (
    ForeignKeyColumn,
    count_rows,
    explain_obstacle,
    find_plain_columns,
    list_foreign_keys,
    name_kind,
    read_primary_keys,
)
from mcp_sqlite.worker.schema.value_counts import ValueCount, ValueCounts, ValueLimits, count_values

__all__ = ["describe_table"]

_COUNT_SECONDS = 1.0
_VALUES_SECONDS = 0.2
_MAX_SAMPLE_BYTES = 10_000
_MAX_ERROR_LENGTH = 200


class _KeyColumn(NamedTuple):
    """A column of a foreign key of any table, its parent, and the number of its key."""

    table: str
    column: str
    parent_column: str | None
    on_delete: str
    parent: str
    number: int


class _Columns(NamedTuple):
    """The columns of a table, or why they can't be read."""

    columns: list[Column]
    error: str | None


class _Sample(NamedTuple):
    """Some rows of a table, and why there are no more of them or of their columns."""

    lines: str
    note: str = ""


def describe_table(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """Return one table: columns, keys both ways, indexes, triggers, its DDL with comments, its count, sample rows."""
    database = connections.reader(request["path"])
    name = find_table(database, request["table"])
    entries = database.run_internal("SELECT type, sql FROM sqlite_master WHERE name = ?", [name])
    kind, sql = entries[0] if entries else ("table", "")
    rows = count_rows(database, name, kind, _COUNT_SECONDS)
    columns, error = _read_columns(database, name)
    own_keys = list_foreign_keys(database, name)
    all_keys = _read_all_keys(database)
    values = ValueCounts({})
    if kind == "table":
        plain = find_plain_columns(database, name, columns, {str(key.column) for key in own_keys})
        values = count_values(database, name, plain, rows, _VALUES_SECONDS, ValueLimits())
    description: dict[str, Any] = {
        "name": name,
        "kind": name_kind(kind, sql or ""),
        "rows": rows.number,
        "exact": rows.is_exact,
        "obstacle": rows.obstacle,
        "columns": _describe_columns(database, name, columns, values.by_column),
        "values_of": values.sample,
        "values_gap": values.gap,
        "broken": error,
        "refers_to": [_describe_own_key(key) for key in own_keys],
        "referred_by": _describe_incoming_keys(all_keys, name),
        "keys": [[key.table, key.number, key.column, key.parent, key.parent_column] for key in all_keys],
        "primary": read_primary_keys(database),
        "id_columns": _list_id_columns(database) if kind == "table" else [],
        "indexes": _list_indexes(database, name),
        "triggers": _list_triggers(database, name),
        "sql": sql or "",
        "immutable": database.immutable,
    }
    if request["sample"]:
        sample = _read_sample(database, name, columns, request["sample"], request["max_cell"])
        description["sample"] = sample.lines
        description["sample_note"] = sample.note
    return description


def _describe_columns(
    database: Database, table: str, columns: Sequence[Column], values: dict[str, list[ValueCount]]
) -> list[dict[str, Any]]:
    descriptions: list[dict[str, Any]] = []
    for column in columns:
        is_masked = database.is_masked(table, str(column.name))
        descriptions.append(_describe_column(column, values, is_masked=is_masked))
    return descriptions


def _read_columns(database: Database, table: str) -> _Columns:
    try:
        return _Columns(read_all_columns(database, table), None)
    except sqlite3.Error as error:
        if primary_code(error) != sqlite3.SQLITE_ERROR:
            raise
        return _Columns([], explain_obstacle(database, error)[:_MAX_ERROR_LENGTH])


def _read_all_keys(database: Database) -> list[_KeyColumn]:
    """Return the columns of the foreign keys of all tables, between those that are served."""
    rows = query_unless_broken(
        database,
        'SELECT m.name, f."from", f."to", f.on_delete, f."table", f.id FROM sqlite_master m, '
        "pragma_foreign_key_list(m.name, 'main') f WHERE m.type = 'table' AND m.rootpage > 0 ORDER BY 1, f.id, f.seq",
    )
    keys = [_KeyColumn(*row) for row in rows]
    return [key for key in keys if database.is_visible(str(key.table)) and database.is_visible(str(key.parent))]


def _describe_column(column: Column, values: dict[str, list[ValueCount]], *, is_masked: bool) -> dict[str, Any]:
    frequent = values.get(str(column.name), ())
    return {
        "name": column.name,
        "type": column.type,
        "not_null": bool(column.not_null),
        "default": column.default,
        "key": column.key_position,
        "hidden": column.hidden,
        "values": ", ".join(f"{value.text} ({value.frequency})" for value in frequent),
        "masked": is_masked,
    }


def _describe_own_key(key: ForeignKeyColumn) -> dict[str, Any]:
    return {"column": key.column, "table": key.parent, "to": key.parent_column, "on_delete": key.on_delete}


def _describe_incoming_keys(keys: Sequence[_KeyColumn], table: str) -> list[dict[str, Any]]:
    incoming = [key for key in keys if str(key.parent).lower() == table.lower()]
    return [
        {"table": key.table, "column": key.column, "to": key.parent_column, "on_delete": key.on_delete}
        for key in sorted(incoming, key=lambda key: key[:4])
    ]


def _list_indexes(database: Database, table: str) -> list[dict[str, Any]]:
    indexes: list[dict[str, Any]] = []
    rows = query_unless_broken(database, f"PRAGMA main.index_list({quote_identifier(table)})")
    for _, name, is_unique, origin, is_partial in rows:
        columns = query_unless_broken(database, f"PRAGMA main.index_info({quote_identifier(name)})")
        indexes.append(
            {
                "name": name,
                "columns": [column or "(expression)" for _, _, column in columns],
                "unique": bool(is_unique),
                "origin": origin,
                "partial": bool(is_partial),
            }
        )
    return indexes


def _list_triggers(database: Database, table: str) -> list[tuple[Any, ...]]:
    sql = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ? ORDER BY name"
    return query_unless_broken(database, sql, [table])


def _list_id_columns(database: Database) -> list[tuple[Any, ...]]:
    """Return tables and those of their columns whose names end like that of a key."""
    rows = query_unless_broken(
        database,
        "SELECT m.name, p.name FROM sqlite_master m, pragma_table_info(m.name, 'main') p "
        "WHERE m.type = 'table' AND m.rootpage > 0 AND p.name LIKE '%_id' LIMIT 2000",
    )
    return [(table, column) for table, column in rows if database.is_visible(str(table))]


def _read_sample(database: Database, table: str, columns: Sequence[Column], limit: int, max_cell: int) -> _Sample:
    """Return some rows; without generated columns if these need a function of an application."""
    source = f"FROM {quote_identifier(table)} LIMIT ?"
    encoder = RowEncoder(max_cell)

    def read(expressions: str) -> str:
        rows = database.run_internal(f"SELECT {expressions} {source}", [limit])
        return "".join(encoder.encode_within(row, _MAX_SAMPLE_BYTES // limit) for row in rows)

    try:
        return _Sample(read("*"))
    except sqlite3.Error as error:
        if primary_code(error) != sqlite3.SQLITE_ERROR:
            raise
        obstacle = explain_obstacle(database, error)
    plain = [quote_identifier(str(column.name)) for column in columns if not column.hidden]
    if not plain or len(plain) == len(columns):
        return _Sample("", f"not read: {obstacle}")
    try:
        return _Sample(read(", ".join(plain)), f"without generated columns: {obstacle}")
    except sqlite3.Error:
        return _Sample("", f"not read: {obstacle}")
