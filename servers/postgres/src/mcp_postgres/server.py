"""The table of contents: builds the server."""

from __future__ import annotations

from functools import partial

from mcp_batteries.clipping import DEFAULT_PAGE_BYTES
from mcp_batteries.server.assemble import Assembled
from mcp_batteries.server.list_changes import ChangeFeedConfig
from mcp_batteries.server.skills import PackagedSkills
from mcp_batteries.sql.results.row_files import RowFileFolder
from mcp_batteries.sql.server import SAVED_QUERY_ROWS, assemble_sql, saved_queries
from mcp_postgres.changes import DatabaseWatcher
from mcp_postgres.completions import Completions
from mcp_postgres.engine.admission.statements import TransactionLimits
from mcp_postgres.engine.connection.passwords import Passwords
from mcp_postgres.engine.lifetime import Lifetime
from mcp_postgres.engine.pools import ConnectionPools
from mcp_postgres.engine.query.pages import ResultPages
from mcp_postgres.policy import Policy
from mcp_postgres.prompts import Prompts
from mcp_postgres.resources import Resources
from mcp_postgres.settings import Settings
from mcp_postgres.tool_availability import ToolAvailability
from mcp_postgres.tools import dba, files, read, schema, write

__all__ = ["build"]


def build(settings: Settings) -> Assembled:
    """Return the server for the databases in `settings`; none of them needs to be up yet.

    Raises:
        Unavailable: none is named.
    """
    policy = Policy(settings)
    pools = ConnectionPools(
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
    pages = ResultPages(pools)
    queries = saved_queries(settings.queries, policy, pages.compile)
    resources = Resources(policy, queries=queries, pools=pools, pages=pages)
    seconds = settings.poll / 1000
    channel = settings.listen
    offered = None
    if policy.can_reshape and not policy.can_administer:
        offered = ToolAvailability(policy, pools)
    server = assemble_sql(
        settings,
        resources,
        [read, write, files, schema, dba],
        [resources, Prompts(resources), Completions(policy, pools)],
        dependencies=[policy, RowFileFolder(policy.folder, policy.may_show_files), pools, pages],
        switches={
            "write": settings.write,
            "files": bool(settings.files),
            "ddl": settings.ddl or settings.admin,
            "dba": settings.dba,
        },
        run_saved=partial(pages.read, limit=SAVED_QUERY_ROWS, max_bytes=DEFAULT_PAGE_BYTES),
        opens=[Lifetime(pools, pages), *([offered] if offered else [])],
        tools_change=offered is not None,
        follows=ChangeFeedConfig(
            "tables, rows or schemas",
            instead="To see the data use `query_rows`.",
            uris="As `postgres://app/public/orders` or `postgres://app/.schema`. "
            "Needed unless the client subscribed to some.",
        ),
        watcher=DatabaseWatcher(policy, pools, pages, resources.readable, seconds=seconds, channel=channel),
        skills=[PackagedSkills(settings.COMMAND, __file__)],
        title="PostgreSQL",
        begin="`list_objects`, which also says what the role is",
    )
    if offered is not None:
        offered.server = server
    return server
