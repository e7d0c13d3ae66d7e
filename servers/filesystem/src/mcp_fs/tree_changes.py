"""Changes below folders, for subscriptions to a glob and for `list_changes`.

The file watcher reports in which folders something happened; then the trees that contain them are checked, and the
check decides what changed. Everything is also checked slowly, for changes without an event.
"""

from __future__ import annotations

import itertools
import logging
import os
import stat
import time
from collections.abc import Callable, Collection, Hashable, Iterable

import anyio

from mcp_batteries.concurrency.threads import run_in_thread
from mcp_batteries.errors import NotFound, Problem
from mcp_batteries.subscriptions.file_watcher import FileWatcher
from mcp_batteries.subscriptions.journal import Change
from mcp_fs.engine.handles.path_opening import exists, read_status, resolve
from mcp_fs.engine.listing.change_description import describe_change
from mcp_fs.engine.listing.file_snapshot import TextBudget
from mcp_fs.engine.listing.selection import compile_chooser
from mcp_fs.engine.listing.tree_snapshot import Subtree, TreeSnapshot
from mcp_fs.policy import Policy
from mcp_fs.settings import Settings

__all__ = ["TreeWatcher"]

_log = logging.getLogger(__name__)

_GLOB = frozenset("*?[{")
_ROUND_SECONDS = 2.0
# Of one processor, what slow looks take at most.
_MAX_CPU_SHARE = 0.005
# Looks after events take at most one part of this many and one.
_PAUSE_FACTOR = 4
_UNCERTAIN_SECONDS = 0.05


class _WatchedTree:
    def __init__(self, followed: TreeSnapshot) -> None:
        self.snapshot = followed
        self.lock = anyio.Lock()
        self.folders: set[str] = set()
        self.changes: list[Change] = []


