"""One writer at a time for each file, however it is reached: what keeps edits in flight from losing each other."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager
from weakref import WeakValueDictionary

from mcp_batteries.limits import Stop
from mcp_fs.engine.handles import Spot
from mcp_fs.engine.names import folded
from mcp_fs.policy import Readable

__all__ = ["locked"]


class _Lock:
    __slots__ = ("__weakref__", "held")

    def __init__(self) -> None:
        self.held = threading.Lock()


_locks: WeakValueDictionary[tuple[int, int, str], _Lock] = WeakValueDictionary()
_locks_guard = threading.Lock()


@contextmanager
def locked(spots: Iterable[Spot[Readable]], stop: Stop) -> Generator[None]:
    """Hold, against every other call of this process, the names at `spots`.

    A name is its folder's identity and its spelling as any file system might fold it, so that two ways to one
    file meet here.
    """
    keys = set[tuple[int, int, str]]()
    for spot in spots:
        folder = spot.folder.stat(".")
        keys.add((folder.st_dev, folder.st_ino, folded(spot.name).casefold()))
    with ExitStack() as stack:
        with _locks_guard:  # one order for all, so that two calls can't wait for each other
            locks = [_locks.setdefault(key, _Lock()) for key in sorted(keys)]
        for lock in locks:
            while not lock.held.acquire(timeout=0.05):
                stop.check()
            stack.callback(lock.held.release)
        yield
