"""Says which URIs to refresh: events in the git directory and the work tree, checked against what is really served.

An event only triggers a check: subscribed resources are read again and compared, so that only changed answers are
announced. While git holds a lock, or more happens during a check, the state is intermediate, and is not announced.
"""

from __future__ import annotations

import hashlib
import itertools
import logging
import os
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable

import anyio
from anyio.abc import TaskGroup

from mcp_batteries.errors import NotFound, Problem
from mcp_batteries.subscriptions.file_watcher import FileWatcher
from mcp_batteries.subscriptions.journal import ABSENT, Change, why_absent
from mcp_git.engine.service import Engine
from mcp_git.policy import Policy, Repository, Shown
from mcp_git.repository_paths import Layout
from mcp_git.settings import Settings

__all__ = ["RepositoryWatcher", "demonstration"]

_log = logging.getLogger(__name__)

_LOCKS = ("index.lock", "HEAD.lock")
_LOCK_SECONDS = 2.0
"""For which a lock is waited for; one that a crash left is older."""
_TRIES = 5
"""Looks until a state counts although more happened meanwhile."""
_ROUND_SECONDS = 2.0
_SHARE = 0.005
"""Of the time, what looks take at most that no event asked for."""
_OF_WORK_TREE = ("status", "diff")


class _Watched:
    """One repository, its subscribed resources, and their state at the last check.

    Attributes:
        whole: whether more than the work tree may have changed since.
    """

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        self.shown: dict[str, Shown] = {}
        self.digests: dict[str, str] = {}
        self.folders: set[str] = set()
        self.wake = anyio.Event()
        self.wanted = anyio.Event()
        self.turn = anyio.Lock()
        self.events = 0
        self.whole = True

    @property
    def of_work_tree(self) -> bool:
        return any(shown.kind in _OF_WORK_TREE for shown in self.shown.values())


