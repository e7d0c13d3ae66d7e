"""Rows of a table as its resources show them: a limited page, those with one value, the one with a key."""

from __future__ import annotations

import re
from typing import Any

from mcp_batteries.sql.identifiers import identifier
from mcp_batteries.sql.keys import FORM, values_of
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.language.failure import Failure
from mcp_sqlite.worker.query.statements import run_query
from mcp_sqlite.worker.schema.lookup import find_table

__all__ = ["list_key_columns", "read_row", "read_rows"]

_BYTES = 100_000
_CELL = 10_000
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_REAL = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|Infinity)")


def read_rows(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """The first `limit` rows in the order of the key, or the last, of those whose `column` is `value` if asked."""
    database = connections.reader(request["path"])
    table, keys = _looked_up(database, request["table"])
    turned = " DESC" if request.get("newest") else ""
    if turned and not keys:
        raise Failure("not_found", f"Rows of `{table}` have no key, so none is known as the newest.", "")
    order = f" ORDER BY {', '.join(key + turned for key in keys)}" if keys else ""
    where, values = "", []
    if "column" in request:
        known = {
            str(item[1]).lower(): str(item[1])
            for item in database.run_internal(f"PRAGMA main.table_xinfo({identifier(table)})")
        }
        column = known.get(request["column"].lower())
        if column is None:
            raise Failure(
                "not_found", f"`{table}` has no column `{request['column'][:100]}`.", "`get_table` lists them."
            )
        where, values = f" WHERE {_is(identifier(column))}", _spelled(request["value"])
    sql = f"SELECT * FROM {identifier(table)}{where}{order}"
    return _page(connections, request, sql, values, request["limit"])


def read_row(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """The row whose primary key, or rowid where there is none, is `key`."""
    database = connections.reader(request["path"])
    table, keys = _looked_up(database, request["table"])
    parts = values_of(request["key"], len(keys))
    if not keys:
        raise Failure("not_found", f"Rows of `{table}` have no key.", "Ask with `?column=...&value=...`.")
    if len(keys) != len(parts):
        raise Failure("not_found", f"A row of `{table}` has a key of {len(keys)} values.", FORM)
    where = " AND ".join(f"({_is(key)})" for key in keys)
    sql = f"SELECT * FROM {identifier(table)} WHERE {where}"
    found = _page(connections, request, sql, [value for part in parts for value in _spelled(part)], 1)
    if not found["shown"]:
        raise Failure("not_found", f"`{table}` has no row with this key.", "")
    return found


def _is(column: str) -> str:
    # A column without a type keeps a number as a number, which no text equals.
    return f"{column} = ? OR (typeof({column}) IN ('integer', 'real') AND {column} = ?)"


def _spelled(text: str) -> list[Any]:
    """`text`, and the number that it spells, or NULL."""
    if _INTEGER.fullmatch(text) and -(2**63) <= (value := int(text)) < 2**63:
        return [text, value]
    return [text, float(text) if _REAL.fullmatch(text) else None]


def _looked_up(database: Database, word: str) -> tuple[str, list[str]]:
    if word not in database.key_columns:
        table = find_table(database, word)
        database.key_columns[word] = table, list_key_columns(database, table)
    return database.key_columns[word]


def list_key_columns(database: Database, table: str) -> list[str]:
    """The primary key's columns, quoted; `rowid` where there is none; nothing for a view."""
    columns = database.run_internal(f"PRAGMA main.table_info({identifier(table)})")
    keys = [identifier(str(name)) for _, name in sorted((item[5], item[1]) for item in columns if item[5])]
    kind = database.run_internal("SELECT type FROM sqlite_master WHERE name = ?", [table])
    taken = {str(item[1]).lower() for item in columns}
    free = [name for name in ("rowid", "_rowid_", "oid") if name not in taken]
    if database.visible_schema is not None and database.visible_schema.is_masked(table):
        free = []  # what is read in its place is a view
    return keys or (free[:1] if kind and kind[0][0] == "table" else [])


def _page(connections: Connections, request: dict[str, Any], sql: str, values: list[Any], limit: int) -> dict[str, Any]:
    wanted = {"path": request["path"], "sql": sql, "parameters": values, "limit": limit}
    return run_query(connections, {**wanted, "max_bytes": _BYTES, "max_cell": _CELL}, lambda _: None)
