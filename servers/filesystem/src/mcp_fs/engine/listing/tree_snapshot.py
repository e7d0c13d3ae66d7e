"""Finds what changed below a folder between two checks, file by file, and in text files line by line.

A poll walks the tree; nothing is kept open, and no event is trusted to tell what happened.
"""

from __future__ import annotations

import bisect
import itertools
import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import NotFound, Problem, TooLarge, quote
from mcp_batteries.subscriptions.journal import Change
from mcp_fs.engine.handles.path_opening import Folder, open_folder
from mcp_fs.engine.listing.file_snapshot import (
    MAX_ADDED_BYTES,
    FileSnapshot,
    TextBudget,
    read_contents,
    text_length,
)
from mcp_fs.engine.listing.selection import Chooser, compile_chooser, compile_relevance
from mcp_fs.engine.listing.walk import FolderEntries, Skipped, WalkFilter, entry_display_path, walk
from mcp_fs.policy import ReadablePath

__all__ = ["Subtree", "TreeSnapshot"]

_MAX_FILES = 100_000
# Which a poll may spend on reading what is not known to have changed.
_READ_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Subtree:
    """What is followed: files below a folder, or one file.

    Attributes:
        start: the folder.
        glob: which files below it; all for nothing.
        name: the one name in it.
    """

    start: ReadablePath
    glob: str = ""
    name: str = ""


