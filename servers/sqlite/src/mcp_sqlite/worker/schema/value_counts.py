"""Finds columns with few different values, and the values, to know what a WHERE can ask for."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mcp_batteries.sql.identifiers import identifier
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.language.values import encode_value

__all__ = ["ValueLimits", "count_values"]


@dataclass(frozen=True)
class ValueLimits:
    """What a column's values have to be to be told.

    Attributes:
        rows: that are looked at, the first of the table.
        values: different ones, at most.
        longest: characters of a value.
    """

    rows: int = 5000
    values: int = 8
    longest: int = 24


def count_values(
    database: Database, table: str, columns: Sequence[tuple[Any, ...]], seconds: float, measure: ValueLimits
) -> dict[str, list[tuple[str, int]]]:
    """Values and how often they occur, by column, the most frequent first; of columns with few of them.

    Args:
        table: its name, quoted.
        columns: the rows of PRAGMA table_xinfo.
    """
    found: dict[str, list[tuple[str, int]]] = {}
    until = time.monotonic() + seconds
    for _, name, _, _, _, key, hidden in columns:
        left = until - time.monotonic()
        if key or hidden == 1 or left <= 0:
            continue
        column = identifier(str(name))
        sql = (
            f"SELECT {column}, count(*) FROM (SELECT {column} FROM {table} LIMIT {measure.rows}) GROUP BY 1 "
            f"ORDER BY 2 DESC, 1 LIMIT {measure.values + 1}"
        )
        try:
            with database.interrupt.shorten(left):
                rows = database.run_internal(sql)
        except sqlite3.Error:
            database.interrupt.check()
            break
        shown = [encode_value(value) for value, _ in rows]
        # Each its own value tells nothing; neither do a few rows.
        repeats = sum(count for _, count in rows) >= 2 * len(rows)
        if 0 < len(rows) <= measure.values and repeats and all(len(text) <= measure.longest for text in shown):
            found[str(name)] = [(text, count) for text, (_, count) in zip(shown, rows, strict=True)]
    return found
