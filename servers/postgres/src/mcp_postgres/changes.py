"""What tells which URIs to refresh: commits by anybody, noticed by polling, decided by what is really served.

While something of a database is followed, a connection of its own asks for the current snapshot, which every commit
changes and which needs no right. Only if it changed, what somebody subscribed to is read and compared. With `--listen`
a notification wakes the same look at once. Nobody subscribed: nothing is asked.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass

import anyio
import psycopg

from mcp_batteries.errors import Problem
from mcp_batteries.sql.rows import RowPage
from mcp_postgres.engine.admission import Limits, opening
from mcp_postgres.engine.connections import apart
from mcp_postgres.engine.service import Engine
from mcp_postgres.policy import Database, Policy, Subject
from mcp_postgres.resources import Resources
from mcp_postgres.settings import Settings

__all__ = ["DatabaseWatcher", "demonstration"]

logger = logging.getLogger(__name__)

_LIMITS = Limits(5.0, 1.0)
_GATE = "SELECT pg_current_snapshot()::text || ' ' || pg_postmaster_start_time()"
_NAMES = """
SELECT md5(coalesce(string_agg(n.nspname || '.' || c.relname, ' ' ORDER BY n.nspname, c.relname), ''))
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition AND n.nspname !~ '^pg_'
    AND n.nspname <> 'information_schema' AND has_table_privilege(c.oid, 'SELECT')
"""
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
_DEFINED = {"schema", "table"}
_UNGATED = {"activity": 1.0, "health": 15.0}
"""What changes without a commit, and the seconds between two looks at it."""
_BACK_OFF = 5.0
"""Seconds between two tries of a database that is down."""


@dataclass(frozen=True)
class _Tables:
    """The key for the tables that `resources/list` shows of a database."""

    database: str


class _Watched:
    """One database, the subjects somebody subscribed to, and the digests they had at the last look."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.subjects: dict[str, Subject] = {}
        self.digests: dict[str, str] = {}
        self.due: dict[str, float] = {}
        self.names: str | None = None
        self.listed = False
        self.gate: str | None = None
        self.catalogue: str | None = None
        self.wanted = anyio.Event()
        self.wake = anyio.Event()
        self.turn = anyio.Lock()

    def update(self) -> None:
        if not (self.listed or self.subjects):
            self.wanted = anyio.Event()
        elif not self.wanted.is_set():
            self.wanted.set()


