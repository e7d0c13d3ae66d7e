"""Where what was fetched is kept: what a store must do, and the choice between disk and memory."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from platformdirs import user_cache_path

from mcp_batteries.errors import Unavailable

__all__ = ["Entry", "Store", "Watch", "open_store"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Entry:
    """What is known of one remote resource. Times are seconds since the epoch, 0 for never."""

    body: bytes | None = None
    digest: str = ""
    """Of `body`'s content, as the fetcher counts it."""
    changed_at: float = 0.0
    """When `body` was first seen."""
    fetched_at: float = 0.0
    """When the upstream last said that `body` is what it has."""
    next_poll_at: float = 0.0
    etag: str | None = None
    last_modified: str | None = None
    unchanged: int = 0
    """Looks in a row that found nothing new."""
    error: str | None = None
    """Why the last look failed; None if it did not."""
    failed_at: float = 0.0
    failures: int = 0
    """Failed looks in a row."""
    retry_at: float = 0.0
    """The upstream asked not to be asked before."""


class Watch(Protocol):
    """Hears of bodies that change, whichever process changes them; keys are what `Store.place` gives."""

    async def add(self, keys: Collection[Hashable]) -> None: ...

    def discard(self, keys: Collection[Hashable]) -> None: ...

    async def run(self, changed: Callable[[Collection[Hashable]], None]) -> None: ...


class Store(Protocol):
    """Entries by name. Everything here may block if `blocks`; then it is called on worker threads only."""

    blocks: bool

    def read(self, key: str) -> Entry: ...

    def write(self, key: str, entry: Entry, *, body: bool) -> None:
        """Keep `entry`; its body only if `body`, which is what `watch` hears of."""
        ...

    def drop(self, key: str) -> None:
        """Forget the entry; that is a change too."""
        ...

    def lock(self, key: str) -> Callable[[], None] | None:
        """Take the lock of `key` among all processes without waiting; what releases it, None if it is taken."""
        ...

    def state(self, name: str) -> dict[str, Any]:
        """A small JSON object shared by all processes."""
        ...

    def update(self, name: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
        """Replace the object `name` by `change` of it, one process at a time; what it is now."""
        ...

    def tidy(self) -> None:
        """Forget what is too old, and the oldest of what is too much."""
        ...

    def place(self, key: str) -> Hashable:
        """What `watch` calls `key`."""
        ...

    def watch(self) -> Watch: ...


def open_store(where: str | None, command: str, identity: Sequence[str]) -> Store:
    """The store for a server's setting `cache`: a folder, `memory`, or None for the user's own cache folder.

    Where nobody named a folder and the user's own can't be written, as in a container with a read-only root, it is
    memory.

    Args:
        command: names the folder.
        identity: what must be the same for two processes to share: base URLs, the account, a token. Only a keyed
            digest of it is kept, in the names of files.

    Raises:
        Refused: the folder belongs to somebody else.
        Unavailable: the folder that was named cannot be used.
    """
    from mcp_batteries.remote.disk import DiskStore
    from mcp_batteries.remote.memory import MemoryStore

    if where == "memory":
        return MemoryStore()
    try:
        return DiskStore(where or str(user_cache_path(command, appauthor=False)), identity)
    except Unavailable as problem:
        if where:
            raise
        logger.info("Nothing is kept on disk: %s", problem.what)
        return MemoryStore()
