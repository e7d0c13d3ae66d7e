"""Finds words in the schema's names and definitions, and in full-text tables."""

from __future__ import annotations

import sqlite3
from typing import Any

from mcp_batteries.sql.identifiers import identifier
from mcp_sqlite.worker.connection.authorizer import Mode
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.language.failure import Failure
from mcp_sqlite.worker.language.values import RowEncoder
from mcp_sqlite.worker.schema.lookup import (
    FULL_TEXT_MODULES,
    find_shadow_tables,
    find_table,
    list_columns,
    parse_virtual_module,
)

__all__ = ["search_schema", "search_text"]

_BYTES = 10_000


def search_schema(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """Where `text` occurs, case aside, in names of tables, columns, indexes and triggers, and in the DDL."""
    database = connections.reader(request["path"])
    text = request["text"].casefold()
    hits: list[str] = []
    objects = database.run_internal(
        "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master ORDER BY tbl_name, type DESC"
    )
    hidden = find_shadow_tables(database)
    for kind, name, table, sql in objects:
        if str(table).lower() in hidden or not database.is_visible(str(table)):
            continue
        if len(hits) > request["limit"] or sum(map(len, hits)) > _BYTES:
            break
        said = False
        if text in name.casefold():
            hits.append(f"{kind} {name}" + (f" on {table}" if table != name else ""))
            said = True
        if kind in ("table", "view"):
            for column in list_columns(database, name):
                if text in str(column[1]).casefold():
                    hits.append(f"column {name}.{column[1]} {column[2]}".rstrip())
                    said = True
        if not said:
            for number, line in enumerate(sql.split("\n"), 1):
                if text in line.casefold():
                    hits.append(f"line {number} of {kind} {name}: {line.strip()[:200]}")
    shown, room = hits[: request["limit"]], _BYTES
    while shown and sum(len(hit.encode()) for hit in shown) > room:
        shown = shown[: len(shown) * 3 // 4]
    return {"hits": shown, "more": len(hits) > len(shown)}


def search_text(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """Rows of a full-text table that match, the best first, as a snippet and the columns.

    Words that are not in the syntax of FTS are looked for as they are.
    """
    database = connections.reader(request["path"])
    virtual = "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL%'"
    tables = [
        (str(name), str(sql))
        for name, sql in database.run_internal(virtual)
        if parse_virtual_module(str(sql)) in FULL_TEXT_MODULES
    ]
    tables = [item for item in tables if database.is_visible(item[0])]
    if request.get("table") is not None:
        wanted = find_table(database, request["table"])
        tables = [item for item in tables if item[0] == wanted]
    if len(tables) != 1:
        words = ", ".join(f"`{name}`" for name, _ in tables)
        if tables:
            raise Failure("invalid", "There are several full-text tables.", f"Name one as `table`: {words}.")
        there = f"There is no full-text table{' of that name' if request.get('table') is not None else ''}."
        raise Failure("not_found", there, "Use `query_rows` with LIKE.")
    name, sql = tables[0]
    table = identifier(name)
    newer = parse_virtual_module(sql) == "fts5"
    order, snippet = (
        ("ORDER BY rank", f"snippet({table}, -1, '[', ']', '…', 16)")
        if newer
        else ("", f"snippet({table}, '[', ']', '…')")
    )
    statement = f"SELECT rowid, {snippet} AS snippet, * FROM {table} WHERE {table} MATCH ? {order} LIMIT ?"
    plain = " ".join('"' + word.replace('"', '""') + '"' for word in request["text"].split())
    for attempt in (request["text"], plain):
        try:
            return {"table": name, **_matches(database, statement, attempt, request)}
        except sqlite3.OperationalError as error:
            database.interrupt.check()
            if attempt == plain:
                raise Failure("invalid", f"SQLite says: `{str(error)[:300]}`.", "Search for plain words.") from None
    raise AssertionError


def _matches(database: Database, statement: str, text: str, request: dict[str, Any]) -> dict[str, Any]:
    lines = RowEncoder(request["max_cell"])
    shown: list[str] = []
    size = 0
    database.authorizer.begin(Mode.READ)
    with database.interrupt.reach(database.connection):
        cursor = database.connection.execute(statement, [text, request["limit"] + 1])
        for row in cursor:
            line = lines.encode_within(row, request["max_bytes"])
            size += len(line.encode())
            if shown and (size > request["max_bytes"] or len(shown) == request["limit"]):
                cursor.close()
                return _hits(cursor, shown, lines, more=True)
            shown.append(line)
    return _hits(cursor, shown, lines, more=False)


def _hits(cursor: sqlite3.Cursor, shown: list[str], lines: RowEncoder, *, more: bool) -> dict[str, Any]:
    columns = [column[0] for column in cursor.description]
    return {"columns": columns, "lines": "".join(shown), "rows": len(shown), "more": more, "cut": lines.cut_cells}
