"""Temporary entries: how to recognise them, and what happens to those that a crash has left.

A temporary entry has a name that nobody else uses and is locked, by flock(2), as long as the process that made
it is at work on it. What is older than this process and locked by none is a leftover, unless it is the only copy of
contents that a change has replaced and did not finish. They are looked for in all
of the served folders at the start, as far as that is cheap, and in each folder when it is first written to.
"""

from __future__ import annotations

import logging
import os
import secrets
import stat
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio

from mcp_batteries.errors import Problem
from mcp_batteries.limits import Stop, in_thread
from mcp_fs.engine.handles.path_opening import Folder, open_tree, resolve
from mcp_fs.policy import Policy, Readable

if sys.platform != "win32":
    from fcntl import LOCK_EX, LOCK_NB, flock

__all__ = [
    "OLD",
    "PREFIX",
    "clean_leftovers",
    "clean_once",
    "cleaning",
    "hold",
    "is_held",
    "remove_all",
    "remove_quietly",
    "temporary_name",
]

_log = logging.getLogger(__name__)

PREFIX = ".~mcp-fs-"
"""How temporary names begin; hidden, and nobody else's."""
OLD = f"{PREFIX}old-"
"""How the names of old contents begin that a change keeps until it is done; the only copy is never cleaned away."""

_STARTED = time.time()


def temporary_name(prefix: str = PREFIX) -> str:
    """A name that is free and that every server like this one knows as temporary."""
    return f"{prefix}{secrets.token_hex(8)}"


def hold(fd: int) -> None:
    """Tell other processes, as long as `fd` is open, that a temporary entry is not a leftover."""
    if sys.platform != "win32":  # there what is open can't be renamed or removed
        with suppress(OSError):
            flock(fd, LOCK_EX | LOCK_NB)


def is_held(folder: Folder[Any], name: str) -> bool:
    """Whether a process is at work on the entry `name`."""
    if sys.platform == "win32":
        return False
    try:
        fd = folder.open(name, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        flock(fd, LOCK_EX | LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


@asynccontextmanager
async def cleaning(policy: Policy) -> AsyncGenerator[None]:
    """Clean the served folders beside the first requests, for a minute at most; not when nothing may change."""
    async with anyio.create_task_group() as tasks:
        if not policy.read_only:
            tasks.start_soon(_clean, policy)
        yield
        tasks.cancel_scope.cancel()


async def _clean(policy: Policy) -> None:
    try:
        removed = await in_thread(lambda stop: clean_leftovers(policy, stop), seconds=60, what="Cleaning", last=True)
    except Problem as problem:
        _log.warning("leftovers were not looked for everywhere: %s", problem)
    else:
        if removed:
            _log.warning("removed %d temporary entries that an earlier process had left", removed)


def clean_leftovers(policy: Policy, stop: Stop, most: int = 100_000) -> int:
    """Remove the temporary files that crashed processes left below the served folders; how many there were.

    Looks at no more than `most` entries: a folder beyond that is cleaned when it is next written to. Links are
    not followed. A file that a living process holds, or that is younger than this process, stays.
    """
    cleaner = _Cleaner(stop, most)
    for root in policy.roots:
        with suppress(Problem), resolve(policy.top(root)) as spot, spot.folder.folder(spot.name) as folder:
            cleaner.clean(folder, depth=0)
    return cleaner.removed


class _Cleaner:
    def __init__(self, stop: Stop, most: int) -> None:
        self.stop, self.left, self.removed = stop, most, 0

    def clean(self, folder: Folder[Readable], depth: int) -> None:
        self.stop.check()
        _note_clean(folder)
        inner: list[str] = []
        for entry in folder.scan():
            self.left -= 1
            if entry.name.startswith(PREFIX):
                self.removed += _remove_leftover(folder, entry.name)
            elif self.left > 0 and depth < 100 and entry.is_dir(follow_symlinks=False):
                inner.append(entry.name)
        for name in inner:
            if self.left > 0:
                with suppress(Problem, OSError), folder.folder(name) as below:
                    self.clean(below, depth + 1)


_cleaned: set[tuple[int, int]] = set()


def clean_once(folder: Folder[Any]) -> None:
    if _note_clean(folder):
        with suppress(OSError):
            for name in folder.names():
                if name.startswith(PREFIX):
                    _remove_leftover(folder, name)


def _note_clean(folder: Folder[Any]) -> bool:
    """True the first time a folder is met."""
    identity = folder.identity
    if identity in _cleaned:
        return False
    if len(_cleaned) >= 10_000:
        _cleaned.clear()
    _cleaned.add(identity)
    return True


def _remove_leftover(folder: Folder[Any], name: str) -> bool:
    try:
        found = folder.stat(name)
        if found.st_ctime >= _STARTED:
            return False
        if name.startswith(OLD) and not _has_another_name(folder, found):
            _log.warning("kept, the only copy of what a change that did not finish has replaced: %s", name)
            return False
        if stat.S_ISLNK(found.st_mode):
            folder.remove(name)
            return True
        if sys.platform == "win32":
            # What a living process has open can't be renamed, and there is no lock for folders.
            folder.rename_new(name, folder, ours := temporary_name())
            name = ours
        else:
            fd = folder.open(name, os.O_RDONLY | os.O_NONBLOCK)
            try:
                flock(fd, LOCK_EX | LOCK_NB)
            finally:
                os.close(fd)
        remove_all(folder, name)
    except (OSError, Problem):  # a folder of somebody's that only has such a name may hold what is protected
        return False
    return True


def _has_another_name(folder: Folder[Any], found: os.stat_result) -> bool:
    """Whether a file has a lasting name in the folder too. One elsewhere does not count: it may be in the undo store,
    which forgets, or be written to by whom it belongs to."""
    for name in folder.names() if found.st_nlink > 1 else ():
        with suppress(OSError):
            if not name.startswith(PREFIX) and os.path.samestat(folder.stat(name), found):
                return True
    return False


def remove_all(folder: Folder[Any], name: str, stop: Stop | None = None) -> None:
    """Remove the entry `name` with all that is in it; links are removed, not followed.

    Raises:
        OSError: something could not be removed; what was before it is gone.
    """
    if stop is not None:
        stop.check()
    if not stat.S_ISDIR(folder.stat(name).st_mode):
        folder.remove(name)
        return
    with open_tree(folder, name) as inner:
        for below in inner.names():
            remove_all(inner, below, stop)
    folder.remove_folder(name)


def remove_quietly(folder: Folder[Any], name: str) -> None:
    """`remove_all` for a temporary entry that may be gone already."""
    with suppress(OSError, Problem):
        remove_all(folder, name)
