"""The table of contents: builds the server."""

from __future__ import annotations

import os
from functools import partial

from mcp_batteries.clipping import DEFAULT_PAGE_BYTES
from mcp_batteries.scratch import Scratch
from mcp_batteries.server.assemble import Assembled
from mcp_batteries.server.list_changes import ChangeFeedConfig
from mcp_batteries.server.skills import PackagedSkills
from mcp_batteries.sql.results.row_files import RowFileFolder
from mcp_batteries.sql.server import SAVED_QUERY_ROWS, assemble_sql, saved_queries
from mcp_sqlite.changes import DatabaseWatcher
from mcp_sqlite.completions import Completions
from mcp_sqlite.engine.insights import Insights
from mcp_sqlite.engine.lifetime import Lifetime, worker_options
from mcp_sqlite.engine.result_pages import ResultPages
from mcp_sqlite.engine.statements import compile_statement
from mcp_sqlite.engine.workers.launcher import WorkerLauncher, describe_confinement
from mcp_sqlite.engine.workers.pool import WorkerPool
from mcp_sqlite.policy import Policy
from mcp_sqlite.prompts import Prompts
from mcp_sqlite.resources import Resources
from mcp_sqlite.settings import Settings
from mcp_sqlite.tools import files, insights, read, write

__all__ = ["build", "confinement"]

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
    visible = {database.address: policy.parts[name] for name, database in policy.databases.items()}
    options = worker_options(visible, policy.folder, has_vectors=settings.sqlite_vec)
    addresses = [database.address for database in policy.databases.values()]
    launcher = WorkerLauncher(addresses, scratch, options, policy.folder)
    pool = WorkerPool(launcher, seconds=settings.timeout, max_workers=settings.workers)
    pages = ResultPages(pool, scratch)
    queries = saved_queries(settings.queries, policy, partial(compile_statement, pool), _RESERVED_NAMES)
    paths = [os.path.realpath(address) for address in addresses]
    memo = Insights(settings.insights or scratch.new(".db"), paths)
    resources = Resources(policy, queries=queries, pool=pool, insights=memo)
    return assemble_sql(
        settings,
        resources,
        [read, write, files, insights],
        [resources, Prompts(resources), Completions(policy, pool)],
        dependencies=[policy, RowFileFolder(policy.folder), pool, pages, scratch, memo],
        switches={"write": settings.write, "ddl": settings.ddl, "files": bool(settings.files)},
        run_saved=partial(pages.read, limit=SAVED_QUERY_ROWS, max_bytes=DEFAULT_PAGE_BYTES),
        opens=[Lifetime(pool, pages, example)],
        follows=ChangeFeedConfig(
            "tables, rows or schemas",
            instead="To see the data use `query_rows`.",
            uris="As `sqlite://app/orders`, `sqlite://app/orders/7` or `sqlite://app/.schema`. "
            "Needed unless the client subscribed to some.",
        ),
        watcher=DatabaseWatcher(policy, pool, resources.readable),
        skills=[PackagedSkills(settings.COMMAND, __file__)],
        title="SQLite",
        begin="`list_tables`",
    )


def confinement(settings: Settings) -> str:
    """Return what confines SQLite here, in one line for `--check`."""
    return describe_confinement()
