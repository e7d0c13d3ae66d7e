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
from dataclasses import dataclass
from typing import Any

import anyio
from anyio.abc import TaskGroup

from mcp_batteries.errors import Problem, Unavailable, quote
from mcp_batteries.sql.watching import (
    DatabaseSource,
    FollowedDatabase,
    Subject,
    TableList,
    demonstration,
    select_readables,
)
from mcp_batteries.subscriptions.file_state import read_file_state
from mcp_batteries.subscriptions.file_watcher import FileWatcher
from mcp_sqlite.engine.contents import digest_subjects
from mcp_sqlite.engine.workers.pool import WorkerPool
from mcp_sqlite.policy import Database, Policy, Readable, Request

__all__ = ["DatabaseWatcher", "demonstration"]

logger = logging.getLogger(__name__)

_POLL_SECONDS = 1.0
# A write-ahead log is written and flushed before its commit can be seen: what woke us may have been too early.
_RETRY_SECONDS = (0.004, 0.02, 0.1)
# For how long `list_changes` waits for a moment in which nobody writes.
_QUIET_SECONDS = 5.0
_JOURNAL_ENDINGS = ("-wal", "-journal")


class _FollowedDatabase(FollowedDatabase):
    """A database in which somebody follows something.

    Attributes:
        files: those that the file watcher watches for it.
        retries: seconds until the next polls after a change of the files.
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.files: list[str] = []
        self.retries: deque[float] = deque()

    def clear(self) -> None:
        """Forget everything that is followed."""
        super().clear()
        self.files = []


@dataclass(frozen=True)
class _PollResult:
    """What a poll found out.

    Attributes:
        retry_seconds: when to poll again for what could not be read.
        expected_seconds: when to poll again for a commit that somebody prepares.
    """

    retry_seconds: float | None
    expected_seconds: float | None


class DatabaseWatcher(DatabaseSource[_FollowedDatabase]):
    """The source of changes for `sqlite://` URIs."""

    def __init__(self, policy: Policy, pool: WorkerPool, readable: Callable[[str], Readable[Request] | None]) -> None:
        followed = {name: _FollowedDatabase(database) for name, database in policy.databases.items()}
        super().__init__(followed, readable, _POLL_SECONDS)
        self._pool = pool
        folders = sorted({os.path.dirname(database.address) for database in policy.databases.values()})
        self._file_watcher = FileWatcher(folders, locate=lambda uri: None, probe=_read_file_state)

    def start(self, tasks: TaskGroup) -> None:
        tasks.start_soon(self._file_watcher.run, self._wake_for)

    def release(self, group: _FollowedDatabase) -> None:
        self._file_watcher.discard(group.files)
        group.files = []

    async def read_first(
        self, group: _FollowedDatabase, subjects: Mapping[Hashable, Subject]
    ) -> Mapping[Hashable, str]:
        await self._watch_files(group)
        answer = await self._digest(group.database, select_readables(subjects), is_new=True)
        digests = dict(answer["digests"])
        tables = TableList(group.database.name)
        if tables in subjects:
            digests[tables] = answer["schema"]
        return digests

    async def check(self, group: _FollowedDatabase, *, is_woken: bool) -> float:
        if is_woken:
            group.retries = deque(_RETRY_SECONDS)
        await self._watch_files(group)
        result = await self._poll(group)
        if result.retry_seconds is not None:
            return result.retry_seconds
        if result.expected_seconds is not None:
            return result.expected_seconds
        if group.retries:
            return group.retries.popleft()
        return _POLL_SECONDS

    async def check_now(self, group: _FollowedDatabase) -> None:
        """Announce what changed until now, at a moment in which nobody writes.

        Raises:
            Unavailable: There is none.
        """
        deadline = anyio.current_time() + _QUIET_SECONDS
        while anyio.current_time() < deadline:
            result = await self._poll(group)
            if result.retry_seconds is None:
                return
            await anyio.sleep(result.retry_seconds)
        raise Unavailable(f"{quote(group.database.name)} is being written to all the time.", "Try again in a moment.")

    def _wake_for(self, paths: Collection[Hashable]) -> None:
        for group in self.groups.values():
            if not set(paths).isdisjoint(group.files):
                group.wake.set()

    async def _watch_files(self, group: _FollowedDatabase) -> None:
        """Watch the files of a database; if its path is a link, those beside its target."""
        files = _list_files(group.database.address)
        if files != group.files:
            self._file_watcher.discard(set(group.files) - set(files))
            await self._file_watcher.add(files)
            group.files = files

    async def _poll(self, group: _FollowedDatabase) -> _PollResult:
        """Announce what changed."""
        answer = await self._digest(group.database, select_readables(group.subjects), is_new=False)
        digests: dict[Hashable, str] = dict(answer["digests"] or {})
        if answer.get("schema") is not None:
            digests[TableList(group.database.name)] = answer["schema"]
        changed = group.compare(digests)
        if changed:
            self.changed(changed)
        return _PollResult(answer.get("again"), answer.get("early"))

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


def _list_files(path: str) -> list[str]:
    # The path itself too: where it is a link, it may lead elsewhere tomorrow.
    target = os.path.realpath(path)
    return [path, *(target + ending for ending in _JOURNAL_ENDINGS)]


def _read_file_state(path: str) -> Hashable | None:
    if path.endswith(_JOURNAL_ENDINGS):
        return read_file_state(path)
    status = os.stat(path)
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_dev)
