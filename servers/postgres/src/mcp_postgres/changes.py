"""Says which URIs to refresh: commits by anybody, noticed by polling, checked against what is really served.

While somebody follows something in a database, a separate connection polls the current snapshot, which every commit
changes and which needs no privilege. Only if it changed are subscribed resources read and compared. With `--listen` a
notification triggers the same check at once. Without subscribers nothing is polled.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Hashable, Mapping

import anyio
import psycopg
from anyio.abc import TaskGroup

from mcp_batteries.errors import Problem
from mcp_batteries.sql.results.rows import RowPage
from mcp_batteries.sql.watching import DatabaseSource, FollowedDatabase, Subject, TableList, demonstration
from mcp_batteries.subscriptions.digest_source import compute_digest
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
# Seconds until the next try of a database that is down: at first, and at most.
_MIN_RETRY_SECONDS = 0.5
_RETRY_SECONDS = 5.0


class _FollowedDatabase(FollowedDatabase):
    """A database in which somebody follows something.

    Attributes:
        due_times: when what changes without a commit is read again.
        snapshot: the state at the last check; None to read everything.
        catalog_state: likewise, of the catalog.
        pause_seconds: between the last check and the one before it.
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.due_times: dict[Hashable, float] = {}
        self.snapshot: str | None = None
        self.catalog_state: str | None = None
        self.pause_seconds = 0.0

    def forget_states(self) -> None:
        """Let the next check read everything."""
        self.snapshot = None
        self.catalog_state = None

    def clear(self) -> None:
        super().clear()
        self.forget_states()


class DatabaseWatcher(DatabaseSource[_FollowedDatabase]):
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
        followed = {name: _FollowedDatabase(database) for name, database in policy.databases.items()}
        super().__init__(followed, readable, seconds)
        self._pools = pools
        self._pages = pages
        self._seconds = seconds
        self._channel = channel
        self._table_names = _TABLE_NAMES.format("" if policy.has_callers else _MAY_READ)

    def start(self, tasks: TaskGroup) -> None:
        if self._channel is not None:
            for group in self.groups.values():
                tasks.start_soon(self._listen, group, self._channel)

    async def read_first(
        self, group: _FollowedDatabase, subjects: Mapping[Hashable, Subject]
    ) -> Mapping[Hashable, str]:
        digests = {key: await self._digest(group, subject) for key, subject in subjects.items()}
        # What was committed while this was read is seen by the next check.
        group.forget_states()
        return digests

    async def check(self, group: _FollowedDatabase, *, is_woken: bool) -> float:
        try:
            seconds = await self._announce_changes(group)
        except Problem as problem:
            logger.info("Not looked at: %s", problem)
            group.forget_states()
            group.pause_seconds = max(group.pause_seconds * 2, _MIN_RETRY_SECONDS)
        else:
            # A check that takes long is not made often.
            group.pause_seconds = max(self._seconds, 4 * seconds)
        group.pause_seconds = min(group.pause_seconds, _RETRY_SECONDS)
        return group.pause_seconds

    async def check_now(self, group: _FollowedDatabase) -> None:
        await self._announce_changes(group)

    async def _announce_changes(self, group: _FollowedDatabase) -> float:
        """Announce what changed; return the seconds that this took, without resources that have their own pace."""
        start_time = anyio.current_time()
        snapshot = await self._query(group, _SNAPSHOT)
        due = await self._select_due(group, snapshot)
        digests: dict[Hashable, str] = {}
        own_pace_seconds = 0.0
        for key, subject in due.items():
            since = anyio.current_time()
            digests[key] = await self._digest(group, subject)
            interval = _polling_interval(subject)
            if interval is not None:
                group.due_times[key] = anyio.current_time() + interval
                own_pace_seconds += anyio.current_time() - since
        group.snapshot = snapshot
        changed = group.compare(digests)
        if changed:
            self.changed(changed)
        return anyio.current_time() - start_time - own_pace_seconds

    async def _listen(self, group: _FollowedDatabase, channel: str) -> None:
        connections = self._pools.following[group.database.name]
        while True:
            await group.has_subjects.wait()
            try:
                async with connections.listen(channel) as notifications:
                    group.wake.set()
                    async for _ in notifications:
                        group.wake.set()
            except (Problem, psycopg.Error) as error:
                logger.info("Not listening: %s", error)
            await anyio.sleep(_RETRY_SECONDS)

    async def _select_due(self, group: _FollowedDatabase, snapshot: str | None) -> dict[Hashable, Subject]:
        """Return what may have changed: schemas only where the catalog did."""
        now = anyio.current_time()
        due = {key: subject for key, subject in group.subjects.items() if _is_due(group, key, subject, now, snapshot)}
        if not any(map(_is_schema, due.values())):
            return due
        catalog_state = await self._query(group, _CATALOG_STATE)
        if catalog_state == group.catalog_state:
            due = {key: subject for key, subject in due.items() if not _is_schema(subject)}
        group.catalog_state = catalog_state
        return due

    def request(self, readable: Readable[Request]) -> Request:
        request = super().request(readable)
        if isinstance(request, QueryOf):
            return for_role_of(request, readable.database)
        return request

    async def _digest(self, group: _FollowedDatabase, subject: Subject) -> str:
        if isinstance(subject, TableList):
            return await compute_digest(self._read_table_names(group))
        return await compute_digest(self._read_text(subject))

    async def _read_text(self, readable: Readable[Request]) -> str:
        content = await read_content(self._pools, self._pages, self.request(readable))
        if isinstance(content, RowPage):
            text = content.document()
        else:
            text = content
        if isinstance(readable.request, HealthOf):
            text = re.sub(r"\d+", "", text)
        return text

    async def _read_table_names(self, group: _FollowedDatabase) -> str:
        return await self._query(group, self._table_names) or ""

    async def _query(self, group: _FollowedDatabase, sql: str) -> str | None:
        async def do() -> str | None:
            connections = self._pools.following[group.database.name]
            async with connections.session(
                transaction_opening(_LIMITS), seconds=_LIMITS.statement_seconds, role=SERVER_ROLE
            ) as session:
                return await session.fetch_value(sql)

        return await run_shielded(do())


def _is_due(group: _FollowedDatabase, key: Hashable, subject: Subject, now: float, snapshot: str | None) -> bool:
    if _polling_interval(subject) is not None:
        return group.due_times.get(key, 0.0) <= now
    return snapshot != group.snapshot


def _is_schema(subject: Subject) -> bool:
    return isinstance(subject, Readable) and isinstance(subject.request, _SCHEMA_REQUESTS)


def _polling_interval(subject: Subject) -> float | None:
    if isinstance(subject, TableList):
        return None
    return next((seconds for kind, seconds in _POLLING_INTERVALS.items() if isinstance(subject.request, kind)), None)
