"""Finds what changed below a folder between two checks, file by file, and in text files line by line.

A look walks the tree; nothing is kept open, and no event is trusted to tell what happened. Of small text files the text
is kept, so that a change can be shown; of large ones their end, so that what was added can.
"""

from __future__ import annotations

import bisect
import hashlib
import itertools
import json
import os
import stat
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import BinaryIO, NamedTuple

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import NotFound, Problem, TooLarge, quote
from mcp_batteries.subscriptions.journal import Change
from mcp_fs.engine.handles.path_opening import Folder, open_folder, open_regular
from mcp_fs.engine.listing.selection import Chooser, compile_chooser, compile_relevance
from mcp_fs.engine.listing.walk import FolderEntries, Skipped, WalkFilter, entry_display_path, walk
from mcp_fs.engine.text.edit import unified_diff
from mcp_fs.engine.text.encodings import NEWLINE_NAMES, decode, is_text, replace_undecodable, uniform_newline
from mcp_fs.models import clip_diff, pluralize
from mcp_fs.policy import ReadablePath

__all__ = ["Subtree", "TextBudget", "TreeSnapshot", "describe_change"]

_MAX_FILES = 100_000
# Bytes of a file whose text is kept.
_MAX_TEXT_BYTES = 262_144
# Bytes at the end of a larger file by which it is known again.
_TAIL_BYTES = 4096
_MAX_ADDED_BYTES = 1_048_576
_MAX_DIGESTED_BYTES = 4_194_304
# Of one change, some less than an answer takes.
_MAX_SHOWN_CHARACTERS = 2600
# Which a look may spend on reading what is not known to have changed.
_READ_SECONDS = 2.0
# Two changes closer than this may leave one time stamp.
_CLOCK_TICK_NS = 20_000_000


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


class TextBudget:
    """How much text is kept, of all that is followed."""

    MAX_BYTES = 16_777_216

    def __init__(self) -> None:
        self.total = 0

    def has_room(self, size: int) -> bool:
        return self.total + size <= self.MAX_BYTES


@dataclass(frozen=True, slots=True)
class _FileSnapshot:
    """A file as it was.

    Attributes:
        signature: what stat(2) said of it.
        is_uncertain: whether a change could follow that looks the same.
        text: what was in it, of a small text file.
        tail_digest: of the end of a larger one.
        digest: of all of one that was changed just before.
    """

    signature: tuple[int, ...]
    size: int
    mode: int
    is_uncertain: bool
    text: str | None = None
    tail_digest: bytes | None = None
    digest: bytes | None = None

    @property
    def identity(self) -> tuple[int, int]:
        """Its inode and device."""
        return self.signature[3], self.signature[4]

    @classmethod
    def from_status(cls, status: os.stat_result) -> _FileSnapshot:
        # A link is not changed but replaced, by one with another inode.
        is_file = stat.S_ISREG(status.st_mode)
        is_uncertain = is_file and _was_changed_just_now(status)
        return cls(_signature_of(status), status.st_size, status.st_mode, is_uncertain)


