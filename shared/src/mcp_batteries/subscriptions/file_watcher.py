"""A source of changes for files and folders.

It watches the folders on the way to subscribed paths, but no files and nothing below. So it notices a save by rename, a
file deleted and recreated, and a parent that is moved or created later, and a tree of any size costs nothing. It checks
the paths that an event names, and announces those that differ from the last check.

Where the kernel reports nothing, it checks subscribed paths twice a second.

The kernel also drops events when its queue is full, and never reports some changes: through memory maps, through hard
links in other folders. So the watcher also checks everything subscribed to slowly, one stat(2) each, and at once after
a batch that may have been cut.
"""

from __future__ import annotations

import logging
import os
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Sequence
from typing import TypeVar

import anyio
import anyio.to_thread

from mcp_batteries.errors import Problem
from mcp_batteries.subscriptions.folder_watches import FolderWatches
from mcp_batteries.subscriptions.glance import Glance, glance
from mcp_batteries.subscriptions.kernel_watch import KernelWatch
from mcp_batteries.subscriptions.watch_paths import WatchPath, WatchPaths, fold

__all__ = ["FileWatcher", "follow_file"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

_SETTLE_SECONDS = 0.2

_MODIFIED = 2

_MOST_TRIES = 10

_COARSE_NS = 20_000_000
"""Two changes closer than this may leave one time stamp: a tick of the slowest kernel clock, doubled."""
_DOUBT_SECONDS = 0.1
"""Until when the event of such a second change is here."""

_POLL_SECONDS = 0.5
_FLOOD = 1000
"""Events at once from which the kernel's queue (fs.inotify.max_queued_events) may have lost some."""

_ROUND_SECONDS = 2.0
"""How long a slow look at everything takes at least."""
_SLICE = 500
"""Things that a slow look takes at once."""
_SHARE = 0.004
"""Of one processor, what slow looks take at most."""

_UNSEEN = object()
_Look = tuple[Hashable | None, bool, Glance | None]
"""What is there, whether a change of it could follow that looks the same, and what stat(2) said just before."""


class _Entry:
    """One subscribed path, and its state at the last check."""

    __slots__ = ("doubted_until", "fresh", "glance", "path", "state", "way")

    def __init__(self, path: str) -> None:
        self.path = path
        self.way = WatchPath()
        self.state: Hashable | None = _UNSEEN
        self.doubted_until = 0.0
        self.fresh = False
        self.glance: Glance | None = None


class FileWatcher:
    """The source of changes at and below `roots`.

    Args:
        roots: absolute paths of the served folders; a change directly in one changes `resources/list`.
        locate: the absolute path behind a URI, beneath one of `roots` as it is spelled there, undecodable bytes as
            `os.fsdecode` has them; None if the URI is of another kind. Raises `Problem` if it may not be watched.
        probe: called on a worker thread with such a path: a value that differs whenever the thing there does; None
            if there is none. `Problem`, `OSError` and `ValueError` count as none.
        poll: True never asks the kernel; by default that is left to the environment variable
            WATCHFILES_FORCE_POLLING, as in every program that uses watchfiles.
        exact: whether `probe` reads the contents, so that equal values mean equal contents, however close in time.
        inside: whether changes to files directly in a folder concern subscribers of the folder.
    """

    def __init__(
        self,
        roots: Sequence[str],
        locate: Callable[[str], str | None],
        probe: Callable[[str], Hashable | None],
        *,
        poll: bool | None = None,
        exact: bool = False,
        inside: bool = False,
    ) -> None:
        self._exact = exact
        self._inside = inside
        self.list_keys: Collection[Hashable] = tuple(roots)
        self._locate = locate
        self._probe = probe
        self._only_polls = poll if poll is not None else _environment_polls()
        self._watch_paths = WatchPaths(roots)
        self._changed: Callable[[Collection[Hashable]], None] = lambda keys: None
        self._rounds = 0
        self._said: set[str] = set()
        self._folders = FolderWatches(self._hear, self._lose, self._say)
        self._running = anyio.Event()
        self._wake = anyio.Event()
        self._poll_wake = anyio.Event()
        self._first = anyio.Event()
        self._arming = anyio.Lock()
        self._reset()

    def _reset(self) -> None:
        self._entries: dict[Hashable, _Entry] = {}
        self._at: defaultdict[str, set[_Entry]] = defaultdict(set)
        """By folded place: whom it touches if something happens there."""
        self._ways: defaultdict[tuple[str, ...], set[_Entry]] = defaultdict(set)
        """By the folders on the way: who shares it."""
        self._polled: set[_Entry] = set()
        self._stale: set[_Entry] = set()
        self._flooded = False
        self._outgrown = False
        self._folders.reset()

    def key(self, uri: str) -> Hashable | None:
        return self._locate(uri)

    async def add(self, keys: Collection[Hashable]) -> None:
        await self._running.wait()
        rounds = self._rounds
        entries = [self._entries.setdefault(key, _Entry(str(key))) for key in keys]
        self._first.set()
        await self._renew(entries)
        if rounds != self._rounds:
            # An event may have named one of them before its place was known here.
            await self._check(entries)

    def discard(self, keys: Collection[Hashable]) -> None:
        for key in keys:
            if entry := self._entries.pop(key, None):
                self._leave(entry)
        if not self._entries:
            self._reset()
        elif self._folders.outgrown:
            self._outgrown = True
            self._wake.set()

    async def run(self, changed: Callable[[Collection[Hashable]], None]) -> None:
        self._changed = changed
        self._threads = anyio.CapacityLimiter(8)
        try:
            async with anyio.create_task_group() as tasks:
                self._folders.start(tasks)
                tasks.start_soon(self._tend)
                tasks.start_soon(self._poll)
                tasks.start_soon(self._look_slowly)
                self._running.set()
        finally:
            self._running = anyio.Event()
            self._reset()

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._threads)

    # What is there

    async def _renew(self, entries: Collection[_Entry]) -> None:
        """Check `entries` until all folders on their paths are watched; announce what differs."""
        async with self._arming:
            for _ in range(_MOST_TRIES):
                new_ways, found = await self._in_thread(lambda: self._look_around(entries))
                for entry, way in zip(entries, new_ways, strict=True):
                    if self._is_current(entry) and not (way == entry.way and self._folders.may_hear(way.folders)):
                        self._leave(entry)
                        self._enter(entry, way)
                self._record(entries, found)
                missing = self._folders.missing(folder for entry in entries for folder in entry.way.folders)
                if not missing:
                    return
                if not await self._folders.arm(missing):
                    break
            # The watches cannot be had, or the folders are never twice the same.
            for entry in entries:
                if self._is_current(entry) and self._folders.missing(entry.way.folders):
                    self._leave(entry)
                    self._polled.add(entry)
                    self._poll_wake.set()

    async def _check(self, entries: Collection[_Entry], *, named: bool = False, lost: bool = False) -> None:
        """Check `entries` and announce what differs.

        Args:
            named: an event named them; also announce what may have changed unnoticed right after the previous check.
            lost: events may be lost; the same, whenever the previous check was.
        """
        found = await self._in_thread(lambda: [self._look(entry, entry.way) for entry in entries])
        self._record(entries, found, named=named, lost=lost)

    async def _glance(self, entries: Collection[_Entry], *, lost: bool = False) -> float:
        """One stat(2) for each of `entries`, and a closer check of those that differ; returns the processor time in
        seconds."""
        began = time.thread_time()
        now, glances, taken = await self._in_thread(lambda: _stats([entry.path for entry in entries]))
        differing: list[_Entry] = []
        for entry, seen in zip(entries, glances, strict=True):
            if not self._is_current(entry):
                continue
            if seen != entry.glance or (lost and (entry.fresh or self._inside)):
                differing.append(entry)
            if lost and not self._exact and seen is not None and abs(now - seen.changed_ns) < _COARSE_NS:
                self._flooded = True  # what changed just now can change once more and look the same: look again
        if differing:
            await self._check(differing, lost=lost)
        return taken + time.thread_time() - began

    async def _look_slowly(self) -> None:
        """Check everything that is watched by events, again and again, with almost no processor time."""
        while True:
            entries = list(self._entries.values())
            for start in range(0, len(entries), _SLICE):
                part = entries[start : start + _SLICE]
                # What was never looked at is looked at by who adds it, with its place known.
                seen = [entry for entry in part if entry.state is not _UNSEEN and entry not in self._polled]
                taken = await self._glance(seen)
                await anyio.sleep(max(_ROUND_SECONDS * len(part) / len(entries), taken / _SHARE))
            if not entries:
                self._first = anyio.Event()
                await self._first.wait()

    def _look_around(self, entries: Iterable[_Entry]) -> tuple[list[WatchPath], list[_Look]]:
        new_ways = [self._watch_paths.follow(entry.path) for entry in entries]
        return new_ways, [self._look(entry, way) for entry, way in zip(entries, new_ways, strict=True)]

    def _look(self, entry: _Entry, way: WatchPath) -> _Look:
        now = time.time_ns()
        seen = _glance(entry.path)
        try:
            state = self._probe(entry.path)
        except (OSError, ValueError, Problem):
            return None, False, seen
        try:
            fresh = not self._exact and abs(now - glance(way.names[-1], follow=False).changed_ns) < _COARSE_NS
        except (OSError, ValueError, IndexError):
            fresh = False
        return state, fresh, seen

    def _record(
        self, entries: Iterable[_Entry], found: Iterable[_Look], *, named: bool = False, lost: bool = False
    ) -> None:
        now = time.monotonic()
        changed: list[Hashable] = []
        for entry, (state, fresh, seen) in zip(entries, found, strict=True):
            if not self._is_current(entry):
                continue
            entry.glance = seen
            doubted = (named and now < entry.doubted_until) or (lost and entry.fresh)
            if state != entry.state or doubted:
                if entry.state is not _UNSEEN:
                    changed.append(entry.path)
                entry.state = state
                entry.doubted_until = now + _DOUBT_SECONDS if fresh else 0.0
            entry.fresh = fresh
        if changed:
            self._changed(changed)

    # Who is where

    def _is_current(self, entry: _Entry) -> bool:
        return self._entries.get(entry.path) is entry

    def _enter(self, entry: _Entry, way: WatchPath) -> None:
        if self._only_polls or not way.is_reported or not self._folders.may_hear(way.folders):
            reason = "as asked for" if self._only_polls else "the system reports no changes of it"
            self._say(f"Some of what is watched is polled twice a second: {reason}.")
            self._polled.add(entry)
            self._poll_wake.set()
            return
        entry.way = way
        for name in way.names:
            self._at[fold(name)].add(entry)
        if way.folders not in self._ways:
            self._folders.need(way.folders)
        self._ways[way.folders].add(entry)

    def _leave(self, entry: _Entry) -> None:
        way = entry.way
        entry.way = WatchPath()
        self._polled.discard(entry)
        self._stale.discard(entry)
        for name in way.names:
            self._at[fold(name)].discard(entry)
            if not self._at[fold(name)]:
                del self._at[fold(name)]
        if way.folders:
            self._ways[way.folders].discard(entry)
            if not self._ways[way.folders]:
                del self._ways[way.folders]
                self._folders.release(way.folders)

    # What happens

    async def _hear(self, events: set[tuple[int, str]], watch: KernelWatch) -> None:
        self._rounds += 1
        touched: set[_Entry] = set()
        moved: set[str] = set()
        for kind, path in events:
            place = fold(path)
            touched |= self._at.get(place, _NOBODY)
            if kind != _MODIFIED or self._inside:
                touched |= self._at.get(fold(os.path.dirname(path)), _NOBODY)
            if kind != _MODIFIED:
                self._stale |= self._at.get(place, _NOBODY)
                if self._folders.needs(place):
                    moved.add(place)
        if moved:
            self._folders.move(moved)
            for folders, entries in self._ways.items():
                for position, folder in enumerate(folders):
                    if fold(folder) in moved:
                        self._stale |= entries
                        self._folders.disarm(folders[position:])
                        break
        self._flooded = watch.may_be_cut() or len(events) >= _FLOOD or self._flooded
        if self._stale or self._flooded:
            self._wake.set()
        if touched:
            await self._check(touched, named=not watch.ending)

    def _lose(self) -> None:
        """Check everything again, because a watch has broken."""
        self._stale.update(*self._ways.values())
        self._wake.set()

    async def _tend(self) -> None:
        """The work after events: watch what has moved, check everything after a flood, drop excess watches."""
        looked = 0.0
        while True:
            await self._wake.wait()
            self._wake = anyio.Event()
            if self._stale:
                entries = self._stale
                self._stale = set()
                await self._renew(entries)
            if self._flooded:
                await anyio.sleep(max(_POLL_SECONDS, 9 * looked))
                self._flooded = False
                looked = await self._glance(set[_Entry]().union(*self._ways.values()), lost=True)
                if self._flooded:
                    self._wake.set()
            if self._outgrown:
                self._outgrown = False
                async with self._arming:
                    await self._folders.arm(set(), everything=True)

    async def _poll(self) -> None:
        while True:
            await self._poll_wake.wait()
            if self._polled:
                started = anyio.current_time()
                await self._check(list(self._polled))
                # A tenth of one thread at most, however many there are.
                await anyio.sleep(max(_POLL_SECONDS, 9 * (anyio.current_time() - started)))
            else:
                self._poll_wake = anyio.Event()

    def _say(self, what: str) -> None:
        if what not in self._said:
            self._said.add(what)
            logger.warning("%s", what)