class TreeSnapshot:
    """A subtree as it was at the last poll.

    Attributes:
        folders: where its files lie, as names below the served folder.
        skipped: what is hidden or git-ignored in it, and not followed.
        is_uncertain: whether to poll again soon: what changed just now can change once more and look the same.
    """

    def __init__(self, subtree: Subtree, text_budget: TextBudget) -> None:
        self.subtree = subtree
        self.folders: frozenset[tuple[str, ...]] = frozenset()
        self.is_uncertain = False
        self._text_budget = text_budget
        self._files: dict[str, FileSnapshot] = {}
        self._names: dict[str, str] = {}
        # Of the last poll that found some gone: what is renamed while a poll goes on is gone at first.
        self._removed_files: dict[str, FileSnapshot] = {}
        self._removed_names: dict[str, str] = {}
        self.skipped = Skipped()
        self._chooser: Chooser | None = None
        self._is_relevant: Chooser | None = None
        self._named_folders: frozenset[str] = frozenset()
        if subtree.glob:
            self._chooser = compile_chooser([subtree.glob])
            self._is_relevant = compile_relevance([subtree.start], subtree.start, subtree.glob, self._chooser)
            self._named_folders = frozenset(subtree.glob.split("/")[:-1])
        self._has_polled = False

    @property
    def has_files(self) -> bool:
        return bool(self._files)

    def poll(self, cancel: CancelToken) -> list[Change]:
        """Return what has changed since the last poll; nothing at the first.

        Raises:
            TooLarge: there are too many files.
            Problem: the served folder can't be reached now.
        """
        poll = _Poll(time.monotonic() + _READ_SECONDS)
        text_bytes = self._text_budget.total
        folders: set[tuple[str, ...]] = {self.subtree.start.parts[:-1]}
        for file in self._iterate_files(folders, cancel):
            if len(poll.files) >= _MAX_FILES:
                raise TooLarge(
                    f"More than {_MAX_FILES:,} files are in {quote(self.subtree.start.display)}.",
                    "Follow a smaller folder.",
                )
            self._compare_file(file, poll)
        self._keep_unread(poll)
        for path, before in poll.rewritten.items():
            poll.changes += self._describe_rewritten(path, before, poll)
        poll.changes += self._describe_new(poll)
        # What continues another thing takes its earlier changes before that begins anew.
        poll.changes.sort(key=lambda change: not change.continues)
        self._add_removed(poll)
        self._text_budget.total = text_bytes + text_length(poll.files.values()) - text_length(self._files.values())
        self._files = poll.files
        self.folders = frozenset(folders)
        self.is_uncertain = any(snapshot.is_uncertain for snapshot in poll.files.values())
        if not self._has_polled:
            self._has_polled = True
            return []
        return poll.changes

    def _keep_unread(self, poll: _Poll) -> None:
        """Keep the files as they were whose folder can't be read now: that does not say that they are gone."""
        unread_folders = self.skipped.unread_folders
        if not unread_folders:
            return
        for path, snapshot in self._files.items():
            *folders, _ = path.split("/")
            if any(tuple(folders[:depth]) in unread_folders for depth in range(1, len(folders) + 1)):
                poll.files.setdefault(path, snapshot)

    def _add_removed(self, poll: _Poll) -> None:
        """Add what is gone to the changes of a poll."""
        removed_paths = sorted(self._files.keys() - poll.files.keys())
        if removed_paths:
            self._removed_files = {path: self._files[path] for path in removed_paths}
            self._removed_names = {path: self._names.pop(path) for path in removed_paths}
        for path in removed_paths:
            rotated = self._find_unfollowed(path, self._files[path], poll)
            if rotated is None:
                poll.changes.append(Change(self._removed_names[path], "deleted", self._files[path].text))
            else:
                poll.changes.append(rotated.describe(self._files[path], self._removed_names[path]))
                self._removed_files[path] = rotated.snapshot

    def _old_file(self, path: str) -> FileSnapshot | None:
        """Return the file that was at a path at the last poll, or just before."""
        return self._files.get(path) or self._removed_files.get(path)

    def release(self) -> None:
        self._text_budget.total -= text_length(self._files.values())
        self._files = {}

    def _compare_file(self, file: _ListedFile, poll: _Poll) -> None:
        """Add a file to the poll, with what has changed about it."""
        before = self._files.get(file.path)
        try:
            status = file.folder.stat(file.name)
        except (FileNotFoundError, NotADirectoryError):
            return  # removed since
        except OSError:
            if before is not None:
                poll.files[file.path] = before
            return
        if before is not None and before.is_certainly(status):
            poll.files[file.path] = before
            return
        snapshot = FileSnapshot.from_status(status)
        if before is None or before.identity != snapshot.identity:
            self._add_new_file(file, snapshot, poll)
            return
        added = None
        if stat.S_ISREG(status.st_mode):
            snapshot, added = read_contents(file.folder, file.name, snapshot, before, self._text_budget)
        poll.files[file.path] = snapshot
        if snapshot.is_rewritten_since(before):
            poll.rewritten[file.path] = before
        elif not snapshot.is_unchanged_since(before):
            poll.changes.append(_describe_edit(self._names[file.path], before, snapshot, added))

    def _add_new_file(self, file: _ListedFile, snapshot: FileSnapshot, poll: _Poll) -> None:
        """Add a file to the poll that is at a path where none or another was, be it that it was at another path."""
        old_path = ""
        if self._has_polled:
            old_path = self._find_old_path(snapshot, poll)
        old = self._old_file(old_path) or self._files.get(file.path)
        added = None
        if stat.S_ISREG(snapshot.mode) and (old is not None or time.monotonic() < poll.read_deadline):
            snapshot, added = read_contents(file.folder, file.name, snapshot, old, self._text_budget)
        if old_path and (old is None or not snapshot.is_moved_from(old, added)):
            old_path = ""
        poll.files[file.path] = snapshot
        name = entry_display_path(poll.root_of(file.folder.path), file.name)
        self._names.setdefault(file.path, name)
        poll.new_files[file.path] = _NewFile(snapshot, old_path, added)

    def _find_old_path(self, snapshot: FileSnapshot, poll: _Poll) -> str:
        """Return at which path the file was at the last poll; empty for a new one."""
        if poll.old_paths is None:
            all_old = {**self._removed_files, **self._files}
            poll.old_paths = {old.identity: path for path, old in all_old.items()}
        return poll.old_paths.get(snapshot.identity, "")

    def _describe_new(self, poll: _Poll) -> list[Change]:
        """Return what became of paths at which another file is now than before, or one where none was."""
        new_paths = self._find_new_paths(poll)
        changes: list[Change] = []
        for path, new in poll.new_files.items():
            before = self._files.get(path)
            if before is None:
                is_renamed = new_paths.get(new.old_path) == path
                changes.append(self._describe_arrival(path, new, poll, is_renamed=is_renamed))
            elif path in new_paths:
                changes.append(self._describe_successor(path, new, self._names[new_paths[path]]))
            else:
                changes += self._describe_replaced(path, before, new, poll)
        return changes

    def _find_new_paths(self, poll: _Poll) -> dict[str, str]:
        """Return by its old path where each file is now that was renamed."""
        new_paths: dict[str, str] = {}
        for path, new in poll.new_files.items():
            old = self._old_file(new.old_path)
            if old is None:
                continue
            successor = poll.files.get(new.old_path)
            if successor is not None and successor.identity == old.identity:
                continue  # the file is there too, by another link
            if successor is None or _is_rotated(new.old_path, path) or not old.shares_lines_with(successor):
                new_paths.setdefault(new.old_path, path)
        return new_paths

    def _describe_replaced(self, path: str, before: FileSnapshot, new: _NewFile, poll: _Poll) -> list[Change]:
        """Return what became of a path at which another file is now, where the old one is none that is followed."""
        rotated = self._find_unfollowed(path, before, poll)
        if rotated is not None:
            return [rotated.describe(before, self._names[path]), self._describe_successor(path, new, rotated.name)]
        if new.snapshot.is_unchanged_since(before):
            return []
        added = new.added
        if new.old_path:  # of the other file
            added = None
        return [_describe_edit(self._names[path], before, new.snapshot, added)]

    def _describe_successor(self, path: str, new: _NewFile, new_name: str) -> Change:
        """Return that another file is at a path now, and what the old one is called."""
        note = _describe_rotation(new_name)
        return Change(self._names[path], "changed", "", new.snapshot.text, note=note, is_anew=True)

    def _describe_rewritten(self, path: str, before: FileSnapshot, poll: _Poll) -> list[Change]:
        """Return what became of a file that holds no line that it held, as a log after its rotation.

        Where it was copied to a name with a number or a date first, what was written before that is told too.
        """
        name = self._names[path]
        now = poll.files[path]
        for other_path, new in poll.new_files.items():
            if _is_rotated(path, other_path) and new.snapshot.begins_with(before):
                poll.copies[other_path] = path
                note = f"begun anew, the old lines are in {self._names[other_path]}"
                return [Change(name, "changed", "", now.text, note=note, is_anew=True)]
        for other_path, other in poll.files.items():
            if _is_rotated(path, other_path) and other.begins_with(before):
                note = f"begun anew, the old lines are in {self._names[other_path]}"
                return [Change(name, "changed", "", now.text, note=note, is_anew=True)]
        copy = self._find_unfollowed(path, before, poll, is_copy=True)
        if copy is None:
            return [_describe_edit(name, before, now, None)]
        note = f"begun anew, the old lines are in {copy.name}"
        return [
            Change(copy.name, "changed", before.text, copy.snapshot.text, note=f"a copy of {name}", continues=name),
            Change(name, "changed", "", now.text, note=note, is_anew=True),
        ]

    def _describe_arrival(self, path: str, new: _NewFile, poll: _Poll, *, is_renamed: bool) -> Change:
        """Return how a file came to a path where none was."""
        name = self._names[path]
        original = poll.copies.get(path)
        if original is not None:
            before = self._files[original]
            return Change(
                name,
                "changed",
                before.text,
                new.snapshot.text,
                note=f"a copy of {self._names[original]}",
                continues=self._names[original],
            )
        if not is_renamed:
            rotated_name = self._find_rotated(path, poll)
            if rotated_name:
                note = _describe_rotation(rotated_name)
                return Change(name, "created", "", new.snapshot.text, note=note)
            return Change(name, "created", after=new.snapshot.text)
        old = self._old_file(new.old_path)
        assert old is not None
        edit = _describe_edit(name, old, new.snapshot, new.added)
        old_name = self._names.get(new.old_path) or self._removed_names[new.old_path]
        return replace(edit, kind="created", origin=old_name, continues=old_name)

    def _find_rotated(self, path: str, poll: _Poll) -> str:
        """Return what the log is called now that was at a path before the last poll; empty for anything else."""
        removed = self._removed_files.get(path)
        if removed is None:
            return ""
        for other_path, snapshot in poll.files.items():
            if snapshot.identity == removed.identity and _is_rotated(path, other_path):
                return self._names[other_path]
        rotated = self._find_unfollowed(path, removed, poll)
        if rotated is None:
            return ""
        if not rotated.snapshot.is_unchanged_since(removed):
            poll.changes.append(_describe_edit(rotated.name, removed, rotated.snapshot, rotated.added))
        return rotated.name

    def _find_unfollowed(
        self, path: str, old: FileSnapshot, poll: _Poll, *, is_copy: bool = False
    ) -> _RotatedLog | None:
        """Return a log that got a number or a date and is not among what is followed; None if it did not.

        Args:
            path: that it had.
            old: what it was then.
            is_copy: whether a copy of it is looked for, and not the file itself.
        """
        *folders, name = path.split("/")
        start = self.subtree.start
        try:
            place = start.at(start.root, (*start.parts, *folders))
            other_names = poll.names_after(place, name)
        except (OSError, Problem):
            return None
        for other_name in other_names:
            other_path = "/".join((*folders, other_name))
            if not _is_rotated(name, other_name) or other_path in poll.files:
                continue
            with suppress(OSError, Problem):  # one that is gone or protected; another may be the log
                rotated = self._read_rotated(place, other_name, old, poll, is_copy=is_copy)
                if rotated is not None:
                    return rotated
        return None

    def _read_rotated(
        self, place: ReadablePath, name: str, old: FileSnapshot, poll: _Poll, *, is_copy: bool
    ) -> _RotatedLog | None:
        """Return the file of a name in a folder if it is `old`, or a copy, and may be read; None if it is another."""
        _ = place / name  # refuses what is protected
        with open_folder(place) as folder:
            status = folder.stat(name)
            snapshot = FileSnapshot.from_status(status)
            if (snapshot.identity == old.identity) is is_copy or not stat.S_ISREG(status.st_mode):
                return None
            snapshot, added = read_contents(folder, name, snapshot, old, self._text_budget)
            display_name = entry_display_path(poll.root_of(folder.path), name)
        if is_copy:
            is_sought = snapshot.begins_with(old)
        else:
            is_sought = snapshot.is_moved_from(old, added)
        if not is_sought:
            return None
        return _RotatedLog(display_name, snapshot, added)

    def _iterate_files(self, folders: set[tuple[str, ...]], cancel: CancelToken) -> Iterator[_ListedFile]:
        """Yield each file that is there and meant; `folders` learns where they lie."""
        start = self.subtree.start
        try:
            if self.subtree.name:
                with open_folder(start) as folder:
                    folders.add(start.parts)
                    yield _ListedFile(folder, self.subtree.name, self.subtree.name)
                return
            skipped = Skipped(is_relevant=self._is_left_out, tells_links=True)
            for entries in walk(start, WalkFilter(), cancel, skipped):
                folders.add(entries.folder.path.parts)
                yield from self._choose_files(entries)
                named = [name for name, is_folder in entries.excluded if is_folder and name in self._named_folders]
                entries.folders = sorted({*entries.folders, *named})
            self.skipped = skipped
        except NotFound:
            if self.subtree.start.parts:
                return  # the folder itself is gone, and may come back
            raise

    def _choose_files(self, entries: FolderEntries) -> Iterator[_ListedFile]:
        """Yield the files of one folder that are meant."""
        place = entries.folder.path
        prefix = "".join(part + "/" for part in entries.parts)
        for name in sorted([*entries.files, *(name for name, is_folder in entries.excluded if not is_folder)]):
            path = prefix + name
            if name not in entries.files and not self._is_named(path):
                continue
            if self._chooser is not None and not self._chooser(path):
                continue
            if not place.policy.is_protected((*place.parts, name)):
                yield _ListedFile(entries.folder, path, name)

    def _is_named(self, path: str) -> bool:
        """Return whether the glob means a hidden or ignored file by more than a `*`, and as a shell a dot by a dot."""
        if self._chooser is None or not self._chooser(path):
            return False
        pattern = self.subtree.glob.rpartition("/")[2]
        if not pattern.strip("*?"):
            return False
        return pattern.startswith(".") or not path.rpartition("/")[2].startswith(".")

    def _is_left_out(self, path: str) -> bool:
        """Return whether something hidden or ignored is not followed, though it could be meant.

        Args:
            path: below the start; of a folder it ends in a slash.
        """
        glob = self.subtree.glob
        if path.endswith("/"):
            is_below = glob.startswith("/") and "**" not in glob and path.count("/") >= glob.count("/")
            if is_below or path.rstrip("/").rpartition("/")[2] in self._named_folders:
                return False
        return not self._is_named(path) and (self._is_relevant is None or self._is_relevant(path))


