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

from mcp_batteries.concurrency.threads import run_in_thread
from mcp_batteries.errors import NotFound, Problem
from mcp_batteries.subscriptions.file_watcher import FileWatcher
from mcp_batteries.subscriptions.journal import ABSENT, Change, explain_absence
from mcp_git.engine.program.git import Git
from mcp_git.engine.work_tree.watched_folders import find_watched_folders
from mcp_git.policy import GitResource, Policy, Repository
from mcp_git.repository_paths import Layout
from mcp_git.settings import Settings

__all__ = ["RepositoryWatcher", "demonstration"]

_log = logging.getLogger(__name__)

_LOCK_FILES = ("index.lock", "HEAD.lock")
# For which a lock is waited for; one that a crash left is older.
_LOCK_WAIT_SECONDS = 2.0
# Looks until a state counts although more happened meanwhile.
_MAX_CHECKS = 5
_CHECK_INTERVAL_SECONDS = 2.0
# Of the time, what looks take at most that no event asked for.
_MAX_TIME_SHARE = 0.005
_WORK_TREE_KINDS = ("status", "diff")


class _WatchedRepository:
    """One repository, its subscribed resources, and their state at the last check.

    Attributes:
        needs_full_check: whether more than the work tree may have changed since.
    """

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        self.resources: dict[str, GitResource] = {}
        self.digests: dict[str, str] = {}
        self.folders: set[str] = set()
        self.wake = anyio.Event()
        self.has_resources = anyio.Event()
        self.lock = anyio.Lock()
        self.event_count = 0
        self.needs_full_check = True

    @property
    def of_work_tree(self) -> bool:
        return bool(self.select_resources(of_work_tree=True))

    def select_resources(self, *, of_work_tree: bool) -> list[GitResource]:
        """Return its resources, all or only those that the work tree can change."""
        resources = list(self.resources.values())
        if not of_work_tree:
            return resources
        return [resource for resource in resources if resource.kind in _WORK_TREE_KINDS]


