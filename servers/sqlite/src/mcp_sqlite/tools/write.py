"""Tools that change rows and schemas; the operator enables each with a switch."""

from __future__ import annotations

from mcp_batteries.server.calling.results import TextResult
from mcp_batteries.server.declaration.decorators import tool
from mcp_batteries.server.declaration.fields import DryRun
from mcp_batteries.server.declaration.trusted import default
from mcp_batteries.sql.arguments import MAX_SECONDS, RENAMED_SQL_ARGUMENTS
from mcp_sqlite.engine.result_pages import ResultPages
from mcp_sqlite.engine.transaction import run_change
from mcp_sqlite.tools.arguments import AlterableDb, Sql, WritableDb, WriteParameters

__all__ = ["edit_schema", "write_rows"]


@tool(
    "Change rows",
    effect="destroy",
    gate="write",
    seconds=MAX_SECONDS,
    adapt=RENAMED_SQL_ARGUMENTS,
    also=("write_query",),
)
async def write_rows(
    pages: ResultPages,
    *,
    sql: Sql,
    parameters: WriteParameters = None,
    database: WritableDb = default(""),
    dry_run: DryRun = False,
) -> TextResult:
    """Insert, update or delete rows: statements separated by `;`, in one transaction, all or none.

    A wrong name changes nothing and is answered with the tables and columns. Says how many rows each touched; SELECT
    among them, or RETURNING, shows in the same answer what was and what came of it. No temporary tables. `INSERT ...
    SELECT ... FROM "sub/a.csv"` reads a file. To only look use `query_rows`.
    """
    return await run_change(pages, database.write(sql, parameters), dry_run=dry_run)


@tool("Change the schema", effect="destroy", gate="ddl", seconds=MAX_SECONDS, adapt=RENAMED_SQL_ARGUMENTS)
async def edit_schema(
    pages: ResultPages, *, sql: Sql, database: AlterableDb = default(""), dry_run: DryRun = False
) -> TextResult:
    """Create, alter or drop tables, indexes, views and triggers, set user_version.

    Rows too if `write_rows` is there; SELECT and EXPLAIN among them show what came of it. Statements separated by `;`,
    in one transaction, all or none. A dry run shows rows before and after, and a safe way back. For a table as it is
    use `get_table`.
    """
    return await run_change(pages, database.alter(sql), dry_run=dry_run)