class RepositoryWatcher:
    """The source of changes for `git://` URIs.

    Args:
        text: the current text of a resource.
    """

    list_keys: Collection[Hashable] = ()

    def __init__(
        self, policy: Policy, engine: Engine, text: Callable[[Shown], Awaitable[str]], settings: Settings
    ) -> None:
        self._policy, self._engine, self._text = policy, engine, text
        self._watched: dict[Repository, _Watched] = {}
        self._tasks: TaskGroup | None = None
        self._known: dict[str, Shown] = {}
        self._layouts: dict[str, Layout] = {}
        self._changed: Callable[[Collection[Hashable]], None] = lambda keys: None
        ticks = itertools.count()
        self._files = FileWatcher(
            _roots(policy, settings.worktree_folder),
            locate=lambda uri: None,
            probe=lambda path: next(ticks),  # whatever happened there, the repository is what is looked at
            poll={"auto": None, "poll": True}[settings.watch],
            inside=True,
        )

    def key(self, uri: str) -> Hashable | None:
        shown = self._policy.shown(uri)
        if shown is None:
            return None
        self._known[shown.uri] = shown
        return shown.uri

    async def add(self, keys: Collection[Hashable]) -> None:
        new: dict[Repository, list[Shown]] = {}
        for key in map(str, keys):
            new.setdefault(self._known[key].repository, []).append(self._known[key])
        for repository, items in new.items():
            watched = self._of(repository)
            async with watched.turn:
                watched.shown |= {shown.uri: shown for shown in items}
                await self._arm(watched)
                watched.digests |= await self._digests(items)
            watched.wanted.set()

    def discard(self, keys: Collection[Hashable]) -> None:
        for key in map(str, keys):
            if (shown := self._known.pop(key, None)) is None:
                continue
            watched = self._of(shown.repository)
            watched.shown.pop(key, None)
            watched.digests.pop(key, None)
            if not watched.shown:
                self._files.discard(watched.folders)
                watched.folders = set()

    async def run(self, changed: Callable[[Collection[Hashable]], None]) -> None:
        self._changed = changed
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                tasks.start_soon(self._files.run, self._touched)
                for watched in self._watched.values():
                    tasks.start_soon(self._follow, watched)
        finally:
            self._tasks = None
            for watched in self._watched.values():
                watched.shown, watched.digests, watched.folders = {}, {}, set()

    def followed(self, uri: str) -> Hashable | None:
        return self.key(uri)

    async def look(self, keys: Collection[Hashable]) -> None:
        for repository in {self._known[key].repository for key in map(str, keys) if key in self._known}:
            watched = self._of(repository)
            async with watched.turn:
                watched.whole = True
                await self._look(watched)

    def news(self, key: Hashable) -> Iterable[Change]:
        return (Change(),)

    def shown(self, change: Change) -> str:
        return ""

    def absent(self, key: Hashable) -> str | None:
        known = self._known.get(str(key))
        digest = "" if known is None else self._of(known.repository).digests.get(known.uri, "")
        return why_absent(digest)

    def _of(self, repository: Repository) -> _Watched:
        """The watched state of a repository; a worktree may be added while the server runs."""
        watched = self._watched.get(repository)
        if watched is None:
            watched = self._watched[repository] = _Watched(repository)
            if self._tasks is not None:
                self._tasks.start_soon(self._follow, watched)
        return watched

    def _touched(self, folders: Collection[Hashable]) -> None:
        for watched in self._watched.values():
            if touched := watched.folders.intersection(map(str, folders)):
                watched.events += 1
                watched.whole = watched.whole or not self._only_files(watched, touched)
                watched.wake.set()

    def _only_files(self, watched: _Watched, folders: Iterable[str]) -> bool:
        """Whether all of them are folders of the work tree below its top, where `.mailmap` is."""
        layout = self._layouts.get(watched.repository.name)
        if layout is None or layout.work_tree is None:
            return False
        inside, git = layout.work_tree + os.sep, (layout.git_dir, layout.common_dir)
        return all(folder.startswith(inside) and not folder.startswith(git) for folder in folders)

    async def _follow(self, watched: _Watched) -> None:
        pause = _ROUND_SECONDS
        while True:
            await watched.wanted.wait()
            if not watched.shown:
                watched.wanted = anyio.Event()
                continue
            with anyio.move_on_after(pause) as waiting:
                await watched.wake.wait()
            watched.whole = watched.whole or waiting.cancelled_caught
            watched.wake = anyio.Event()
            begun = anyio.current_time()
            async with watched.turn:
                await self._look(watched)
            took = anyio.current_time() - begun
            pause = max(_ROUND_SECONDS, took / _SHARE)
            # A look that takes long is at most half of the time.
            await anyio.sleep(min(took, _ROUND_SECONDS))

    async def _look(self, watched: _Watched) -> None:
        """Announce what has another answer than at the last check."""
        await self._unlocked(watched)
        found: dict[str, str] = {}
        whole = False
        for _ in range(_TRIES):
            events = watched.events
            whole, watched.whole = whole or watched.whole, False
            await self._arm(watched)
            items = watched.shown.values()
            found = await self._digests(items if whole else [item for item in items if item.kind in _OF_WORK_TREE])
            if events == watched.events:
                break
            await self._unlocked(watched)
        differing = [key for key, digest in found.items() if watched.digests.get(key, digest) != digest]
        watched.digests |= {key: digest for key, digest in found.items() if key in watched.shown}
        if differing:
            self._changed(differing)

    async def _unlocked(self, watched: _Watched) -> None:
        """Wait until git is done: the end of a lock is an event too."""
        with anyio.move_on_after(_LOCK_SECONDS):
            while (layout := self._layouts.get(watched.repository.name)) and _is_locked(layout):
                await watched.wake.wait()
                watched.wake = anyio.Event()

    async def _arm(self, watched: _Watched) -> None:
        """Watch the folders in which something can now change what is wanted."""
        try:
            layout, folders = await self._engine.folders(watched.repository, watched.of_work_tree)
        except Problem as problem:
            _log.info("Not followed: %s", problem)
            return
        self._layouts[watched.repository.name] = layout
        new, gone = folders - watched.folders, watched.folders - folders
        watched.folders = folders
        self._files.discard(gone)
        if new:
            await self._files.add(new)

    async def _digests(self, items: Iterable[Shown]) -> dict[str, str]:
        """Their current digests; git is asked for all at once."""
        found: dict[str, str] = {}

        async def take(shown: Shown) -> None:
            found[shown.uri] = await self._digest(shown)

        async with anyio.create_task_group() as tasks:
            for shown in list(items):
                tasks.start_soon(take, shown)
        return found

    async def _digest(self, shown: Shown) -> str:
        try:
            text = await self._text(shown)
        except NotFound as problem:
            return f"{ABSENT}{problem}"
        except Problem as problem:
            _log.info("Not looked at: %s", problem)
            text = f"\0{problem}"
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _roots(policy: Policy, worktrees: str | None) -> list[str]:
    """The folders that contain everything that may be watched; for a linked worktree its repository too."""
    roots: dict[str, None] = {os.path.realpath(worktrees): None} if worktrees else {}
    for repository in policy.repositories.values():
        roots[repository.path] = None
        try:
            layout = policy.layout(repository)
        except Problem as problem:
            _log.warning("%s", problem)
        else:
            roots |= {layout.git_dir: None, layout.common_dir: None}
    return list(roots)


def _is_locked(layout: Layout) -> bool:
    return any(os.path.lexists(os.path.join(layout.git_dir, name)) for name in _LOCKS)


def demonstration(settings: Settings) -> tuple[str, Callable[[], None]] | None:
    """For `--check`: there is none, because it would have to change the repository."""
    return None
