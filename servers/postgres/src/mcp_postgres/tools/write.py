"""Changing rows and schemas, as tools; each opened by a switch of the operator's."""

from __future__ import annotations

from dataclasses import dataclass

from mcp_batteries.server.declare import tool
from mcp_postgres.engine.service import Engine
from mcp_postgres.models import Change
from mcp_postgres.policy import Policy
from mcp_postgres.tools.arguments import LONGEST, DatabaseName, DryRun, Parameters, Sql

__all__ = ["SchemaTools", "WriteTools"]


@dataclass(frozen=True)
class WriteTools:
    policy: Policy
    engine: Engine

    @tool("Change rows", effect="destroy", seconds=LONGEST)
    async def write_rows(
        self, sql: Sql, parameters: Parameters = None, database: DatabaseName = None, dry_run: DryRun = False
    ) -> Change:
        """Insert, update, delete or merge rows by one statement, in a transaction.

        Says how many rows it touched. Try with `dry_run` first; RETURNING shows the rows.
        """
        return await self.engine.change(self.policy.write(database, sql, parameters), dry_run=dry_run)


@dataclass(frozen=True)
class SchemaTools:
    policy: Policy
    engine: Engine

    @tool("Change the schema", effect="destroy", seconds=LONGEST)
    async def edit_schema(self, sql: Sql, database: DatabaseName = None, dry_run: DryRun = False) -> Change:
        """Run one CREATE, ALTER, DROP, COMMENT, GRANT, REVOKE, REFRESH, REINDEX, ANALYZE or VACUUM.

        In a transaction, unless VACUUM or CONCURRENTLY, which have no dry run. Says what changed.
        """
        return await self.engine.change(self.policy.reshape(database, sql), dry_run=dry_run)
