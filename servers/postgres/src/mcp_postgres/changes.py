"""Says which URIs to refresh: commits by anybody, noticed by polling, checked against what is really served.

While somebody follows something in a database, a separate connection polls the current snapshot, which every commit
changes and which needs no privilege. Only if it changed are subscribed resources read and compared. With `--listen` a
notification triggers the same check at once. Without subscribers nothing is polled.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Mapping

import anyio
import psycopg
from anyio.abc import TaskGroup

from mcp_batteries.errors import NotFound, Problem
from mcp_batteries.sql import watching
from mcp_batteries.sql.results.rows import RowPage
from mcp_batteries.sql.watching import TableListKey, demonstration
from mcp_batteries.subscriptions.journal import ABSENT
from mcp_postgres.engine.admission.statements import TransactionLimits, transaction_opening
from mcp_postgres.engine.connection.pool import SERVER_ROLE, run_shielded
from mcp_postgres.engine.contents import read_content
from mcp_postgres.engine.pools import ConnectionPools
from mcp_postgres.engine.query.pages import ResultPages
from mcp_postgres.policy import (
    ActivityOf,
    Database,
    HealthOf,
    Policy,
    QueryOf,
    Readable,
    Request,
    SchemaOf,
    TableOf,
    for_role_of,
)

__all__ = ["DatabaseWatcher", "demonstration"]

logger = logging.getLogger(__name__)

_LIMITS = TransactionLimits(5.0, 1.0)
_SNAPSHOT = "SELECT pg_current_snapshot()::text || ' ' || pg_postmaster_start_time()"
_TABLE_NAMES = """
SELECT md5(coalesce(string_agg(n.nspname || '.' || c.relname, ' ' ORDER BY n.nspname, c.relname), ''))
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition AND n.nspname !~ '^pg_'
    AND n.nspname <> 'information_schema'{}
