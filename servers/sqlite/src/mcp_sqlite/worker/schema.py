"""What is in a database: tables with counts under a budget, one table with all that hangs on it, names that match."""

from __future__ import annotations

import sqlite3
from typing import Any

from mcp_sqlite.worker.cells import Failure, Lines
from mcp_sqlite.worker.connections import Connections, Database

__all__ = ["FTS", "catalog", "describe", "find", "name_of", "quoted", "shadows"]

_COUNT_SECONDS = 0.03
_TABLES = """
SELECT name, type, coalesce(sql, '') FROM sqlite_master
WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY name
"""
FTS = "CREATE VIRTUAL TABLE%USING%FTS%"


def quoted(name: str) -> str:
    """`name` as an identifier in SQL."""
    return '"' + name.replace('"', '""') + '"'


def name_of(database: Database, table: str) -> str:
    """`table` as the schema spells it.

    Raises:
        Failure: There is no such table or view.
    """
    rows = database.own(
        "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name = ? COLLATE NOCASE", [table]
    )
    if not rows and table.lower() in ("sqlite_master", "sqlite_schema", "sqlite_sequence", "sqlite_stat1"):
        return table.lower()
    if not rows:
        import difflib

        names = [str(name) for name, *_ in database.own(_TABLES)]
        near = difflib.get_close_matches(table, names, n=3, cutoff=0.5)
        words = " or ".join(f"`{item}`" for item in near)
        shown = table if len(table) <= 100 else table[:99] + "…"
        fix = f"Did you mean {words}?" if near else "`list_tables` lists them."
        raise Failure("not_found", f"There is no table or view `{shown}`.", fix)
    return str(rows[0][0])


def catalog(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """Tables and views behind `after` in the order of their names, at most `limit`, with columns and counts.

    Counting has `budget` seconds; what is not counted has the estimate of ANALYZE or none.
    """
    database = connections.reader(request["path"])
    entries = [(str(name), kind, sql) for name, kind, sql in database.own(_TABLES)]
    hidden = shadows(database)
    entries = [entry for entry in entries if entry[0].lower() not in hidden]
    start = request.get("after")
    page = [entry for entry in entries if start is None or entry[0] > start]
    budget: float = request["budget"]
    found: list[dict[str, Any]] = []
    for name, kind, sql in page[: request["limit"]]:
        rows, exact, spent = _count(database, name, kind, budget)
        budget -= spent
        columns = [row[1] for row in _safe(database, f"PRAGMA table_info({quoted(name)})")]
        found.append({"name": name, "kind": _kind(kind, sql), "rows": rows, "exact": exact, "columns": columns})
    pages, size = database.own("PRAGMA page_count")[0][0], database.own("PRAGMA page_size")[0][0]
    return {
        "tables": found,
        "total": len(entries),
        "more": len(page) > len(found),
        "bytes": pages * size,
        "journal": database.own("PRAGMA journal_mode")[0][0],
        "immutable": database.immutable,
    }


def _kind(kind: str, sql: str) -> str:
    head = sql[:300].upper()
    if kind == "table" and head.startswith("CREATE VIRTUAL"):
        return "full-text" if "USING FTS" in " ".join(head.split()) else "virtual"
    return kind


_SHADOWS = (
    "_config", "_content", "_data", "_docsize", "_idx", "_node", "_parent", "_rowid", "_segdir", "_segments", "_stat",
)  # fmt: skip
"""What FTS3 to FTS5 and R-Tree append to their names."""


def shadows(database: Database) -> dict[str, str]:
    """Tables that hold what a virtual one shows, in lower case, and that one's name: nobody asks for them."""
    rows = database.own("SELECT name, sql LIKE 'CREATE VIRTUAL%' FROM sqlite_master WHERE type = 'table'")
    owners = [str(name) for name, is_virtual in rows if is_virtual]
    names = {str(name).lower() for name, _ in rows}
    return {
        (owner + ending).lower(): owner for owner in owners for ending in _SHADOWS if (owner + ending).lower() in names
    }


def _count(database: Database, name: str, kind: str, budget: float) -> tuple[int | None, bool, float]:
    import time

    started = time.monotonic()
    if kind == "table" and budget > 0:
        try:
            with database.interrupt.within(min(_COUNT_SECONDS, budget)):
                count = database.own(f"SELECT count(*) FROM {quoted(name)}")[0][0]
            return count, True, time.monotonic() - started
        except sqlite3.Error:
            database.interrupt.check()
    estimate: int | None = None
    if kind == "table" and _safe(database, "SELECT 1 FROM sqlite_master WHERE name = 'sqlite_stat1'"):
        stat = _safe(database, "SELECT stat FROM sqlite_stat1 WHERE tbl = ? LIMIT 1", [name])
        estimate = int(str(stat[0][0]).split()[0]) if stat and str(stat[0][0])[:1].isdigit() else None
    return estimate, False, time.monotonic() - started


def _safe(database: Database, sql: str, parameters: Any = ()) -> list[tuple[Any, ...]]:
    """Rows, or none where the object is broken: a view over a table that is gone, a module this build has not."""
    try:
        return database.own(sql, parameters)
    except sqlite3.Error:
        database.interrupt.check()
        return []


def describe(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """One table: columns, keys both ways, indexes, triggers, its DDL with comments, its count, sample rows."""
    database = connections.reader(request["path"])
    name = name_of(database, request["table"])
    table = quoted(name)
    kind, sql = (database.own("SELECT type, sql FROM sqlite_master WHERE name = ?", [name]) or [("table", "")])[0]
    rows, exact, _ = _count(database, name, kind, 1.0)
    indexes: list[dict[str, Any]] = []
    for _, index, unique, origin, partial in _safe(database, f"PRAGMA index_list({table})"):
        columns = [row[2] or "(expression)" for row in _safe(database, f"PRAGMA index_info({quoted(index)})")]
        indexes.append(
            {"name": index, "columns": columns, "unique": bool(unique), "origin": origin, "partial": bool(partial)}
        )
    incoming = _safe(
        database,
        'SELECT m.name, f."from", f."to", f.on_delete FROM sqlite_master m, pragma_foreign_key_list(m.name) f '
        "WHERE m.type = 'table' AND f.\"table\" = ? COLLATE NOCASE ORDER BY 1, 2",
        [name],
    )
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
            }
            for row in _safe(database, f"PRAGMA table_xinfo({table})")
        ],
        "refers_to": [
            {"column": row[3], "table": row[2], "to": row[4], "on_delete": row[6]}
            for row in _safe(database, f"PRAGMA foreign_key_list({table})")
        ],
        "referred_by": [{"table": row[0], "column": row[1], "to": row[2], "on_delete": row[3]} for row in incoming],
        "indexes": indexes,
        "triggers": _safe(
            database,
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ? ORDER BY name",
            [name],
        ),
        "sql": sql or "",
        "immutable": database.immutable,
    }
    if request["sample"]:
        lines = Lines(request["max_cell"])
        taken = _safe(database, f"SELECT * FROM {table} LIMIT ?", [request["sample"]])
        found["sample"] = "".join(lines.line(row) for row in taken)
    return found


