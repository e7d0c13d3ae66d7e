"""Tools for administrators, enabled by `--dba`. Each says what it needs if that is missing."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from mcp_batteries.server.declaration.decorators import tool
from mcp_batteries.server.declaration.fields import Limit
from mcp_batteries.server.declaration.trusted import FreeText, default
from mcp_batteries.sql.arguments import MAX_SECONDS, ServedDb
from mcp_postgres.engine import tuning
from mcp_postgres.engine.health import checks, workload
from mcp_postgres.engine.pools import ConnectionPools
from mcp_postgres.models import Report
from mcp_postgres.tools.arguments import ReadableDb

__all__ = ["find_indexes", "get_health", "list_sessions", "list_settings", "list_top_queries"]

Area = Literal[
    "safety", "indexes", "vacuum", "bloat", "wraparound", "buffers", "connections", "locks", "replication", "sequences",
    "constraints",
]  # fmt: skip
Order = Literal["total", "mean", "calls", "rows", "reads"]


@tool("Health", gate="dba", seconds=MAX_SECONDS)
async def get_health(
    pools: ConnectionPools,
    *,
    areas: Annotated[list[Area] | None, Field(description="All unless named.")] = None,
    database: ServedDb = default(""),
) -> Report:
    """Get what is wrong with a database and what to do about it, the most urgent first. Changes nothing.

    For slow statements use `list_top_queries`, for who waits now `list_sessions`.
    """
    return await pools.within(database, partial(checks.run_checks, areas=areas or ()))


@tool("Top queries", gate="dba", seconds=MAX_SECONDS)
async def list_top_queries(
    pools: ConnectionPools, *, order: Order = "total", limit: Limit = 10, database: ServedDb = default("")
) -> Report:
    """List the statements that cost most since the counters began. Needs pg_stat_statements.

    For those that run now use `list_sessions`.
    """
    return await pools.within(database, partial(workload.list_top_statements, order=order, limit=limit))


@tool("Sessions", gate="dba", seconds=MAX_SECONDS)
async def list_sessions(
    pools: ConnectionPools,
    *,
    which: Annotated[Literal["busy", "all"], Field(description="all adds idle ones.")] = "busy",
    limit: Limit = 50,
    database: ServedDb = default(""),
) -> Report:
    """List running statements and open transactions, and who blocks whom, on which lock.

    Those that wait come first, each with its pid, state and duration. For what cost most use `list_top_queries`.
    """
    return await pools.within(database, partial(workload.list_sessions, which=which, limit=limit))


@tool("Find indexes", gate="dba", seconds=MAX_SECONDS)
async def find_indexes(
    pools: ConnectionPools,
    *,
    queries: Annotated[
        list[FreeText] | None, Field(max_length=10, description="Statements to help; the busiest unless named.")
    ] = None,
    limit: Annotated[int, Field(ge=1, le=10)] = 3,
    database: ReadableDb = default(""),
) -> Report:
    """Find indexes that would make statements cheaper, each tried: with hypopg, or on a sample of the tables.

    Makes none of them. For the plan of one statement use `explain_query`.
    """
    statements = [database.read(query) for query in queries or ()]
    return await tuning.find_indexes(pools, database.database, statements, limit)


@tool("Settings", gate="dba", seconds=MAX_SECONDS)
async def list_settings(
    pools: ConnectionPools,
    *,
    query: Annotated[FreeText, Field(max_length=200, description="Part of a name or comment.")] = "",
    database: ServedDb = default(""),
) -> Report:
    """List the server's settings that matter or were changed, or those that contain `query`.

    Says what set each, what waits for a restart and which values risk data. For other dangers use `get_health`.
    """
    return await pools.within(database, partial(workload.list_settings, words=query))