class _NewFile(NamedTuple):
    """A file at a path where none or another was at the last poll.

    Attributes:
        old_path: where it was then; empty for a new one.
        added: what was added to it since.
    """

    snapshot: FileSnapshot
    old_path: str
    added: str | None


class _RotatedLog(NamedTuple):
    """A log that got a number or a date, and is not among what is followed.

    Attributes:
        name: as answers show it.
        added: what was added to a large one since it was looked at last.
    """

    name: str
    snapshot: FileSnapshot
    added: str | None

    def describe(self, old: FileSnapshot, old_name: str) -> Change:
        """Return that it was renamed, with what was added before."""
        edit = _describe_edit(self.name, old, self.snapshot, self.added)
        return replace(edit, kind="created", origin=old_name, continues=old_name)


class _ListedFile(NamedTuple):
    """A file that a poll comes to.

    Attributes:
        folder: where it lies, open.
        path: its path below the start.
        name: its name in the folder.
    """

    folder: Folder[ReadablePath]
    path: str
    name: str


@dataclass(slots=True)
class _Poll:
    """What one poll of a subtree has found so far.

    Attributes:
        read_deadline: until when, by `time.monotonic`, new files are read.
        files: each by its path below the start.
        new_files: those of them that were not there, or were another file.
        rewritten: files that hold no line that they held, each as it was.
        copies: paths of new files that are what such a file was, with its path.
        old_paths: of the files of the last poll by their identity, once they are needed.
    """

    read_deadline: float
    files: dict[str, FileSnapshot] = field(default_factory=dict[str, FileSnapshot])
    changes: list[Change] = field(default_factory=list[Change])
    new_files: dict[str, _NewFile] = field(default_factory=dict[str, _NewFile])
    rewritten: dict[str, FileSnapshot] = field(default_factory=dict[str, FileSnapshot])
    copies: dict[str, str] = field(default_factory=dict[str, str])
    old_paths: dict[tuple[int, int], str] | None = None
    _roots: dict[tuple[str, ...], ReadablePath] = field(default_factory=dict[tuple[str, ...], ReadablePath])
    _names_by_folder: dict[tuple[str, ...], list[str]] = field(default_factory=dict[tuple[str, ...], list[str]])

    def names_after(self, folder: ReadablePath, name: str) -> list[str]:
        """Return the names in a folder that begin with a name and go on."""
        names = self._names_by_folder.get(folder.parts)
        if names is None:
            with open_folder(folder) as listed_folder:
                names = sorted(listed_folder.list_names())
            self._names_by_folder[folder.parts] = names
        longer_names: list[str] = []
        for other_name in itertools.islice(names, bisect.bisect_right(names, name), None):
            if not other_name.startswith(name):
                break
            longer_names.append(other_name)
        return longer_names

    def root_of(self, folder: ReadablePath) -> ReadablePath:
        """Return a folder as part of the innermost served folder that it lies in."""
        root = self._roots.get(folder.parts)
        if root is None:
            root = _in_innermost_root(folder)
            self._roots[folder.parts] = root
        return root


