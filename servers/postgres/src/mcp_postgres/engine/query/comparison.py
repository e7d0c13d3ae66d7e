"""Compares two tables or views: which columns, and how PostgreSQL tells two values apart."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar

from mcp_batteries.errors import Invalid, quote
from mcp_batteries.sql.compared import MAX_CELL, ROWS, Comparison, Side, Words, compared
from mcp_batteries.sql.rows import Results, RowPage
from mcp_postgres.engine.admission.statements import admit
from mcp_postgres.engine.connection.session import Session
from mcp_postgres.policy import Database, ReadStatement, Table, of_ours, several_of_ours

__all__ = ["compare"]

_BYTES = 500_000
_SECURED = "SELECT row_security_active($1::regclass)"
_NUMBERS = re.compile(r"smallint|integer|bigint|numeric(?:\(.*\))?|real|double precision")

T = TypeVar("T")


class TableReader(Protocol):
    """What a comparison needs of the engine."""

    async def rows(
        self, wanted: ReadStatement, *, limit: int, max_bytes: int, max_cell: int = ...
    ) -> RowPage | Results:
        """Return the rows of a query, or of each of several queries."""
        ...

    async def within(self, database: Database, work: Callable[[Session], Awaitable[T]]) -> T:
        """Do `work` in a read-only transaction."""
        ...

    async def described(self, table: Table) -> dict[str, Any]:
        """Return what the catalog says of a table."""
        ...


async def compare(tables: TableReader, one: Table, other: Table) -> Comparison:
    """In which rows two tables differ.

    Raises:
        Problem: one is not there or has no rows, they have no column in common, or a query fails.
    """

    async def run(statements: Sequence[str]) -> RowPage | Results:
        asked = several_of_ours(one.database, statements)
        return await tables.rows(asked, limit=ROWS, max_bytes=_BYTES, max_cell=MAX_CELL)

    sides = (await _side(tables, one), await _side(tables, other))
    found = await compared(*sides, _WORDS, run)

    async def secured(session: Session) -> list[str]:
        names = dict.fromkeys(side.spelled for side in sides)
        return [name for name in names if await session.value(_SECURED, name) == "t"]

    hidden = await tables.within(one.database, secured)
    found.notes += [f"of {name} only the rows that its policies show to the role" for name in hidden]
    return found


async def _side(tables: TableReader, table: Table) -> Side:
    found = await tables.described(table)
    if found["kind"] == "sequence":
        raise Invalid(f"{quote(table.name)} is a sequence, it has no rows.", "Name a table or view.")
    columns = {column["name"]: column["type"] for column in found["columns"]}

    async def masked_of(session: Session) -> list[str]:
        # Of a view the catalogue does not say it: its columns are masked by what it selects from.
        if not session.world.part.part:
            return []
        shown = await admit(session, of_ours(table.database, f"SELECT * FROM {found['spelled']}"))
        return [column.name for column in shown if column.masked]

    masked = await tables.within(table.database, masked_of)
    return Side(found["spelled"], found["spelled"], columns, found["key"] or (), masked)


def _comparable(column: str, kind: str, other: str) -> str:
    """Numbers are compared as numbers; of other types not all have an `=`, or one that tells all values apart, and
    texts of two collations none that both would use."""
    if _NUMBERS.fullmatch(kind) and _NUMBERS.fullmatch(other):
        return column
    return f'{column}::pg_catalog.text COLLATE pg_catalog."C"'


_WORDS = Words(_comparable, "IS DISTINCT FROM")