"""
# Where callers have roles of their own, any of them may: PostgreSQL shows everybody what tables there are.
_MAY_READ = " AND has_table_privilege(c.oid, 'SELECT')"
# What changes with everything that a schema's resource shows, in a few milliseconds.
_CATALOG_STATE = "SELECT md5(concat_ws(' ', current_database(), pg_postmaster_start_time(), {}))".format(
    ", ".join(
        f"(SELECT concat(count(*), '/', sum(xmin::text::bigint)) FROM {name})"
        for name in (
            "pg_class", "pg_attribute", "pg_attrdef", "pg_constraint", "pg_index", "pg_description", "pg_trigger",
            "pg_policy", "pg_rewrite", "pg_enum", "pg_type", "pg_namespace", "pg_inherits", "pg_auth_members",
        )
    )
)  # fmt: skip
_SCHEMA_REQUESTS = (SchemaOf, TableOf)
# What changes without a commit, and the seconds between two looks at it.
_POLLING_INTERVALS = {ActivityOf: 1.0, HealthOf: 15.0}
# Seconds between two tries of a database that is down.
_RETRY_SECONDS = 5.0


class _WatchedDatabase(watching.Watched):
    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.due_times: dict[str, float] = {}
        self.table_names: str | None = None
        self.snapshot: str | None = None
        self.catalog_state: str | None = None
        # Set while somebody wants to hear of it.
        self.has_followers = anyio.Event()

    def settle(self) -> None:
        if not self.listed:
            self.table_names = None
        if not self.wanted:
            self.has_followers = anyio.Event()
        elif not self.has_followers.is_set():
            self.has_followers.set()

    def clear(self) -> None:
        super().clear()
        self.snapshot = self.catalog_state = None
        self.settle()


class DatabaseWatcher(watching.Watcher[_WatchedDatabase]):
    """The source of changes for `postgres://` URIs.

    Args:
        seconds: the time between two checks.
        channel: the channel to LISTEN on, where triggers announce changes.
    """

    def __init__(
        self,
        policy: Policy,
        pools: ConnectionPools,
        pages: ResultPages,
        readable: Callable[[str], Readable[Request] | None],
        *,
        seconds: float,
        channel: str | None,
    ) -> None:
        super().__init__(map(_WatchedDatabase, policy.databases.values()), readable)
        self._pools = pools
        self._pages = pages
        self._seconds = seconds
        self._channel = channel
        self._tables = _TABLE_NAMES.format("" if policy.has_callers else _MAY_READ)

    async def begin(self, watched: _WatchedDatabase, readables: Mapping[str, Readable[Request]]) -> None:
        if watched.listed and watched.table_names is None:
            watched.table_names = await self._read_table_names(watched)
        for key, readable in readables.items():
            watched.digests[key] = await self._digest(readable)
            watched.readables[key] = readable
            # What was committed while this was read is seen by the next look.
            watched.snapshot = watched.catalog_state = None

    def start(self, tasks: TaskGroup) -> None:
        for watched in self.watched.values():
            tasks.start_soon(self._follow, watched)
            if self._channel is not None:
                tasks.start_soon(self._listen, watched, self._channel)

    async def _follow(self, watched: _WatchedDatabase) -> None:
        pause = self._seconds
        while True:
            await watched.has_followers.wait()
            with anyio.move_on_after(pause):
                await watched.wake.wait()
            watched.wake = anyio.Event()
            try:
                async with watched.turn:
                    poll_seconds = await self.look_at(watched)
                # A look that takes long is not taken often.
                pause = min(max(self._seconds, 4 * poll_seconds), _RETRY_SECONDS)
            except Problem as problem:
                logger.info("Not looked at: %s", problem)
                watched.snapshot = watched.catalog_state = None
                pause = min(max(pause * 2, 0.5), _RETRY_SECONDS)

    async def _listen(self, watched: _WatchedDatabase, channel: str) -> None:
        connections = self._pools.following[watched.database.name]
        while True:
            await watched.has_followers.wait()
            try:
                async with connections.listen(channel) as notifications:
                    watched.wake.set()
                    async for _ in notifications:
                        watched.wake.set()
            except (Problem, psycopg.Error) as error:
                logger.info("Not listening: %s", error)
            await anyio.sleep(_RETRY_SECONDS)

    async def look_at(self, watched: _WatchedDatabase) -> float:
        """Announce what changed; returns the seconds that this took, without resources that have their own pace."""
        start_time = anyio.current_time()
        snapshot = await self._query(watched, _SNAPSHOT)
        due = await self._find_due(watched, snapshot)
        digests: dict[str, str] = {}
        own_pace_seconds = 0.0
        for key, readable in due.items():
            since = anyio.current_time()
            digests[key] = await self._digest(readable)
            interval = _polling_interval(readable.request)
            if interval is not None:
                watched.due_times[key] = anyio.current_time() + interval
                own_pace_seconds += anyio.current_time() - since
        changed = watched.compare(digests)
        if watched.listed and snapshot != watched.snapshot and await self._have_tables_changed(watched):
            changed.append(TableListKey(watched.database.name))
        watched.snapshot = snapshot
        if changed:
            self.changed(changed)
        return anyio.current_time() - start_time - own_pace_seconds

    async def _find_due(self, watched: _WatchedDatabase, snapshot: str | None) -> dict[str, Readable[Request]]:
        """Return what may have changed: schemas only where the catalog did."""
        now = anyio.current_time()
        due = {key: item for key, item in watched.readables.items() if self._is_due(watched, item, now, snapshot)}
        if not any(isinstance(item.request, _SCHEMA_REQUESTS) for item in due.values()):
            return due
        catalog_state = await self._query(watched, _CATALOG_STATE)
        if catalog_state == watched.catalog_state:
            due = {key: item for key, item in due.items() if not isinstance(item.request, _SCHEMA_REQUESTS)}
        watched.catalog_state = catalog_state
        return due

    async def _have_tables_changed(self, watched: _WatchedDatabase) -> bool:
        """Return whether there are other tables than the last time, if there was one."""
        names = await self._query(watched, self._tables)
        have_changed = watched.table_names is not None and names != watched.table_names
        watched.table_names = names
        return have_changed

    def _is_due(self, watched: _WatchedDatabase, readable: Readable[Request], now: float, snapshot: str | None) -> bool:
        if _polling_interval(readable.request) is not None:
            return watched.due_times.get(readable.key, 0.0) <= now
        return snapshot != watched.snapshot

    def request(self, readable: Readable[Request]) -> Request:
        request = super().request(readable)
        if isinstance(request, QueryOf):
            return for_role_of(request, readable.database)
        return request

    async def _digest(self, readable: Readable[Request]) -> str:
        try:
            content = await read_content(self._pools, self._pages, self.request(readable))
        except NotFound as problem:
            return f"{ABSENT}{problem}"
        except Problem as problem:
            # Treat unreadable as changed: an extra notice is better than a missed one.
            return f"unreadable: {problem}"
        if isinstance(content, RowPage):
            text = content.document()
        else:
            text = content
        if isinstance(readable.request, HealthOf):
            text = re.sub(r"\d+", "", text)
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()

    async def _read_table_names(self, watched: _WatchedDatabase) -> str | None:
        try:
            return await self._query(watched, self._tables)
        except Problem as problem:
            logger.info("Not looked at: %s", problem)
            return None

    async def _query(self, watched: _WatchedDatabase, sql: str) -> str | None:
        async def do() -> str | None:
            connections = self._pools.following[watched.database.name]
            async with connections.session(
                transaction_opening(_LIMITS), seconds=_LIMITS.statement_seconds, role=SERVER_ROLE
            ) as session:
                return await session.fetch_value(sql)

        return await run_shielded(do())


def _polling_interval(request: Request) -> float | None:
    return next((seconds for kind, seconds in _POLLING_INTERVALS.items() if isinstance(request, kind)), None)
