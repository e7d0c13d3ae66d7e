"""Rows before and after a change, which a dry run shows."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from mcp_batteries.sql.language.identifiers import quote_identifier
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.language.failure import Failure
from mcp_sqlite.worker.language.values import RowEncoder
from mcp_sqlite.worker.schema import lookup

__all__ = ["sample_changes"]

_MAX_TABLES = 8
_MAX_ROWS = 3
_MAX_CELL = 80
# What looking for changed rows may take, of one table and from one end.
_COMPARE_SECONDS = 0.2

_Values = tuple[Any, ...]


class _Row(NamedTuple):
    """A row of either table, in the columns that both tables have together, and its key."""

    values: _Values
    key: _Values


class _Difference(NamedTuple):
    """Rows of the table before and of the table after that are not in the other one."""

    removed: list[_Values]
    added: list[_Values]


@dataclass(frozen=True)
class _Comparison:
    """What is compared of a table.

    Attributes:
        columns: those of both tables together; NULL stands for what one has not.
        columns_before: the columns it had.
        columns_after: the columns it has.
        key_columns: the columns of its key, quoted.
    """

    table: str
    columns: list[str]
    columns_before: list[str]
    columns_after: list[str]
    key_columns: list[str]


def sample_changes(connections: Connections, database: Database, tables: Collection[str]) -> list[dict[str, Any]]:
    """Return a few rows of some tables that were changed, as they were and as they are in the transaction under way.

    A second connection sees what was. Where the transaction is so large that it has to lock that one out, there is
    nothing to show.
    """
    samples: list[dict[str, Any]] = []
    reader = None
    try:
        reader = connections.reader(database.path)
        reader.run_internal("BEGIN")
        for table in sorted(tables)[:_MAX_TABLES]:
            sample = _sample_table(reader, database, table)
            if sample is not None:
                samples.append(sample)
    except (Failure, sqlite3.Error):
        database.interrupt.check()
    finally:
        if reader is not None and reader.connection.in_transaction:
            reader.run_internal("ROLLBACK")
    return samples


def _sample_table(before: Database, after: Database, table: str) -> dict[str, Any] | None:
    comparison = _prepare_comparison(before, after, table)
    if comparison is None:
        return None
    for order in ("DESC", "ASC"):  # what was added lies at the end most of the time
        difference = _find_difference(
            _read_rows(before, comparison, comparison.columns_before, order),
            _read_rows(after, comparison, comparison.columns_after, order),
            is_descending=order == "DESC",
        )
        if difference.removed or difference.added:
            return {
                "table": table,
                "columns": comparison.columns_after or comparison.columns_before,
                "columns_before": comparison.columns_before,
                "key_columns": [
                    name for name in comparison.columns if quote_identifier(name) in comparison.key_columns
                ],
                "before": _encode_rows(comparison, difference.removed, comparison.columns_before),
                "after": _encode_rows(comparison, difference.added, comparison.columns_after),
            }
    return None


def _prepare_comparison(before: Database, after: Database, table: str) -> _Comparison | None:
    """Return what is compared of a table; None where its rows have no key by which they could be."""
    columns_before = lookup.list_column_names(before, table)
    columns_after = lookup.list_column_names(after, table)
    columns = [*columns_after, *(name for name in columns_before if name not in columns_after)]
    if not columns:
        return None
    key_columns = lookup.list_key_columns(after if columns_after else before, table)
    if not key_columns:
        return None
    if columns_before and columns_after and lookup.list_key_columns(before, table) != key_columns:
        return None
    return _Comparison(table, columns, columns_before, columns_after, key_columns)


def _encode_rows(comparison: _Comparison, rows: Sequence[_Values], columns: Sequence[str]) -> str:
    encoder = RowEncoder(_MAX_CELL)
    lines: list[str] = []
    for row in rows:
        values = dict(zip(comparison.columns, row, strict=True))
        lines.append(encoder.encode([values[name] for name in columns]))
    return "".join(lines)


def _read_rows(database: Database, comparison: _Comparison, columns: Sequence[str], order: str) -> Iterator[_Row]:
    """Return the rows of a table that has `columns`, in the order of its key."""
    if not columns:
        return
    values = [quote_identifier(name) if name in columns else "NULL" for name in comparison.columns]
    expressions = ", ".join([*values, *comparison.key_columns])
    ordered = ", ".join(f"{column} {order}" for column in comparison.key_columns)
    database.run_internal("SELECT 1")  # what follows is this program's own statement
    sql = f"SELECT {expressions} FROM {quote_identifier(comparison.table)} ORDER BY {ordered}"
    for row in database.connection.execute(sql):
        yield _Row(row[: len(values)], row[len(values) :])


def _find_difference(before: Iterator[_Row], after: Iterator[_Row], *, is_descending: bool) -> _Difference:
    """Return the first rows of two tables in the order of their keys that are not the same.

    They are looked for as far as the time allows.
    """
    removed: list[_Values] = []
    added: list[_Values] = []
    deadline = time.monotonic() + _COMPARE_SECONDS
    old = next(before, None)
    new = next(after, None)
    while old is not None or new is not None:
        if len(removed) + len(added) >= 2 * _MAX_ROWS or time.monotonic() >= deadline:
            break
        order = _compare_keys(old, new, is_descending=is_descending)
        is_same = order == 0 and old == new
        if old is not None and order <= 0:
            if not is_same:
                removed.append(old.values)
            old = next(before, None)
        if new is not None and order >= 0:
            if not is_same:
                added.append(new.values)
            new = next(after, None)
    # Keys in another order than Python's (COLLATE) make rows look gone that come a little later.
    return _Difference(_select_other_rows(removed, added), _select_other_rows(added, removed))


def _select_other_rows(rows: Sequence[_Values], others: Sequence[_Values]) -> list[_Values]:
    """Return the first of `rows` that are not among `others`."""
    return [values for values in rows if values not in others][:_MAX_ROWS]


def _compare_keys(one: _Row | None, other: _Row | None, *, is_descending: bool) -> int:
    """Return which row comes first: -1 for `one`, 1 for `other`, 0 where they have one key; a missing one is last."""
    if one is None or other is None:
        return int(one is None) - int(other is None)
    key = [_sort_key(value) for value in one.key]
    other_key = [_sort_key(value) for value in other.key]
    if key == other_key:
        return 0
    comes_first = key > other_key if is_descending else key < other_key
    return -1 if comes_first else 1


def _sort_key(value: Any) -> tuple[int, Any]:
    """Return what sorts values as SQLite does (https://sqlite.org/datatype3.html#sort_order)."""
    match value:
        case None:
            return (0, value)
        case int() | float():
            return (1, value)
        case str():
            return (2, value)
        case _:
            return (3, value)