class TreeSnapshot:
    """A subtree as it was at the last look.

    Attributes:
        folders: where its files lie, as names below the served folder.
        skipped: what is hidden or git-ignored in it, and not followed.
        is_uncertain: whether to look again soon: what changed just now can change once more and look the same.
    """

    def __init__(self, subtree: Subtree, text_budget: TextBudget) -> None:
        self.subtree = subtree
        self.folders: frozenset[tuple[str, ...]] = frozenset()
        self.is_uncertain = False
        self._text_budget = text_budget
        self._files: dict[str, _FileSnapshot] = {}
        self._names: dict[str, str] = {}
        # Of the last poll that found some gone: what is renamed while a poll goes on is gone at first.
        self._departed: dict[str, _FileSnapshot] = {}
        self._departed_names: dict[str, str] = {}
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
        for path, before in poll.begun_anew.items():
            poll.changes += self._describe_begun_anew(path, before, poll)
        poll.changes += self._describe_new(poll)
        # What continues another thing takes its earlier changes before that begins anew.
        poll.changes.sort(key=lambda change: not change.continues)
        self._note_departed(poll)
        self._text_budget.total = text_bytes + _text_size(poll.files.values()) - _text_size(self._files.values())
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

    def _note_departed(self, poll: _Poll) -> None:
        """Add what is gone to the changes of a poll."""
        gone = sorted(self._files.keys() - poll.files.keys())
        if gone:
            self._departed = {path: self._files[path] for path in gone}
            self._departed_names = {path: self._names.pop(path) for path in gone}
        for path in gone:
            rotated = self._find_unfollowed(path, self._files[path], poll)
            if rotated is None:
                poll.changes.append(Change(self._departed_names[path], "deleted", self._files[path].text))
            else:
                poll.changes.append(rotated.describe(self._files[path], self._departed_names[path]))
                self._departed[path] = rotated.snapshot

    def _old_file(self, path: str) -> _FileSnapshot | None:
        """Return the file that was at a path at the last poll, or just before."""
        return self._files.get(path) or self._departed.get(path)

    def release(self) -> None:
        self._text_budget.total -= _text_size(self._files.values())
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
        if before is not None and before.signature == _signature_of(status) and not before.is_uncertain:
            poll.files[file.path] = before
            return
        snapshot = _FileSnapshot.from_status(status)
        if before is None or before.identity != snapshot.identity:
            self._add_new_file(file, snapshot, poll)
            return
        added = None
        if stat.S_ISREG(status.st_mode):
            snapshot, added = self._read_contents(file, snapshot, before)
        poll.files[file.path] = snapshot
        if _is_begun_anew(before, snapshot):
            poll.begun_anew[file.path] = before
        elif not _is_unchanged(before, snapshot):
            poll.changes.append(_describe_edit(self._names[file.path], before, snapshot, added))

    def _add_new_file(self, file: _ListedFile, snapshot: _FileSnapshot, poll: _Poll) -> None:
        """Add a file to the poll that is at a path where none or another was, be it that it was at another path."""
        old_path = ""
        if self._has_polled:
            old_path = self._find_old_path(snapshot, poll)
        old = self._old_file(old_path) or self._files.get(file.path)
        added = None
        if stat.S_ISREG(snapshot.mode) and (old is not None or time.monotonic() < poll.read_deadline):
            snapshot, added = self._read_contents(file, snapshot, old)
        if old_path and (old is None or not _is_moved(old, snapshot, added)):
            old_path = ""
        poll.files[file.path] = snapshot
        name = entry_display_path(poll.root_of(file.folder.path), file.name)
        self._names.setdefault(file.path, name)
        poll.new_files[file.path] = _NewFile(snapshot, old_path, added)

    def _find_old_path(self, snapshot: _FileSnapshot, poll: _Poll) -> str:
        """Return at which path the file was at the last poll; empty for a new one."""
        if poll.old_paths is None:
            all_old = {**self._departed, **self._files}
            poll.old_paths = {old.identity: path for path, old in all_old.items()}
        return poll.old_paths.get(snapshot.identity, "")

    def _describe_new(self, poll: _Poll) -> list[Change]:
        """Return what became of paths at which another file is now than before, or one where none was."""
        new_paths: dict[str, str] = {}
        for path, new in poll.new_files.items():
            old = self._old_file(new.old_path)
            still_there = poll.files.get(new.old_path)
            if old is None or (still_there is not None and still_there.identity == old.identity):
                continue
            if still_there is None or _is_rotated(new.old_path, path) or not _share_lines(old, still_there):
                new_paths.setdefault(new.old_path, path)
        changes: list[Change] = []
        for path, new in poll.new_files.items():
            before = self._files.get(path)
            if before is None:
                is_renamed = new_paths.get(new.old_path) == path
                changes.append(self._describe_arrival(path, new, poll, is_renamed=is_renamed))
            elif path in new_paths:
                note = _describe_rotation(self._names[new_paths[path]])
                changes.append(Change(self._names[path], "changed", "", new.snapshot.text, note=note, is_anew=True))
            elif rotated := self._find_unfollowed(path, before, poll):
                changes.append(rotated.describe(before, self._names[path]))
                note = _describe_rotation(rotated.name)
                changes.append(Change(self._names[path], "changed", "", new.snapshot.text, note=note, is_anew=True))
            elif not _is_unchanged(before, new.snapshot):
                added = new.added
                if new.old_path:  # of the other file
                    added = None
                changes.append(_describe_edit(self._names[path], before, new.snapshot, added))
        return changes

    def _describe_begun_anew(self, path: str, before: _FileSnapshot, poll: _Poll) -> list[Change]:
        """Return what became of a file that holds no line that it held, as a log after its rotation.

        Where it was copied to a name with a number or a date first, what was written before that is told too.
        """
        name = self._names[path]
        now = poll.files[path]
        for other_path, new in poll.new_files.items():
            if _is_rotated(path, other_path) and _continues(new.snapshot, before):
                poll.copies[other_path] = path
                note = f"begun anew, the old lines are in {self._names[other_path]}"
                return [Change(name, "changed", "", now.text, note=note, is_anew=True)]
        for other_path, other in poll.files.items():
            if _is_rotated(path, other_path) and _continues(other, before):
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
        old_name = self._names.get(new.old_path) or self._departed_names[new.old_path]
        return replace(edit, kind="created", origin=old_name, continues=old_name)

    def _find_rotated(self, path: str, poll: _Poll) -> str:
        """Return what the log is called now that was at a path before the last poll; empty for anything else."""
        departed = self._departed.get(path)
        if departed is None:
            return ""
        for other_path, snapshot in poll.files.items():
            if snapshot.identity == departed.identity and _is_rotated(path, other_path):
                return self._names[other_path]
        rotated = self._find_unfollowed(path, departed, poll)
        if rotated is None:
            return ""
        if not _is_unchanged(departed, rotated.snapshot):
            poll.changes.append(_describe_edit(rotated.name, departed, rotated.snapshot, rotated.added))
        return rotated.name

    def _find_unfollowed(
        self, path: str, old: _FileSnapshot, poll: _Poll, *, is_copy: bool = False
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
        self, place: ReadablePath, name: str, old: _FileSnapshot, poll: _Poll, *, is_copy: bool
    ) -> _RotatedLog | None:
        """Return the file of a name in a folder if it is `old`, or a copy, and may be read; None if it is another."""
        _ = place / name  # refuses what is protected
        with open_folder(place) as folder:
            status = folder.stat(name)
            snapshot = _FileSnapshot.from_status(status)
            if (snapshot.identity == old.identity) is is_copy or not stat.S_ISREG(status.st_mode):
                return None
            snapshot, added = self._read_contents(_ListedFile(folder, name, name), snapshot, old)
            display_name = entry_display_path(poll.root_of(folder.path), name)
        if is_copy:
            is_wanted = _continues(snapshot, old)
        else:
            is_wanted = _is_moved(old, snapshot, added)
        if not is_wanted:
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

    def _read_contents(
        self, file: _ListedFile, snapshot: _FileSnapshot, before: _FileSnapshot | None
    ) -> tuple[_FileSnapshot, str | None]:
        """Return the file with its text or the digest of its end, and what was added to a larger one."""
        try:
            with open_regular(file.folder, file.name) as contents:
                text = self._read_text(contents, snapshot, before)
                if text is not None:
                    return replace(snapshot, text=text), None
                added = _read_added(contents, snapshot, before)
                return _with_digests(contents, snapshot, before), added
        except (OSError, Problem):
            return snapshot, None

    def _read_text(self, file: BinaryIO, snapshot: _FileSnapshot, before: _FileSnapshot | None) -> str | None:
        """Return the text of a file where there is room for it; None of a binary one too."""
        if snapshot.size > _MAX_TEXT_BYTES:
            return None
        had_text = before is not None and before.text is not None
        if not had_text and not self._text_budget.has_room(snapshot.size):
            return None
        decoded = decode(file.read(_MAX_TEXT_BYTES + 1))
        if decoded is None:
            return None
        self._text_budget.total += len(decoded.text)
        return replace_undecodable(decoded.text)