class DatabaseWatcher:
    """The source of changes for `postgres://` URIs; a key is a subject's URI in its one spelling.

    Args:
        seconds: between two looks.
        channel: to LISTEN on, where triggers tell of changes.
    """

    def __init__(
        self, policy: Policy, engine: Engine, resources: Resources, *, seconds: float, channel: str | None
    ) -> None:
        self._engine, self._resources = engine, resources
        self._seconds, self._channel = seconds, channel
        self._watched = {name: _Watched(database) for name, database in policy.databases.items()}
        self.list_keys: Collection[Hashable] = tuple(map(_Tables, self._watched))
        self._subjects: dict[str, Subject] = {}

    def key(self, uri: str) -> Hashable | None:
        subject = self._resources.subject(uri)
        if subject is None:
            return None
        self._subjects[subject.uri] = subject
        return subject.uri

    async def add(self, keys: Collection[Hashable]) -> None:
        for key in keys:
            if isinstance(key, _Tables):
                watched = self._watched[key.database]
                async with watched.turn:
                    watched.names = await self._names(watched) or watched.names
                    watched.listed = True
            else:
                subject = self._subjects[str(key)]
                watched = self._watched[subject.database.name]
                async with watched.turn:
                    watched.digests[subject.uri] = await self._digest(subject)
                    watched.subjects[subject.uri] = subject
                    # What was committed while this was read is seen by the next look.
                    watched.gate = watched.catalogue = None
            watched.update()

    def discard(self, keys: Collection[Hashable]) -> None:
        for key in keys:
            if isinstance(key, _Tables):
                self._watched[key.database].listed = False
            elif (subject := self._subjects.pop(str(key), None)) is not None:
                watched = self._watched[subject.database.name]
                watched.subjects.pop(subject.uri, None)
                watched.digests.pop(subject.uri, None)
        for watched in self._watched.values():
            watched.update()

    async def run(self, changed: Callable[[Collection[Hashable]], None]) -> None:
        self._changed = changed
        try:
            async with anyio.create_task_group() as tasks:
                for watched in self._watched.values():
                    tasks.start_soon(self._follow, watched)
                    if self._channel is not None:
                        tasks.start_soon(self._listen, watched, self._channel)
        finally:
            for watched in self._watched.values():
                watched.subjects.clear()
                watched.digests.clear()
                watched.listed, watched.names, watched.gate, watched.catalogue = False, None, None, None
                watched.update()

    async def _follow(self, watched: _Watched) -> None:
        pause = self._seconds
        while True:
            await watched.wanted.wait()
            with anyio.move_on_after(pause):
                await watched.wake.wait()
            watched.wake = anyio.Event()
            try:
                async with watched.turn:
                    taken = await self._look(watched)
                # A look that takes long is not taken often.
                pause = min(max(self._seconds, 4 * taken), _BACK_OFF)
            except Problem as problem:
                logger.info("Not looked at: %s", problem)
                watched.gate = watched.catalogue = None
                pause = min(max(pause * 2, 0.5), _BACK_OFF)

    async def _listen(self, watched: _Watched, channel: str) -> None:
        connections = self._engine.following[watched.database.name]
        while True:
            await watched.wanted.wait()
            try:
                async with connections.listening(channel) as notifications:
                    watched.wake.set()
                    async for _ in notifications:
                        watched.wake.set()
            except (Problem, psycopg.Error) as error:
                logger.info("Not listening: %s", error)
            await anyio.sleep(_BACK_OFF)

    async def _look(self, watched: _Watched) -> float:
        """Tell what changed; the seconds this took, without what has a pace of its own."""
        begun, aside = anyio.current_time(), 0.0
        gate = await self._ask(watched, _GATE)
        now = anyio.current_time()
        looked = [
            subject for uri, subject in watched.subjects.items() if self._pending(watched, uri, subject, now, gate)
        ]
        if any(subject.request["do"] in _DEFINED for subject in looked):
            catalogue = await self._ask(watched, _CATALOGUE)
            if catalogue == watched.catalogue:
                looked = [subject for subject in looked if subject.request["do"] not in _DEFINED]
            watched.catalogue = catalogue
        changed: list[Hashable] = []
        for subject in looked:
            since = anyio.current_time()
            digest = await self._digest(subject)
            if (rest := _UNGATED.get(str(subject.request["do"]))) is not None:
                watched.due[subject.uri] = anyio.current_time() + rest
                aside += anyio.current_time() - since
            if subject.uri in watched.subjects and watched.digests.get(subject.uri) != digest:
                watched.digests[subject.uri] = digest
                changed.append(subject.uri)
        if watched.listed and gate != watched.gate:
            names = await self._ask(watched, _NAMES)
            if watched.names is not None and names != watched.names:
                changed.append(_Tables(watched.database.name))
            watched.names = names
        watched.gate = gate
        if changed:
            self._changed(changed)
        return anyio.current_time() - begun - aside

    def _pending(self, watched: _Watched, uri: str, subject: Subject, now: float, gate: str | None) -> bool:
        if str(subject.request["do"]) in _UNGATED:
            return watched.due.get(uri, 0.0) <= now
        return gate != watched.gate

    async def _digest(self, subject: Subject) -> str:
        try:
            now = self._resources.subject(subject.uri) if subject.request["do"] == "query" else subject
            found = await self._engine.read(subject.database, (now or subject).request)
        except Problem as problem:
            # What can't be read may be another thing when it can: a notice too many, none too few.
            return f"unreadable: {problem}"
        text = found.document() if isinstance(found, RowPage) else found
        if subject.request["do"] == "health":
            text = re.sub(r"\d+", "", text)
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()

    async def _names(self, watched: _Watched) -> str | None:
        try:
            return await self._ask(watched, _NAMES)
        except Problem as problem:
            logger.info("Not looked at: %s", problem)
            return None

    async def _ask(self, watched: _Watched, sql: str) -> str | None:
        async def do() -> str | None:
            connections = self._engine.following[watched.database.name]
            async with connections.session(opening(_LIMITS), seconds=_LIMITS.seconds) as session:
                return await session.value(sql)

        return await apart(do())


def demonstration(settings: Settings) -> tuple[str, Callable[[], None]] | None:
    """For `--check`: nothing in a database can be changed without changing it."""
    return None
