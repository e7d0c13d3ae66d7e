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

_OVERLAP_STEPS = DEBOUNCE_MS // STEP_MS + 3
"""How long a replaced watch goes on, to hand over what it had heard. In steps: a busy machine counts no time."""
_MOST_ENDING = 32
"""Replaced watches at once: each is an inotify instance, of which a user may have 128."""
_LEVELS = 3
_FEW = 16
"""Folders for which the smallest watch may be replaced, however few there are in all."""
_MOST_STRIKES = 3


class FolderWatches:
    """Watches the needed folders, and soon no others.

    Args:
        hear: awaited with each batch of events, and the watch that reported them.
        lost: called when a watch has broken and lost its events.
        say: called with messages for the operator.

    Attributes:
        watches: those that are still read, including replaced ones.
    """

    def __init__(
        self,
        hear: Callable[[set[tuple[int, str]], KernelWatch], Awaitable[None]],
        lost: Callable[[], None],
        say: Callable[[str], None],
    ) -> None:
        self._hear = hear
        self._lost = lost
        self._say = say
        self.watches: set[KernelWatch] = set()
        self.ended = anyio.Event()
        self.reset()

    def start(self, tasks: TaskGroup) -> None:
        """Allow watching from now on, with tasks of this group."""
        self._tasks = tasks
        self._threads = anyio.CapacityLimiter(_MOST_ENDING + 2 * _LEVELS)

    def reset(self) -> None:
        """Watch nothing, need nothing, and forget failures."""
        for watch in self.watches:
            watch.end()
        self._needed: Counter[str] = Counter()
        """By folded folder: how often it was said to be needed."""
        self._armed: dict[str, KernelWatch] = {}
        self._moved: set[str] = set()
        """Folders that were moved or removed since `arm` last began."""
        self._levels: list[KernelWatch | None] = [None] * _LEVELS
        self._exhausted = False
        self._strikes: Counter[str] = Counter()
        self._unheard: set[str] = set()

    def need(self, folders: Iterable[str]) -> None:
        self._needed.update(map(fold, folders))

    def release(self, folders: Iterable[str]) -> None:
        for folder in map(fold, folders):
            self._needed[folder] -= 1
            if not self._needed[folder]:
                del self._needed[folder]

    def needs(self, place: str) -> bool:
        """Whether the folder of this folded path is needed."""
        return place in self._needed

    def missing(self, folders: Iterable[str]) -> set[str]:
        """Those of `folders` that are not watched."""
        return set(folders) - self._armed.keys()

    def may_hear(self, folders: Iterable[str]) -> bool:
        """Whether nothing in `folders` keeps breaking watches."""
        return self._unheard.isdisjoint(folders)

    @property
    def outgrown(self) -> bool:
        """Whether too many unneeded folders are watched."""
        return len(self._armed) > 2 * len(self._needed) + _FEW

    def move(self, places: set[str]) -> None:
        """Note that folders of these folded paths were moved or removed: a watch being armed may be on something
        else."""
        self._moved |= places

    def disarm(self, folders: Iterable[str]) -> None:
        """Count `folders` as not watched, because something else is in their place now."""
        for folder in folders:
            self._armed.pop(folder, None)

    async def arm(self, missing: set[str], *, everything: bool = False) -> bool:
        """Watch `missing` as well; False if no more can be watched. For one task at a time."""
        if self._exhausted:
            return False
        # With n folders that come one by one, each is armed about 3/2 n^(1/3) times.
        grain = max(_FEW, round(len(self._needed) ** (1 / _LEVELS)))
        level = 0
        folders = missing | self._kept(0)
        while level < _LEVELS - 1 and (everything or len(folders) > grain ** (level + 1)):
            level += 1
            folders |= self._kept(level)
        self._moved.clear()
        armed = self._armed
        try:
            watch = await self._in_thread(lambda: _watch(folders))
        except (FileNotFoundError, PermissionError):
            return True
        except (OSError, WatchfilesRustInternalError) as error:
            self._exhausted = True
            self._say(f"No more folders can be watched; the rest is polled twice a second: {error}")
            return False
        if self._armed is not armed:
            return True  # All were dropped in the meantime, and all watches with them.
        for old in filter(None, self._levels[: level + 1]):
            self._forget(old)
            old.end(_OVERLAP_STEPS)
        self._levels[: level + 1] = [None] * level + [watch]
        self._armed.update({folder: watch for folder in watch.folders if fold(folder) not in self._moved})
        self.watches.add(watch)
        self._tasks.start_soon(self._follow, watch)
        while len(self.watches) > _MOST_ENDING:
            await self.ended.wait()
        return True

    def _kept(self, level: int) -> set[str]:
        watch = self._levels[level]
        return {folder for folder in watch.folders if fold(folder) in self._needed} if watch else set()

    def _forget(self, watch: KernelWatch) -> None:
        for folder in watch.folders:
            if self._armed.get(folder) is watch:
                del self._armed[folder]

    async def _follow(self, watch: KernelWatch) -> None:
        try:
            while (events := await self._in_thread(watch.read)) is not None:
                await self._hear(events, watch)
        except WatchfilesRustInternalError as error:
            self._break(watch, str(error))
        finally:
            watch.end()
            self.watches.discard(watch)
            self.ended.set()
            self.ended = anyio.Event()

    def _break(self, watch: KernelWatch, error: str) -> None:
        """Continue without `watch`: a name that is not UTF-8 has broken it for good, and its last events are lost."""
        culprit = max((folder for folder in watch.folders if f'"{folder}{os.sep}' in error), key=len, default="")
        self._strikes[culprit] += 1
        if self._strikes[culprit] > _MOST_STRIKES:
            self._exhausted = self._exhausted or not culprit
            self._unheard.add(culprit)
            self._say(f"Some of what is watched is polled twice a second: {error}")
        self._forget(watch)
        self._levels = [None if at is watch else at for at in self._levels]
        self._lost()

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._threads)


def _watch(folders: Iterable[str]) -> KernelWatch:
    return KernelWatch([folder for folder in folders if os.path.isdir(folder)])