class _NewFile(NamedTuple):
    """A file at a path where none or another was at the last poll.

    Attributes:
        old_path: where it was then; empty for a new one.
        added: what was added to it since.
    """

    snapshot: _FileSnapshot
    old_path: str
    added: str | None


class _RotatedLog(NamedTuple):
    """A log that got a number or a date, and is not among what is followed.

    Attributes:
        name: as answers show it.
        added: what was added to a large one since it was looked at last.
    """

    name: str
    snapshot: _FileSnapshot
    added: str | None

    def describe(self, old: _FileSnapshot, old_name: str) -> Change:
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
    """What one look at a subtree has found so far.

    Attributes:
        read_deadline: until when, by `time.monotonic`, new files are read.
        files: each by its path below the start.
        new_files: those of them that were not there, or were another file.
        begun_anew: files that hold no line that they held, each as it was.
        copies: paths of new files that are what such a file was, with its path.
        old_paths: of the files of the last poll by their identity, once they are needed.
    """

    read_deadline: float
    files: dict[str, _FileSnapshot] = field(default_factory=dict[str, _FileSnapshot])
    changes: list[Change] = field(default_factory=list[Change])
    new_files: dict[str, _NewFile] = field(default_factory=dict[str, _NewFile])
    begun_anew: dict[str, _FileSnapshot] = field(default_factory=dict[str, _FileSnapshot])
    copies: dict[str, str] = field(default_factory=dict[str, str])
    old_paths: dict[tuple[int, int], str] | None = None
    _roots: dict[tuple[str, ...], ReadablePath] = field(default_factory=dict[tuple[str, ...], ReadablePath])
    _names_by_folder: dict[tuple[str, ...], list[str]] = field(default_factory=dict[tuple[str, ...], list[str]])

    def names_after(self, folder: ReadablePath, name: str) -> list[str]:
        """Return the names in a folder that begin with a name and go on."""
        names = self._names_by_folder.get(folder.parts)
        if names is None:
            with open_folder(folder) as opened:
                names = sorted(opened.list_names())
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


