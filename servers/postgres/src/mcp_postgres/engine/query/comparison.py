"""Compares two tables or views: which columns, and how PostgreSQL tells two values apart."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mcp_batteries.errors import Invalid, quote
from mcp_batteries.sql.results.comparison import (
    MAX_CELL_CHARACTERS,
    MAX_ROWS,
    Comparison,
    ComparisonDialect,
    TableRef,
    compare_tables,
)
from mcp_batteries.sql.results.rows import Results, RowPage
from mcp_postgres.engine.admission.statements import admit
from mcp_postgres.engine.connection.session import Session
from mcp_postgres.engine.pools import ConnectionPools
from mcp_postgres.engine.query.pages import ResultPages
from mcp_postgres.engine.query.table_descriptions import read_description
from mcp_postgres.policy import Table, internal_statement, internal_statements

__all__ = ["compare_rows"]

_MAX_BYTES = 500_000
_ROW_SECURITY_ACTIVE = "SELECT row_security_active($1::regclass)"
_NUMBERS = re.compile(r"smallint|integer|bigint|numeric(?:\(.*\))?|real|double precision")


async def compare_rows(
    pools: ConnectionPools, pages: ResultPages, one: Table, other: Table, max_shown: int | None
) -> Comparison:
    """Return in which rows two tables differ.

    Raises:
        Problem: one is not there or has no rows, they have no column in common, or a query fails.
    """

    async def run(statements: Sequence[str]) -> RowPage | Results:
        reads = internal_statements(one.database, statements)
        return await pages.read(reads, limit=MAX_ROWS, max_bytes=_MAX_BYTES, max_cell=MAX_CELL_CHARACTERS)

    sides = (await _read_side(pools, one), await _read_side(pools, other))
    comparison = await compare_tables(*sides, _DIALECT, run, max_shown)

    async def secured(session: Session) -> list[str]:
        names = dict.fromkeys(side.sql_name for side in sides)
        return [name for name in names if await session.fetch_value(_ROW_SECURITY_ACTIVE, name) == "t"]

    hidden = await pools.within(one.database, secured)
    comparison.notes += [f"of {name} only the rows that its policies show to the role" for name in hidden]
    return comparison


async def _read_side(pools: ConnectionPools, table: Table) -> TableRef:
    description = await read_description(pools, table)
    if description["kind"] == "sequence":
        raise Invalid(f"{quote(table.name)} is a sequence, it has no rows.", "Name a table or view.")
    columns = {column["name"]: column["type"] for column in description["columns"]}

    async def masked_of(session: Session) -> list[str]:
        # Of a view the catalogue does not say it: its columns are masked by what it selects from.
        if not session.audit.visible.schema:
            return []
        statement = internal_statement(table.database, f"SELECT * FROM {description['spelled']}")
        output_columns = await admit(session, statement)
        return [column.name for column in output_columns if column.masked]

    masked = await pools.within(table.database, masked_of)
    return TableRef(description["spelled"], description["spelled"], columns, description["key"] or (), masked)


def _comparable_expression(column: str, kind: str, other: str) -> str:
    """Return the column as it is compared: numbers as numbers, everything else as text.

    Of other types not all have an `=`, or one that tells all values apart, and texts of two collations have none that
    both would use.
    """
    if _NUMBERS.fullmatch(kind) and _NUMBERS.fullmatch(other):
        return column
    return f'{column}::pg_catalog.text COLLATE pg_catalog."C"'


_DIALECT = ComparisonDialect(_comparable_expression, "IS DISTINCT FROM")