def _in_innermost_root(folder: ReadablePath) -> ReadablePath:
    """Return a folder as part of the innermost served folder that it lies in, so that each file has one name."""
    location = folder.policy.locate(os.path.join(folder.root.path, *folder.parts))
    if location is None:
        return folder
    return folder.at(*location)


def _is_rotated(old_path: str, path: str) -> bool:
    """Return whether a file got a number or a date, as the logs do that a program begins anew."""
    old_name = old_path.rpartition("/")[2]
    name = path.rpartition("/")[2]
    return name.startswith(old_name) and any(map(str.isdigit, name.removeprefix(old_name)))


def _describe_rotation(new_name: str) -> str:
    return f"another file, the old one is {new_name}"


def _describe_edit(name: str, before: FileSnapshot, now: FileSnapshot, added: str | None) -> Change:
    note = _describe_form(before, now)
    added_bytes = now.size - before.size
    if added is not None and added_bytes > MAX_ADDED_BYTES:
        note = f"{added_bytes:,} bytes added, of which these are the last"
    return Change(name, "changed", before.text, now.text, added, note=note)


def _describe_form(before: FileSnapshot, now: FileSnapshot) -> str:
    """Say what changed about a file besides its text."""
    if before.mode == now.mode:
        return ""
    return f"mode {stat.filemode(now.mode)}, was {stat.filemode(before.mode)}"