_NOBODY: frozenset[_Entry] = frozenset()


def _stats(paths: Iterable[str]) -> tuple[int, list[Glance | None], float]:
    """(time before, what stat(2) says of each path, processor time of this thread), on a worker thread."""
    began = time.thread_time()
    now = time.time_ns()
    found = [_glance(path) for path in paths]
    return now, found, time.thread_time() - began


def _glance(path: str) -> Glance | None:
    try:
        return glance(path)
    except (OSError, ValueError):
        return None


def _environment_polls() -> bool:
    value = os.environ.get("WATCHFILES_FORCE_POLLING", "")
    return bool(value) and value.lower() not in ("false", "disable", "disabled")


async def follow_file(path: str, changed: Callable[[], Awaitable[None]]) -> None:
    """Await `changed` soon after each change of one of the operator's files, and once at the beginning.

    At the beginning, because the file may have changed before the watch was in place; soon after, so that an editor
    that writes in place has finished. Until cancelled.
    """
    wake = anyio.Event()

    def state(path: str) -> Hashable:
        found = os.stat(path)
        return found.st_ino, found.st_mtime_ns, found.st_size

    def noticed(keys: Collection[Hashable]) -> None:
        wake.set()

    path = os.path.abspath(path)  # noqa: ASYNC240 - looks at nothing but the words
    watcher = FileWatcher([os.path.dirname(path)], lambda uri: uri, state)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watcher.run, noticed)
        await watcher.add([path])
        while True:
            await changed()
            await wake.wait()
            await anyio.sleep(_SETTLE_SECONDS)
            wake = anyio.Event()
