"""The table of contents."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from mcp_batteries.limits import DEFAULT_PAGE_BYTES
from mcp_batteries.server.assemble import Assembled, assemble
from mcp_batteries.sql.rows import RowPage
from mcp_batteries.sql.saved_queries import SavedQueries, SavedQuery
from mcp_batteries.sql.saved_query_tools import SavedTools
from mcp_postgres.changes import DatabaseWatcher
from mcp_postgres.completions import Completions
from mcp_postgres.engine.admission import Limits
from mcp_postgres.engine.service import Engine
from mcp_postgres.policy import Policy
from mcp_postgres.prompts import Prompts
from mcp_postgres.resources import Resources, query_uri
from mcp_postgres.settings import Settings
from mcp_postgres.tools.arguments import LONGEST
from mcp_postgres.tools.dba import DbaTools
from mcp_postgres.tools.read import ReadTools
from mcp_postgres.tools.write import SchemaTools, WriteTools

__all__ = ["build"]

_ROWS = 100


def build(settings: Settings) -> Assembled:
    """The server for the databases in `settings`; none of them needs to be up yet.

    Raises:
        Unavailable: none is named.
    """
    policy = Policy(settings)
    engine = Engine(
        policy.databases,
        Limits(settings.timeout, settings.lock_timeout),
        connections=settings.connections,
        password_file=settings.password_file,
        demo=settings.demo,
        trusted=settings.trust_database,
    )

    async def compile_query(query: SavedQuery) -> None:
        nothing = [None] * len(query.parameters)
        await engine.compile(policy.read(query.database, query.sql, nothing))

    async def run_query(query: SavedQuery, values: Mapping[str, Any]) -> RowPage:
        statement = resources.statement(query, dict(values))
        return await engine.rows(statement, limit=_ROWS, max_bytes=DEFAULT_PAGE_BYTES)

    queries = SavedQueries(settings.queries, compile_query) if settings.queries else None
    saved = SavedTools(queries, run_query, query_uri, LONGEST) if queries else None
    resources = Resources(policy, engine, queries)
    watcher = DatabaseWatcher(policy, engine, resources, seconds=settings.poll / 1000, channel=settings.listen)
    server = assemble(
        settings.COMMAND,
        settings,
        rooms=[
            ReadTools(policy, engine),
            *([WriteTools(policy, engine)] if settings.write else []),
            *([SchemaTools(policy, engine)] if settings.ddl else []),
            *([DbaTools(policy, engine)] if settings.dba else []),
            resources,
            Prompts(policy, resources),
            Completions(policy, engine),
        ],
        opens=[engine, *([saved] if saved else [])],
        sources=[watcher],
        title="PostgreSQL",
        version=version(settings.COMMAND),
        instructions=_instructions(policy),
    )
    if saved is not None:
        saved.server = server
    return server


def _instructions(policy: Policy) -> str:
    names = ", ".join(policy.databases)
    opened = ["rows" if policy.can_write else "", "the schema" if policy.can_reshape else ""]
    changes = " and ".join(word for word in opened if word)
    rule = (
        f"{changes.capitalize()} can be changed; try a dry run first."
        if changes
        else "Neither rows nor the schema can be changed."
    )
    return (
        f"Serves the PostgreSQL databases {names}. {rule} Begin with `list_objects`, which also says what the role is; "
        "answers that were cut say how to go on."
    )
