"""What is kept of a remote resource, and what a store of such entries must do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["Entry", "Store", "Watch"]


@dataclass(frozen=True)
class Entry:
    """What is known of one remote resource. Times are seconds since the epoch, 0 for never.

    Attributes:
        digest: of the content of `body`, as the fetcher counts it.
        changed_at: when `body` was first seen.
        fetched_at: when the upstream last said that `body` is what it has.
        unchanged: checks in a row that found nothing new.
        error: why the last check failed; None if it did not.
        failures: failed checks in a row.
        retry_at: the upstream wants no request before.
    """

    body: bytes | None = None
    digest: str = ""
    changed_at: float = 0.0
    fetched_at: float = 0.0
    next_poll_at: float = 0.0
    etag: str | None = None
    last_modified: str | None = None
    unchanged: int = 0
    error: str | None = None
    failed_at: float = 0.0
    failures: int = 0
    retry_at: float = 0.0


class Watch(Protocol):
    """Reports changed bodies, whichever process changes them; keys come from `Store.place`."""

    async def add(self, keys: Collection[Hashable]) -> None: ...

    def discard(self, keys: Collection[Hashable]) -> None: ...

    async def run(self, changed: Callable[[Collection[Hashable]], None]) -> None: ...


class Store(Protocol):
    """Entries by name. If `blocks`, every method may block and is called only on worker threads."""

    blocks: bool

    def read(self, key: str) -> Entry: ...

    def write(self, key: str, entry: Entry, *, body: bool) -> None:
        """Keep `entry`; its body only if `body`, which `watch` then reports."""
        ...

    def drop(self, key: str) -> None:
        """Forget the entry; that is a change too."""
        ...

    def lock(self, key: str) -> Callable[[], None] | None:
        """Take the lock of `key` among all processes without waiting.

        Return what releases it, or None if it is taken.
        """
        ...

    def state(self, name: str) -> dict[str, Any]:
        """Return a small JSON object shared by all processes."""
        ...

    def update(self, name: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
        """Replace the object `name` by `change` of it, one process at a time; return the new object."""
        ...

    def tidy(self) -> None:
        """Remove entries that are too old, and the oldest if there are too many."""
        ...

    def place(self, key: str) -> Hashable:
        """Return the name that `watch` uses for `key`."""
        ...

    def watch(self) -> Watch: ...
