"""Tools for administrators, enabled by `--dba`. Each says what it needs if that is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from mcp_batteries.server.declaration.decorators import tool
from mcp_batteries.server.declaration.fields import Limit
from mcp_batteries.sql.arguments import DatabaseName
from mcp_batteries.sql.base import Room
from mcp_batteries.sql.tools import MAX_SECONDS
from mcp_postgres.engine.service import Engine
from mcp_postgres.models import Report
from mcp_postgres.policy import Policy

__all__ = ["DbaTools"]

Area = Literal[
    "safety", "indexes", "vacuum", "bloat", "wraparound", "buffers", "connections", "locks", "replication", "sequences",
    "constraints",
]  # fmt: skip
Order = Literal["total", "mean", "calls", "rows", "reads"]


@dataclass(frozen=True)
class DbaTools(Room[Policy, Engine]):
    """What a database is busy with, and what is wrong with it."""

    @tool("Health", seconds=MAX_SECONDS)
    async def get_health(
        self,
        areas: Annotated[list[Area] | None, Field(description="All unless named.")] = None,
        database: DatabaseName = None,
    ) -> Report:
        """Get what is wrong with a database and what to do about it, the most urgent first. Changes nothing.

        For slow statements use `list_top_queries`, for who waits now `list_sessions`.
        """
        return await self.engine.health(self.policy.health(database, areas or ()))

    @tool("Top queries", seconds=MAX_SECONDS)
    async def list_top_queries(
        self, order: Order = "total", limit: Limit = 10, database: DatabaseName = None
    ) -> Report:
        """List the statements that cost most since the counters began. Needs pg_stat_statements.

        For those that run now use `list_sessions`.
        """
        return await self.engine.top(self.policy.database(database), order, limit)

    @tool("Sessions", seconds=MAX_SECONDS)
    async def list_sessions(
        self,
        which: Annotated[Literal["busy", "all"], Field(description="all adds idle ones.")] = "busy",
        limit: Limit = 50,
        database: DatabaseName = None,
    ) -> Report:
        """List running statements and open transactions, and who blocks whom, on which lock.

        Those that wait come first, each with its pid, state and duration. For what cost most use `list_top_queries`.
        """
        return await self.engine.sessions(self.policy.database(database), which, limit)

    @tool("Find indexes", seconds=MAX_SECONDS)
    async def find_indexes(
        self,
        queries: Annotated[
            list[str] | None, Field(max_length=10, description="Statements to help; the busiest unless named.")
        ] = None,
        limit: Annotated[int, Field(ge=1, le=10)] = 3,
        database: DatabaseName = None,
    ) -> Report:
        """Find indexes that would make statements cheaper, each tried: with hypopg, or on a sample of the tables.

        Makes none of them. For the plan of one statement use `explain_query`.
        """
        return await self.engine.advice(self.policy.advice(database, queries or ()), limit)

    @tool("Settings", seconds=MAX_SECONDS)
    async def list_settings(
        self,
        query: Annotated[str, Field(max_length=200, description="Part of a name or comment.")] = "",
        database: DatabaseName = None,
    ) -> Report:
        """List the server's settings that matter or were changed, or those that contain `query`.

        Says what set each, what waits for a restart and which values risk data. For other dangers use `get_health`.
        """
        return await self.engine.settings(self.policy.settings(database, query))
