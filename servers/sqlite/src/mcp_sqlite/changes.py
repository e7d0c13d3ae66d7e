"""Says which URIs to refresh: commits by any program, noticed by files, checked against what is really served.

A watcher wakes up for the database file, its journal and its write-ahead log. A separate worker then checks, in the
order of cost, whether another file is at the path, whether `data_version` shows a commit, and which of the subscribed
contents changed. A check once a second catches what no file event showed.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Any

import anyio
from anyio.abc import TaskGroup

from mcp_batteries.errors import Problem, Unavailable, quote
from mcp_batteries.sql import watching
from mcp_batteries.sql.watching import TablesOf, demonstration
from mcp_batteries.subscriptions.file_watcher import FileWatcher
from mcp_batteries.subscriptions.glance import glance
from mcp_sqlite.engine.service import Engine
from mcp_sqlite.policy import Database, Policy, Readable, Request

__all__ = ["DatabaseWatcher", "demonstration"]

logger = logging.getLogger(__name__)

_POLL_SECONDS = 1.0
_AGAIN_SECONDS = (0.004, 0.02, 0.1)
"""A write-ahead log is written and flushed before its commit can be seen: what woke us may have been too early."""
_QUIET_SECONDS = 5.0
"""For which `list_changes` waits for a moment in which nobody writes."""
_BESIDE = ("-wal", "-journal")


class _Watched(watching.Watched):
    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.armed: list[str] = []
        self.schema: str | None = None
        self.early: float | None = None
        """In how many seconds to look again, where the last look came while somebody wrote."""

    def clear(self) -> None:
        super().clear()
        self.armed, self.schema = [], None


class DatabaseWatcher(watching.Watcher[_Watched]):
    """The source of changes for `sqlite://` URIs."""

    def __init__(self, policy: Policy, engine: Engine, readable: Callable[[str], Readable[Request] | None]) -> None:
        super().__init__(map(_Watched, policy.databases.values()), readable)
        self._engine = engine
        folders = sorted({os.path.dirname(watched.database.address) for watched in self.watched.values()})
        self._files = FileWatcher(folders, locate=lambda uri: None, probe=_probe)

    async def begin(self, watched: _Watched, readables: Mapping[str, Readable[Request]]) -> None:
        await self._arm(watched)
        found = await self._ask(watched.database, readables, new=True)
        watched.readables |= readables
        watched.digests |= found["digests"]
        watched.schema = watched.schema or found["schema"]

    def discard(self, keys: Collection[Hashable]) -> None:
        super().discard(keys)
        for watched in self.watched.values():
            if watched.armed and not watched.wanted:
                self._files.discard(watched.armed)
                watched.armed = []

    def start(self, tasks: TaskGroup) -> None:
        tasks.start_soon(self._files.run, self._touched)
        for watched in self.watched.values():
            tasks.start_soon(self._follow, watched)

    def _touched(self, paths: Collection[Hashable]) -> None:
        for watched in self.watched.values():
            if not set(paths).isdisjoint(watched.armed):
                watched.wake.set()

    async def _arm(self, watched: _Watched) -> None:
        """Watch the files of a database; if its path is a link, those beside its target."""
        files = _files_of(watched.database.address)
        if files != watched.armed:
            self._files.discard(set(watched.armed) - set(files))
            await self._files.add(files)
            watched.armed = files

    async def _follow(self, watched: _Watched) -> None:
        again: list[float] = []
        while True:
            with anyio.move_on_after(again.pop(0) if again else _POLL_SECONDS if watched.wanted else None):
                await watched.wake.wait()
                again = list(_AGAIN_SECONDS)
            watched.wake = anyio.Event()
            if watched.wanted:
                begun = anyio.current_time()
                async with watched.turn:
                    await self._arm(watched)
                    soon = await self._look(watched)
                soon = watched.early if soon is None else soon
                if soon is not None:
                    again.insert(0, soon)
                # A look that takes long is at most half of the time.
                await anyio.sleep(min(anyio.current_time() - begun, _POLL_SECONDS))

    async def look_at(self, watched: _Watched) -> None:
        until = anyio.current_time() + _QUIET_SECONDS
        while anyio.current_time() < until:
            if (soon := await self._look(watched)) is None:
                return
            await anyio.sleep(soon)
        raise Unavailable(f"{quote(watched.database.name)} is being written to all the time.", "Ask again soon.")

    async def _look(self, watched: _Watched) -> float | None:
        """Announce what changed; returns in how many seconds to check again what could not be read now."""
        found = await self._ask(watched.database, watched.readables, new=False)
        watched.early = found.get("early")
        if found["digests"] is None:
            return found.get("again")
        changed = watched.compare(found["digests"])
        if found["schema"] not in (None, watched.schema):
            watched.schema = found["schema"]
            changed.append(TablesOf(watched.database.name))
        if changed:
            self.changed(changed)
        return found.get("again")

    async def _ask(
        self, database: Database, readables: Mapping[str, Readable[Request]], *, new: bool
    ) -> dict[str, Any]:
        requests = {uri: self.request(item) for uri, item in readables.items()}
        try:
            return await self._engine.digest_subjects(database, requests, new=new)
        except Problem as problem:
            # Treat unreadable as changed: an extra notice is better than a missed one.
            logger.info("Not compared: %s", problem)
            mark = f"unknown {anyio.current_time()}"
            return {"digests": dict.fromkeys(readables, mark), "schema": mark}


def _files_of(path: str) -> list[str]:
    # The path itself too: where it is a link, it may lead elsewhere tomorrow.
    return [path, *(os.path.realpath(path) + ending for ending in _BESIDE)]


def _probe(path: str) -> Hashable | None:
    if path.endswith(_BESIDE):
        return glance(path)
    found = os.stat(path)
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev)
