"""Changing rows and schemas, as tools; each opened by a switch of the operator's."""

from __future__ import annotations

from dataclasses import dataclass

from mcp_batteries.server.declare import tool
from mcp_sqlite.engine.service import Engine
from mcp_sqlite.models import Change
from mcp_sqlite.policy import Policy
from mcp_sqlite.tools.arguments import DatabaseName, DryRun, Parameters, Sql
from mcp_sqlite.tools.read import LONGEST

__all__ = ["SchemaTools", "WriteTools"]


@dataclass(frozen=True)
class WriteTools:
    policy: Policy
    engine: Engine

    @tool("Change rows", effect="destroy", seconds=LONGEST)
    async def write_rows(
        self, sql: Sql, parameters: Parameters = None, database: DatabaseName = None, dry_run: DryRun = False
    ) -> Change:
        """Insert, update or delete rows: statements separated by `;`, in one transaction, all or none.

        Says how many rows each touched. Try with `dry_run` first; RETURNING shows the rows.
        """
        return await self.engine.change(self.policy.write(database, sql, parameters), dry_run=dry_run)


@dataclass(frozen=True)
class SchemaTools:
    policy: Policy
    engine: Engine

    @tool("Change the schema", effect="destroy", seconds=LONGEST)
    async def edit_schema(self, sql: Sql, database: DatabaseName = None, dry_run: DryRun = False) -> Change:
        """Create, alter or drop tables, indexes, views and triggers: statements in one transaction, all or none."""
        return await self.engine.change(self.policy.reshape(database, sql), dry_run=dry_run)
