"""Says which URIs to refresh: events in the git directory and the work tree, checked against what is really served.

An event only triggers a check: subscribed resources are read again and compared, so that only changed answers are
announced. While git holds a lock, or more happens during a check, the state is intermediate, and is not announced.
"""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Mapping

import anyio
from anyio.abc import TaskGroup

from mcp_batteries.concurrency.threads import run_in_thread
from mcp_batteries.errors import Problem
from mcp_batteries.subscriptions.digest_source import DigestGroup, DigestSource, compute_digest
from mcp_batteries.subscriptions.file_watcher import FileWatcher
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


class _FollowedRepository(DigestGroup[GitResource]):
    """A repository in which somebody follows something.

    Attributes:
        folders: those in which something can change what is followed.
        event_count: how many events there were.
        needs_full_check: whether more than the work tree may have changed since the last check.
    """

    def __init__(self, repository: Repository) -> None:
        super().__init__()
        self.repository = repository
        self.folders: set[str] = set()
        self.event_count = 0
        self.needs_full_check = True

    @property
    def work_tree_subjects(self) -> dict[Hashable, GitResource]:
        """What the work tree can change."""
        return {key: resource for key, resource in self.subjects.items() if resource.kind in _WORK_TREE_KINDS}

    def clear(self) -> None:
        super().clear()
        self.folders = set()


class RepositoryWatcher(DigestSource[_FollowedRepository, GitResource]):
    """The source of changes for `git://` URIs.

    Args:
        read_text: returns the current text of a resource.
    """

    def __init__(
        self, policy: Policy, git: Git, read_text: Callable[[GitResource], Awaitable[str]], settings: Settings
    ) -> None:
        super().__init__({}, _CHECK_INTERVAL_SECONDS)
        self._policy = policy
        self._git = git
        self._seconds = settings.timeout
        self._read_text = read_text
        self._layouts: dict[str, Layout] = {}
        ticks = itertools.count()
        self._file_watcher = FileWatcher(
            _find_roots(policy, settings.worktree_folder),
            locate=lambda uri: None,
            probe=lambda path: next(ticks),  # whatever happened there, the repository is what is looked at
            poll={"auto": None, "poll": True}[settings.watch],
            inside=True,
        )

    def parse(self, uri: str) -> GitResource | None:
        return self._policy.resource(uri)

    def key_of(self, subject: GitResource) -> Hashable:
        return subject.uri

    def group_of(self, subject: GitResource) -> _FollowedRepository:
        # A worktree may be added while the server runs.
        if subject.repository.name not in self.groups:
            self.add_group(subject.repository.name, _FollowedRepository(subject.repository))
        return self.groups[subject.repository.name]

    def start(self, tasks: TaskGroup) -> None:
        tasks.start_soon(self._file_watcher.run, self._note_events)

    def release(self, group: _FollowedRepository) -> None:
        self._file_watcher.discard(group.folders)
        group.folders = set()

    async def read_first(
        self, group: _FollowedRepository, subjects: Mapping[Hashable, GitResource]
    ) -> Mapping[Hashable, str]:
        await self._watch_folders(group)
        return await self._compute_digests(subjects)

    async def check(self, group: _FollowedRepository, *, is_woken: bool) -> float:
        if not is_woken:
            group.needs_full_check = True
        started = anyio.current_time()
        await self._announce_changes(group)
        took = anyio.current_time() - started
        return max(_CHECK_INTERVAL_SECONDS, took / _MAX_TIME_SHARE)

    async def check_now(self, group: _FollowedRepository) -> None:
        group.needs_full_check = True
        await self._announce_changes(group)

    def _note_events(self, folders: Collection[Hashable]) -> None:
        for group in self.groups.values():
            if touched := group.folders.intersection(map(str, folders)):
                group.event_count += 1
                group.needs_full_check = group.needs_full_check or not self._only_files(group, touched)
                group.wake.set()

    def _only_files(self, group: _FollowedRepository, folders: Iterable[str]) -> bool:
        """Whether all of them are folders of the work tree below its top, where `.mailmap` is."""
        layout = self._layouts.get(group.repository.name)
        if layout is None or layout.work_tree is None:
            return False
        top = layout.work_tree + os.sep
        git_dirs = (layout.git_dir, layout.common_dir)
        return all(folder.startswith(top) and not folder.startswith(git_dirs) for folder in folders)

    async def _announce_changes(self, group: _FollowedRepository) -> None:
        """Announce what has another answer than at the last check, in a state that no event ended meanwhile."""
        await self._wait_for_locks(group)
        digests: dict[Hashable, str] = {}
        checks_all = False
        for _ in range(_MAX_CHECKS):
            event_count = group.event_count
            checks_all = checks_all or group.needs_full_check
            group.needs_full_check = False
            await self._watch_folders(group)
            digests = await self._compute_digests(dict(group.subjects) if checks_all else group.work_tree_subjects)
            if event_count == group.event_count:
                break
            await self._wait_for_locks(group)
        changed = group.compare(digests)
        if changed:
            self.changed(changed)

    async def _wait_for_locks(self, group: _FollowedRepository) -> None:
        """Wait until git is done: the end of a lock is an event too."""
        with anyio.move_on_after(_LOCK_WAIT_SECONDS):
            while (layout := self._layouts.get(group.repository.name)) and _is_locked(layout):
                await group.wait_for_wake()

    async def _watch_folders(self, group: _FollowedRepository) -> None:
        """Watch the folders in which something can now change what is followed."""
        of_work_tree = bool(group.work_tree_subjects)
        try:
            layout, folders = await run_in_thread(
                lambda cancel: find_watched_folders(self._git, group.repository, of_work_tree, cancel),
                seconds=self._seconds,
                description="Looking for folders",
                long=True,
            )
        except Problem as problem:
            _log.info("Not followed: %s", problem)
            return
        self._layouts[group.repository.name] = layout
        new = folders - group.folders
        self._file_watcher.discard(group.folders - folders)
        group.folders = folders
        if new:
            await self._file_watcher.add(new)

    async def _compute_digests(self, resources: Mapping[Hashable, GitResource]) -> dict[Hashable, str]:
        """Compute the current digests of resources; git is asked for all at once."""
        digests: dict[Hashable, str] = {}

        async def compute(key: Hashable, resource: GitResource) -> None:
            digests[key] = await compute_digest(self._read_text(resource))

        async with anyio.create_task_group() as tasks:
            for key, resource in resources.items():
                tasks.start_soon(compute, key, resource)
        return digests


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
