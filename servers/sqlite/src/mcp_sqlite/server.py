"""The table of contents: builds the server."""

from __future__ import annotations

import os

from mcp_batteries.scratch import Scratch
from mcp_batteries.server.assemble import Assembled
from mcp_batteries.server.list_changes import ChangeFeedConfig
from mcp_batteries.server.skills import PackagedSkills
from mcp_batteries.sql.server import assemble_sql, saved_queries
from mcp_sqlite.changes import DatabaseWatcher
from mcp_sqlite.completions import Completions
from mcp_sqlite.engine.insights import Insights
from mcp_sqlite.engine.service import Engine
from mcp_sqlite.policy import Policy
from mcp_sqlite.prompts import Prompts
from mcp_sqlite.resources import Resources
from mcp_sqlite.settings import Settings
from mcp_sqlite.tools.files import FileTools, ImportTools
from mcp_sqlite.tools.insights import InsightTools
from mcp_sqlite.tools.read import ListTools, ReadTools
from mcp_sqlite.tools.write import SchemaTools, WriteTools

__all__ = ["build"]

# Names that saved queries can't have: `run_check` is a tool of the server's own.
_RESERVED_NAMES = ("check",)


def build(settings: Settings) -> Assembled:
    """Return the server for the databases in `settings`.

    Raises:
        Unavailable: one of them can't be served.
    """
    scratch = Scratch("mcp-sqlite")
    example = scratch.new(".db") if settings.demo else None
    policy = Policy(settings, demo=example)
    engine = Engine(
        scratch,
        seconds=settings.timeout,
        workers=settings.workers,
        example=example,
        vectors=settings.sqlite_vec,
        parts={database.address: policy.parts[name] for name, database in policy.databases.items()},
        folder=policy.folder,
    )
    queries = saved_queries(settings.queries, policy, engine, _RESERVED_NAMES)
    paths = [os.path.realpath(database.address) for database in policy.databases.values()]
    insights = Insights(settings.insights or scratch.new(".db"), paths)
    resources = Resources(policy, engine, queries, insights=insights)
    return assemble_sql(
        settings,
        resources,
        {
            ListTools: {},
            ReadTools: {},
            WriteTools: {"--write": settings.write},
            SchemaTools: {"--ddl": settings.ddl},
            FileTools: {"--files FOLDER": bool(settings.files)},
            ImportTools: {"--files FOLDER": bool(settings.files), "--write": settings.write},
        },
        [InsightTools(insights), resources, Prompts(resources), Completions(policy, engine)],
        opens=[engine],
        follows=ChangeFeedConfig(
            "tables, rows or schemas",
            instead="To see the data use `query_rows`.",
            uris="As `sqlite://app/orders`, `sqlite://app/orders/7` or `sqlite://app/.schema`. "
            "Needed unless the client subscribed to some.",
        ),
        watcher=DatabaseWatcher(policy, engine, resources.readable),
        skills=[PackagedSkills(settings.COMMAND, __file__)],
        title="SQLite",
        begin="`list_tables`",
    )
