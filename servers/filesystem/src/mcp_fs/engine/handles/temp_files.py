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

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.concurrency.threads import run_in_thread
from mcp_batteries.errors import Problem
from mcp_fs.engine.handles.path_opening import Folder, open_tree, resolve
from mcp_fs.policy import Policy, ReadablePath

if sys.platform != "win32":
    from fcntl import LOCK_EX, LOCK_NB, flock

__all__ = [
    "BACKUP_PREFIX",
    "TEMPORARY_PREFIX",
    "clean_folder_once",
    "clean_in_background",
    "clean_leftovers",
    "is_in_use",
    "mark_in_use",
    "remove_all",
    "remove_quietly",
    "temporary_name",
]

_log = logging.getLogger(__name__)

# How temporary names begin; hidden, and nobody else's.
TEMPORARY_PREFIX = ".~mcp-fs-"
# How the names of old contents begin that a change keeps until it is done; the only copy is never cleaned away.
BACKUP_PREFIX = f"{TEMPORARY_PREFIX}old-"

_START_TIME = time.time()


def temporary_name(prefix: str = TEMPORARY_PREFIX) -> str:
    """Return a name that is free and that every server like this one knows as temporary."""
    return f"{prefix}{secrets.token_hex(8)}"


def mark_in_use(fd: int) -> None:
    """Tell other processes, as long as `fd` is open, that a temporary entry is not a leftover."""
    if sys.platform != "win32":  # there what is open can't be renamed or removed
        with suppress(OSError):
            flock(fd, LOCK_EX | LOCK_NB)


def is_in_use(folder: Folder[Any], name: str) -> bool:
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
async def clean_in_background(policy: Policy) -> AsyncGenerator[None]:
    """Clean the served folders beside the first requests, for a minute at most; not when nothing may change."""
    async with anyio.create_task_group() as tasks:
        if not policy.read_only:
            tasks.start_soon(_clean_served_folders, policy)
        yield
        tasks.cancel_scope.cancel()


async def _clean_served_folders(policy: Policy) -> None:
    try:
        removed = await run_in_thread(
            lambda cancel: clean_leftovers(policy, cancel), seconds=60, description="Cleaning", background=True
        )
    except Problem as problem:
        _log.warning("leftovers were not looked for everywhere: %s", problem)
    else:
        if removed:
            _log.warning("removed %d temporary entries that an earlier process had left", removed)


def clean_leftovers(policy: Policy, cancel: CancelToken, max_entries: int = 100_000) -> int:
    """Remove the temporary files that crashed processes left below the served folders; how many there were.

    Looks at no more than `most` entries: a folder beyond that is cleaned when it is next written to. Links are
    not followed. A file that a living process holds, or that is younger than this process, stays.
    """
    cleaner = _LeftoverCleaner(cancel, max_entries)
    for root in policy.roots:
        with (
            suppress(Problem),
            resolve(policy.root_path(root)) as resolved,
            resolved.folder.open_folder(resolved.name) as folder,
        ):
            cleaner.clean(folder, depth=0)
    return cleaner.removed_count


class _LeftoverCleaner:
    def __init__(self, cancel: CancelToken, max_entries: int) -> None:
        self.cancel = cancel
        self.remaining_entries = max_entries
        self.removed_count = 0

    def clean(self, folder: Folder[ReadablePath], depth: int) -> None:
        self.cancel.check()
        _is_first_visit(folder)
        subfolders: list[str] = []
        for entry in folder.scan():
            self.remaining_entries -= 1
            if entry.name.startswith(TEMPORARY_PREFIX):
                self.removed_count += _remove_leftover(folder, entry.name)
            elif self.remaining_entries > 0 and depth < 100 and entry.is_dir(follow_symlinks=False):
                subfolders.append(entry.name)
        for name in subfolders:
            if self.remaining_entries > 0:
                with suppress(Problem, OSError), folder.open_folder(name) as subfolder:
                    self.clean(subfolder, depth + 1)


_cleaned_folders: set[tuple[int, int]] = set()


def clean_folder_once(folder: Folder[Any]) -> None:
    if _is_first_visit(folder):
        with suppress(OSError):
            for name in folder.list_names():
                if name.startswith(TEMPORARY_PREFIX):
                    _remove_leftover(folder, name)


def _is_first_visit(folder: Folder[Any]) -> bool:
    """True the first time a folder is met."""
    identity = folder.identity
    if identity in _cleaned_folders:
        return False
    if len(_cleaned_folders) >= 10_000:
        _cleaned_folders.clear()
    _cleaned_folders.add(identity)
    return True


def _remove_leftover(folder: Folder[Any], name: str) -> bool:
    try:
        status = folder.stat(name)
        if status.st_ctime >= _START_TIME:
            return False
        if name.startswith(BACKUP_PREFIX) and not _has_another_name(folder, status):
            _log.warning("kept, the only copy of what a change that did not finish has replaced: %s", name)
            return False
        if stat.S_ISLNK(status.st_mode):
            folder.remove(name)
            return True
        if sys.platform == "win32":
            # What a living process has open can't be renamed, and there is no lock for folders.
            folder.rename_noreplace(name, folder, ours := temporary_name())
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


def _has_another_name(folder: Folder[Any], status: os.stat_result) -> bool:
    """Whether a file has a lasting name in the folder too. One elsewhere does not count: it may be in the undo store,
    which forgets, or be written to by whom it belongs to."""
    for name in folder.list_names() if status.st_nlink > 1 else ():
        with suppress(OSError):
            if not name.startswith(TEMPORARY_PREFIX) and os.path.samestat(folder.stat(name), status):
                return True
    return False


def remove_all(folder: Folder[Any], name: str, cancel: CancelToken | None = None) -> None:
    """Remove the entry `name` with all that is in it; links are removed, not followed.

    Raises:
        OSError: something could not be removed; what was before it is gone.
    """
    if cancel is not None:
        cancel.check()
    if not stat.S_ISDIR(folder.stat(name).st_mode):
        folder.remove(name)
        return
    with open_tree(folder, name) as inner:
        for child in inner.list_names():
            remove_all(inner, child, cancel)
    folder.remove_folder(name)


def remove_quietly(folder: Folder[Any], name: str) -> None:
    """`remove_all` for a temporary entry that may be gone already."""
    with suppress(OSError, Problem):
        remove_all(folder, name)
