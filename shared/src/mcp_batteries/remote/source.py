"""The source of changes for remote data: only what somebody subscribed to is polled."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Hashable

import anyio

from mcp_batteries.errors import NotFound, Problem
from mcp_batteries.remote.cache import Cache

__all__ = ["RemoteSource"]

logger = logging.getLogger(__name__)

# The time until the keys of a URI are determined again if that failed.
_UNRESOLVED_SECONDS = 30.0
# A subscriber waits this long for the keys; a slow upstream leads to a notice later instead.
_SUBSCRIBE_SECONDS = 2.0
# The time until the upstream is asked again for what it does not have.
_ABSENT_SECONDS = 900.0
_CONCURRENT_CHECKS = 8


class _Subscription:
    """One URI, and the keys it shows now.

    Attributes:
        resolved: set once the keys are known, or that there are none.
        is_late: whether a subscriber was promised to hear of changes before they could be noticed.
        absent: why it shows nothing.
    """

    def __init__(self) -> None:
        self.keys: frozenset[str] = frozenset()
        self.resolved = anyio.Event()
        self.is_late = False
        self.absent: str | None = None


class RemoteSource:
    """Reports URIs whose content changed upstream. Give it to `assemble` as a source.

    Args:
        locate: the canonical form of a URI; None if it is of another kind. Raises `Problem` if it may not be watched.
        keys: the cache keys of what such a URI shows. It may ask the upstream, through the cache; whatever fails is
            retried later.
    """

    list_keys: Collection[Hashable] = ()

    def __init__(
        self, cache: Cache, locate: Callable[[str], str | None], keys: Callable[[str], Awaitable[Collection[str]]]
    ) -> None:
        self._cache = cache
        self._locate = locate
        self._keys = keys
        self._watch = cache.store.watch()
        self._running = anyio.Event()
        self._reset()

    def _reset(self) -> None:
        self._subscriptions: dict[Hashable, _Subscription] = {}
        # By cache key: the URIs that show it.
        self._showing: dict[str, set[Hashable]] = {}
        # By place in the store: the cache key.
        self._keys_by_place: dict[Hashable, str] = {}
        self._polls: dict[str, anyio.CancelScope] = {}
        # By cache key: why the upstream had nothing there at the last check.
        self._absent: dict[str, str] = {}

    def key(self, uri: str) -> Hashable | None:
        return self._locate(uri)

    async def add(self, keys: Collection[Hashable]) -> None:
        await self._running.wait()
        new = {uri: _Subscription() for uri in keys}
        self._subscriptions.update(new)
        for uri in new:
            self._tasks.start_soon(self._resolve, uri)
        with anyio.move_on_after(_SUBSCRIBE_SECONDS):
            for subscription in new.values():
                await subscription.resolved.wait()
        for subscription in new.values():
            subscription.is_late = subscription.absent is not None or not subscription.resolved.is_set()

    def discard(self, keys: Collection[Hashable]) -> None:
        for uri in keys:
            subscription = self._subscriptions.pop(uri, None)
            if subscription is not None:
                self._leave(uri, subscription.keys)

    def explain_absence(self, key: Hashable) -> str | None:
        subscription = self._subscriptions.get(key)
        if subscription is None:
            return None
        if subscription.absent is not None:
            return subscription.absent
        return next((self._absent[cache_key] for cache_key in subscription.keys if cache_key in self._absent), None)

    async def run(self, changed: Callable[[Collection[Hashable]], None]) -> None:
        self._changed = changed
        self._limiter = anyio.CapacityLimiter(_CONCURRENT_CHECKS)
        try:
            async with anyio.create_task_group() as self._tasks:
                self._tasks.start_soon(self._watch.run, self._report)
                self._running.set()
        finally:
            self._running = anyio.Event()
            self._reset()

    async def reconsider(self) -> None:
        """Determine again what each URI shows; report those that show something else as changed."""
        for uri, subscription in list(self._subscriptions.items()):
            before = subscription.keys
            await self._resolve(uri)
            if before and self._subscriptions.get(uri) is subscription and subscription.keys != before:
                self._changed([uri])

    async def _resolve(self, uri: Hashable) -> None:
        """Determine the keys of `uri`, and poll them."""
        subscription = self._subscriptions.get(uri)
        if subscription is None:
            return
        try:
            keys = frozenset(await self._keys(str(uri)))
        except Exception as problem:  # noqa: BLE001 - see `_log`
            _log("Not followed yet", problem)
            if isinstance(problem, NotFound) and not subscription.keys:
                subscription.absent = str(problem)
                subscription.resolved.set()
            self._tasks.start_soon(self._resolve_later, uri, subscription)
            return
        if self._subscriptions.get(uri) is not subscription:
            return
        subscription.absent = None
        added = keys - subscription.keys
        removed = subscription.keys - keys
        subscription.keys = keys
        self._leave(uri, removed)
        for key in added:
            self._showing.setdefault(key, set()).add(uri)
        unpolled = [key for key in added if key not in self._polls]
        if unpolled:
            await self._start_polls(uri, unpolled)
        subscription.resolved.set()
        if subscription.is_late and self._subscriptions.get(uri) is subscription:
            subscription.is_late = False
            self._changed([uri])

    async def _start_polls(self, uri: Hashable, keys: Collection[str]) -> None:
        """Poll `keys`, which `uri` shows and nobody polls yet."""
        for key in keys:
            self._polls[key] = anyio.CancelScope()
            self._keys_by_place[self._cache.store.place(key)] = key
        # What no subscriber has seen yet cannot differ from what one saw: the first check is not a change.
        bodies = {key: await self._first_body(key) for key in keys}
        # The watch comes before the polls: what they bring is heard of here as everywhere.
        await self._watch.add([self._cache.store.place(key) for key in keys])
        has_changed = False
        for key, body in bodies.items():
            if await self._body(key) != body:
                has_changed = True
        if has_changed:
            self._changed([uri])
        for key in keys:
            if key in self._polls:
                self._tasks.start_soon(self._poll, key, self._polls[key])

    async def _first_body(self, key: str) -> bytes | None:
        """Return the kept content of `key`; check the upstream if there is none."""
        if not await self._body(key):
            try:
                await self._check(key)
            except Exception as problem:  # noqa: BLE001 - see `_log`
                _log("Not looked at yet", problem)
        return await self._body(key)

    async def _check(self, key: str) -> float:
        """Check `key`, and return the seconds until the next check."""
        async with self._limiter:
            try:
                wait = await self._cache.poll(key)
            except NotFound as problem:
                logger.info("Nothing is there: %s", problem)
                if key in self._polls:
                    self._absent[key] = str(problem)
                return _ABSENT_SECONDS
        self._absent.pop(key, None)
        return wait

    async def _body(self, key: str) -> bytes | None:
        return (await self._cache.run_store_work(lambda: self._cache.store.read(key))).body

    async def _resolve_later(self, uri: Hashable, subscription: _Subscription) -> None:
        await self._cache.sleep(_UNRESOLVED_SECONDS)
        if self._subscriptions.get(uri) is subscription:
            await self._resolve(uri)

    def _leave(self, uri: Hashable, keys: Collection[str]) -> None:
        for key in keys:
            self._showing[key].discard(uri)
            if not self._showing[key]:
                del self._showing[key]
                self._polls.pop(key).cancel()
                self._absent.pop(key, None)
                place = self._cache.store.place(key)
                del self._keys_by_place[place]
                self._watch.discard([place])

    async def _poll(self, key: str, scope: anyio.CancelScope) -> None:
        """Check `key` whenever that is due, until `scope` is cancelled."""
        with scope:
            if key in self._absent:
                await self._cache.sleep(_ABSENT_SECONDS)
            while True:
                try:
                    wait = await self._check(key)
                except Exception as problem:  # noqa: BLE001 - see `_log`
                    _log("A look failed", problem)
                    wait = _UNRESOLVED_SECONDS
                await self._cache.sleep(wait)

    def _report(self, places: Collection[Hashable]) -> None:
        """Report the URIs that show what changed at `places` in the store."""
        uris: set[Hashable] = set()
        for place in places:
            key = self._keys_by_place.get(place)
            if key is not None:
                self._absent.pop(key, None)
                uris.update(self._showing.get(key, ()))
        if uris:
            self._changed(uris)


def _log(message: str, problem: Exception) -> None:
    """Log an unforeseen answer, which must not stop the checks of everything else."""
    if isinstance(problem, OSError | Problem):
        logger.info("%s: %s", message, problem)
    else:
        logger.error("%s: %s", message, problem, exc_info=problem)
