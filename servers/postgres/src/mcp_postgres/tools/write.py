"""The tool that changes rows; the operator enables it with `--write`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from mcp_batteries.server.calling.results import TextResult
from mcp_batteries.server.declaration.decorators import tool
from mcp_batteries.server.declaration.fields import DryRun
from mcp_batteries.server.declaration.trusted import default, trusted
from mcp_batteries.sql.arguments import MAX_SECONDS, RENAMED_SQL_ARGUMENTS
from mcp_batteries.sql.policy import check_database_name
from mcp_postgres.engine.change.transaction import run_change
from mcp_postgres.engine.pools import ConnectionPools
from mcp_postgres.engine.query.pages import ResultPages
from mcp_postgres.tools.arguments import Parameters, Statements, WritableDb

__all__ = ["write_rows"]


@tool("Change rows", effect="destroy", gate="write", seconds=MAX_SECONDS, adapt=RENAMED_SQL_ARGUMENTS)
async def write_rows(
    pools: ConnectionPools,
    pages: ResultPages,
    *,
    sql: Statements,
    parameters: Parameters = None,
    as_role: Annotated[
        str | None,
        trusted(check_database_name),
        Field(description="Try with this role's rights and policies; nothing is kept."),
    ] = None,
    database: WritableDb = default(""),
    dry_run: DryRun = False,
) -> TextResult:
    """Insert, update, delete, merge or truncate rows, all statements in one transaction.

    A wrong name changes nothing and is answered with the tables and columns. Says how many rows each touched; SELECT
    among them, or RETURNING, shows in the same answer what was and what came of it. No temporary tables; TRUNCATE runs
    alone. A dry run uses up numbers of sequences. To only look use `query_rows`.
    """
    return await run_change(pools, pages, database.write(sql, parameters, as_role), dry_run=dry_run)
