"""The source of changes for remote data: only what somebody subscribed to is polled."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Hashable

import anyio

from mcp_batteries.errors import NotFound, Problem
from mcp_batteries.remote.cache import Cache

__all__ = ["RemoteSource"]

logger = logging.getLogger(__name__)

_UNRESOLVED_SECONDS = 30.0
"""Until a URI is tried again of which it could not be found out what it shows."""
_SUBSCRIBE_SECONDS = 2.0
"""For which a subscriber waits until that is found out; a slow upstream is told of by a notice instead."""
_ABSENT_SECONDS = 900.0
"""Until the upstream is asked again for what it does not have."""
_AT_ONCE = 8


class _Followed:
    """One URI, and the keys it shows now."""

    def __init__(self) -> None:
        self.keys: frozenset[str] = frozenset()
        self.resolved = anyio.Event()
        self.late = False
        """Somebody was promised to hear of changes before they could be noticed."""
        self.absent: str | None = None
        """Why it shows nothing."""


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
        self._followed: dict[Hashable, _Followed] = {}
        self._showing: dict[str, set[Hashable]] = {}
        """By cache key: the URIs that show it."""
        self._at: dict[Hashable, str] = {}
        """By place in the store: the cache key."""
        self._polls: dict[str, anyio.CancelScope] = {}
        self._absent: dict[str, str] = {}
        """By cache key: why the upstream has nothing there, as of the last look."""

    def key(self, uri: str) -> Hashable | None:
        return self._locate(uri)

    async def add(self, keys: Collection[Hashable]) -> None:
        await self._running.wait()
        new = {uri: _Followed() for uri in keys}
        self._followed.update(new)
        for uri in new:
            self._tasks.start_soon(self._resolve, uri)
        with anyio.move_on_after(_SUBSCRIBE_SECONDS):
            for followed in new.values():
                await followed.resolved.wait()
        for followed in new.values():
            followed.late = followed.absent is not None or not followed.resolved.is_set()

    def discard(self, keys: Collection[Hashable]) -> None:
        for uri in keys:
            if followed := self._followed.pop(uri, None):
                self._leave(uri, followed.keys)

    def absent(self, key: Hashable) -> str | None:
        followed = self._followed.get(key)
        if followed is None or followed.absent is not None:
            return followed and followed.absent
        return next((self._absent[shown] for shown in followed.keys if shown in self._absent), None)

    async def run(self, changed: Callable[[Collection[Hashable]], None]) -> None:
        self._changed = changed
        self._at_once = anyio.CapacityLimiter(_AT_ONCE)
        try:
            async with anyio.create_task_group() as self._tasks:
                self._tasks.start_soon(self._watch.run, self._touched)
                self._running.set()
        finally:
            self._running = anyio.Event()
            self._reset()

    async def reconsider(self) -> None:
        """Determine again what each URI shows; report those that show something else as changed."""
        for uri, followed in list(self._followed.items()):
            before = followed.keys
            await self._resolve(uri)
            if before and self._followed.get(uri) is followed and followed.keys != before:
                self._changed([uri])

    async def _resolve(self, uri: Hashable) -> None:
        followed = self._followed.get(uri)
        if followed is None:
            return
        try:
            keys = frozenset(await self._keys(str(uri)))
        except Exception as problem:  # noqa: BLE001 - see `_log`
            _log("Not followed yet", problem)
            if isinstance(problem, NotFound) and not followed.keys:
                followed.absent = str(problem)
                followed.resolved.set()
            self._tasks.start_soon(self._resolve_later, uri, followed)
            return
        if self._followed.get(uri) is not followed:
            return
        followed.absent = None
        new = keys - followed.keys
        old = followed.keys - keys
        followed.keys = keys
        self._leave(uri, old)
        for key in new:
            self._showing.setdefault(key, set()).add(uri)
        if fresh := [key for key in new if key not in self._polls]:
            for key in fresh:
                self._polls[key] = anyio.CancelScope()
                self._at[self._cache.store.place(key)] = key
            # What nobody has seen yet cannot differ from what somebody saw: the first check is not a change.
            seen = {key: await self._first_look(key) for key in fresh}
            # Then the watch, then the looks: what they bring is heard of here as everywhere.
            await self._watch.add([self._cache.store.place(key) for key in fresh])
            if any([await self._body(key) != body for key, body in seen.items()]):
                self._changed([uri])
            for key in fresh:
                if key in self._polls:
                    self._tasks.start_soon(self._poll, key, self._polls[key])
        followed.resolved.set()
        if followed.late and self._followed.get(uri) is followed:
            followed.late = False
            self._changed([uri])

    async def _first_look(self, key: str) -> bytes | None:
        """The kept entry of `key`; it is checked if there is none."""
        if not await self._body(key):
            try:
                await self._look(key)
            except Exception as problem:  # noqa: BLE001 - see `_log`
                _log("Not looked at yet", problem)
        return await self._body(key)

    async def _look(self, key: str) -> float:
        """Seconds until the next check."""
        async with self._at_once:
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
        return (await self._cache.do(lambda: self._cache.store.read(key))).body

    async def _resolve_later(self, uri: Hashable, followed: _Followed) -> None:
        await self._cache.sleep(_UNRESOLVED_SECONDS)
        if self._followed.get(uri) is followed:
            await self._resolve(uri)

    def _leave(self, uri: Hashable, keys: Collection[str]) -> None:
        for key in keys:
            self._showing[key].discard(uri)
            if not self._showing[key]:
                del self._showing[key]
                self._polls.pop(key).cancel()
                self._absent.pop(key, None)
                place = self._cache.store.place(key)
                del self._at[place]
                self._watch.discard([place])

    async def _poll(self, key: str, scope: anyio.CancelScope) -> None:
        with scope:
            if key in self._absent:
                await self._cache.sleep(_ABSENT_SECONDS)
            while True:
                try:
                    wait = await self._look(key)
                except Exception as problem:  # noqa: BLE001 - see `_log`
                    _log("A look failed", problem)
                    wait = _UNRESOLVED_SECONDS
                await self._cache.sleep(wait)

    def _touched(self, places: Collection[Hashable]) -> None:
        keys = [key for place in places if (key := self._at.get(place)) is not None]
        for key in keys:
            self._absent.pop(key, None)
        if uris := {uri for key in keys for uri in self._showing.get(key, ())}:
            self._changed(uris)


def _log(what: str, problem: Exception) -> None:
    """Log an unforeseen answer, which must not stop the checks of everything else."""
    known = isinstance(problem, OSError | Problem)
    logger.log(logging.INFO if known else logging.ERROR, "%s: %s", what, problem, exc_info=None if known else problem)
