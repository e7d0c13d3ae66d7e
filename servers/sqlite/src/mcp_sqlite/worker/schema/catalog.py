"""Describes tables: all of them with counts under a budget, or one with everything that depends on it."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Collection, Sequence
from typing import Any

from mcp_batteries.sql.alike import folded
from mcp_batteries.sql.identifiers import identifier
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.language.values import RowEncoder, encode_value
from mcp_sqlite.worker.schema.lookup import (
    FULL_TEXT_MODULES,
    TABLES,
    estimate_row_count,
    find_shadow_tables,
    find_table,
    list_columns,
    parse_virtual_module,
    query_unless_broken,
)
from mcp_sqlite.worker.schema.value_counts import ValueLimits, count_values

__all__ = ["describe_table", "list_tables"]

_COUNT_SECONDS = 0.03
_FACET_SECONDS = 0.2
_LISTED = ValueLimits(rows=1000, values=5, longest=14)
"""In the list of tables, where room is dear."""
_COLUMNS = 30
"""Columns of a table that the list of tables shows."""
_MANY = 60
"""Lines of tables beyond which the list leaves out their columns."""
_DETAILED = 20
"""Lines of tables up to which the list tells types, NOT NULL, how often values are there, and between which times."""
_SPANNED = 100_000
"""Rows among which the first and last time are looked for."""
_TIME = re.compile(r'"[0-9]{4}-[01][0-9]-[0-3][0-9](?:[ T][0-9:.Z+-]*)?"')
_SHAPED = 2000
"""Tables that are looked at to see how many lines they fill."""
_BYTES = 10_000


def list_tables(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """Tables and views behind `after` in the order of their names, at most `limit`, with columns, keys and counts.

    Only those in whose name `name` occurs, if it is given. Columns are left out where there are many lines. Counting
    has `budget` seconds; what is not counted has the estimate of ANALYZE or none.
    """
    database = connections.reader(request["path"])
    entries = [(str(name), kind, sql) for name, kind, sql in database.run_internal(TABLES)]
    hidden = find_shadow_tables(database)
    part = (request["name"] or "").casefold()
    entries = [entry for entry in entries if entry[0].lower() not in hidden and part in entry[0].casefold()]
    entries = [entry for entry in entries if database.is_visible(entry[0])]
    start = request.get("after")
    behind = [entry for entry in entries if start is None or entry[0] > start]
    page = behind[: request["limit"]]
    shapes = {name: _shape(database, name, kind, sql) for name, kind, sql in (entries[:_SHAPED] + page)}

    def lines(listed: list[tuple[str, str, str]]) -> list[list[str]]:
        return folded([name for name, _, _ in listed], str, lambda name: repr(shapes[name]))

    filled = _SHAPED if len(entries) > _SHAPED else len(lines(entries))
    brief, detailed = filled > _MANY, filled <= _DETAILED
    lengths = {run[0]: len(run) for run in lines(page)}
    budget: float = request["budget"]
    until = time.monotonic() + min(_FACET_SECONDS, budget)
    found: list[dict[str, Any]] = []
    size = 0
    for name, kind, _ in page:
        rows, exact, spent = _count(database, name, kind, budget)
        budget -= spent
        nothing: list[str] = []
        shape: dict[str, Any] = {**shapes[name], **({"columns": nothing, "primary": nothing} if brief else {})}
        values: dict[str, list[str]] = {}
        times: dict[str, list[str]] = {}
        counts = False
        if shape["kind"] == "table" and shape["columns"] and lengths.get(name) == 1:
            plain = _plain(database, name, list_columns(database, name)[:_COLUMNS], shape["keys"])
            known = count_values(database, identifier(name), plain, until - time.monotonic(), _LISTED)
            counts = detailed and exact and rows is not None and rows <= _LISTED.rows
            values = {
                column: [f"{text}:{number}" if counts else text for text, number in items]
                for column, items in known.items()
            }
            if detailed and exact and rows is not None and rows <= _SPANNED:
                names = [str(row[1]) for row in plain if not row[5] and row[1] not in values]
                times = _times(database, name, names, until)
        more = max(0, len(shape["columns"]) - _COLUMNS)
        shape["columns"] = shape["columns"][:_COLUMNS]
        if name in lengths:
            size += 12 + len(name.encode()) + sum(len(column.encode()) + 2 for column in shape["columns"])
            size += sum(len(other.encode()) + 4 for other in shape["keys"].values())
            size += sum(len(kind.encode()) + 2 for kind in shape["types"]) if detailed else 0
            size += sum(len(text.encode()) + 1 for texts in values.values() for text in ["", *texts])
        if found and size > request["max_bytes"]:
            break
        told = {"values": values, "times": times, "counts": counts, "detailed": detailed}
        found.append({"name": name, "rows": rows, "exact": exact, "more": more, **told, **shape})
    pages, page_bytes = (
        database.run_internal("PRAGMA page_count")[0][0],
        database.run_internal("PRAGMA page_size")[0][0],
    )
    return {
        "tables": found,
        "total": len(entries),
        "more": len(behind) > len(found),
        "compact": brief,
        "primary": {} if brief else _primary_keys(database),
        "size": size,
        "bytes": pages * page_bytes,
        "journal": database.run_internal("PRAGMA journal_mode")[0][0],
        "immutable": database.immutable,
    }


def describe_table(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """One table: columns, keys both ways, indexes, triggers, its DDL with comments, its count, sample rows."""
    database = connections.reader(request["path"])
    name = find_table(database, request["table"])
    table = identifier(name)
    kind, sql = (
        database.run_internal("SELECT type, sql FROM sqlite_master WHERE name = ?", [name]) or [("table", "")]
    )[0]
    rows, exact, _ = _count(database, name, kind, 1.0)
    indexes: list[dict[str, Any]] = []
    for _, index, unique, origin, partial in query_unless_broken(database, f"PRAGMA main.index_list({table})"):
        parts = [
            row[2] or "(expression)"
            for row in query_unless_broken(database, f"PRAGMA main.index_info({identifier(index)})")
        ]
        indexes.append(
            {"name": index, "columns": parts, "unique": bool(unique), "origin": origin, "partial": bool(partial)}
        )
    every_key = query_unless_broken(
        database,
        'SELECT m.name, f."from", f."to", f.on_delete, f."table", f.id FROM sqlite_master m, '
        "pragma_foreign_key_list(m.name, 'main') f WHERE m.type = 'table' AND m.rootpage > 0 ORDER BY 1, f.id, f.seq",
    )
    every_key = [row for row in every_key if database.is_visible(str(row[0])) and database.is_visible(str(row[4]))]
    incoming = sorted(row[:4] for row in every_key if str(row[4]).lower() == name.lower())
    broken: str | None = None
    columns: list[tuple[Any, ...]] = []
    try:
        columns = database.run_internal(f"PRAGMA main.table_xinfo({table})")
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_ERROR:
            raise
        broken = str(error)[:200]
    refers_to = _keys_of(database, name)
    plain = _plain(database, name, columns, {str(row[3]) for row in refers_to})
    values = count_values(database, table, plain, _FACET_SECONDS, ValueLimits()) if kind == "table" else {}
    found: dict[str, Any] = {
        "name": name,
        "kind": _kind(kind, sql or ""),
        "rows": rows,
        "exact": exact,
        "columns": [
            {
                "name": row[1],
                "type": row[2],
                "not_null": bool(row[3]),
                "default": row[4],
                "key": row[5],
                "hidden": row[6],
                "values": ", ".join(f"{text} ({count})" for text, count in values.get(str(row[1]), ())),
                "masked": database.visible_schema is not None and database.visible_schema.is_masked(name, str(row[1])),
            }
            for row in columns
        ],
        "broken": broken,
        "refers_to": [{"column": row[3], "table": row[2], "to": row[4], "on_delete": row[6]} for row in refers_to],
        "keys": [[row[0], row[5], row[1], row[4], row[2]] for row in every_key],
        "primary": _primary_keys(database),
        "near": _columns_named_id(database) if kind == "table" else [],
        "referred_by": [{"table": row[0], "column": row[1], "to": row[2], "on_delete": row[3]} for row in incoming],
        "indexes": indexes,
        "triggers": query_unless_broken(
            database,
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ? ORDER BY name",
            [name],
        ),
        "sql": sql or "",
        "immutable": database.immutable,
    }
    if request["sample"]:
        lines = RowEncoder(request["max_cell"])
        taken = query_unless_broken(database, f"SELECT * FROM {table} LIMIT ?", [request["sample"]])
        found["sample"] = "".join(lines.encode_within(row, _BYTES // request["sample"]) for row in taken)
    return found


def _shape(database: Database, name: str, kind: str, sql: str) -> dict[str, Any]:
    """What tables have to have in common to be told as one."""
    columns = list_columns(database, name)
    keys = _keys_of(database, name) if kind == "table" else []
    return {
        "kind": _kind(kind, sql),
        "columns": [str(row[1]) for row in columns],
        "primary": [str(row[1]) for row in columns if row[5]],
        "types": [str(row[2] or "").lower()[:30] for row in columns],
        "needed": [str(row[1]) for row in columns if row[3] and not row[5]],
        "keys": {str(row[3]): str(row[2]) for row in keys},
    }


def _times(database: Database, table: str, columns: Sequence[str], until: float) -> dict[str, list[str]]:
    """The first and the last time of those of `columns` that hold times as text."""
    found: dict[str, list[str]] = {}
    for name in columns:
        column = identifier(name)
        try:
            with database.interrupt.shorten(max(0.001, until - time.monotonic())):
                first = database.run_internal(
                    f"SELECT {column} FROM {identifier(table)} WHERE {column} IS NOT NULL LIMIT 1"
                )
                if first and _TIME.fullmatch(encode_value(first[0][0])):
                    (ends,) = database.run_internal(f"SELECT min({column}), max({column}) FROM {identifier(table)}")
                    texts = [encode_value(end) for end in ends]
                    found |= {name: texts} if all(map(_TIME.fullmatch, texts)) else {}
        except sqlite3.Error:
            database.interrupt.check()
            break
    return found


def _plain(
    database: Database, table: str, columns: list[tuple[Any, ...]], keys: Collection[str]
) -> list[tuple[Any, ...]]:
    """Columns of which values may be told, and that are not keys."""
    shown = (
        row
        for row in columns
        if not (database.visible_schema and database.visible_schema.is_masked(table, str(row[1])))
    )
    return [row for row in shown if row[1] not in keys]


def _keys_of(database: Database, table: str) -> list[tuple[Any, ...]]:
    """PRAGMA foreign_key_list of `table`, of keys to what is served."""
    rows = query_unless_broken(database, f"PRAGMA main.foreign_key_list({identifier(table)})")
    return [row for row in rows if database.is_visible(str(row[2]))]


def _primary_keys(database: Database) -> dict[str, str]:
    """The column that is a table's primary key, of tables where one column is."""
    rows = query_unless_broken(
        database,
        "SELECT m.name, p.name FROM sqlite_master m, pragma_table_info(m.name, 'main') p "
        "WHERE m.type = 'table' AND m.rootpage > 0 AND p.pk > 0",
    )
    rows = [row for row in rows if database.is_visible(str(row[0]))]
    tables = [str(table) for table, _ in rows]
    return {str(table): str(column) for table, column in rows if tables.count(str(table)) == 1}


