"""Rows of a table as its resources show them: a limited page, those with one value, the one with a key."""

from __future__ import annotations

import re
from typing import Any

from mcp_batteries.sql.language.identifiers import quote_identifier
from mcp_batteries.sql.language.row_keys import KEY_FORMAT, parse_row_key
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.connection.database import Database, TableKey
from mcp_sqlite.worker.language.failure import Failure
from mcp_sqlite.worker.query.statements import run_query
from mcp_sqlite.worker.schema.lookup import find_table, list_key_columns, read_all_columns

__all__ = ["read_row", "read_rows"]

_MAX_BYTES = 100_000
_MAX_CELL = 10_000
_MAX_QUOTED_NAME = 100
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_REAL = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|Infinity)")


def read_rows(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """Return the first `limit` rows in the order of the key, or the last, of those whose `column` is `value`."""
    database = connections.reader(request["path"])
    table, key_columns = _find_key(database, request["table"])
    direction = " DESC" if request.get("newest") else ""
    if direction and not key_columns:
        raise Failure("not_found", f"Rows of `{table}` have no key, so none is known as the newest.", "")
    sql = f"SELECT * FROM {quote_identifier(table)}"
    values: list[Any] = []
    if "column" in request:
        column = _find_column(database, table, request["column"])
        sql += f" WHERE {_build_comparison(quote_identifier(column))}"
        values = _interpret(request["value"])
    if key_columns:
        sql += f" ORDER BY {', '.join(column + direction for column in key_columns)}"
    return _read_page(connections, request, sql, values, request["limit"])


def read_row(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """Return the row whose primary key, or rowid where there is none, is `key`."""
    database = connections.reader(request["path"])
    table, key_columns = _find_key(database, request["table"])
    key_values = parse_row_key(request["key"], len(key_columns))
    if not key_columns:
        raise Failure("not_found", f"Rows of `{table}` have no key.", "Ask with `?column=...&value=...`.")
    if len(key_columns) != len(key_values):
        raise Failure("not_found", f"A row of `{table}` has a key of {len(key_columns)} values.", KEY_FORMAT)
    condition = " AND ".join(f"({_build_comparison(column)})" for column in key_columns)
    values: list[Any] = []
    for text in key_values:
        values += _interpret(text)
    page = _read_page(connections, request, f"SELECT * FROM {quote_identifier(table)} WHERE {condition}", values, 1)
    if not page["shown"]:
        raise Failure("not_found", f"`{table}` has no row with this key.", "")
    return page


def _find_column(database: Database, table: str, name: str) -> str:
    """Return the column `name` as the table spells it."""
    spelling: str | None = None
    for column in read_all_columns(database, table):
        if str(column.name).lower() == name.lower():
            spelling = str(column.name)
    if spelling is None:
        message = f"`{table}` has no column `{name[:_MAX_QUOTED_NAME]}`."
        raise Failure("not_found", message, "`get_table` lists them.")
    return spelling


def _build_comparison(column: str) -> str:
    # A column without a type keeps a number as a number, which no text equals.
    return f"{column} = ? OR (typeof({column}) IN ('integer', 'real') AND {column} = ?)"


def _interpret(text: str) -> list[Any]:
    """Return `text`, and the number that it spells, or NULL."""
    if _INTEGER.fullmatch(text):
        number = int(text)
        if -(2**63) <= number < 2**63:
            return [text, number]
    if _REAL.fullmatch(text):
        return [text, float(text)]
    return [text, None]


def _find_key(database: Database, table: str) -> TableKey:
    if table not in database.table_keys:
        name = find_table(database, table)
        database.table_keys[table] = TableKey(name, list_key_columns(database, name))
    return database.table_keys[table]


def _read_page(
    connections: Connections, request: dict[str, Any], sql: str, values: list[Any], limit: int
) -> dict[str, Any]:
    query = {
        "path": request["path"],
        "sql": sql,
        "parameters": values,
        "limit": limit,
        "max_bytes": _MAX_BYTES,
        "max_cell": _MAX_CELL,
    }
    return run_query(connections, query, lambda _: None)
