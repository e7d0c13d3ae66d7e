"""The table of contents: builds the server."""

from __future__ import annotations

from mcp_batteries.server.assemble import Assembled
from mcp_batteries.server.list_changes import ChangeFeedConfig
from mcp_batteries.server.skills import PackagedSkills
from mcp_batteries.sql.server import assemble_sql, saved_queries
from mcp_postgres.changes import DatabaseWatcher
from mcp_postgres.completions import Completions
from mcp_postgres.engine.admission.statements import TransactionLimits
from mcp_postgres.engine.connection.passwords import Passwords
from mcp_postgres.engine.service import Engine
from mcp_postgres.policy import Policy
from mcp_postgres.prompts import Prompts
from mcp_postgres.resources import Resources
from mcp_postgres.settings import Settings
from mcp_postgres.tool_availability import ToolAvailability
from mcp_postgres.tools.dba import DbaTools
from mcp_postgres.tools.files import FileTools, ImportTools
from mcp_postgres.tools.read import ListTools, ReadTools
from mcp_postgres.tools.write import SchemaTools, WriteTools

__all__ = ["build"]


def build(settings: Settings) -> Assembled:
    """Return the server for the databases in `settings`; none of them needs to be up yet.

    Raises:
        Unavailable: none is named.
    """
    policy = Policy(settings)
    engine = Engine(
        policy.databases,
        TransactionLimits(settings.timeout, settings.lock_timeout),
        connections=settings.connections,
        passwords=Passwords(settings.password_file, settings.password_command),
        demo=settings.demo,
        trusted=settings.trust_database,
        callers=policy.has_callers,
        parts=policy.parts,
        trusted_functions=policy.trusted_functions,
    )
    resources = Resources(policy, engine, saved_queries(settings.queries, policy, engine))
    seconds = settings.poll / 1000
    channel = settings.listen
    offered = None
    if policy.can_reshape and not policy.can_administer:
        offered = ToolAvailability(policy, engine)
    server = assemble_sql(
        settings,
        resources,
        {
            ListTools: {},
            ReadTools: {},
            WriteTools: {"--write": settings.write},
            FileTools: {"--files FOLDER": bool(settings.files)},
            ImportTools: {"--files FOLDER": bool(settings.files), "--write": settings.write},
            SchemaTools: {"--ddl": settings.ddl or settings.admin},
            DbaTools: {"--dba": settings.dba},
        },
        [resources, Prompts(resources), Completions(policy, engine)],
        opens=[engine, *([offered] if offered else [])],
        tools_change=offered is not None,
        follows=ChangeFeedConfig(
            "tables, rows or schemas",
            instead="To see the data use `query_rows`.",
            uris="As `postgres://app/public/orders` or `postgres://app/.schema`. "
            "Needed unless the client subscribed to some.",
        ),
        watcher=DatabaseWatcher(policy, engine, resources.readable, seconds=seconds, channel=channel),
        skills=[PackagedSkills(settings.COMMAND, __file__)],
        title="PostgreSQL",
        begin="`list_objects`, which also says what the role is",
    )
    if offered is not None:
        offered.server = server
    return server
