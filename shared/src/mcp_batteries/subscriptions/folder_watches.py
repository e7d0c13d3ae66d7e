"""Kernel watches on a changing set of folders.

It uses watchfiles' `RustNotify` directly: the constructor returns once the watches are armed. A `RustNotify` cannot
take another folder later. So there are three: a small one, replaced whenever a folder is added, and two larger ones,
replaced when they take over what the smaller ones have gathered. Each costs one sleeping thread.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup
from watchfiles._rust_notify import WatchfilesRustInternalError

from mcp_batteries.subscriptions.kernel_watch import DEBOUNCE_MS, STEP_MS, KernelWatch
from mcp_batteries.subscriptions.watch_paths import fold

__all__ = ["FolderWatches"]

T = TypeVar("T")

# A replaced watch goes on for this long, to hand over what it had heard. In steps, because a busy machine counts no
# time.
_OVERLAP_STEPS = DEBOUNCE_MS // STEP_MS + 3
# Replaced watches at once: each is an inotify instance, of which a user may have 128.
_MAX_ENDING = 32
_LEVELS = 3
# For this many folders the smallest watch may be replaced, however few there are in all.
_MIN_GRAIN = 16
_MAX_FAILURES = 3


class FolderWatches:
    """Watches the needed folders, and soon no others.

    Args:
        on_events: awaited with each batch of events, and the watch that reported them.
        on_lost: called when a watch has broken and lost its events.
        warn: called with messages for the operator.

    Attributes:
        watches: those that are still read, including replaced ones.
        watch_ended: set when one of them ends.
    """

    def __init__(
        self,
        on_events: Callable[[set[tuple[int, str]], KernelWatch], Awaitable[None]],
        on_lost: Callable[[], None],
        warn: Callable[[str], None],
    ) -> None:
        self._on_events = on_events
        self._on_lost = on_lost
        self._warn = warn
        self.watches: set[KernelWatch] = set()
        self.watch_ended = anyio.Event()
        self.reset()

    def start(self, tasks: TaskGroup) -> None:
        """Allow watching from now on, with tasks of this group."""
        self._tasks = tasks
        self._threads = anyio.CapacityLimiter(_MAX_ENDING + 2 * _LEVELS)

    def reset(self) -> None:
        """Watch nothing, need nothing, and forget failures."""
        for watch in self.watches:
            watch.end()
        # By folded folder: how often `need` was called for it.
        self._needed: Counter[str] = Counter()
        self._armed: dict[str, KernelWatch] = {}
        # The folders that were moved or removed since `arm` last began.
        self._moved: set[str] = set()
        self._levels: list[KernelWatch | None] = [None] * _LEVELS
        self._exhausted = False
        self._failures: Counter[str] = Counter()
        self._unwatchable: set[str] = set()

    def need(self, folders: Iterable[str]) -> None:
        self._needed.update(map(fold, folders))

    def release(self, folders: Iterable[str]) -> None:
        for folder in map(fold, folders):
            self._needed[folder] -= 1
            if not self._needed[folder]:
                del self._needed[folder]

    def needs(self, folder: str) -> bool:
        """Tell whether the folder of this folded path is needed."""
        return folder in self._needed

    def missing(self, folders: Iterable[str]) -> set[str]:
        """Return those of `folders` that are not watched."""
        return set(folders) - self._armed.keys()

    def can_watch(self, folders: Iterable[str]) -> bool:
        """Tell whether nothing in `folders` keeps breaking watches."""
        return self._unwatchable.isdisjoint(folders)

    @property
    def outgrown(self) -> bool:
        """Whether too many unneeded folders are watched."""
        return len(self._armed) > 2 * len(self._needed) + _MIN_GRAIN

    def move(self, folders: set[str]) -> None:
        """Note that folders of these folded paths were moved or removed.

        A watch that is being armed may be on something else.
        """
        self._moved |= folders

    def disarm(self, folders: Iterable[str]) -> None:
        """Count `folders` as not watched, because something else is in their place now."""
        for folder in folders:
            self._armed.pop(folder, None)

    async def arm(self, missing: set[str], *, everything: bool = False) -> bool:
        """Watch `missing` as well; return False if no more can be watched. For one task at a time."""
        if self._exhausted:
            return False
        # With n folders that come one by one, each is armed about 3/2 n^(1/3) times.
        grain = max(_MIN_GRAIN, round(len(self._needed) ** (1 / _LEVELS)))
        level = 0
        folders = missing | self._needed_at(0)
        while level < _LEVELS - 1 and (everything or len(folders) > grain ** (level + 1)):
            level += 1
            folders |= self._needed_at(level)
        self._moved.clear()
        armed = self._armed
        try:
            watch = await self._in_thread(lambda: _arm_watch(folders))
        except (FileNotFoundError, PermissionError):
            return True
        except (OSError, WatchfilesRustInternalError) as error:
            self._exhausted = True
            self._warn(f"No more folders can be watched; the rest is polled twice a second: {error}")
            return False
        if self._armed is not armed:
            return True  # All were dropped in the meantime, and all watches with them.
        self._replace(level, watch)
        while len(self.watches) > _MAX_ENDING:
            await self.watch_ended.wait()
        return True

    def _replace(self, level: int, watch: KernelWatch) -> None:
        """Put `watch` in the place of the watches up to `level`."""
        for lower in range(level + 1):
            replaced = self._levels[lower]
            if replaced is not None:
                self._forget(replaced)
                replaced.end(_OVERLAP_STEPS)
            self._levels[lower] = None
        self._levels[level] = watch
        for folder in watch.folders:
            if fold(folder) not in self._moved:
                self._armed[folder] = watch
        self.watches.add(watch)
        self._tasks.start_soon(self._follow, watch)

    def _needed_at(self, level: int) -> set[str]:
        """Return the folders that the watch of `level` has and that are still needed."""
        watch = self._levels[level]
        if watch is None:
            return set()
        return {folder for folder in watch.folders if fold(folder) in self._needed}

    def _forget(self, watch: KernelWatch) -> None:
        for folder in watch.folders:
            if self._armed.get(folder) is watch:
                del self._armed[folder]

    async def _follow(self, watch: KernelWatch) -> None:
        """Read `watch` until it ends."""
        try:
            while True:
                events = await self._in_thread(watch.read)
                if events is None:
                    break
                await self._on_events(events, watch)
        except WatchfilesRustInternalError as error:
            self._break(watch, str(error))
        finally:
            watch.end()
            self.watches.discard(watch)
            self.watch_ended.set()
            self.watch_ended = anyio.Event()

    def _break(self, watch: KernelWatch, error: str) -> None:
        """Continue without `watch`: a name that is not UTF-8 has broken it for good, and its last events are lost."""
        culprit = max((folder for folder in watch.folders if f'"{folder}{os.sep}' in error), key=len, default="")
        self._failures[culprit] += 1
        if self._failures[culprit] > _MAX_FAILURES:
            self._exhausted = self._exhausted or not culprit
            self._unwatchable.add(culprit)
            self._warn(f"Some of what is watched is polled twice a second: {error}")
        self._forget(watch)
        for level, other in enumerate(self._levels):
            if other is watch:
                self._levels[level] = None
        self._on_lost()

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._threads)


def _arm_watch(folders: Iterable[str]) -> KernelWatch:
    return KernelWatch([folder for folder in folders if os.path.isdir(folder)])
