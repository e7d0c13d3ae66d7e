"""Counts the rows of tables exactly, as far as there is time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mcp_batteries.errors import Problem
from mcp_postgres.engine.pools import ConnectionPools
from mcp_postgres.engine.query.pages import ResultPages
from mcp_postgres.models import Catalog, CatalogEntry, RowCount
from mcp_postgres.policy import Database, internal_statement

__all__ = ["count_rows"]

# What part of the time of a statement counting may take.
_TIME_SHARE = 0.5
_MAX_BYTES = 1000


async def count_rows(
    pools: ConnectionPools, pages: ResultPages, databases: Sequence[Database], catalog: Catalog
) -> Catalog:
    """Return a list of tables with how many rows each has, for the role; of the last none where there was no time."""
    deadline = asyncio.get_running_loop().time() + _TIME_SHARE * pools.limits.statement_seconds
    by_name = {database.name: database for database in databases}
    entries: list[CatalogEntry] = []
    for entry in catalog.databases:
        counter = _RowCounter(pages, by_name[entry.name], deadline)
        entries.append(replace(entry, counts=[await counter.count(table) for table in entry.objects]))
    return replace(catalog, databases=entries)


class _RowCounter:
    """Counts the rows of tables of one database until a deadline, in seconds of the event loop's clock."""

    def __init__(self, pages: ResultPages, database: Database, deadline: float) -> None:
        self._pages = pages
        self._database = database
        self._deadline = deadline

    async def count(self, table: Mapping[str, Any]) -> RowCount:
        name = str(table["spelled"])
        if table["locked"]:
            return RowCount(name, None, table["locked"])
        if table["kind"] == "foreign table":
            # All rows may have to come from a server that is slow, or does not answer.
            return RowCount(name, None, "its rows are on another server, `query_rows` can count them")
        # A child's rows are its own; those of what has no line, partitions and crowds of children, are the table's.
        counts_children = table["kind"] == "partitioned table" or table["counts_children"]
        only = "" if counts_children else "ONLY "
        statement = internal_statement(self._database, f"SELECT count(*) FROM {only}{name}")
        try:
            async with asyncio.timeout_at(self._deadline):
                page = await self._pages.read_statement(statement, limit=1, max_bytes=_MAX_BYTES)
        except TimeoutError:
            return RowCount(name, None, f"no time is left, {_describe_estimate(table)}")
        except Problem as problem:
            return RowCount(name, None, problem.failure)
        rows = int(page.lines.strip().strip('[]"'))
        return RowCount(
            name,
            rows,
            is_filtered=table["filtered"],
            child_count=table["children"],
            counts_children=table["counts_children"],
        )


def _describe_estimate(table: Mapping[str, Any]) -> str:
    if table["rows"] is None or table["rows"] < 0:
        return "and nobody analyzed it"
    return f"about {table['rows']:,} by the last ANALYZE"
