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
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Sequence
from typing import NamedTuple, TypeVar

import anyio
import anyio.to_thread

from mcp_batteries.errors import Problem
from mcp_batteries.subscriptions.file_state import FileState, read_file_state
from mcp_batteries.subscriptions.folder_watches import FolderWatches
from mcp_batteries.subscriptions.kernel_watch import KernelWatch
from mcp_batteries.subscriptions.watch_paths import WatchPath, WatchPaths, fold
from mcp_batteries.subscriptions.watched_entries import NEVER_CHECKED, Entry, WatchedEntries

__all__ = ["FileWatcher", "follow_file"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

_SETTLE_SECONDS = 0.2

_MODIFIED = 2

_MAX_ARMING_ATTEMPTS = 10

# Two changes closer than this may leave one time stamp: a tick of the slowest kernel clock, doubled.
_COARSE_NS = 20_000_000
# The event of such a second change arrives within this time.
_DOUBT_SECONDS = 0.1

_POLL_SECONDS = 0.5
# From this many events at once, the kernel's queue (fs.inotify.max_queued_events) may have lost some.
_FLOOD = 1000

# A slow check of everything takes at least this long.
_ROUND_SECONDS = 2.0
# A slow check takes so many paths at once.
_SLICE = 500
# Slow checks take at most this share of one processor.
_SHARE = 0.004


class _Check(NamedTuple):
    """The result of a check.

    Attributes:
        state: of what is there; None if there is nothing.
        is_fresh: whether a change could follow that leaves the same state.
        file_state: what stat(2) said just before.
    """

    state: Hashable | None
    is_fresh: bool
    file_state: FileState | None


class _FileStates(NamedTuple):
    """What stat(2) says of several paths.

    Attributes:
        began_ns: when the first one was checked.
        states: one for each path.
        processor_seconds: what they have cost.
    """

    began_ns: int
    states: list[FileState | None]
    processor_seconds: float


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
        if poll is None:
            poll = _polling_is_forced()
        self._only_polls = poll
        self._watch_paths = WatchPaths(roots)
        self._changed: Callable[[Collection[Hashable]], None] = lambda keys: None
        self._batches = 0
        self._warnings: set[str] = set()
        self._folders = FolderWatches(self._handle_events, self._check_all, self._warn_once)
        self._running = anyio.Event()
        self._wake = anyio.Event()
        self._poll_wake = anyio.Event()
        self._has_entries = anyio.Event()
        self._arming = anyio.Lock()
        self._reset()

    def _reset(self) -> None:
        self._entries = WatchedEntries(self._folders)
        self._flooded = False
        self._outgrown = False
        self._folders.reset()

    def key(self, uri: str) -> Hashable | None:
        return self._locate(uri)

    async def add(self, keys: Collection[Hashable]) -> None:
        await self._running.wait()
        batches = self._batches
        entries = [self._entries.add(key) for key in keys]
        self._has_entries.set()
        await self._renew(entries)
        if batches != self._batches:
            # An event may have named one of them before its place was known here.
            await self._check(entries)

    def discard(self, keys: Collection[Hashable]) -> None:
        for key in keys:
            self._entries.remove(key)
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
                tasks.start_soon(self._work_after_events)
                tasks.start_soon(self._poll)
                tasks.start_soon(self._check_slowly)
                self._running.set()
        finally:
            self._running = anyio.Event()
            self._reset()

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._threads)

    # Checks

    async def _renew(self, entries: Collection[Entry]) -> None:
        """Check `entries` until all folders on their paths are watched; announce what differs."""
        async with self._arming:
            for _ in range(_MAX_ARMING_ATTEMPTS):
                await self._follow_and_check(entries)
                folders: set[str] = set()
                for entry in entries:
                    folders.update(entry.watch_path.folders)
                missing = self._folders.missing(folders)
                if not missing:
                    return
                if not await self._folders.arm(missing):
                    break
            # The watches cannot be had, or the folders are never twice the same.
            for entry in entries:
                if entry in self._entries and self._folders.missing(entry.watch_path.folders):
                    self._entries.leave(entry)
                    self._start_polling(entry)

    async def _follow_and_check(self, entries: Collection[Entry]) -> None:
        """Find out where the paths of `entries` lead now, and what is there."""
        watch_paths, checks = await self._in_thread(lambda: self._follow_and_probe(entries))
        for entry, watch_path in zip(entries, watch_paths, strict=True):
            if entry not in self._entries:
                continue
            if watch_path != entry.watch_path or not self._folders.can_watch(watch_path.folders):
                self._entries.leave(entry)
                self._place(entry, watch_path)
        self._record(entries, checks)

    async def _check(self, entries: Collection[Entry], *, named: bool = False, lost: bool = False) -> None:
        """Check `entries` and announce what differs.

        Args:
            named: an event named them; also announce what may have changed unnoticed right after the previous check.
            lost: events may be lost; the same, whenever the previous check was.
        """
        checks = await self._in_thread(lambda: [self._probe_entry(entry, entry.watch_path) for entry in entries])
        self._record(entries, checks, named=named, lost=lost)

    async def _check_quickly(self, entries: Collection[Entry], *, lost: bool = False) -> float:
        """Check each of `entries` with one stat(2), and those that differ more closely.

        Return the processor time in seconds.
        """
        began = time.thread_time()
        current = await self._in_thread(lambda: _read_file_states([entry.path for entry in entries]))
        differing: list[Entry] = []
        for entry, file_state in zip(entries, current.states, strict=True):
            if entry not in self._entries:
                continue
            if file_state != entry.file_state or (lost and (entry.is_fresh or self._inside)):
                differing.append(entry)
            if lost and not self._exact and _changed_around(file_state, current.began_ns):
                # It can change once more and look the same, so check again.
                self._flooded = True
        if differing:
            await self._check(differing, lost=lost)
        return current.processor_seconds + time.thread_time() - began

    async def _check_slowly(self) -> None:
        """Check everything that is watched by events, again and again, with almost no processor time."""
        while True:
            entries = list(self._entries)
            for start in range(0, len(entries), _SLICE):
                part = entries[start : start + _SLICE]
                # `add` makes the first check of an entry, once its place is known.
                polled = self._entries.polled
                checked = [entry for entry in part if entry.state is not NEVER_CHECKED and entry not in polled]
                seconds = await self._check_quickly(checked)
                await anyio.sleep(max(_ROUND_SECONDS * len(part) / len(entries), seconds / _SHARE))
            if not entries:
                self._has_entries = anyio.Event()
                await self._has_entries.wait()

    def _follow_and_probe(self, entries: Iterable[Entry]) -> tuple[list[WatchPath], list[_Check]]:
        """Return where the paths of `entries` lead, and what is there; on a worker thread."""
        watch_paths = [self._watch_paths.follow(entry.path) for entry in entries]
        checks: list[_Check] = []
        for entry, watch_path in zip(entries, watch_paths, strict=True):
            checks.append(self._probe_entry(entry, watch_path))
        return watch_paths, checks

    def _probe_entry(self, entry: Entry, watch_path: WatchPath) -> _Check:
        """Check what is at the path of `entry`, on a worker thread."""
        now_ns = time.time_ns()
        file_state = _file_state(entry.path)
        try:
            state = self._probe(entry.path)
        except (OSError, ValueError, Problem):
            return _Check(None, False, file_state)
        return _Check(state, not self._exact and _changed_just_now(watch_path, now_ns), file_state)

    def _record(
        self, entries: Iterable[Entry], checks: Iterable[_Check], *, named: bool = False, lost: bool = False
    ) -> None:
        """Keep the results of `checks`, and announce the entries that differ."""
        now = time.monotonic()
        changed: list[Hashable] = []
        for entry, check in zip(entries, checks, strict=True):
            if entry not in self._entries:
                continue
            entry.file_state = check.file_state
            is_doubted = (named and now < entry.doubted_until) or (lost and entry.is_fresh)
            if check.state != entry.state or is_doubted:
                if entry.state is not NEVER_CHECKED:
                    changed.append(entry.path)
                entry.state = check.state
                entry.doubted_until = 0.0
                if check.is_fresh:
                    entry.doubted_until = now + _DOUBT_SECONDS
            entry.is_fresh = check.is_fresh
        if changed:
            self._changed(changed)

    def _place(self, entry: Entry, watch_path: WatchPath) -> None:
        """Watch `entry` by events where that is possible, otherwise poll it."""
        if self._only_polls:
            self._warn_once("Some of what is watched is polled twice a second: as asked for.")
            self._start_polling(entry)
            return
        if not watch_path.is_reported or not self._folders.can_watch(watch_path.folders):
            self._warn_once("Some of what is watched is polled twice a second: the system reports no changes of it.")
            self._start_polling(entry)
            return
        self._entries.watch(entry, watch_path)

    def _start_polling(self, entry: Entry) -> None:
        self._entries.polled.add(entry)
        self._poll_wake.set()

    # Events

    async def _handle_events(self, events: set[tuple[int, str]], watch: KernelWatch) -> None:
        """Check what `events` name, and note what needs more work."""
        self._batches += 1
        touched: set[Entry] = set()
        moved_folders: set[str] = set()
        for kind, path in events:
            folded = fold(path)
            named = self._entries.find(folded)
            touched |= named
            if kind != _MODIFIED or self._inside:
                touched |= self._entries.find(fold(os.path.dirname(path)))
            if kind != _MODIFIED:
                self._entries.mark_moved(named)
                if self._folders.needs(folded):
                    moved_folders.add(folded)
        if moved_folders:
            self._entries.mark_moved_folders(moved_folders)
        if watch.may_be_cut() or len(events) >= _FLOOD:
            self._flooded = True
        if self._entries.has_moved or self._flooded:
            self._wake.set()
        if touched:
            await self._check(touched, named=not watch.ending)

    def _check_all(self) -> None:
        """Check everything again, because a watch has broken."""
        self._entries.mark_moved(self._entries.all_watched())
        self._wake.set()

    async def _work_after_events(self) -> None:
        """Watch what has moved, check everything after a flood, and drop excess watches."""
        last_seconds = 0.0
        while True:
            await self._wake.wait()
            self._wake = anyio.Event()
            moved = self._entries.take_moved()
            if moved:
                await self._renew(moved)
            if self._flooded:
                await anyio.sleep(max(_POLL_SECONDS, 9 * last_seconds))
                self._flooded = False
                last_seconds = await self._check_quickly(self._entries.all_watched(), lost=True)
                if self._flooded:
                    self._wake.set()
            if self._outgrown:
                self._outgrown = False
                async with self._arming:
                    await self._folders.arm(set(), everything=True)

    async def _poll(self) -> None:
        """Check what no event reports, twice a second."""
        while True:
            await self._poll_wake.wait()
            if self._entries.polled:
                started = anyio.current_time()
                await self._check(list(self._entries.polled))
                # A tenth of one thread at most, however many there are.
                await anyio.sleep(max(_POLL_SECONDS, 9 * (anyio.current_time() - started)))
            else:
                self._poll_wake = anyio.Event()

    def _warn_once(self, message: str) -> None:
        if message not in self._warnings:
            self._warnings.add(message)
            logger.warning("%s", message)


