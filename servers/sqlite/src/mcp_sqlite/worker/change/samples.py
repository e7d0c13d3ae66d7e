"""Rows before and after a change, which a dry run shows."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection, Iterator
from typing import Any

from mcp_batteries.sql.identifiers import identifier
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.language.failure import Failure
from mcp_sqlite.worker.language.values import RowEncoder
from mcp_sqlite.worker.query.rows import list_key_columns
from mcp_sqlite.worker.schema import lookup

__all__ = ["sample_changes"]

_TABLES = 8
_ROWS = 3
_CELL = 80
_SECONDS = 0.2
"""What looking for changed rows may take, of one table and from one end."""


def sample_changes(connections: Connections, database: Database, tables: Collection[str]) -> list[dict[str, Any]]:
    """Of some tables, a few rows that were changed, as they were and as they are in the transaction under way.

    A second connection sees what was. Where the transaction is so large that it has to lock that one out, there is
    nothing to show.
    """
    found: list[dict[str, Any]] = []
    reader = None
    try:
        reader = connections.reader(database.path)
        reader.run_internal("BEGIN")
        for table in sorted(tables)[:_TABLES]:
            sample = _sample(reader, database, table)
            found += [{"table": table, **sample}] if sample else []
    except (Failure, sqlite3.Error):
        database.interrupt.check()
    finally:
        if reader is not None and reader.connection.in_transaction:
            reader.run_internal("ROLLBACK")
    return found


def _sample(before: Database, after: Database, table: str) -> dict[str, Any] | None:
    had, has = ([str(row[1]) for row in lookup.list_columns(side, table)] for side in (before, after))
    columns = [*has, *(name for name in had if name not in has)]
    keys = list_key_columns(after if has else before, table) if columns else []
    if not keys or (had and has and list_key_columns(before, table) != keys):
        return None
    lines = RowEncoder(_CELL)

    def text(rows: list[tuple[Any, ...]], own: list[str]) -> str:
        places = [columns.index(name) for name in own]
        return "".join(lines.encode(tuple(row[place] for place in places)) for row in rows)

    for order in ("DESC", "ASC"):  # what was added lies at the end most of the time
        was = _rows(before, table, columns, had, keys, order)
        now = _rows(after, table, columns, has, keys, order)
        gone, came = _differing(was, now, descending=order == "DESC", columns=len(columns))
        if gone or came:
            return {"columns": has or had, "had": had, "before": text(gone, had), "after": text(came, has)}
    return None


def _rows(
    database: Database, table: str, columns: list[str], own: list[str], keys: list[str], order: str
) -> Iterator[tuple[Any, ...]]:
    """The rows of a table that has the columns `own` of `columns`; NULL stands for the others."""
    if not own:
        return
    listed = ", ".join([*(identifier(name) if name in own else "NULL" for name in columns), *keys])
    ordered = ", ".join(f"{key} {order}" for key in keys)
    database.run_internal("SELECT 1")  # what follows is this program's own statement
    yield from database.connection.execute(f"SELECT {listed} FROM {identifier(table)} ORDER BY {ordered}")


def _differing(
    was: Iterator[tuple[Any, ...]], now: Iterator[tuple[Any, ...]], *, descending: bool, columns: int
) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """The first rows of two tables in the order of their keys that are not the same, as far as the time allows."""
    gone: list[tuple[Any, ...]] = []
    came: list[tuple[Any, ...]] = []
    until = time.monotonic() + _SECONDS
    one, two = next(was, None), next(now, None)
    while (one or two) and len(gone) + len(came) < 2 * _ROWS and time.monotonic() < until:
        order = _compared(one and one[columns:], two and two[columns:])
        order = -order if descending and one and two else order
        if order == 0 and one == two:
            one, two = next(was, None), next(now, None)
            continue
        if order <= 0 and one:
            gone.append(one[:columns])
            one = next(was, None)
        if order >= 0 and two:
            came.append(two[:columns])
            two = next(now, None)
    # Keys in another order than Python's (COLLATE) make rows look gone that come a little later.
    return [row for row in gone if row not in came][:_ROWS], [row for row in came if row not in gone][:_ROWS]


def _rank(value: Any) -> int:
    return 0 if value is None else 1 if isinstance(value, int | float) else 2 if isinstance(value, str) else 3


def _compared(one: tuple[Any, ...] | None, two: tuple[Any, ...] | None) -> int:
    """Which key comes first, in SQLite's order of values: -1, 0 or 1; one that is missing comes last."""
    if one is None or two is None:
        return (one is None) - (two is None)
    pairs = [[(_rank(value), value) for value in key] for key in (one, two)]
    return (pairs[0] > pairs[1]) - (pairs[0] < pairs[1])
