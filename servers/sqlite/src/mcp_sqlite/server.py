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
from mcp_sqlite.changes import DatabaseWatcher
from mcp_sqlite.completions import Completions
from mcp_sqlite.engine import demo
from mcp_sqlite.engine.insights import Insights
from mcp_sqlite.engine.pages import Scratch
from mcp_sqlite.engine.service import Engine
from mcp_sqlite.policy import Policy
from mcp_sqlite.prompts import Prompts
from mcp_sqlite.resources import Resources, query_uri
from mcp_sqlite.settings import Settings
from mcp_sqlite.tools.files import FileTools, ImportTools
from mcp_sqlite.tools.insights import InsightTools
from mcp_sqlite.tools.read import LONGEST, ReadTools
from mcp_sqlite.tools.write import SchemaTools, WriteTools

__all__ = ["build"]

_ROWS = 100
"""Rows of a saved query's answer."""
_TAKEN = ("check",)
"""Not for saved queries: `run_check` is a tool of the server's own."""


def build(settings: Settings) -> Assembled:
    """The server for the databases in `settings`.

    Raises:
        Unavailable: one of them can't be served.
    """
    scratch = Scratch()
    example = scratch.new(".db") if settings.demo else None
    if example is not None:
        demo.make(example)
    policy = Policy(settings, demo=example)
    engine = Engine(scratch, seconds=settings.timeout, workers=settings.workers)
    insights = Insights()

    async def compile_query(query: SavedQuery) -> None:
        await engine.compile(policy.read(query.database, query.sql, {item.name: None for item in query.parameters}))

    async def run_query(query: SavedQuery, values: Mapping[str, Any]) -> RowPage:
        return await engine.rows(resources.statement(query, values), limit=_ROWS, max_bytes=DEFAULT_PAGE_BYTES)

    queries = SavedQueries(settings.queries, compile_query, _TAKEN) if settings.queries else None
    saved = SavedTools(queries, run_query, query_uri, LONGEST) if queries else None
    resources = Resources(policy, engine, insights, queries)
    server = assemble(
        settings.COMMAND,
        settings,
        rooms=[
            ReadTools(policy, engine),
            *([WriteTools(policy, engine)] if settings.write else []),
            *([SchemaTools(policy, engine)] if settings.ddl else []),
            *([FileTools(policy, engine)] if settings.files else []),
            *([ImportTools(policy, engine)] if settings.files and settings.write else []),
            InsightTools(insights),
            resources,
            Prompts(policy, resources),
            Completions(policy, engine),
        ],
        opens=[engine, *([saved] if saved else [])],
        sources=[DatabaseWatcher(policy, engine, resources)],
        title="SQLite",
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
    rule = f"{changes.capitalize()} can be changed; try a dry run first." if changes else "Nothing can be changed."
    return (
        f"Serves the SQLite databases {names}. {rule} Begin with `list_tables`; answers that were cut say how to go on."
    )
