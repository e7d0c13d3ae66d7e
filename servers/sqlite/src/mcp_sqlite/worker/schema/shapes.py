"""What the list of tables and the description of one have in common: columns, keys and counts."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from mcp_batteries.sql.language.identifiers import quote_identifier
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.language.failure import explain_unreadable, is_locked, primary_code
from mcp_sqlite.worker.schema.lookup import (
    FULL_TEXT_MODULES,
    Column,
    estimate_row_count,
    parse_virtual_module,
    query_unless_broken,
)

__all__ = [
    "ForeignKeyColumn",
    "RowCount",
    "count_rows",
    "explain_obstacle",
    "find_plain_columns",
    "list_foreign_keys",
    "name_kind",
    "read_primary_keys",
]

_COUNT_SECONDS = 0.03


class ForeignKeyColumn(NamedTuple):
    """A row of PRAGMA foreign_key_list (https://sqlite.org/pragma.html#pragma_foreign_key_list).

    Attributes:
        number: the key that the column belongs to.
        parent: the table that the key refers to.
        parent_column: the column there; None for the primary key.
    """

    number: int
    position: int
    parent: str
    column: str
    parent_column: str | None
    on_update: str
    on_delete: str
    match: str


class RowCount(NamedTuple):
    """How many rows a table has.

    Attributes:
        number: None where it is not known.
        is_exact: whether the rows were counted, and are no estimate.
        seconds: how long that took.
        obstacle: why they could not be counted, in words that end a sentence; empty where there are too many.
    """

    number: int | None
    is_exact: bool
    seconds: float
    obstacle: str = ""

    def is_at_most(self, number: int) -> bool:
        """Return whether a table is known to have so few rows."""
        return self.is_exact and self.number is not None and self.number <= number


def count_rows(database: Database, name: str, kind: str, budget: float) -> RowCount:
    """Return how many rows a table has, counted if that takes a moment within `budget` seconds, or the estimate."""
    started = time.monotonic()
    if kind != "table":
        return RowCount(None, False, 0)
    obstacle = ""
    if budget < _COUNT_SECONDS:
        obstacle = "there are many tables"
    if budget > 0:
        try:
            with database.interrupt.shorten(min(_COUNT_SECONDS, budget)):
                count = _count_in_any_order(database, name)
            return RowCount(count, True, time.monotonic() - started)
        except sqlite3.Error as error:
            database.interrupt.check()
            if is_locked(error):
                raise
            if primary_code(error) == sqlite3.SQLITE_ERROR:
                obstacle = explain_obstacle(database, error)
    estimate = estimate_row_count(database, name)
    return RowCount(estimate, False, time.monotonic() - started, obstacle)


def explain_obstacle(database: Database, error: sqlite3.Error) -> str:
    """Return why something can't be read, without the names of what is not served."""
    reason = explain_unreadable(error)
    if database.visible_schema is not None and not reason.startswith("needs "):
        return "it is broken, or shows what is not served"
    return reason


def _count_in_any_order(database: Database, name: str) -> int:
    """Return the number of rows, without the indexes if these need a collation that is missing."""
    sql = f"SELECT count(*) FROM {quote_identifier(name)}"
    try:
        return database.read_internal(sql)
    except sqlite3.OperationalError as error:
        if primary_code(error) != sqlite3.SQLITE_ERROR:
            raise
        try:
            return database.read_internal(f"{sql} NOT INDEXED")
        except sqlite3.OperationalError:
            raise error from None


def name_kind(kind: str, sql: str) -> str:
    """Return the kind of a table or view as it is shown: of a virtual table what it is for."""
    module = parse_virtual_module(sql) if kind == "table" else ""
    if not module:
        return kind
    if module in FULL_TEXT_MODULES:
        return "full-text"
    return "vector" if module == "vec0" else "virtual"


def list_foreign_keys(database: Database, table: str) -> list[ForeignKeyColumn]:
    """Return the columns of a table's foreign keys to tables that are served."""
    rows = query_unless_broken(database, f"PRAGMA main.foreign_key_list({quote_identifier(table)})")
    keys = [ForeignKeyColumn(*row) for row in rows]
    return [key for key in keys if database.is_visible(str(key.parent))]


def find_plain_columns(
    database: Database, table: str, columns: Sequence[Column], keys: Collection[str]
) -> list[Column]:
    """Return the columns whose values may be shown, and that are not foreign keys."""
    return [column for column in columns if column.name not in keys and not database.is_masked(table, str(column.name))]


def read_primary_keys(database: Database) -> dict[str, str]:
    """Return the column that is a table's primary key, of tables where one column is."""
    rows: list[tuple[Any, ...]] = query_unless_broken(
        database,
        "SELECT m.name, p.name FROM sqlite_master m, pragma_table_info(m.name, 'main') p "
        "WHERE m.type = 'table' AND m.rootpage > 0 AND p.pk > 0",
    )
    columns: dict[str, list[str]] = {}
    for table, column in rows:
        if database.is_visible(str(table)):
            columns.setdefault(str(table), []).append(str(column))
    return {table: names[0] for table, names in columns.items() if len(names) == 1}