class TreeWatcher:
    """The source for globs beneath the served folders; it can say what changed in matching files."""

    list_keys: Collection[Hashable] = ()

    def __init__(self, policy: Policy, settings: Settings) -> None:
        self._policy = policy
        self._text_budget = TextBudget()
        poll_numbers = itertools.count()
        self._files = FileWatcher(
            [root.path for root in policy.roots],
            locate=lambda uri: None,
            probe=lambda path: next(poll_numbers),  # whatever happened there, the tree is what is looked at
            poll={"auto": None, "poll": True}[settings.watch],
            inside=True,
        )
        self._trees: dict[Hashable, _WatchedTree] = {}
        # By watched folder: whose files lie in it.
        self._keys_by_folder: dict[str, set[Hashable]] = {}
        self._touched_keys: set[Hashable] = set()
        self._uncertain_keys: set[Hashable] = set()
        self._touched_event = anyio.Event()
        self._uncertain_event = anyio.Event()
        self._added_event = anyio.Event()

    def key(self, uri: str) -> Hashable | None:
        """Return the subtree that a URI with a glob means; None for any other."""
        if not uri.lower().startswith("file:"):
            return None
        path = self._policy.readable(uri)
        depth = next((number for number, part in enumerate(path.parts) if _GLOB & {*part}), None)
        if depth is None or exists(path):
            return None
        start = path.at(path.root, path.parts[:depth])
        read_status(start)
        glob = "/" + "/".join(path.parts[depth:])
        compile_chooser([glob])  # refused to who asks, not found out by who follows
        return Subtree(start, glob)

    def followed_key(self, uri: str) -> Hashable | None:
        """Return what a path, a glob or a URI means for `list_changes`: a folder means all files below it."""
        path = self._policy.readable(uri)
        if any(_GLOB & {*part} for part in path.parts) and (key := self.key(path.uri)) is not None:
            assert isinstance(key, Subtree)
            if uri == "/".join(path.parts) and "/" not in uri:
                return Subtree(key.start, uri)  # a name at any depth, as for the other tools
            return key
        try:
            if stat.S_ISDIR(read_status(path).st_mode):
                return Subtree(path)
            with resolve(path) as resolved:
                path = resolved.path
        except NotFound:
            read_status(path.parent)  # the file may come
        return Subtree(path.parent, name=path.name)

    async def add(self, keys: Collection[Hashable]) -> None:
        for key in keys:
            assert isinstance(key, Subtree)
            self._trees[key] = _WatchedTree(TreeSnapshot(key, self._text_budget))
        self._added_event.set()
        try:
            for key in keys:
                await self._poll(key, is_first=True)
        except BaseException:
            self.discard(keys)
            raise

    def discard(self, keys: Collection[Hashable]) -> None:
        for key in keys:
            if (tree := self._trees.pop(key, None)) is not None:
                tree.snapshot.release()
                self._unwatch_folders(key, tree.folders)

    async def run(self, changed: Callable[[Collection[Hashable]], None]) -> None:
        self._changed = changed
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._files.run, self._note_touched)
                tasks.start_soon(self._poll_touched)
                tasks.start_soon(self._poll_uncertain)
                tasks.start_soon(self._poll_slowly)
        finally:
            self._trees = {}
            self._keys_by_folder = {}
            self._touched_keys = set()
            self._uncertain_keys = set()

    async def poll(self, keys: Collection[Hashable]) -> None:
        for key in keys:
            if key in self._trees:
                await self._poll(key)

    def take_changes(self, key: Hashable) -> Iterable[Change]:
        tree = self._trees[key]
        changes = tree.changes
        tree.changes = []
        return changes

    def describe_change(self, change: Change) -> str:
        return describe_change(change)

    def explain_absence(self, key: Hashable) -> str | None:
        assert isinstance(key, Subtree)
        tree = self._trees.get(key)
        if tree is None or tree.snapshot.has_files or not (key.name or key.glob):
            return None
        if key.glob:
            return "No file matches."
        try:
            read_status(key.start.at(key.start.root, (*key.start.parts, key.name)))
        except NotFound as problem:
            return str(problem)
        return None

    def describe_omission(self, key: Hashable) -> str | None:
        tree = self._trees.get(key)
        if tree is None:
            return None
        skipped = tree.snapshot.skipped
        phrases: list[str] = []
        for left_out in skipped.describe_excluded(named=False):
            examples = ", ".join(skipped.excluded_examples)
            phrases.append(f"{left_out} ({examples}), which a path or a glob that names them follows")
        if skipped.unread_folders:
            phrases += skipped.notes()
        phrases += skipped.describe_links()
        return "; ".join(phrases) or None

    def _note_touched(self, folders: Collection[Hashable]) -> None:
        for folder in folders:
            self._touched_keys |= self._keys_by_folder.get(str(folder), set())
        self._touched_event.set()

    async def _poll(self, key: Hashable, *, is_first: bool = False) -> float:
        """Check a tree, announce changes and watch its current folders; returns the approximate processor seconds.

        Raises:
            Problem: it can't be read, and this is the first look, for which somebody waits.
        """
        tree = self._trees.get(key)
        if tree is None:
            return 0.0
        took = 0.0
        async with tree.lock:
            while True:
                began = time.perf_counter()
                try:
                    tree.changes += await run_in_thread(tree.snapshot.poll, description="Looking", long=True)
                except Problem as problem:
                    if is_first:
                        raise
                    _log.info("Not looked at: %s", problem)
                took += time.perf_counter() - began
                if self._trees.get(key) is not tree:
                    return took
                if tree.changes:
                    self._changed([key])
                # What happened in a folder before it was watched is seen by another look.
                if not await self._watch_folders(key, tree):
                    break
        if tree.snapshot.is_uncertain:
            self._uncertain_keys.add(key)
            self._uncertain_event.set()
        return took

    async def _watch_folders(self, key: Hashable, tree: _WatchedTree) -> bool:
        """Watch the current folders of a tree's files; returns whether there are new ones."""
        top = tree.snapshot.subtree.start.root.path
        folders = {os.path.join(top, *parts) for parts in tree.snapshot.folders}
        new_folders = folders - tree.folders
        left_folders = tree.folders - folders
        tree.folders = folders
        self._unwatch_folders(key, left_folders)
        unwatched = [folder for folder in new_folders if folder not in self._keys_by_folder]
        for folder in new_folders:
            self._keys_by_folder.setdefault(folder, set()).add(key)
        if unwatched:
            await self._files.add(unwatched)
        return bool(new_folders)

    def _unwatch_folders(self, key: Hashable, folders: Iterable[str]) -> None:
        unused_folders: list[str] = []
        for folder in folders:
            self._keys_by_folder[folder].discard(key)
            if not self._keys_by_folder[folder]:
                del self._keys_by_folder[folder]
                unused_folders.append(folder)
        self._files.discard(unused_folders)

    async def _poll_touched(self) -> None:
        while True:
            await self._touched_event.wait()
            self._touched_event = anyio.Event()
            touched = self._touched_keys
            self._touched_keys = set()
            took = sum([await self._poll(key) for key in touched])
            await anyio.sleep(_PAUSE_FACTOR * took)

    async def _poll_uncertain(self) -> None:
        """Check once more what changed just before its check: it can have changed since and look the same."""
        while True:
            await self._uncertain_event.wait()
            self._uncertain_event = anyio.Event()
            await anyio.sleep(_UNCERTAIN_SECONDS)
            self._touched_keys |= self._uncertain_keys
            self._uncertain_keys = set()
            self._touched_event.set()

    async def _poll_slowly(self) -> None:
        while True:
            await self._added_event.wait()
            if not self._trees:
                self._added_event = anyio.Event()
            for key in list(self._trees):
                took = await self._poll(key)
                await anyio.sleep(max(_ROUND_SECONDS / max(1, len(self._trees)), took / _MAX_CPU_SHARE))
