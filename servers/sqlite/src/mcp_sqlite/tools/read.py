"""Tools that read a database: its tables, rows, texts and plans, and whether its file is whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from mcp_batteries.clipping import DEFAULT_PAGE_BYTES
from mcp_batteries.server.calling.results import TextResult
from mcp_batteries.server.declaration.decorators import rename_arguments, tool
from mcp_batteries.server.declaration.fields import Cursor, Limit, MaxBytes
from mcp_batteries.server.declaration.trusted import FreeText, default
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
from mcp_batteries.sql.results.row_files import RowFileFolder
from mcp_batteries.sql.results.rows import Results, RowPage, SearchHits
from mcp_sqlite.engine import schemas, statements
from mcp_sqlite.engine.comparison import compare_rows
from mcp_sqlite.engine.result_pages import MAX_CELL, ResultPages
from mcp_sqlite.engine.workers.pool import WorkerPool
from mcp_sqlite.models import Catalog, Check, Plan
from mcp_sqlite.tools.arguments import (
    FullTextTable,
    OptionalSql,
    OtherRelation,
    PlanParameters,
    ReadableDb,
    ReadParameters,
    Relation,
    Sql,
)

__all__ = ["explain_query", "get_table", "list_tables", "query_rows", "run_check", "search_schema", "search_text"]


@tool("List tables", seconds=MAX_SECONDS, view=DIAGRAM)
async def list_tables(
    pool: WorkerPool,
    files: RowFileFolder,
    *,
    database: ServedDbs = default(""),
    name: Annotated[FreeText | None, Field(max_length=200, description="Only names that contain this.")] = None,
    limit: Limit = 500,
    cursor: Cursor = None,
) -> Catalog:
    """List databases with their tables, columns, keys (`-> table` for foreign ones) and row counts.

    Begin here, unless names are known or easily guessed: other tools answer a wrong one with the tables and columns. Of
    few tables it tells values, NULLs, constraints and indexes too. Counts that take long are estimated or left out. For
    more of one table use `get_table`.
    """
    catalog = await schemas.list_tables(pool, database, name, limit, cursor)
    if name or cursor:
        return catalog
    return replace(catalog, files=await files.list_files())


@tool("Describe a table", seconds=MAX_SECONDS, adapt=rename_arguments(table_name="table"), also=("describe_table",))
async def get_table(
    pool: WorkerPool,
    pages: ResultPages,
    *,
    table: Relation,
    database: ServedDb = default(""),
    sample: Sample = None,
    compare_with: OtherRelation = None,
) -> TextResult:
    """Get one table's or view's columns with frequent values, keys to and from other tables, indexes, triggers and
    definition.

    What `list_tables` tells is enough for SQL. This has joins through other tables too, with `sample` its first rows,
    and compares the rows of two. For other rows use `query_rows`.
    """
    if compare_with is not None:
        return await compare_rows(pool, pages, table.of(database), compare_with.of(database), sample)
    return await schemas.describe_table(pool, table.of(database), sample or 0)


@tool("Search the schema", seconds=MAX_SECONDS)
async def search_schema(
    pool: WorkerPool, *, query: SearchWords, database: ServedDbs = default(""), limit: Limit = 100
) -> SearchHits:
    """Search the names and SQL definitions, comments included, of tables, columns, indexes and triggers.

    A part of a word is enough, in any letter case; one line per match. For one table use `get_table`, for rows
    `query_rows`.
    """
    return await schemas.search_schema(pool, database, query, limit)


@tool("Query", seconds=MAX_SECONDS, view=TABLE, adapt=RENAMED_SQL_ARGUMENTS, also=("read_query", "execute_sql"))
async def query_rows(
    pages: ResultPages,
    *,
    sql: OptionalSql = None,
    parameters: ReadParameters = None,
    database: ReadableDb = default(""),
    limit: Limit = 100,
    max_bytes: MaxBytes = DEFAULT_PAGE_BYTES,
    max_cell: MaxCell = MAX_CELL,
    cursor: Cursor = None,
) -> RowPage | Results:
    """Run statements that only read (SELECT, WITH, VALUES, EXPLAIN, reading PRAGMAs) and get their rows.

    Several statements, separated by `;`, see the same state of the data. With `database` as `one,other` both can be
    joined: `other.table`. `FROM "sub/a.csv"` reads `copy_to_file`'s folder for files. The answer is a JSON array a
    line, first the columns, then each row; integers beyond 2^53 are text. If it is truncated, call with `cursor` alone.
    A wrong name is answered with the tables and their columns, a value that no row has with those there are, if few. To
    see why a query is slow use `explain_query`.
    """
    request = database.read_page(sql, parameters, cursor)
    return await pages.read(request, limit=limit, max_bytes=max_bytes, max_cell=max_cell)


@tool("Explain a query", seconds=MAX_SECONDS, view=PLAN, adapt=RENAMED_SQL_ARGUMENTS)
async def explain_query(
    pool: WorkerPool, *, sql: Sql, parameters: PlanParameters = None, database: ReadableDb = default("")
) -> Plan:
    """Explain how SQLite would run a statement, which tables it would read whole, which index would help.

    Does not run it; for its rows use `query_rows`.
    """
    return await statements.explain_plan(pool, database.read(sql, parameters))


@tool("Search text", seconds=MAX_SECONDS, view=TABLE)
async def search_text(
    pool: WorkerPool,
    *,
    query: SearchWords,
    table: FullTextTable = None,
    database: ServedDb = default(""),
    limit: Limit = 20,
) -> RowPage:
    """Search a full-text (FTS) table by FTS syntax or plain words; best matches first, with snippets.

    For other tables use LIKE in `query_rows`.
    """
    return await statements.search_text(pool, database, table, query, limit)


@tool("Check integrity", seconds=MAX_SECONDS)
async def run_check(
    pool: WorkerPool,
    *,
    database: ServedDb = default(""),
    quick: Annotated[bool, Field(description="Do not compare indexes with tables.")] = False,
) -> Check:
    """Run SQLite's integrity check and look for foreign keys that point to no row. Repairs nothing.

    For a file that may be damaged: it reads all of it, which takes time; `quick` is faster. For slow
    queries use `explain_query`.
    """
    return await statements.check_integrity(pool, database, quick=quick)
