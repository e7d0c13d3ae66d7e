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
from mcp_batteries.sql.rows import RowPage
from mcp_batteries.sql.watching import TablesOf, demonstration
from mcp_batteries.subscriptions.journal import ABSENT
from mcp_postgres.engine.admission.statements import Limits, opening
from mcp_postgres.engine.connection.pool import ITSELF, apart
from mcp_postgres.engine.service import Engine
from mcp_postgres.policy import (
    ActivityOf,
    Database,
    HealthOf,
    Policy,
    Readable,
    Request,
    SchemaOf,
    TableOf,
)

__all__ = ["DatabaseWatcher", "demonstration"]

logger = logging.getLogger(__name__)

_LIMITS = Limits(5.0, 1.0)
_GATE = "SELECT pg_current_snapshot()::text || ' ' || pg_postmaster_start_time()"
_NAMES = """
SELECT md5(coalesce(string_agg(n.nspname || '.' || c.relname, ' ' ORDER BY n.nspname, c.relname), ''))
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition AND n.nspname !~ '^pg_'
    AND n.nspname <> 'information_schema'{}
"""
_MAY_READ = " AND has_table_privilege(c.oid, 'SELECT')"
"""Where callers have roles of their own, any of them may: PostgreSQL shows everybody what tables there are."""
_CATALOGUE = "SELECT md5(concat_ws(' ', current_database(), pg_postmaster_start_time(), {}))".format(
    ", ".join(
        f"(SELECT concat(count(*), '/', sum(xmin::text::bigint)) FROM {name})"
        for name in (
            "pg_class", "pg_attribute", "pg_attrdef", "pg_constraint", "pg_index", "pg_description", "pg_trigger",
            "pg_policy", "pg_rewrite", "pg_enum", "pg_type", "pg_namespace", "pg_inherits", "pg_auth_members",
        )
    )
)  # fmt: skip
"""What changes with everything that a schema's resource shows, in a few milliseconds."""
_DEFINED = (SchemaOf, TableOf)
_UNGATED = {ActivityOf: 1.0, HealthOf: 15.0}
"""What changes without a commit, and the seconds between two looks at it."""
_BACK_OFF = 5.0
"""Seconds between two tries of a database that is down."""


class _Watched(watching.Watched):
    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.due: dict[str, float] = {}
        self.names: str | None = None
        self.gate: str | None = None
        self.catalogue: str | None = None
        self.begun = anyio.Event()
        """Set while somebody wants to hear of it."""

    def settle(self) -> None:
        if not self.listed:
            self.names = None
        if not self.wanted:
            self.begun = anyio.Event()
        elif not self.begun.is_set():
            self.begun.set()

    def clear(self) -> None:
        super().clear()
        self.gate = self.catalogue = None
        self.settle()