def schema(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """The DDL of the database, or of one table with its indexes and triggers."""
    database = connections.reader(request["path"])
    where, values = "", []
    if request.get("table") is not None:
        where, values = "AND tbl_name = ?", [name_of(database, request["table"])]
    rows = database.own(
        f"SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite!_%' ESCAPE '!' {where} "
        "ORDER BY tbl_name, CASE type WHEN 'table' THEN 0 WHEN 'view' THEN 1 ELSE 2 END, name",
        values,
    )
    return {"sql": "".join(f"{sql};\n" for (sql,) in rows)}


def names(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """Names of tables and views, or of one table's columns, that begin with `typed`; for completions."""
    database = connections.reader(request["path"])
    if request.get("table") is None:
        hidden = shadows(database)
        found = [str(row[0]) for row in database.own(_TABLES) if str(row[0]).lower() not in hidden]
    else:
        found = [str(row[1]) for row in _safe(database, f"PRAGMA table_info({quoted(request['table'])})")]
    typed = request["typed"].casefold()
    return {"names": [name for name in found if name.casefold().startswith(typed)][:1000]}


def find(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """Where `text` occurs, case aside, in names of tables, columns, indexes and triggers, and in the DDL."""
    database = connections.reader(request["path"])
    text = request["text"].casefold()
    hits: list[str] = []
    objects = database.own(
        "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master ORDER BY tbl_name, type DESC"
    )
    hidden = shadows(database)
    for kind, name, table, sql in objects:
        if str(table).lower() in hidden:
            continue
        if len(hits) > request["limit"]:
            break
        said = False
        if text in name.casefold():
            hits.append(f"{kind} {name}" + (f" on {table}" if table != name else ""))
            said = True
        if kind in ("table", "view"):
            for column in _safe(database, f"PRAGMA table_info({quoted(name)})"):
                if text in str(column[1]).casefold():
                    hits.append(f"column {name}.{column[1]} {column[2]}".rstrip())
                    said = True
        if not said:
            for number, line in enumerate(sql.splitlines(), 1):
                if text in line.casefold():
                    hits.append(f"line {number} of {kind} {name}: {line.strip()[:200]}")
    return {"hits": hits[: request["limit"]], "more": len(hits) > request["limit"]}


def search(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """Rows of a full-text table that match, the best first, as a snippet and the columns.

    Words that are not in the syntax of FTS are looked for as they are.
    """
    database = connections.reader(request["path"])
    tables = database.own("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND upper(sql) LIKE ?", [FTS])
    if request.get("table") is not None:
        wanted = name_of(database, request["table"])
        tables = [item for item in tables if item[0] == wanted]
    if len(tables) != 1:
        words = ", ".join(f"`{name}`" for name, _ in tables)
        if tables:
            raise Failure("invalid", "There are several full-text tables.", f"Name one as `table`: {words}.")
        raise Failure("not_found", "There is no such full-text table.", "Use `query_rows` with LIKE.")
    name, sql = tables[0]
    table = quoted(name)
    newer = "FTS5" in sql.upper()
    order, snippet = (
        ("ORDER BY rank", f"snippet({table}, -1, '[', ']', '…', 16)")
        if newer
        else ("", f"snippet({table}, '[', ']', '…')")
    )
    statement = f"SELECT rowid, {snippet} AS snippet, * FROM {table} WHERE {table} MATCH ? {order} LIMIT ?"
    plain = " ".join('"' + word.replace('"', '""') + '"' for word in request["text"].split())
    lines = Lines(request["max_cell"])
    for attempt in (request["text"], plain):
        try:
            with database.interrupt.over(database.connection):
                cursor = database.connection.execute(statement, [attempt, request["limit"] + 1])
                rows = cursor.fetchall()
        except sqlite3.OperationalError as error:
            database.interrupt.check()
            if attempt == plain:
                raise Failure("invalid", f"SQLite says: `{error}`.", "Search for plain words.") from None
            continue
        shown = rows[: request["limit"]]
        return {
            "table": name,
            "columns": [column[0] for column in cursor.description],
            "lines": "".join(lines.line(row) for row in shown),
            "rows": len(shown),
            "more": len(rows) > len(shown),
            "cut": lines.cut,
        }
    raise AssertionError
