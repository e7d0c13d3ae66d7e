"""What tells which URIs to refresh: commits by any program, noticed by files, decided by what is really served.

A watcher wakes for the database file, its journal and its write-ahead log. A worker of its own then looks, in the
order of cost, whether another file is at the path, whether `data_version` says that somebody committed, and which of
the contents somebody subscribed to differ from before. A look once a second catches what no file told.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass
from typing import Any

import anyio

from mcp_batteries.errors import Problem
from mcp_batteries.subscriptions.file_watcher import FileWatcher
from mcp_sqlite.engine.service import Engine
from mcp_sqlite.policy import Database, Policy, Subject
from mcp_sqlite.resources import Resources
from mcp_sqlite.settings import Settings

__all__ = ["DatabaseWatcher", "demonstration"]

logger = logging.getLogger(__name__)

_POLL_SECONDS = 1.0
_AGAIN_SECONDS = (0.02, 0.1)
"""A write-ahead log is written and flushed before its commit can be seen: what woke us may have been too early."""
_FILES = ("", "-wal", "-journal")


@dataclass(frozen=True)
class _Tables:
    """The key for the tables that `resources/list` shows of a database."""

    database: str


class _Watched:
    """One database, the subjects somebody subscribed to, and the digests they had at the last look."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.files = [database.path + ending for ending in _FILES]
        self.subjects: dict[str, Subject] = {}
        self.digests: dict[str, str] = {}
        self.schema: str | None = None
        self.listed = False
        self.wake = anyio.Event()
        self.turn = anyio.Lock()

    @property
    def wanted(self) -> bool:
        return self.listed or bool(self.subjects)


class DatabaseWatcher:
    """The source of changes for `sqlite://` URIs; a key is a subject's URI in its one spelling."""

    def __init__(self, policy: Policy, engine: Engine, resources: Resources) -> None:
        self._engine, self._resources = engine, resources
        self._watched = {name: _Watched(database) for name, database in policy.databases.items()}
        self._by_file = {path: watched for watched in self._watched.values() for path in watched.files}
        self.list_keys: Collection[Hashable] = tuple(map(_Tables, self._watched))
        self._subjects: dict[str, Subject] = {}
        self._armed: set[str] = set()
        folders = sorted({os.path.dirname(watched.database.path) for watched in self._watched.values()})
        self._files = FileWatcher(folders, locate=lambda uri: None, probe=_probe)

    def key(self, uri: str) -> Hashable | None:
        subject = self._resources.subject(uri)
        if subject is None:
            return None
        self._subjects[subject.uri] = subject
        return subject.uri

    async def add(self, keys: Collection[Hashable]) -> None:
        new: dict[str, dict[str, Subject]] = {}
        for key in keys:
            if isinstance(key, _Tables):
                self._watched[key.database].listed = True
                new.setdefault(key.database, {})
            else:
                subject = self._subjects[str(key)]
                new.setdefault(subject.database.name, {})[subject.uri] = subject
        for name, subjects in new.items():
            watched = self._watched[name]
            if name not in self._armed:
                self._armed.add(name)
                await self._files.add(watched.files)
            async with watched.turn:
                await self._first_look(watched, subjects)

    def discard(self, keys: Collection[Hashable]) -> None:
        for key in keys:
            if isinstance(key, _Tables):
                self._watched[key.database].listed = False
            elif (subject := self._subjects.pop(str(key), None)) is not None:
                watched = self._watched[subject.database.name]
                watched.subjects.pop(subject.uri, None)
                watched.digests.pop(subject.uri, None)
        for watched in self._watched.values():
            if not watched.wanted and watched.database.name in self._armed:
                self._armed.discard(watched.database.name)
                self._files.discard(watched.files)

    async def run(self, changed: Callable[[Collection[Hashable]], None]) -> None:
        self._changed = changed
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._files.run, self._touched)
                for watched in self._watched.values():
                    tasks.start_soon(self._follow, watched)
        finally:
            self._armed.clear()
            for watched in self._watched.values():
                watched.subjects.clear()
                watched.digests.clear()
                watched.listed, watched.schema = False, None

    def _touched(self, paths: Collection[Hashable]) -> None:
        for path in paths:
            self._by_file[str(path)].wake.set()

    async def _follow(self, watched: _Watched) -> None:
        again: list[float] = []
        while True:
            with anyio.move_on_after(again.pop(0) if again else _POLL_SECONDS if watched.wanted else None):
                await watched.wake.wait()
                again = list(_AGAIN_SECONDS)
            watched.wake = anyio.Event()
            if watched.wanted:
                async with watched.turn:
                    await self._look(watched)

    async def _first_look(self, watched: _Watched, subjects: dict[str, Subject]) -> None:
        found = await self._ask(watched.database, subjects, new=True)
        watched.subjects |= subjects
        watched.digests |= found["digests"]
        watched.schema = watched.schema or found["schema"]

    async def _look(self, watched: _Watched) -> None:
        found = await self._ask(watched.database, watched.subjects, new=False)
        if (digests := found["digests"]) is None:
            return
        changed: list[Hashable] = [
            uri for uri, digest in digests.items() if uri in watched.subjects and watched.digests.get(uri) != digest
        ]
        watched.digests |= {uri: digest for uri, digest in digests.items() if uri in watched.subjects}
        if found["schema"] != watched.schema:
            watched.schema = found["schema"]
            changed.append(_Tables(watched.database.name))
        if changed:
            self._changed(changed)

    def _request(self, subject: Subject) -> Any:
        # A saved query may be another one by now.
        try:
            now = self._resources.subject(subject.uri) if subject.request["do"] == "query" else None
        except Problem:
            now = None
        return (now or subject).request

    async def _ask(self, database: Database, subjects: dict[str, Subject], *, new: bool) -> dict[str, Any]:
        requests = {uri: self._request(item) for uri, item in subjects.items()}
        try:
            return await self._engine.look(database, requests, new=new)
        except Problem as problem:
            # Unknown is told as a change: a notice too many, none too few.
            logger.info("Not compared: %s", problem)
            mark = f"unknown {anyio.current_time()}"
            return {"digests": dict.fromkeys(subjects, mark), "schema": mark}


def _probe(path: str) -> Hashable | None:
    found = os.stat(path)
    return (found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev)


def demonstration(settings: Settings) -> tuple[str, Callable[[], None]] | None:
    """For `--check`: nothing in a database can be changed without changing it."""
    return None