def _read_file_states(paths: Iterable[str]) -> _FileStates:
    """Return what stat(2) says of each path, on a worker thread."""
    began = time.thread_time()
    began_ns = time.time_ns()
    states = [_file_state(path) for path in paths]
    return _FileStates(began_ns, states, time.thread_time() - began)


def _file_state(path: str, *, follow: bool = True) -> FileState | None:
    """Return the state of a file; None if it is not there or cannot be asked about."""
    try:
        return read_file_state(path, follow=follow)
    except (OSError, ValueError):
        return None


def _changed_just_now(watch_path: WatchPath, now_ns: int) -> bool:
    """Tell whether the thing at the end of `watch_path` changed so recently that another change may look the same."""
    if not watch_path.names:
        return False
    return _changed_around(_file_state(watch_path.names[-1], follow=False), now_ns)


def _changed_around(file_state: FileState | None, time_ns: int) -> bool:
    """Tell whether a file changed so close to a time that a change then may leave the same time stamp."""
    return file_state is not None and abs(time_ns - file_state.changed_ns) < _COARSE_NS


def _polling_is_forced() -> bool:
    value = os.environ.get("WATCHFILES_FORCE_POLLING", "")
    return bool(value) and value.lower() not in ("false", "disable", "disabled")


async def follow_file(path: str, changed: Callable[[], Awaitable[None]]) -> None:
    """Await `changed` soon after each change of one of the operator's files, and once at the beginning.

    At the beginning, because the file may have changed before the watch was in place; soon after, so that an editor
    that writes in place has finished. Until cancelled.
    """
    wake = anyio.Event()

    def probe(path: str) -> Hashable:
        status = os.stat(path)
        return status.st_ino, status.st_mtime_ns, status.st_size

    def notice(keys: Collection[Hashable]) -> None:
        wake.set()

    path = os.path.abspath(path)  # noqa: ASYNC240 - looks at nothing but the words
    watcher = FileWatcher([os.path.dirname(path)], lambda uri: uri, probe)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watcher.run, notice)
        await watcher.add([path])
        while True:
            await changed()
            await wake.wait()
            await anyio.sleep(_SETTLE_SECONDS)
            wake = anyio.Event()
