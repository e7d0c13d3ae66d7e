"""Says which URIs to refresh: checks on GitHub what somebody subscribed to, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from mcp_batteries.remote import RemoteSource
from mcp_batteries.subscriptions.file_watcher import FileWatcher, follow_file
from mcp_github.call_context import SERVER, Caller, acting_as, current_call
from mcp_github.policy import Policy
from mcp_github.settings import Settings
from mcp_github.watch.conditional_requests import ConditionalFetcher
from mcp_github.watch.followed_uris import WATCH_LIST, FollowedUri, parse_uri
from mcp_github.watch.watch_list import WatchList
from mcp_github.watch.webhook_deliveries import ChangeHint, DeliveryFolder

__all__ = ["DeliverySource", "FollowedUriSource", "WatchListSource", "demonstration"]

_Announce = Callable[[Collection[Hashable]], None]


@dataclass(frozen=True)
class CallerUri:
    """A `github://` URI in canonical form, as one caller sees it: another may not know that it exists."""

    caller: Caller
    uri: str


class _CallerSubscriptions:
    """What one caller follows. Token and cache are looked up at the first subscription."""

    def __init__(self, caller: Caller, policy: Policy, fetcher: ConditionalFetcher) -> None:
        self._caller = caller
        self._policy = policy
        self._fetcher = fetcher
        self._followed: dict[str, FollowedUri] = {}
        self._source: RemoteSource | None = None
        self._scope = anyio.CancelScope()

    async def add(self, uris: Collection[CallerUri], tasks: TaskGroup, announce: _Announce) -> None:
        """Follow `uris`; tasks that check them run in `tasks`."""

        def announce_uris(changed: Collection[Hashable]) -> None:
            announce([CallerUri(self._caller, str(uri)) for uri in changed])

        with acting_as(self._caller):
            if self._source is None:
                self._source = RemoteSource(await self._fetcher.cache(), str, self._cache_keys)
                tasks.start_soon(self._run, self._source, announce_uris)
            for caller_uri in uris:
                followed = parse_uri(self._policy, caller_uri.uri)
                if followed is not None:
                    self._followed[caller_uri.uri] = followed
                    self._fetcher.follow(followed)
            await self._source.add([caller_uri.uri for caller_uri in uris])

    async def check_now(self, hint: ChangeHint) -> None:
        """Check what is followed and concerned by `hint`."""
        with acting_as(self._caller):
            for followed in list(self._followed.values()):
                if hint.concerns(followed.path):
                    await self._fetcher.check_now(followed, since=hint.received)

    def discard(self, uris: Collection[CallerUri]) -> bool:
        """Stop following `uris`; return whether nothing is left to follow."""
        for caller_uri in uris:
            followed = self._followed.pop(caller_uri.uri, None)
            if followed is not None:
                self._fetcher.unfollow(followed)
        if self._source is not None:
            self._source.discard([caller_uri.uri for caller_uri in uris])
        return not self._followed

    def explain_absence(self, uri: CallerUri) -> str | None:
        if self._source is None:
            return None
        return self._source.explain_absence(uri.uri)

    async def aclose(self) -> None:
        self._scope.cancel()
        await self._fetcher.aclose()

    async def _run(self, source: RemoteSource, announce: _Announce) -> None:
        with self._scope:
            await source.run(announce)

    async def _cache_keys(self, uri: str) -> Collection[str]:
        return [self._followed[uri].key]


class FollowedUriSource:
    """The source of changes for `github://` URIs: separate for each caller, with the caller's own token.

    Args:
        make_fetcher: makes what fetches for one caller.
    """

    list_keys: Collection[Hashable] = ()

    def __init__(self, policy: Policy, make_fetcher: Callable[[], ConditionalFetcher]) -> None:
        self._policy = policy
        self._make_fetcher = make_fetcher
        self._is_running = anyio.Event()
        self._subscriptions: dict[Caller, _CallerSubscriptions] = {}

    def key(self, uri: str) -> Hashable | None:
        followed = parse_uri(self._policy, uri)
        if followed is None:
            return None
        return CallerUri(current_call().caller, followed.uri)

    def keys_of(self, uri: str) -> Collection[Hashable]:
        followed = parse_uri(self._policy, uri)
        if followed is None:
            return []
        return [CallerUri(caller, followed.uri) for caller in self._subscriptions]

    async def add(self, keys: Collection[Hashable]) -> None:
        await self._is_running.wait()
        for caller, uris in _group_by_caller(keys).items():
            if caller not in self._subscriptions:
                with acting_as(caller):
                    fetcher = self._make_fetcher()
                self._subscriptions[caller] = _CallerSubscriptions(caller, self._policy, fetcher)
            await self._subscriptions[caller].add(uris, self._tasks, self._announce)

    def explain_absence(self, key: Hashable) -> str | None:
        assert isinstance(key, CallerUri)
        subscriptions = self._subscriptions.get(key.caller)
        if subscriptions is None:
            return None
        return subscriptions.explain_absence(key)

    async def check_now(self, hint: ChangeHint) -> None:
        """Check immediately what is followed and concerned by `hint`."""
        for subscriptions in list(self._subscriptions.values()):
            await subscriptions.check_now(hint)

    def discard(self, keys: Collection[Hashable]) -> None:
        for caller, uris in _group_by_caller(keys).items():
            subscriptions = self._subscriptions.get(caller)
            if subscriptions is None:
                continue
            is_empty = subscriptions.discard(uris)
            # The server's own checks go on from where they were when somebody follows again.
            if is_empty and caller != SERVER:
                del self._subscriptions[caller]
                self._tasks.start_soon(subscriptions.aclose)

    async def run(self, changed: _Announce) -> None:
        self._announce = changed
        try:
            async with anyio.create_task_group() as self._tasks:
                self._is_running.set()
                await anyio.sleep_forever()
        finally:
            self._is_running = anyio.Event()
            self._subscriptions.clear()


def _group_by_caller(keys: Collection[Hashable]) -> dict[Caller, list[CallerUri]]:
    uris: dict[Caller, list[CallerUri]] = {}
    for key in keys:
        assert isinstance(key, CallerUri)
        uris.setdefault(key.caller, []).append(key)
    return uris


class _SourceWithoutSubscriptions:
    """A source without individual subscriptions."""

    list_keys: Collection[Hashable] = ()

    def key(self, uri: str) -> Hashable | None:
        return None

    async def add(self, keys: Collection[Hashable]) -> None:
        pass

    def discard(self, keys: Collection[Hashable]) -> None:
        pass


class WatchListSource(_SourceWithoutSubscriptions):
    """The source for the watch list, which is always followed because the list of resources depends on it."""

    list_keys: Collection[Hashable] = (WATCH_LIST,)

    def __init__(self, watch_list: WatchList) -> None:
        self._watch_list = watch_list

    def key(self, uri: str) -> Hashable | None:
        if uri == WATCH_LIST:
            return WATCH_LIST
        return None

    async def run(self, changed: _Announce) -> None:
        async def reload() -> None:
            if await anyio.to_thread.run_sync(self._watch_list.refresh):
                changed([WATCH_LIST])

        assert self._watch_list.path is not None
        await follow_file(self._watch_list.path, reload)


class DeliverySource(_SourceWithoutSubscriptions):
    """Reads webhook deliveries, and triggers checks of what is followed; it announces no changes itself."""

    def __init__(self, deliveries: DeliveryFolder, followed: FollowedUriSource) -> None:
        self._deliveries = deliveries
        self._followed = followed

    async def run(self, changed: _Announce) -> None:
        wake = anyio.Event()

        def wake_up(_: Collection[Hashable]) -> None:
            wake.set()

        folder = self._deliveries.folder
        watcher = FileWatcher([folder], locate=lambda uri: None, probe=self._deliveries.fingerprint)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watcher.run, wake_up)
            await watcher.add([folder])
            watched_files: set[str] = set()
            while True:
                deliveries = await anyio.to_thread.run_sync(self._deliveries.read_new)
                for hint in deliveries.hints:
                    tasks.start_soon(self._followed.check_now, hint)
                # Of what is still being written, only the file itself tells when that is over; until it is watched
                # nobody does, so the folder is read once more.
                unfinished = set(deliveries.unfinished)
                new_files = unfinished - watched_files
                watcher.discard(watched_files - unfinished)
                watched_files = unfinished
                if new_files:
                    await watcher.add(new_files)
                    continue
                await wake.wait()
                wake = anyio.Event()


def demonstration(settings: Settings) -> tuple[str, Callable[[], None]] | None:
    """Return None for `--check`, because nothing on GitHub should change for it."""
    return None
