"""Allows one writer at a time for each file, however it is reached, so that concurrent edits do not lose each other.

Calls of one process meet at the name, before there need be a file. Processes meet at the file itself, by flock(2):
who holds the lock of the file that stands at the name may replace it, and whoever waited looks again whether it
still stands there. Programs that know nothing of this are noticed by `Staged.check_unchanged`.
"""

from __future__ import annotations

import os
import stat
import sys
import threading
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

from mcp_batteries.errors import Unavailable, quote
from mcp_batteries.limits import Stop
from mcp_fs.engine.handles.path_opening import Spot
from mcp_fs.engine.name_folding import fold_name
from mcp_fs.policy import Readable

if sys.platform != "win32":
    from fcntl import LOCK_EX, LOCK_NB, flock

__all__ = ["Held", "locked"]

_LOOK = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_PATIENCE = 10.0  # seconds for another process, whose change takes a few milliseconds


class _Lock:
    __slots__ = ("__weakref__", "held")

    def __init__(self) -> None:
        self.held = threading.Lock()


_locks: WeakValueDictionary[tuple[int, int, str], _Lock] = WeakValueDictionary()
_locks_guard = threading.Lock()


@dataclass(frozen=True, slots=True)
class Held:
    """A regular file that stood at its name once its lock was held.

    Attributes:
        fd: it, open for reading as long as the lock is held.
        found: its status then.
    """

    fd: int
    found: os.stat_result


@contextmanager
def locked(spots: Sequence[Spot[Any]], stop: Stop) -> Generator[Mapping[Spot[Any], Held]]:
    """Hold, against every other call and every other server process, the names at `spots`.

    A name is its folder's identity and its spelling as any file system might fold it, so that two ways to one
    file meet here. What of the files there is known stands beside; of some, and on Windows of all, it is nothing.

    Raises:
        Unavailable: another process holds one of the files for more than 10 seconds.
    """
    with ExitStack() as stack:
        for lock in _of(spots):
            while not lock.held.acquire(timeout=0.05):
                stop.check()
            stack.callback(lock.held.release)
        if sys.platform == "win32":  # there a file that another process has open can't be replaced
            yield {}
        else:
            yield _hold_files(spots, stop, stack)


def _of(spots: Iterable[Spot[Readable]]) -> list[_Lock]:
    keys = {(*spot.folder.identity, fold_name(spot.name).casefold()) for spot in spots}
    with _locks_guard:  # one order for all, so that two calls can't wait for each other
        return [_locks.setdefault(key, _Lock()) for key in sorted(keys)]


if sys.platform != "win32":

    def _hold_files(spots: Iterable[Spot[Any]], stop: Stop, stack: ExitStack) -> Mapping[Spot[Any], Held]:
        """Hold the regular files at `spots` until `stack` ends; what is no such file needs no lock."""
        # What was there a moment ago only says in which order to go.
        before = {spot: _file(spot.found) or _regular(spot) for spot in spots}
        files = {(found.st_dev, found.st_ino): (spot, found) for spot, found in before.items() if found is not None}
        held, known = set[tuple[int, int]](), dict[Spot[Any], Held]()
        deadline = time.monotonic() + _PATIENCE
        for _, (spot, now) in sorted(files.items(), key=lambda item: item[0]):
            found: os.stat_result | None = now
            while found is not None and (found.st_dev, found.st_ino) not in held:
                try:
                    fd = spot.folder.open(spot.name, _LOOK)
                except OSError:
                    break  # one that can't be read can't be edited either
                stack.callback(os.close, fd)
                if not _flock(fd, spot, stop, deadline):
                    break
                opened = os.fstat(fd)
                held.add((opened.st_dev, opened.st_ino))
                found = _regular(spot)
                if found is not None and os.path.samestat(found, opened):
                    known[spot] = Held(fd, found)
        return known

    def _flock(fd: int, spot: Spot[Readable], stop: Stop, deadline: float) -> bool:
        """Wait for the lock; False where the file system knows none."""
        while True:
            try:
                flock(fd, LOCK_EX | LOCK_NB)
            except BlockingIOError:
                stop.check()
                if time.monotonic() > deadline:
                    raise Unavailable(
                        f"Another program holds a lock on {quote(spot.place.display)}.",
                        "Try again when it has finished; nothing was changed.",
                    ) from None
                time.sleep(0.005)
            except OSError:
                return False
            else:
                return True

    def _regular(spot: Spot[Readable]) -> os.stat_result | None:
        try:
            return _file(spot.folder.stat(spot.name))
        except OSError:
            return None

    def _file(found: os.stat_result | None) -> os.stat_result | None:
        return found if found is not None and stat.S_ISREG(found.st_mode) else None