class DatabaseWatcher(watching.Watcher[_Watched]):
    """The source of changes for `postgres://` URIs.

    Args:
        seconds: the time between two checks.
        channel: the channel to LISTEN on, where triggers announce changes.
    """

    def __init__(
        self,
        policy: Policy,
        engine: Engine,
        readable: Callable[[str], Readable[Request] | None],
        *,
        seconds: float,
        channel: str | None,
    ) -> None:
        super().__init__(map(_Watched, policy.databases.values()), readable)
        self._policy, self._engine = policy, engine
        self._seconds, self._channel = seconds, channel
        self._tables = _NAMES.format("" if policy.has_callers else _MAY_READ)

    async def begin(self, watched: _Watched, readables: Mapping[str, Readable[Request]]) -> None:
        if watched.listed and watched.names is None:
            watched.names = await self._names(watched)
        for key, readable in readables.items():
            watched.digests[key] = await self._digest(readable)
            watched.readables[key] = readable
            # What was committed while this was read is seen by the next look.
            watched.gate = watched.catalogue = None

    def start(self, tasks: TaskGroup) -> None:
        for watched in self.watched.values():
            tasks.start_soon(self._follow, watched)
            if self._channel is not None:
                tasks.start_soon(self._listen, watched, self._channel)

    async def _follow(self, watched: _Watched) -> None:
        pause = self._seconds
        while True:
            await watched.begun.wait()
            with anyio.move_on_after(pause):
                await watched.wake.wait()
            watched.wake = anyio.Event()
            try:
                async with watched.turn:
                    taken = await self.look_at(watched)
                # A look that takes long is not taken often.
                pause = min(max(self._seconds, 4 * taken), _BACK_OFF)
            except Problem as problem:
                logger.info("Not looked at: %s", problem)
                watched.gate = watched.catalogue = None
                pause = min(max(pause * 2, 0.5), _BACK_OFF)

    async def _listen(self, watched: _Watched, channel: str) -> None:
        connections = self._engine.following[watched.database.name]
        while True:
            await watched.begun.wait()
            try:
                async with connections.listening(channel) as notifications:
                    watched.wake.set()
                    async for _ in notifications:
                        watched.wake.set()
            except (Problem, psycopg.Error) as error:
                logger.info("Not listening: %s", error)
            await anyio.sleep(_BACK_OFF)

    async def look_at(self, watched: _Watched) -> float:
        """Announce what changed; returns the seconds that this took, without resources that have their own pace."""
        begun, aside = anyio.current_time(), 0.0
        gate = await self._ask(watched, _GATE)
        now = anyio.current_time()
        looked = {
            key: readable for key, readable in watched.readables.items() if self._pending(watched, readable, now, gate)
        }
        if any(isinstance(readable.request, _DEFINED) for readable in looked.values()):
            catalogue = await self._ask(watched, _CATALOGUE)
            if catalogue == watched.catalogue:
                looked = {key: item for key, item in looked.items() if not isinstance(item.request, _DEFINED)}
            watched.catalogue = catalogue
        digests: dict[str, str] = {}
        for key, readable in looked.items():
            since = anyio.current_time()
            digests[key] = await self._digest(readable)
            if (rest := _pause(readable.request)) is not None:
                watched.due[key] = anyio.current_time() + rest
                aside += anyio.current_time() - since
        changed = watched.compare(digests)
        if watched.listed and gate != watched.gate:
            names = await self._ask(watched, self._tables)
            if watched.names is not None and names != watched.names:
                changed.append(TablesOf(watched.database.name))
            watched.names = names
        watched.gate = gate
        if changed:
            self.changed(changed)
        return anyio.current_time() - begun - aside

    def _pending(self, watched: _Watched, readable: Readable[Request], now: float, gate: str | None) -> bool:
        if _pause(readable.request) is not None:
            return watched.due.get(readable.key, 0.0) <= now
        return gate != watched.gate

    def request(self, readable: Readable[Request]) -> Request:
        with self._policy.standing_in(readable.database):
            return super().request(readable)

    async def _digest(self, readable: Readable[Request]) -> str:
        try:
            found = await self._engine.read(self.request(readable))
        except NotFound as problem:
            return f"{ABSENT}{problem}"
        except Problem as problem:
            # Treat unreadable as changed: an extra notice is better than a missed one.
            return f"unreadable: {problem}"
        text = found.document() if isinstance(found, RowPage) else found
        if isinstance(readable.request, HealthOf):
            text = re.sub(r"\d+", "", text)
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()

    async def _names(self, watched: _Watched) -> str | None:
        try:
            return await self._ask(watched, self._tables)
        except Problem as problem:
            logger.info("Not looked at: %s", problem)
            return None

    async def _ask(self, watched: _Watched, sql: str) -> str | None:
        async def do() -> str | None:
            connections = self._engine.following[watched.database.name]
            async with connections.session(opening(_LIMITS), seconds=_LIMITS.seconds, role=ITSELF) as session:
                return await session.value(sql)

        return await apart(do())


def _pause(request: Request) -> float | None:
    return next((seconds for kind, seconds in _UNGATED.items() if isinstance(request, kind)), None)
