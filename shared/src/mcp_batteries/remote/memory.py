"""The store that leaves nothing behind: in memory, for one process."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from typing import Any

import anyio

from mcp_batteries.remote.entry import Entry

__all__ = ["MemoryStore"]

# Entries kept; the ones unused for longest go first.
_MOST = 2000


class _MemoryWatch:
    def __init__(self, watches: set[_MemoryWatch]) -> None:
        self._watches = watches
        self._keys: set[Hashable] = set()
        self._changed: Callable[[Collection[Hashable]], None] = lambda keys: None

    async def add(self, keys: Collection[Hashable]) -> None:
        self._keys.update(keys)

    def discard(self, keys: Collection[Hashable]) -> None:
        self._keys.difference_update(keys)

    async def run(self, changed: Callable[[Collection[Hashable]], None]) -> None:
        self._changed = changed
        self._watches.add(self)
        try:
            await anyio.sleep_forever()
        finally:
            self._watches.discard(self)
            self._keys.clear()

    def notify(self, key: str) -> None:
        if key in self._keys:
            self._changed([key])


class MemoryStore:
    """A `Store` in this process's memory, used from its event loop only."""

    blocks = False

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._states: dict[str, dict[str, Any]] = {}
        self._locked: set[str] = set()
        self._watches: set[_MemoryWatch] = set()

    def read(self, key: str) -> Entry:
        entry = self._entries.pop(key, None)
        if entry is None:
            return Entry()
        self._entries[key] = entry
        return entry

    def write(self, key: str, entry: Entry, *, body: bool) -> None:
        self._entries.pop(key, None)
        self._entries[key] = entry
        while len(self._entries) > _MOST:
            del self._entries[next(iter(self._entries))]
        if body:
            self._notify(key)

    def drop(self, key: str) -> None:
        if self._entries.pop(key, None):
            self._notify(key)

    def lock(self, key: str) -> Callable[[], None] | None:
        if key in self._locked:
            return None
        self._locked.add(key)
        return lambda: self._locked.discard(key)

    def state(self, name: str) -> dict[str, Any]:
        return dict(self._states.get(name, {}))

    def update(self, name: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
        self._states[name] = change(self.state(name))
        return self.state(name)

    def tidy(self) -> None:
        pass  # `write` has.

    def place(self, key: str) -> Hashable:
        return key

    def watch(self) -> _MemoryWatch:
        return _MemoryWatch(self._watches)

    def _notify(self, key: str) -> None:
        for watch in list(self._watches):
            watch.notify(key)