def _was_changed_just_now(status: os.stat_result) -> bool:
    now_ns = time.time_ns()
    # On Windows ctime is when a file was made; elsewhere a program can set mtime, but not ctime.
    return any(abs(now_ns - time_ns) < _CLOCK_TICK_NS for time_ns in (status.st_mtime_ns, status.st_ctime_ns))


def _signature_of(status: os.stat_result) -> tuple[int, ...]:
    return (
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_size,
        status.st_ino,
        status.st_dev,
        status.st_mode,
    )


def _read_added(file: BinaryIO, snapshot: _FileSnapshot, before: _FileSnapshot | None) -> str | None:
    """Return the text at the end of a file that still begins as it was; None if it does not, or is no text."""
    if before is None or before.tail_digest is None or snapshot.size < before.size:
        return None
    if _digest_tail(file, before.size) != before.tail_digest:
        return None
    added_bytes = snapshot.size - before.size
    if added_bytes > _MAX_ADDED_BYTES:
        file.seek(snapshot.size - _MAX_ADDED_BYTES)
        file.readline()
    data = file.read(min(_MAX_ADDED_BYTES, added_bytes))
    if not is_text(data):
        return None
    return data.decode("utf-8", "replace")


def _with_digests(file: BinaryIO, snapshot: _FileSnapshot, before: _FileSnapshot | None) -> _FileSnapshot:
    """Return a file with the digest of its end, and of all of it where a change could look the same."""
    was_uncertain = before is not None and before.is_uncertain
    if (snapshot.is_uncertain or was_uncertain) and snapshot.size <= _MAX_DIGESTED_BYTES:
        file.seek(0)
        snapshot = replace(snapshot, digest=_digest(file.read(_MAX_DIGESTED_BYTES)))
    return replace(snapshot, tail_digest=_digest_tail(file, snapshot.size))


def _digest_tail(file: BinaryIO, size: int) -> bytes:
    """Return the digest of the last bytes of the first `size`; the file is then at their end."""
    file.seek(max(0, size - _TAIL_BYTES))
    return _digest(file.read(min(_TAIL_BYTES, size)))


def describe_change(change: Change) -> str:
    """Return a change of a text file in lines: what was added at its end, else a diff; nothing if that is not known."""
    if change.kind == "created" and not change.origin:
        if change.after is None:
            return ""
        return pluralize(len(change.after.splitlines()), "line")
    if change.kind == "deleted":
        return ""
    path = change.name
    if change.before is None or change.after is None:
        return _as_added_lines(path, change.added or "", None)
    if change.before == change.after:
        return ""
    line_ends = _describe_line_ends(change.before, change.after)
    if change.before.replace("\r\n", "\n") == change.after.replace("\r\n", "\n"):
        return line_ends
    if change.after.startswith(change.before) and change.before[-1:] in ("", "\n"):
        first_line = change.before.count("\n") + 1
        return _as_added_lines(path, change.after[len(change.before) :], first_line)
    diff = clip_diff(unified_diff(change.before, change.after, change.name))
    _, _, hunks = diff.partition("\n+++ ")
    return hunks.partition("\n")[2]


def _describe_line_ends(before: str, after: str) -> str:
    """Say how the line ends of a text changed; nothing if they did not."""
    newline = uniform_newline(before)
    new_newline = uniform_newline(after)
    if newline == new_newline or newline == "" or new_newline == "":
        return ""
    return f"[line ends {NEWLINE_NAMES[new_newline]}, were {NEWLINE_NAMES[newline]}]"


