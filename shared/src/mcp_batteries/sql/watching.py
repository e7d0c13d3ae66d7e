"""Finds out which URIs to refresh: the common part of both SQL servers' watchers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import anyio
from anyio.abc import TaskGroup

from mcp_batteries.errors import Problem
from mcp_batteries.sql.policy import Database, QueryOf, Readable
from mcp_batteries.subscriptions.journal import ABSENT, Change, explain_absence

__all__ = ["TableListKey", "Watched", "Watcher", "demonstration"]


@dataclass(frozen=True)
class TableListKey:
    """The key for a database's tables in `resources/list`."""

    database: str


class Watched:
    """One database, the subscribed URIs in it, and their digests at the last check."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.readables: dict[str, Readable[Any]] = {}
        self.digests: dict[str, str] = {}
        self.listed = False
        self.wake = anyio.Event()
        self.turn = anyio.Lock()

    @property
    def wanted(self) -> bool:
        """Whether anybody subscribed to it."""
        return self.listed or bool(self.readables)

    def settle(self) -> None:
        """Called when subscriptions to it come or go."""

    def clear(self) -> None:
        """Forget all subscriptions."""
        self.readables.clear()
        self.digests.clear()
        self.listed = False

    def compare(self, digests: Mapping[str, str]) -> list[Hashable]:
        """Keep the digests of a check; returns the URIs that changed."""
        new_digests = {uri: digest for uri, digest in digests.items() if uri in self.readables}
        changed: list[Hashable] = [uri for uri, digest in new_digests.items() if _differ(self.digests.get(uri), digest)]
        self.digests |= new_digests
        return changed


W = TypeVar("W", bound=Watched)


class Watcher(ABC, Generic[W]):
    """A source of changes; a key is a `Readable`'s, or the tables of a database.

    Args:
        readable: the current meaning of a URI.
    """

    def __init__(self, watched: Iterable[W], readable: Callable[[str], Readable[Any] | None]) -> None:
        self.watched = {item.database.name: item for item in watched}
        self.list_keys: Collection[Hashable] = tuple(map(TableListKey, self.watched))
        self._readable = readable
        self._known: dict[str, Readable[Any]] = {}

    def key(self, uri: str) -> Hashable | None:
        readable = self._readable(uri)
        if readable is None:
            return None
        self._known[readable.key] = readable
        return readable.key

    def keys_of(self, uri: str) -> Collection[Hashable]:
        readable = self._readable(uri)
        return [key for key, other in self._known.items() if readable is not None and other.uri == readable.uri]

    async def add(self, keys: Collection[Hashable]) -> None:
        new: dict[str, dict[str, Readable[Any]]] = {}
        for key in keys:
            if isinstance(key, TableListKey):
                self.watched[key.database].listed = True
                new.setdefault(key.database, {})
            else:
                readable = self._known[str(key)]
                new.setdefault(readable.database.name, {})[readable.key] = readable
        for name, readables in new.items():
            watched = self.watched[name]
            async with watched.turn:
                await self.begin(watched, readables)
            watched.settle()

    def discard(self, keys: Collection[Hashable]) -> None:
        for key in keys:
            if isinstance(key, TableListKey):
                self.watched[key.database].listed = False
            elif (readable := self._known.pop(str(key), None)) is not None:
                watched = self.watched[readable.database.name]
                watched.readables.pop(readable.key, None)
                watched.digests.pop(readable.key, None)
        for watched in self.watched.values():
            watched.settle()

    def followed(self, uri: str) -> Hashable | None:
        return self.key(uri)

    async def look(self, keys: Collection[Hashable]) -> None:
        for name in {self._known[str(key)].database.name for key in keys if str(key) in self._known}:
            watched = self.watched[name]
            async with watched.turn:
                await self.look_at(watched)

    def news(self, key: Hashable) -> Iterable[Change]:
        return (Change(),)

    def shown(self, change: Change) -> str:
        return ""

    def absent(self, key: Hashable) -> str | None:
        readable = self._known.get(str(key))
        digest = "" if readable is None else self.watched[readable.database.name].digests.get(readable.key, "")
        return explain_absence(digest)

    async def run(self, changed: Callable[[Collection[Hashable]], None]) -> None:
        self.changed = changed
        try:
            async with anyio.create_task_group() as tasks:
                self.start(tasks)
        finally:
            for watched in self.watched.values():
                watched.clear()

    @abstractmethod
    async def begin(self, watched: W, readables: Mapping[str, Readable[Any]]) -> None:
        """Check `readables` for the first time and follow them; the tables too, if somebody wants them."""

    @abstractmethod
    async def look_at(self, watched: W) -> object:
        """Report with `changed` what changed since the last check; called in the database's turn.

        Raises:
            Problem: the database cannot be read now.
        """

    @abstractmethod
    def start(self, tasks: TaskGroup) -> None:
        """Start following everything watched, and calling `changed`."""

    def request(self, readable: Readable[Any]) -> Any:
        """The request that checks it."""
        if isinstance(readable.request, QueryOf):  # it may be another query by now
            try:
                return (self._readable(readable.uri) or readable).request
            except Problem:
                pass
        return readable.request


def _differ(before: str | None, now: str) -> bool:
    """Whether a thing changed; a missing thing does not change."""
    return before != now and not (before is not None and before.startswith(ABSENT) and now.startswith(ABSENT))


def demonstration(settings: Any) -> tuple[str, Callable[[], None]] | None:
    """For `--check`: there is none, because it would have to change the database."""
    return None
