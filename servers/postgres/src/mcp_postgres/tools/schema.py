"""The tool that changes the schema; the operator enables it with `--ddl`. It stands behind the files in the list."""

from __future__ import annotations

from mcp_batteries.server.calling.results import TextResult
from mcp_batteries.server.declaration.decorators import tool
from mcp_batteries.server.declaration.fields import DryRun
from mcp_batteries.server.declaration.trusted import default
from mcp_batteries.sql.arguments import MAX_SECONDS, RENAMED_SQL_ARGUMENTS
from mcp_postgres.engine.change.transaction import run_change
from mcp_postgres.engine.pools import ConnectionPools
from mcp_postgres.engine.query.pages import ResultPages
from mcp_postgres.tools.arguments import AlterableDb, Statements

__all__ = ["edit_schema"]


@tool(
    "Change the schema", effect="destroy", gate="ddl", toolset="write", seconds=MAX_SECONDS, adapt=RENAMED_SQL_ARGUMENTS
)
async def edit_schema(
    pools: ConnectionPools,
    pages: ResultPages,
    *,
    sql: Statements,
    database: AlterableDb = default(""),
    dry_run: DryRun = False,
) -> TextResult:
    """Change the schema: a whole migration in one transaction, or a VACUUM.

    CREATE, ALTER, DROP, COMMENT, GRANT, REVOKE, REFRESH, REINDEX, ANALYZE. It takes statements of `write_rows` too,
    where that is offered: SELECT and EXPLAIN among them show what came of it. A dry run tells objects, rows, locks,
    rewritten tables and a safe way back; it may look as a role (SET ROLE; SELECT ...), and uses up numbers of
    sequences. VACUUM and CONCURRENTLY run alone and have none. For a table as it is use `get_table`.
    """
    return await run_change(pools, pages, database.alter(sql), dry_run=dry_run)
