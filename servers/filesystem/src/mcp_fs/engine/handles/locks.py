"""Allows one writer at a time for each file, however it is reached, so that concurrent edits do not lose each other.

Calls of one process meet at the name, before there need be a file. Processes meet at the file itself, by flock(2):
who holds the lock of the file that stands at the name may replace it, and whoever waited looks again whether it
still stands there. Programs that know nothing of this are noticed by `Operation.check_unchanged`.
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

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Unavailable, quote
from mcp_fs.engine.handles.path_opening import ResolvedPath
from mcp_fs.engine.name_folding import fold_name
from mcp_fs.policy import ReadablePath

if sys.platform != "win32":
    from fcntl import LOCK_EX, LOCK_NB, flock

__all__ = ["LockedFile", "lock_names"]

_READ_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_MAX_WAIT_SECONDS = 10.0  # seconds for another process, whose change takes a few milliseconds


class _NameLock:
    __slots__ = ("__weakref__", "mutex")

    def __init__(self) -> None:
        self.mutex = threading.Lock()


_name_locks: WeakValueDictionary[tuple[int, int, str], _NameLock] = WeakValueDictionary()
_locks_guard = threading.Lock()


@dataclass(frozen=True, slots=True)
class LockedFile:
    """A regular file that stood at its name once its lock was held.

    Attributes:
        fd: it, open for reading as long as the lock is held.
        status: its status then.
    """

    fd: int
    status: os.stat_result


@contextmanager
def lock_names(
    resolved_paths: Sequence[ResolvedPath[Any]], cancel: CancelToken
) -> Generator[Mapping[ResolvedPath[Any], LockedFile]]:
    """Hold, against every other call and every other server process, the names at `resolved_paths`.

    A name is its folder's identity and its spelling as any file system might fold it, so that two ways to one
    file meet here. What of the files there is known stands beside; of some, and on Windows of all, it is nothing.

    Raises:
        Unavailable: another process holds one of the files for more than 10 seconds.
    """
    with ExitStack() as stack:
        for lock in _locks_for(resolved_paths):
            while not lock.mutex.acquire(timeout=0.05):
                cancel.check()
            stack.callback(lock.mutex.release)
        if sys.platform == "win32":  # there a file that another process has open can't be replaced
            yield {}
        else:
            yield _lock_files(resolved_paths, cancel, stack)


def _locks_for(resolved_paths: Iterable[ResolvedPath[ReadablePath]]) -> list[_NameLock]:
    keys = {(*resolved.folder.identity, fold_name(resolved.name).casefold()) for resolved in resolved_paths}
    with _locks_guard:  # one order for all, so that two calls can't wait for each other
        return [_name_locks.setdefault(key, _NameLock()) for key in sorted(keys)]


if sys.platform != "win32":

    def _lock_files(
        resolved_paths: Iterable[ResolvedPath[Any]], cancel: CancelToken, stack: ExitStack
    ) -> Mapping[ResolvedPath[Any], LockedFile]:
        """Hold the regular files at `resolved_paths` until `stack` ends; what is no such file needs no lock."""
        locked_identities: set[tuple[int, int]] = set()
        locked_files: dict[ResolvedPath[Any], LockedFile] = {}
        deadline = time.monotonic() + _MAX_WAIT_SECONDS
        for resolved, earlier_status in _sort_regular_files(resolved_paths):
            status: os.stat_result | None = earlier_status
            while status is not None and (status.st_dev, status.st_ino) not in locked_identities:
                try:
                    fd = resolved.folder.open(resolved.name, _READ_FLAGS)
                except OSError:
                    break  # one that can't be read can't be edited either
                stack.callback(os.close, fd)
                if not _wait_for_flock(fd, resolved, cancel, deadline):
                    break
                opened_status = os.fstat(fd)
                locked_identities.add((opened_status.st_dev, opened_status.st_ino))
                status = _read_regular_status(resolved)
                if status is not None and os.path.samestat(status, opened_status):
                    locked_files[resolved] = LockedFile(fd, status)
        return locked_files

    def _sort_regular_files(
        resolved_paths: Iterable[ResolvedPath[Any]],
    ) -> list[tuple[ResolvedPath[Any], os.stat_result]]:
        """Return a name of each regular file that was there a moment ago, in the one order in which all calls go."""
        files: dict[tuple[int, int], tuple[ResolvedPath[Any], os.stat_result]] = {}
        for resolved in resolved_paths:
            status = _only_regular(resolved.status) or _read_regular_status(resolved)
            if status is not None:
                files[status.st_dev, status.st_ino] = (resolved, status)
        return [files[identity] for identity in sorted(files)]

    def _wait_for_flock(fd: int, resolved: ResolvedPath[ReadablePath], cancel: CancelToken, deadline: float) -> bool:
        """Wait for the lock; False where the file system knows none."""
        while True:
            try:
                flock(fd, LOCK_EX | LOCK_NB)
            except BlockingIOError:
                cancel.check()
                if time.monotonic() > deadline:
                    raise Unavailable(
                        f"Another program holds a lock on {quote(resolved.path.display)}.",
                        "Try again when it has finished; nothing was changed.",
                    ) from None
                time.sleep(0.005)
            except OSError:
                return False
            else:
                return True

    def _read_regular_status(resolved: ResolvedPath[ReadablePath]) -> os.stat_result | None:
        try:
            return _only_regular(resolved.folder.stat(resolved.name))
        except OSError:
            return None

    def _only_regular(status: os.stat_result | None) -> os.stat_result | None:
        if status is None or not stat.S_ISREG(status.st_mode):
            return None
        return status