def _in_innermost_root(folder: ReadablePath) -> ReadablePath:
    """Return a folder as part of the innermost served folder that it lies in, so that each file has one name."""
    location = folder.policy.locate(os.path.join(folder.root.path, *folder.parts))
    if location is None:
        return folder
    return folder.at(*location)


def _as_added_lines(path: str, text: str, first_line: int | None) -> str:
    """Return lines that were added, of many the first and the last, with the call that reads the others.

    Args:
        first_line: the number of the first; None if that is not known.
    """
    lines = ["+" + line for line in text.splitlines()]
    if sum(map(len, lines)) + len(lines) <= _MAX_SHOWN_CHARACTERS:
        return "\n".join(lines)
    head_count = _count_fitting(lines)
    tail_count = min(_count_fitting(lines[::-1]), len(lines) - head_count)
    omitted_count = len(lines) - head_count - tail_count
    call = f"read_text path={json.dumps(path, ensure_ascii=False)} tail={len(lines)}"
    if first_line is not None:
        first_omitted = first_line + head_count
        call = (
            f"read_text path={json.dumps(path, ensure_ascii=False)} start_line={first_omitted} "
            f"end_line={first_omitted + omitted_count - 1}"
        )
    middle = f"[{pluralize(len(lines), 'line')} added, {omitted_count:,} of them not shown: {call}]"
    return "\n".join([*lines[:head_count], middle, *lines[len(lines) - tail_count :]])


def _count_fitting(lines: Sequence[str]) -> int:
    """Return how many of the first lines fit into half of what is shown of a change."""
    remaining = _MAX_SHOWN_CHARACTERS // 2
    for count, line in enumerate(lines):
        remaining -= len(line) + 1
        if remaining < 0:
            return count
    return len(lines)


def _is_moved(old: _FileSnapshot, now: _FileSnapshot, added: str | None) -> bool:
    """Return whether a file is one that was at another path: its number alone may be that of one that is gone."""
    if added is not None or (old.signature[0] == now.signature[0] and old.size == now.size):
        return True
    return bool(old.text) and now.text is not None and now.text.startswith(old.text or "")


def _is_begun_anew(before: _FileSnapshot, now: _FileSnapshot) -> bool:
    """Return whether a file has no line that it had: a program may have copied and emptied it."""
    return bool(before.text) and now.text is not None and not _share_lines(before, now)


def _continues(copy: _FileSnapshot, old: _FileSnapshot) -> bool:
    """Return whether a file begins with all that another held."""
    return copy.text is not None and bool(old.text) and copy.text.startswith(old.text or "")


def _is_rotated(old_path: str, path: str) -> bool:
    """Return whether a file got a number or a date, as the logs do that a program begins anew."""
    old_name = old_path.rpartition("/")[2]
    name = path.rpartition("/")[2]
    return name.startswith(old_name) and any(map(str.isdigit, name.removeprefix(old_name)))


def _share_lines(one: _FileSnapshot, other: _FileSnapshot) -> bool:
    """Return whether two files have a line in common: then one is a copy that an editor kept of the other."""
    if one.text is None or other.text is None:
        return False
    return any(line.strip() for line in {*one.text.splitlines()} & {*other.text.splitlines()})


def _describe_rotation(new_name: str) -> str:
    return f"another file, the old one is {new_name}"


def _describe_edit(name: str, before: _FileSnapshot, now: _FileSnapshot, added: str | None) -> Change:
    note = _describe_form(before, now)
    added_bytes = now.size - before.size
    if added is not None and added_bytes > _MAX_ADDED_BYTES:
        note = f"{added_bytes:,} bytes added, of which these are the last"
    return Change(name, "changed", before.text, now.text, added, note=note)


def _describe_form(before: _FileSnapshot, now: _FileSnapshot) -> str:
    """Say what changed about a file besides its text."""
    if before.mode == now.mode:
        return ""
    return f"mode {stat.filemode(now.mode)}, was {stat.filemode(before.mode)}"


def _is_unchanged(before: _FileSnapshot, now: _FileSnapshot) -> bool:
    """Return whether nothing has changed but times: of what looks the same, or holds the same."""
    if before.mode != now.mode:
        return False
    if before.text is not None and now.text is not None:
        return before.text == now.text
    if before.signature != now.signature:
        return False
    return not before.is_uncertain or (before.digest is not None and before.digest == now.digest)


def _text_size(files: Collection[_FileSnapshot]) -> int:
    return sum(len(snapshot.text) for snapshot in files if snapshot.text is not None)


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()