def _columns_named_id(database: Database) -> list[tuple[Any, ...]]:
    """Tables and those of their columns whose names end like that of a key."""
    rows = query_unless_broken(
        database,
        "SELECT m.name, p.name FROM sqlite_master m, pragma_table_info(m.name, 'main') p "
        "WHERE m.type = 'table' AND m.rootpage > 0 AND p.name LIKE '%_id' LIMIT 2000",
    )
    return [row for row in rows if database.is_visible(str(row[0]))]


def _kind(kind: str, sql: str) -> str:
    if kind == "table" and (module := parse_virtual_module(sql)):
        return "full-text" if module in FULL_TEXT_MODULES else "vector" if module == "vec0" else "virtual"
    return kind


def _count(database: Database, name: str, kind: str, budget: float) -> tuple[int | None, bool, float]:
    started = time.monotonic()
    if kind == "table" and budget > 0:
        try:
            with database.interrupt.shorten(min(_COUNT_SECONDS, budget)):
                count = database.run_internal(f"SELECT count(*) FROM {identifier(name)}")[0][0]
            return count, True, time.monotonic() - started
        except sqlite3.Error as error:
            database.interrupt.check()
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise
    estimate = estimate_row_count(database, name) if kind == "table" else None
    return estimate, False, time.monotonic() - started