class RepositoryWatcher:
    """The source of changes for `git://` URIs.

    Args:
        text: the current text of a resource.
    """

    list_keys: Collection[Hashable] = ()

    def __init__(
        self, policy: Policy, git: Git, text: Callable[[GitResource], Awaitable[str]], settings: Settings
    ) -> None:
        self._policy = policy
        self._git = git
        self._seconds = settings.timeout
        self._read_text = text
        self._watched: dict[Repository, _WatchedRepository] = {}
        self._tasks: TaskGroup | None = None
        self._resources: dict[str, GitResource] = {}
        self._layouts: dict[str, Layout] = {}
        self._announce: Callable[[Collection[Hashable]], None] = lambda keys: None
        ticks = itertools.count()
        self._file_watcher = FileWatcher(
            _find_roots(policy, settings.worktree_folder),
            locate=lambda uri: None,
            probe=lambda path: next(ticks),  # whatever happened there, the repository is what is looked at
            poll={"auto": None, "poll": True}[settings.watch],
            inside=True,
        )

    def key(self, uri: str) -> Hashable | None:
        resource = self._policy.resource(uri)
        if resource is None:
            return None
        self._resources[resource.uri] = resource
        return resource.uri

    async def add(self, keys: Collection[Hashable]) -> None:
        new: dict[Repository, list[GitResource]] = {}
        for key in map(str, keys):
            new.setdefault(self._resources[key].repository, []).append(self._resources[key])
        for repository, items in new.items():
            watched = self._get(repository)
            async with watched.lock:
                watched.resources |= {resource.uri: resource for resource in items}
                await self._watch_folders(watched)
                watched.digests |= await self._compute_digests(items)
            watched.has_resources.set()

    def discard(self, keys: Collection[Hashable]) -> None:
        for key in map(str, keys):
            if (resource := self._resources.pop(key, None)) is None:
                continue
            watched = self._get(resource.repository)
            watched.resources.pop(key, None)
            watched.digests.pop(key, None)
            if not watched.resources:
                self._file_watcher.discard(watched.folders)
                watched.folders = set()

    async def run(self, changed: Callable[[Collection[Hashable]], None]) -> None:
        self._announce = changed
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                tasks.start_soon(self._file_watcher.run, self._note_events)
                for watched in self._watched.values():
                    tasks.start_soon(self._follow, watched)
        finally:
            self._tasks = None
            for watched in self._watched.values():
                watched.resources = {}
                watched.digests = {}
                watched.folders = set()

    def followed(self, uri: str) -> Hashable | None:
        return self.key(uri)

    async def look(self, keys: Collection[Hashable]) -> None:
        for repository in {self._resources[key].repository for key in map(str, keys) if key in self._resources}:
            watched = self._get(repository)
            async with watched.lock:
                watched.needs_full_check = True
                await self._check(watched)

    def news(self, key: Hashable) -> Iterable[Change]:
        return (Change(),)

    def shown(self, change: Change) -> str:
        return ""

    def absent(self, key: Hashable) -> str | None:
        resource = self._resources.get(str(key))
        digest = "" if resource is None else self._get(resource.repository).digests.get(resource.uri, "")
        return explain_absence(digest)

    def _get(self, repository: Repository) -> _WatchedRepository:
        """Return the watched state of a repository; a worktree may be added while the server runs."""
        watched = self._watched.get(repository)
        if watched is None:
            watched = self._watched[repository] = _WatchedRepository(repository)
            if self._tasks is not None:
                self._tasks.start_soon(self._follow, watched)
        return watched

    def _note_events(self, folders: Collection[Hashable]) -> None:
        for watched in self._watched.values():
            if touched := watched.folders.intersection(map(str, folders)):
                watched.event_count += 1
                watched.needs_full_check = watched.needs_full_check or not self._only_files(watched, touched)
                watched.wake.set()

    def _only_files(self, watched: _WatchedRepository, folders: Iterable[str]) -> bool:
        """Whether all of them are folders of the work tree below its top, where `.mailmap` is."""
        layout = self._layouts.get(watched.repository.name)
        if layout is None or layout.work_tree is None:
            return False
        top = layout.work_tree + os.sep
        git_dirs = (layout.git_dir, layout.common_dir)
        return all(folder.startswith(top) and not folder.startswith(git_dirs) for folder in folders)

    async def _follow(self, watched: _WatchedRepository) -> None:
        pause = _CHECK_INTERVAL_SECONDS
        while True:
            await watched.has_resources.wait()
            if not watched.resources:
                watched.has_resources = anyio.Event()
                continue
            with anyio.move_on_after(pause) as waiting:
                await watched.wake.wait()
            watched.needs_full_check = watched.needs_full_check or waiting.cancelled_caught
            watched.wake = anyio.Event()
            start = anyio.current_time()
            async with watched.lock:
                await self._check(watched)
            took = anyio.current_time() - start
            pause = max(_CHECK_INTERVAL_SECONDS, took / _MAX_TIME_SHARE)
            # A look that takes long is at most half of the time.
            await anyio.sleep(min(took, _CHECK_INTERVAL_SECONDS))

    async def _check(self, watched: _WatchedRepository) -> None:
        """Announce what has another answer than at the last check."""
        await self._wait_for_locks(watched)
        digests: dict[str, str] = {}
        checks_all = False
        for _ in range(_MAX_CHECKS):
            event_count = watched.event_count
            checks_all = checks_all or watched.needs_full_check
            watched.needs_full_check = False
            await self._watch_folders(watched)
            digests = await self._compute_digests(watched.select_resources(of_work_tree=not checks_all))
            if event_count == watched.event_count:
                break
            await self._wait_for_locks(watched)
        differing = [key for key, digest in digests.items() if watched.digests.get(key, digest) != digest]
        watched.digests |= {key: digest for key, digest in digests.items() if key in watched.resources}
        if differing:
            self._announce(differing)

    async def _wait_for_locks(self, watched: _WatchedRepository) -> None:
        """Wait until git is done: the end of a lock is an event too."""
        with anyio.move_on_after(_LOCK_WAIT_SECONDS):
            while (layout := self._layouts.get(watched.repository.name)) and _is_locked(layout):
                await watched.wake.wait()
                watched.wake = anyio.Event()

    async def _watch_folders(self, watched: _WatchedRepository) -> None:
        """Watch the folders in which something can now change what is wanted."""
        try:
            layout, folders = await run_in_thread(
                lambda cancel: find_watched_folders(self._git, watched.repository, watched.of_work_tree, cancel),
                seconds=self._seconds,
                description="Looking for folders",
                long=True,
            )
        except Problem as problem:
            _log.info("Not followed: %s", problem)
            return
        self._layouts[watched.repository.name] = layout
        new = folders - watched.folders
        self._file_watcher.discard(watched.folders - folders)
        watched.folders = folders
        if new:
            await self._file_watcher.add(new)

    async def _compute_digests(self, items: Iterable[GitResource]) -> dict[str, str]:
        """Compute the current digests of resources; git is asked for all at once."""
        digests: dict[str, str] = {}

        async def take(resource: GitResource) -> None:
            digests[resource.uri] = await self._compute_digest(resource)

        async with anyio.create_task_group() as tasks:
            for resource in list(items):
                tasks.start_soon(take, resource)
        return digests

    async def _compute_digest(self, resource: GitResource) -> str:
        try:
            text = await self._read_text(resource)
        except NotFound as problem:
            return f"{ABSENT}{problem}"
        except Problem as problem:
            _log.info("Not looked at: %s", problem)
            text = f"\0{problem}"
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _find_roots(policy: Policy, worktrees: str | None) -> list[str]:
    """Return the folders that contain everything that may be watched; for a linked worktree its repository too."""
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
    return any(os.path.lexists(os.path.join(layout.git_dir, name)) for name in _LOCK_FILES)


def demonstration(settings: Settings) -> tuple[str, Callable[[], None]] | None:
    """For `--check`: there is none, because it would have to change the repository."""
    return None
