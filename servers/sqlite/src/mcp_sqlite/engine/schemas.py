"""What there is in databases: their tables, one of them, names in which words occur."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mcp_batteries.clipping import DEFAULT_PAGE_BYTES
from mcp_batteries.cursors import Cursor
from mcp_batteries.errors import Invalid, Problem
from mcp_batteries.sql.results.rows import SearchHits, to_one_line
from mcp_sqlite.engine.workers.pool import WorkerPool
from mcp_sqlite.models import Catalog, TableInfo
from mcp_sqlite.policy import Database, NamesOf, Table, table_uri

__all__ = ["complete_names", "describe_table", "list_tables", "read_description", "search_schema"]

_COUNT_SECONDS = 0.3
_MAX_CELL = 200


async def list_tables(
    pool: WorkerPool, databases: Sequence[Database], name: str | None, limit: int, cursor: str | None
) -> Catalog:
    """Return tables and views of databases, with counts as far as a third of a second goes, `limit` of them.

    Args:
        name: a part of their names.
    """
    names = [database.name for database in databases]
    scope = [*names, name or ""]
    start = _decode_listing_cursor(cursor, names, scope)
    after = start.after
    entries: list[tuple[str, Any]] = []
    bytes_left = DEFAULT_PAGE_BYTES
    for database in databases[names.index(start.database) :]:
        request = {
            "do": "catalog",
            "path": database.address,
            "after": after,
            "limit": limit,
            "budget": _COUNT_SECONDS / len(names),
            "max_bytes": bytes_left,
            "name": name,
        }
        after_before = after
        after = None
        try:
            answer = await _call_one_of(pool, databases, request)
        except Problem as problem:
            if len(names) == 1:
                raise
            entries.append((database.name, {"problem": str(problem)}))
            continue
        entries.append((database.name, {**answer, "folder": database.folder}))
        limit -= len(answer["tables"])
        bytes_left -= answer["size"]
        is_full = limit <= 0 or bytes_left <= 0
        if answer["more"] or (is_full and database is not databases[-1]):
            last_table = answer["tables"][-1]["name"] if answer["tables"] else after_before
            return Catalog(entries, Cursor.encode("tables", [database.name, last_table], scope))
    return Catalog(entries)


async def describe_table(pool: WorkerPool, table: Table, sample: int) -> TableInfo:
    """Return one table with all that depends on it, and `sample` of its rows."""
    description = await read_description(pool, table, sample)
    return TableInfo(table_uri(table.database, description["name"]), description)


async def read_description(pool: WorkerPool, table: Table, sample: int = 0) -> dict[str, Any]:
    """Return what a worker tells of a table.

    Raises:
        Problem: there is no such table.
    """
    request = {"do": "describe", "path": table.database.address, "table": table.name}
    return await pool.call({**request, "sample": sample, "max_cell": _MAX_CELL})


async def search_schema(pool: WorkerPool, databases: Sequence[Database], words: str, limit: int) -> SearchHits:
    """Return where words occur in the schemas of databases."""
    lines: list[str] = []
    has_more = False
    for database in databases:
        request = {
            "do": "find",
            "path": database.address,
            "text": words,
            "limit": limit - len(lines),
        }
        prefix = f"{database.name}: " if len(databases) > 1 else ""
        try:
            answer = await _call_one_of(pool, databases, request)
        except Problem as problem:
            if not prefix:
                raise
            lines.append(f"{prefix}not searched: {problem}")
            continue
        lines += [to_one_line(prefix + hit) for hit in answer["hits"]]
        has_more = has_more or answer["more"]
    return SearchHits(lines, has_more)


async def complete_names(pool: WorkerPool, names: NamesOf) -> list[str]:
    """Return tables and views, or columns of a table, that begin with what was typed."""
    table = names.inside[0] if names.kind == "column" else None
    request = {"do": "names", "path": names.database.address, "typed": names.typed, "table": table}
    return (await pool.call(request))["names"]


async def _call_one_of(pool: WorkerPool, databases: Sequence[Database], request: Mapping[str, Any]) -> dict[str, Any]:
    """Return what one of several databases answers: a lock on it must not make the call wait long for each."""
    return await pool.call(request, patience=None if len(databases) == 1 else _COUNT_SECONDS)


class _ListingStart(NamedTuple):
    """Where a page of the list of tables begins: in a database, behind a table."""

    database: str
    after: str | None


def _decode_listing_cursor(cursor: str | None, names: Sequence[str], scope: Sequence[str]) -> _ListingStart:
    if not cursor:
        return _ListingStart(names[0], None)
    match Cursor.decode("tables", cursor, scope):
        case [str() as database, (str() | None) as after] if database in names:
            return _ListingStart(database, after)
        case _:
            raise Invalid("The `cursor` is not one that was given.", "Call again without `cursor`.")
