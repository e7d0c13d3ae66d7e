"""What there is in databases: objects of a kind, one table, names in which words occur."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from mcp_batteries.cursors import Cursor
from mcp_batteries.errors import Invalid, NotFound, Problem, Unavailable, quote
from mcp_batteries.sql.language.identifiers import quote_identifier
from mcp_batteries.sql.results.rows import SearchHits
from mcp_postgres.engine.catalog import description as descriptions
from mcp_postgres.engine.catalog import listing
from mcp_postgres.engine.catalog.schema_groups import FoldedSchemas, fold_alike_schemas
from mcp_postgres.engine.connection.session import Session
from mcp_postgres.engine.pools import ConnectionPools
from mcp_postgres.engine.query.pages import ResultPages
from mcp_postgres.engine.query.table_descriptions import read_description
from mcp_postgres.models import FEW_TABLES, MAX_LISTED_FUNCTIONS, Catalog, CatalogEntry, TableInfo
from mcp_postgres.policy import Database, NamesOf, Table, internal_statement, table_uri

__all__ = [
    "ObjectQuery",
    "complete_names",
    "describe_table",
    "list_objects",
    "search_schema",
]

# Kinds of which schemas that are alike have the same objects.
_FOLDED_KINDS = ("tables", "functions")
_SAMPLE_BYTES = 20_000
_SAMPLE_CELL = 200


@dataclass(frozen=True)
class ObjectQuery:
    """Objects of a kind in some databases.

    Attributes:
        schema: only those in schemas of this name.
        name: a part of their names.
    """

    databases: Sequence[Database]
    kind: str
    schema: str | None = None
    name: str | None = None


class _Page(NamedTuple):
    """What a list shows of one database."""

    schemas: list[dict[str, Any]]
    objects: list[dict[str, Any]]
    functions: list[dict[str, Any]]


async def list_objects(pools: ConnectionPools, query: ObjectQuery, limit: int, cursor: str | None = None) -> Catalog:
    """Return schemas and objects of a kind, `limit` of them, of one database after the other.

    Raises:
        Unavailable: none of the databases can be reached.
    """
    names = [database.name for database in query.databases]
    request = [query.kind, query.schema, query.name, names]
    first, offset = _decode_position(cursor, request, names)
    entries: list[CatalogEntry] = []
    problems: list[Unavailable] = []
    for place in range(names.index(first), len(names)):
        database = query.databases[place]
        read_page = functools.partial(_list_page, query=query, limit=limit, offset=offset)
        try:
            page = await pools.within(database, read_page)
        except Unavailable as problem:
            problems.append(problem)
            if len(problems) == len(names):
                raise _join_problems(problems) from None
            entries.append(CatalogEntry(database.name, str(problem)))
            offset = 0
            continue
        role = _describe_role(pools, database)
        entries.append(CatalogEntry(database.name, role, page.schemas, page.objects[:limit], page.functions))
        if len(page.objects) > limit:
            return Catalog(entries, Cursor.encode("objects", [database.name, offset + limit], request))
        limit -= len(page.objects)
        offset = 0
        if limit <= 0 and place + 1 < len(names):
            return Catalog(entries, Cursor.encode("objects", [names[place + 1], 0], request))
    return Catalog(entries)


def _join_problems(problems: Sequence[Unavailable]) -> Unavailable:
    """Return one problem for databases of which none can be reached."""
    last = problems[-1]
    return Unavailable(" ".join(problem.failure for problem in problems), last.fix, retry_after=last.retry_after)


def _describe_role(pools: ConnectionPools, database: Database) -> str:
    """Return what the server's role, or the caller's, is there; empty before the first connection."""
    role = pools.of(database).role
    if role is None:
        return ""
    return role.describe(database.role)


async def describe_table(pools: ConnectionPools, pages: ResultPages, table: Table, sample: int = 0) -> TableInfo:
    """Return one table, with `sample` of its rows."""
    description = await read_description(pools, table)
    page = None
    if sample and description["closed"] and (description["locked"] or description["kind"] == "view"):
        page = description["closed"]
    elif sample and description["kind"] != "sequence":
        schema = quote_identifier(description["schema"])
        sql = f"SELECT * FROM {schema}.{quote_identifier(description['name'])} LIMIT {sample}"
        try:
            statement = internal_statement(table.database, sql)
            rows = pages.read_statement(statement, limit=sample, max_bytes=_SAMPLE_BYTES, max_cell=_SAMPLE_CELL)
            page = await pools.run_with_suggestion(table.database, sql, rows)
        except Problem as problem:
            page = str(problem)
    return TableInfo(table_uri(table.database, description["schema"], description["name"]), description, page)


async def search_schema(pools: ConnectionPools, databases: Sequence[Database], words: str, limit: int) -> SearchHits:
    """Return where words occur in names and comments."""
    search = functools.partial(descriptions.search_names, words=words, limit=limit + 1)
    lines: list[str] = []
    for database in databases:
        matches = await pools.within(database, search)
        lines += [f"{database.name}: {line}" if len(databases) > 1 else line for line in matches]
    return SearchHits(lines[:limit], len(lines) > limit)


async def complete_names(pools: ConnectionPools, names: NamesOf) -> list[str]:
    """Return schemas, tables or columns that begin with what was typed."""

    async def complete(session: Session) -> list[str]:
        return await descriptions.complete_names(session, names.kind, names.typed, *names.inside)

    return await pools.within(names.database, complete)


def _decode_position(cursor: str | None, request: Any, names: Sequence[str]) -> tuple[str, int]:
    """Return the database where a page of the catalog begins, and how many of its objects were shown.

    Raises:
        Invalid: the cursor is of another request, or none.
    """
    if not cursor:
        return names[0], 0
    match Cursor.decode("objects", cursor, request):
        case [str() as name, int() as offset] if name in names and offset >= 0:
            return name, offset
        case _:
            raise Invalid("The `cursor` is not one that was given.", "Call again without `cursor`.")


async def _list_page(session: Session, *, query: ObjectQuery, limit: int, offset: int) -> _Page:
    """Return one object more than `limit` if there is; with the first tables schemas and functions too."""
    folded = await _fold_schemas(session, query)
    objects = await listing.list_objects(
        session, query.kind, query.schema, limit + 1, offset, query.name, folded.hidden_names
    )
    if query.schema and not objects and len(query.databases) == 1:
        await _check_schema(session, query.schema)
    if query.kind == "tables" and 0 < len(objects) <= FEW_TABLES:
        details = await descriptions.read_details(session, objects)
        objects = [{**item, "details": details.get(item["oid"])} for item in objects]
    is_first = query.kind == "tables" and not query.name and not offset
    if not is_first:
        # A list that leaves something out says so, whatever part of it this is.
        return _Page([schema for schema in folded.schemas if schema["alike"]], objects, [])
    functions = await listing.list_objects(
        session, "functions", query.schema, MAX_LISTED_FUNCTIONS + 1, 0, hidden_schemas=folded.hidden_names
    )
    return _Page(folded.schemas, objects, functions)


async def _fold_schemas(session: Session, query: ObjectQuery) -> FoldedSchemas:
    """Return the schemas of a list, with one for all that are alike; none where the list is of some only."""
    if query.kind not in _FOLDED_KINDS or query.schema or query.name:
        return FoldedSchemas([], [])
    return fold_alike_schemas(await listing.list_schemas(session))


async def _check_schema(session: Session, schema: str) -> None:
    """Raise `NotFound` for a schema that there is not."""
    names = [item["name"] for item in await listing.list_schemas(session)]
    if schema not in names:
        raise NotFound(f"There is no schema {quote(schema)}.", f"There are: {', '.join(map(quote, names[:20]))}.")
