"""Tools that change rows and schemas; the operator enables each with a switch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from mcp_batteries.server.calling.results import TextResult
from mcp_batteries.server.declaration.decorators import described_by, tool
from mcp_batteries.server.declaration.fields import DryRun
from mcp_batteries.sql import tools
from mcp_batteries.sql.arguments import DatabaseName
from mcp_batteries.sql.base import Room
from mcp_batteries.sql.tools import MAX_SECONDS, RENAMED_SQL_ARGUMENTS
from mcp_postgres.engine.service import Engine
from mcp_postgres.policy import Policy
from mcp_postgres.tools.arguments import Parameters, Statements

__all__ = ["SchemaTools", "WriteTools"]

_SCHEMA = """Change the schema (and rows, as `write_rows`): a whole migration in one transaction.

CREATE, ALTER, DROP, COMMENT, GRANT, REVOKE, REFRESH, REINDEX, ANALYZE, VACUUM. A dry run tells objects, rows, locks,
rewritten tables and the way back; VACUUM and CONCURRENTLY run alone and have none. For a table as it
is use `get_table`."""


@dataclass(frozen=True)
class WriteTools(Room[Policy, Engine]):
    """Changes of rows."""

    @tool("Change rows", effect="destroy", seconds=MAX_SECONDS, adapt=RENAMED_SQL_ARGUMENTS)
    async def write_rows(
        self,
        sql: Statements,
        parameters: Parameters = None,
        as_role: Annotated[str | None, Field(description="Try it as this role; nothing is kept.")] = None,
        database: DatabaseName = None,
        dry_run: DryRun = False,
    ) -> TextResult:
        """Insert, update, delete, merge or truncate rows, all statements in one transaction.

        Says how many rows each touched; a SELECT at the end, or RETURNING, shows in the same answer what came of it.
        To only look use `query_rows`.
        """
        return await self.engine.change(self.policy.write(database, sql, parameters, as_role), dry_run=dry_run)


@described_by({"edit_schema": _SCHEMA}, {"sql": Statements})
class SchemaTools(tools.SchemaTools[Policy, Engine]):
    """A migration at a time."""
