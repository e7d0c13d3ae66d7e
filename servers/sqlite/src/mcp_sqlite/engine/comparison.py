"""Compares two tables or views: which columns, and how SQLite tells two values apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mcp_batteries.sql.language.identifiers import quote_identifier
from mcp_batteries.sql.results.comparison import (
    MAX_CELL_CHARACTERS,
    MAX_ROWS,
    Comparison,
    ComparisonDialect,
    TableRef,
    compare_tables,
)
from mcp_batteries.sql.results.rows import Results, RowPage
from mcp_sqlite.engine.result_pages import ResultPages
from mcp_sqlite.engine.schemas import read_description
from mcp_sqlite.engine.workers.pool import WorkerPool
from mcp_sqlite.policy import Table, internal_statement

__all__ = ["compare_rows"]

_MAX_BYTES = 500_000
_DIALECT = ComparisonDialect(lambda column, _, __: f"{column} COLLATE BINARY", "IS NOT")


async def compare_rows(
    pool: WorkerPool, pages: ResultPages, one: Table, other: Table, max_shown: int | None
) -> Comparison:
    """Return in which rows two tables differ."""

    async def run(statements: Sequence[str]) -> RowPage | Results:
        statement = internal_statement(one.database, ";\n".join(statements))
        return await pages.read_first(statement, limit=MAX_ROWS, max_bytes=_MAX_BYTES, max_cell=MAX_CELL_CHARACTERS)

    sides = (await _read_side(pool, one), await _read_side(pool, other))
    return await compare_tables(*sides, _DIALECT, run, max_shown)


async def _read_side(pool: WorkerPool, table: Table) -> TableRef:
    description = await read_description(pool, table)
    columns = {str(column["name"]): "" for column in description["columns"] if column["hidden"] != 1}
    masked = [str(column["name"]) for column in description["columns"] if column["masked"]]
    key = _find_unique_key(description, columns)
    return TableRef(description["name"], quote_identifier(description["name"]), columns, key, masked)


def _find_unique_key(description: Mapping[str, Any], columns: Mapping[str, str]) -> list[str]:
    """Return the columns of the primary key, or of another unique key, of those that are there."""
    key_columns = [column for column in description["columns"] if column["key"]]
    key_columns.sort(key=lambda column: column["key"])
    keys = [[str(column["name"]) for column in key_columns]]
    keys += [index["columns"] for index in description["indexes"] if index["unique"] and not index["partial"]]
    for key in keys:
        if key and all(name in columns for name in key):
            return key
    return []
