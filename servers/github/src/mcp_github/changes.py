"""Which source tells which URIs to refresh: looks at GitHub, of what somebody subscribed to and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable

import anyio
import anyio.to_thread

from mcp_batteries.remote import RemoteSource
from mcp_batteries.subscriptions.file_watcher import FileWatcher, follow_file
from mcp_github.engine.inbox import Hint, Inbox
from mcp_github.engine.remote import Remote
from mcp_github.engine.subjects import WATCH_LIST, Subject, subject
from mcp_github.engine.watchlist import WatchList
from mcp_github.policy import Policy
from mcp_github.settings import Settings

__all__ = ["Deliveries", "Followed", "WatchListFollower", "demonstration"]


class Followed:
    """The source of changes for `github://` URIs. Token and cache are looked for at the first subscription."""

    list_keys: Collection[Hashable] = ()

    def __init__(self, policy: Policy, remote: Remote) -> None:
        self._policy, self._remote = policy, remote
        self._running = anyio.Event()
        self._subjects: dict[Hashable, Subject] = {}
        self._source: RemoteSource | None = None

    def key(self, uri: str) -> Hashable | None:
        found = subject(self._policy, uri)
        return None if found is None else found.uri

    async def add(self, keys: Collection[Hashable]) -> None:
        await self._running.wait()
        if self._source is None:
            self._source = RemoteSource(await self._remote.cache(), str, self._keys)
            self._tasks.start_soon(self._source.run, self._changed)
        for key in keys:
            found = subject(self._policy, str(key))
            if found is not None:
                self._subjects[key] = found
                self._remote.follow(found, more=1)
        await self._source.add(keys)

    async def _keys(self, uri: str) -> Collection[str]:
        return [self._subjects[uri].key]

    async def look(self, hint: Hint) -> None:
        """Look at once at what is followed and `hint` is about."""
        for found in list(self._subjects.values()):
            if hint.concerns(found.path):
                await self._remote.look(found, since=hint.received)

    def discard(self, keys: Collection[Hashable]) -> None:
        for key in keys:
            if found := self._subjects.pop(key, None):
                self._remote.follow(found, more=-1)
        if self._source is not None:
            self._source.discard(keys)

    async def run(self, changed: Callable[[Collection[Hashable]], None]) -> None:
        self._changed = changed
        try:
            async with anyio.create_task_group() as self._tasks:
                self._running.set()
                await anyio.sleep_forever()
        finally:
            self._running, self._source = anyio.Event(), None
            self._subjects.clear()


class _Unfollowed:
    """A source of which nobody holds anything one by one."""

    list_keys: Collection[Hashable] = ()

    def key(self, uri: str) -> Hashable | None:
        return None

    async def add(self, keys: Collection[Hashable]) -> None:
        pass

    def discard(self, keys: Collection[Hashable]) -> None:
        pass


class WatchListFollower(_Unfollowed):
    """The source for the watch list, which is followed all the time: it is part of what is listed."""

    list_keys: Collection[Hashable] = (WATCH_LIST,)

    def __init__(self, watch_list: WatchList) -> None:
        self._watch_list = watch_list

    def key(self, uri: str) -> Hashable | None:
        return WATCH_LIST if uri == WATCH_LIST else None

    async def run(self, changed: Callable[[Collection[Hashable]], None]) -> None:
        async def read_again() -> None:
            if await anyio.to_thread.run_sync(self._watch_list.refresh):
                changed([WATCH_LIST])

        assert self._watch_list.path is not None
        await follow_file(self._watch_list.path, read_again)


class Deliveries(_Unfollowed):
    """What looks into the inbox, and has what is followed looked at; of changes it tells nobody itself."""

    def __init__(self, inbox: Inbox, followed: Followed) -> None:
        self._inbox, self._followed = inbox, followed

    async def run(self, changed: Callable[[Collection[Hashable]], None]) -> None:
        wake = anyio.Event()

        def touched(_: Collection[Hashable]) -> None:
            wake.set()

        folder = self._inbox.folder
        watcher = FileWatcher([folder], locate=lambda uri: None, probe=self._inbox.state)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watcher.run, touched)
            await watcher.add([folder])
            waiting: list[str] = []
            while True:
                hints, unfinished = await anyio.to_thread.run_sync(self._inbox.look)
                watcher.discard(waiting)
                waiting = unfinished
                # Of what is still being written, only the file itself tells when that is over.
                await watcher.add(waiting)
                for hint in hints:
                    tasks.start_soon(self._followed.look, hint)
                await wake.wait()
                wake = anyio.Event()


def demonstration(settings: Settings) -> tuple[str, Callable[[], None]] | None:
    """For `--check`: nothing on GitHub is changed to show that changes are seen."""
    return None
