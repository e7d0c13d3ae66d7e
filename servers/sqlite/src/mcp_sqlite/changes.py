"""Says which URIs to refresh: commits by any program, noticed by files, checked against what is really served.

A watcher wakes up for the database file, its journal and its write-ahead log. A separate worker then checks, in the
order of cost, whether another file is at the path, whether `data_version` shows a commit, and which of the subscribed
contents changed. A check once a second catches what no file event showed.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Any

import anyio
from anyio.abc import TaskGroup

from mcp_batteries.errors import Problem, Unavailable, quote
from mcp_batteries.sql import watching
from mcp_batteries.sql.watching import TableListKey, demonstration
from mcp_batteries.subscriptions.file_state import read_file_state
from mcp_batteries.subscriptions.file_watcher import FileWatcher
from mcp_sqlite.engine.contents import digest_subjects
from mcp_sqlite.engine.worker_pool import WorkerPool
from mcp_sqlite.policy import Database, Policy, Readable, Request

__all__ = ["DatabaseWatcher", "demonstration"]

logger = logging.getLogger(__name__)

_POLL_SECONDS = 1.0
# A write-ahead log is written and flushed before its commit can be seen: what woke us may have been too early.
_RETRY_SECONDS = (0.004, 0.02, 0.1)
# For how long `list_changes` waits for a moment in which nobody writes.
_QUIET_SECONDS = 5.0
_JOURNAL_ENDINGS = ("-wal", "-journal")


class _WatchedDatabase(watching.Watched):
    """A database whose contents somebody subscribed to.

    Attributes:
        files: those that the file watcher watches for it.
        schema: the digest of its tables' names.
        expected_seconds: when to poll again, where the last poll came while somebody wrote.
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.files: list[str] = []
        self.schema: str | None = None
        self.expected_seconds: float | None = None

    def clear(self) -> None:
        """Forget all subscriptions."""
        super().clear()
        self.files = []
        self.schema = None


class DatabaseWatcher(watching.Watcher[_WatchedDatabase]):
    """The source of changes for `sqlite://` URIs."""

    def __init__(self, policy: Policy, pool: WorkerPool, readable: Callable[[str], Readable[Request] | None]) -> None:
        super().__init__(map(_WatchedDatabase, policy.databases.values()), readable)
        self._pool = pool
        folders = sorted({os.path.dirname(watched.database.address) for watched in self.watched.values()})
        self._file_watcher = FileWatcher(folders, locate=lambda uri: None, probe=_read_file_state)

    async def begin(self, watched: _WatchedDatabase, readables: Mapping[str, Readable[Request]]) -> None:
        """Follow `readables` too, beginning with what they are now."""
        await self._watch_files(watched)
        answer = await self._digest(watched.database, readables, is_new=True)
        watched.readables |= readables
        watched.digests |= answer["digests"]
        watched.schema = watched.schema or answer["schema"]

    def discard(self, keys: Collection[Hashable]) -> None:
        """Follow these no longer."""
        super().discard(keys)
        for watched in self.watched.values():
            if watched.files and not watched.wanted:
                self._file_watcher.discard(watched.files)
                watched.files = []

    def start(self, tasks: TaskGroup) -> None:
        """Follow the databases until the tasks are cancelled."""
        tasks.start_soon(self._file_watcher.run, self._wake_for)
        for watched in self.watched.values():
            tasks.start_soon(self._follow, watched)

    def _wake_for(self, paths: Collection[Hashable]) -> None:
        for watched in self.watched.values():
            if not set(paths).isdisjoint(watched.files):
                watched.wake.set()

    async def _watch_files(self, watched: _WatchedDatabase) -> None:
        """Watch the files of a database; if its path is a link, those beside its target."""
        files = _list_files(watched.database.address)
        if files != watched.files:
            self._file_watcher.discard(set(watched.files) - set(files))
            await self._file_watcher.add(files)
            watched.files = files

    async def _follow(self, watched: _WatchedDatabase) -> None:
        pauses: deque[float] = deque()
        while True:
            with anyio.move_on_after(_next_pause(watched, pauses)):
                await watched.wake.wait()
                pauses = deque(_RETRY_SECONDS)
            watched.wake = anyio.Event()
            if watched.wanted:
                started = anyio.current_time()
                async with watched.turn:
                    await self._watch_files(watched)
                    retry_seconds = await self._poll(watched)
                if retry_seconds is None:
                    retry_seconds = watched.expected_seconds
                if retry_seconds is not None:
                    pauses.appendleft(retry_seconds)
                # A poll that takes long is at most half of the time.
                await anyio.sleep(min(anyio.current_time() - started, _POLL_SECONDS))

    async def look_at(self, watched: _WatchedDatabase) -> None:
        """Announce what changed until now, at a moment in which nobody writes.

        Raises:
            Unavailable: there is none.
        """
        deadline = anyio.current_time() + _QUIET_SECONDS
        while anyio.current_time() < deadline:
            retry_seconds = await self._poll(watched)
            if retry_seconds is None:
                return
            await anyio.sleep(retry_seconds)
        raise Unavailable(f"{quote(watched.database.name)} is being written to all the time.", "Ask again soon.")

    async def _poll(self, watched: _WatchedDatabase) -> float | None:
        """Announce what changed; return in how many seconds to poll again for what could not be read now."""
        answer = await self._digest(watched.database, watched.readables, is_new=False)
        watched.expected_seconds = answer.get("early")
        if answer["digests"] is None:
            return answer.get("again")
        changed = watched.compare(answer["digests"])
        if answer["schema"] not in (None, watched.schema):
            watched.schema = answer["schema"]
            changed.append(TableListKey(watched.database.name))
        if changed:
            self.changed(changed)
        return answer.get("again")

    async def _digest(
        self, database: Database, readables: Mapping[str, Readable[Request]], *, is_new: bool
    ) -> dict[str, Any]:
        requests = {uri: self.request(item) for uri, item in readables.items()}
        try:
            return await digest_subjects(self._pool, database, requests, is_new=is_new)
        except Problem as problem:
            # Treat unreadable as changed: an extra notice is better than a missed one.
            logger.info("Not compared: %s", problem)
            mark = f"unknown {anyio.current_time()}"
            return {"digests": dict.fromkeys(readables, mark), "schema": mark}


def _next_pause(watched: _WatchedDatabase, pauses: deque[float]) -> float | None:
    """Return how many seconds to wait for a change of the files; None for ever, if nobody subscribed."""
    if pauses:
        return pauses.popleft()
    return _POLL_SECONDS if watched.wanted else None


def _list_files(path: str) -> list[str]:
    # The path itself too: where it is a link, it may lead elsewhere tomorrow.
    target = os.path.realpath(path)
    return [path, *(target + ending for ending in _JOURNAL_ENDINGS)]


def _read_file_state(path: str) -> Hashable | None:
    if path.endswith(_JOURNAL_ENDINGS):
        return read_file_state(path)
    status = os.stat(path)
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_dev)
