"""Tools that read a database: its objects and their definitions, rows, and plans of statements."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from mcp_batteries.clipping import DEFAULT_PAGE_BYTES
from mcp_batteries.server.calling.results import TextResult
from mcp_batteries.server.declaration.decorators import rename_arguments, tool
from mcp_batteries.server.declaration.fields import Cursor, Limit, MaxBytes
from mcp_batteries.server.declaration.trusted import FreeText, default, trusted
from mcp_batteries.server.declaration.views import DIAGRAM, PLAN, TABLE
from mcp_batteries.sql.arguments import (
    MAX_SECONDS,
    RENAMED_SQL_ARGUMENTS,
    MaxCell,
    Sample,
    SearchWords,
    ServedDb,
    ServedDbs,
)
from mcp_batteries.sql.policy import check_database_name
from mcp_batteries.sql.results.row_files import RowFileFolder
from mcp_batteries.sql.results.rows import Results, RowPage, SearchHits
from mcp_postgres.engine import schemas, tuning
from mcp_postgres.engine.pools import ConnectionPools
from mcp_postgres.engine.query.comparison import compare_rows
from mcp_postgres.engine.query.pages import ResultPages
from mcp_postgres.engine.query.row_counts import count_rows
from mcp_postgres.engine.query.value_counts import count_values
from mcp_postgres.models import Catalog, Plan
from mcp_postgres.tools.arguments import (
    OptionalStatements,
    OtherRelation,
    Parameters,
    Planner,
    ReadableDb,
    Relation,
    Sql,
)

__all__ = ["explain_query", "get_table", "list_objects", "query_rows", "search_schema"]

Kind = Literal[
    "tables", "counts", "functions", "types", "sequences", "extensions", "triggers", "policies", "grants", "roles",
]  # fmt: skip
NameText = Annotated[str | None, trusted(check_database_name)]


@tool("List objects", seconds=MAX_SECONDS, view=DIAGRAM, also=("list_schemas", "list_tables"))
async def list_objects(
    pools: ConnectionPools,
    pages: ResultPages,
    files: RowFileFolder,
    *,
    schema: Annotated[NameText, Field(description="Only this schema.")] = None,
    kind: Annotated[Kind, Field(description="tables has views too; counts are exact numbers of rows.")] = "tables",
    name: Annotated[NameText, Field(max_length=200, description="Only names that contain this.")] = None,
    database: ServedDbs = default(""),
    limit: Limit = 300,
    cursor: Cursor = None,
) -> Catalog:
    """List databases and their schemas with tables, columns, keys (`-> table`), sizes, comments, or another `kind`.

    Begin here, unless names are known or easily guessed: other tools answer a wrong one with the tables and columns. Of
    few tables it tells values, NULLs, constraints, indexes and grants too. Numbers of rows are estimates
    if it says `about`; of many tables columns are left out, unless `name` narrows them. For more of one table use
    `get_table`.
    """
    query = schemas.ObjectQuery(database, kind, schema, name)
    catalog = await schemas.list_objects(pools, query, limit, cursor)
    if kind == "counts":
        return await count_rows(pools, pages, query.databases, catalog)
    if kind != "tables":
        return catalog
    catalog = await count_values(pages, query.databases, catalog)
    if schema or name or cursor:
        return catalog
    return replace(catalog, files=await files.list_files())


@tool("Describe a table", seconds=MAX_SECONDS, adapt=rename_arguments(table_name="table"), also=("describe_table",))
async def get_table(
    pools: ConnectionPools,
    pages: ResultPages,
    *,
    table: Relation,
    database: ServedDb = default(""),
    sample: Sample = None,
    compare_with: OtherRelation = None,
) -> TextResult:
    """Get one table's or view's columns, keys to and from other tables, indexes, partitions, triggers, policies and
    grants.

    What `list_objects` tells is enough for SQL. This has joins through other tables too, with `sample` its first rows,
    and compares the rows of two. For other rows use `query_rows`.
    """
    if compare_with is not None:
        return await compare_rows(pools, pages, table.of(database), compare_with.of(database), sample)
    return await schemas.describe_table(pools, pages, table.of(database), sample or 0)


@tool("Search the schema", seconds=MAX_SECONDS)
async def search_schema(
    pools: ConnectionPools, *, query: SearchWords, database: ServedDbs = default(""), limit: Limit = 100
) -> SearchHits:
    """Search the names and comments of tables, columns, indexes, functions, types and triggers; best matches first.

    A part of a word is enough, in any letter case; one line per match. For one table use `get_table`, for rows
    `query_rows`.
    """
    return await schemas.search_schema(pools, database, query, limit)


@tool("Query", seconds=MAX_SECONDS, view=TABLE, adapt=RENAMED_SQL_ARGUMENTS, also=("query", "execute_sql"))
async def query_rows(
    pages: ResultPages,
    *,
    sql: OptionalStatements = None,
    parameters: Parameters = None,
    database: ReadableDb = default(""),
    limit: Limit = 100,
    max_bytes: MaxBytes = DEFAULT_PAGE_BYTES,
    max_cell: MaxCell = 2000,
    cursor: Cursor = None,
) -> RowPage | Results:
    """Run statements that only read (SELECT, WITH, VALUES, TABLE, EXPLAIN, SHOW) and get their rows.

    Statements separated by `;` see the same state of the data, unless the answer says otherwise; `parameters` is then
    an array of one array per statement. The answer is a JSON array a line, first the columns, then each row; numeric,
    and integers beyond 2^53, are text. If it is truncated, call with `cursor` alone for the next page. A wrong name is
    answered with the tables and their columns, a value that no row has with those there are, if few. To see why a query
    is slow use `explain_query`.
    """
    request = database.read_page(sql, parameters, cursor)
    return await pages.read(request, limit=limit, max_bytes=max_bytes, max_cell=max_cell)


@tool("Explain a query", seconds=MAX_SECONDS, view=PLAN, adapt=RENAMED_SQL_ARGUMENTS)
async def explain_query(
    pools: ConnectionPools,
    *,
    sql: Sql,
    parameters: Parameters = None,
    analyze: Annotated[bool, Field(description="Run it, if it only reads, to see real times.")] = False,
    indexes: Annotated[
        list[FreeText] | None,
        Field(max_length=10, description="Plan with these too: `table (columns)`; needs hypopg."),
    ] = None,
    settings: Planner = None,
    database: ReadableDb = default(""),
) -> Plan:
    """Explain how PostgreSQL would run a statement, and what may make it slow.

    Does not run it, unless `analyze`; for its rows use `query_rows`.
    """
    statement = database.read_explained(sql, parameters)
    return await tuning.explain_plan(pools, statement, indexes or (), settings, analyze=analyze)
