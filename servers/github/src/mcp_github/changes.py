"""Says which URIs to refresh: checks on GitHub what somebody subscribed to, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Hashable
from contextlib import contextmanager
from dataclasses import dataclass

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from mcp_batteries.remote import RemoteSource
from mcp_batteries.subscriptions.file_watcher import FileWatcher, follow_file
from mcp_github.call_context import NOBODY, Caller, caller
from mcp_github.policy import Policy
from mcp_github.settings import Settings
from mcp_github.watch.conditional_requests import Remote
from mcp_github.watch.followed_uris import WATCH_LIST, Subject, subject
from mcp_github.watch.watch_list import WatchList
from mcp_github.watch.webhook_deliveries import Hint, Inbox

__all__ = ["Deliveries", "Followed", "WatchListFollower", "demonstration"]

_Changed = Callable[[Collection[Hashable]], None]


@dataclass(frozen=True)
class Place:
    """A `github://` URI in canonical form, as one caller sees it: another may not know that it exists."""

    who: Caller
    uri: str


class _Looks:
    """What one caller follows. Token and cache are looked up at the first subscription."""

    def __init__(self, who: Caller, policy: Policy, remote: Remote) -> None:
        self._who, self._policy, self._remote = who, policy, remote
        self._subjects: dict[str, Subject] = {}
        self._source: RemoteSource | None = None
        self._scope = anyio.CancelScope()

    async def add(self, places: Collection[Place], tasks: TaskGroup, changed: _Changed) -> None:
        def told(uris: Collection[Hashable]) -> None:
            changed([Place(self._who, str(uri)) for uri in uris])

        with _acting(self._who):
            if self._source is None:
                self._source = RemoteSource(await self._remote.cache(), str, self._keys)
                tasks.start_soon(self._run, self._source, told)
            for place in places:
                found = subject(self._policy, place.uri)
                if found is not None:
                    self._subjects[place.uri] = found
                    self._remote.follow(found, more=1)
            await self._source.add([place.uri for place in places])

    async def _run(self, source: RemoteSource, told: _Changed) -> None:
        with self._scope:
            await source.run(told)

    async def _keys(self, uri: str) -> Collection[str]:
        return [self._subjects[uri].key]

    async def look(self, hint: Hint) -> None:
        with _acting(self._who):
            for found in list(self._subjects.values()):
                if hint.concerns(found.path):
                    await self._remote.look(found, since=hint.received)

    def discard(self, places: Collection[Place]) -> bool:
        """Stop following `places`; returns whether nothing is left to follow."""
        for place in places:
            if found := self._subjects.pop(place.uri, None):
                self._remote.follow(found, more=-1)
        if self._source is not None:
            self._source.discard([place.uri for place in places])
        return not self._subjects

    def absent(self, place: Place) -> str | None:
        return None if self._source is None else self._source.absent(place.uri)

    async def end(self) -> None:
        self._scope.cancel()
        await self._remote.aclose()


class Followed:
    """The source of changes for `github://` URIs: separate for each caller, with the caller's own token.

    Args:
        remote: makes the source for one caller.
    """

    list_keys: Collection[Hashable] = ()

    def __init__(self, policy: Policy, remote: Callable[[], Remote]) -> None:
        self._policy, self._remote = policy, remote
        self._running = anyio.Event()
        self._looks: dict[Caller, _Looks] = {}

    def key(self, uri: str) -> Hashable | None:
        found = subject(self._policy, uri)
        return None if found is None else Place(caller.get(), found.uri)

    def keys_of(self, uri: str) -> Collection[Hashable]:
        found = subject(self._policy, uri)
        return [] if found is None else [Place(who, found.uri) for who in self._looks]

    async def add(self, keys: Collection[Hashable]) -> None:
        await self._running.wait()
        for who, places in _by_caller(keys).items():
            if who not in self._looks:
                with _acting(who):
                    self._looks[who] = _Looks(who, self._policy, self._remote())
            await self._looks[who].add(places, self._tasks, self._changed)

    def absent(self, key: Hashable) -> str | None:
        assert isinstance(key, Place)
        looks = self._looks.get(key.who)
        return None if looks is None else looks.absent(key)

    async def look(self, hint: Hint) -> None:
        """Check immediately what is followed and concerned by `hint`."""
        for looks in list(self._looks.values()):
            await looks.look(hint)

    def discard(self, keys: Collection[Hashable]) -> None:
        for who, places in _by_caller(keys).items():
            looks = self._looks.get(who)
            # The server's own looks go on from where they were when somebody follows again.
            if looks is not None and looks.discard(places) and who != NOBODY:
                self._tasks.start_soon(self._looks.pop(who).end)

    async def run(self, changed: _Changed) -> None:
        self._changed = changed
        try:
            async with anyio.create_task_group() as self._tasks:
                self._running.set()
                await anyio.sleep_forever()
        finally:
            self._running = anyio.Event()
            self._looks.clear()


@contextmanager
def _acting(who: Caller) -> Generator[None]:
    """Requests inside the block, and by tasks begun there, use the token of `who`."""
    before = caller.set(who)
    try:
        yield
    finally:
        caller.reset(before)


def _by_caller(keys: Collection[Hashable]) -> dict[Caller, list[Place]]:
    found: dict[Caller, list[Place]] = {}
    for key in keys:
        assert isinstance(key, Place)
        found.setdefault(key.who, []).append(key)
    return found


class _Unfollowed:
    """A source without individual subscriptions."""

    list_keys: Collection[Hashable] = ()

    def key(self, uri: str) -> Hashable | None:
        return None

    async def add(self, keys: Collection[Hashable]) -> None:
        pass

    def discard(self, keys: Collection[Hashable]) -> None:
        pass


class WatchListFollower(_Unfollowed):
    """The source for the watch list, which is always followed because the list of resources depends on it."""

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
    """Reads the inbox, and triggers checks of what is followed; it announces no changes itself."""

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
            waiting: set[str] = set()
            while True:
                hints, unfinished = await anyio.to_thread.run_sync(self._inbox.look)
                for hint in hints:
                    tasks.start_soon(self._followed.look, hint)
                # Of what is still being written, only the file itself tells when that is over; until it is watched
                # nobody does, so it is looked at once more.
                new = set(unfinished) - waiting
                watcher.discard(waiting.difference(unfinished))
                waiting = set(unfinished)
                if new:
                    await watcher.add(new)
                    continue
                await wake.wait()
                wake = anyio.Event()


def demonstration(settings: Settings) -> tuple[str, Callable[[], None]] | None:
    """For `--check`: there is none, because nothing on GitHub should change for it."""
    return None
