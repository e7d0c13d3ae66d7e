"""Finds what changed below a folder between two checks, file by file, and in text files line by line.

A look walks the tree; nothing is kept open, and no event is trusted to tell what happened. Of small text files the text
is kept, so that a change can be shown; of large ones their end, so that what was added can.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import BinaryIO, NamedTuple

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import NotFound, Problem, TooLarge, quote
from mcp_batteries.subscriptions.journal import Change
from mcp_fs.engine.handles.path_opening import Folder, open_folder, open_regular
from mcp_fs.engine.listing.selection import Chooser, compile_chooser
from mcp_fs.engine.listing.walk import FolderEntries, Skipped, WalkFilter, entry_display_path, walk
from mcp_fs.engine.text.edit import unified_diff
from mcp_fs.engine.text.encodings import decode, is_text, replace_undecodable
from mcp_fs.models import clip_diff, pluralize
from mcp_fs.policy import ReadablePath

__all__ = ["Subtree", "TextBudget", "TreeSnapshot", "describe_change"]

_MAX_FILES = 100_000
# Bytes of a file whose text is kept.
_MAX_TEXT_BYTES = 262_144
# Bytes at the end of a larger file by which it is known again.
_TAIL_BYTES = 4096
_MAX_ADDED_BYTES = 65_536
_MAX_DIGESTED_BYTES = 4_194_304
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

    @classmethod
    def from_status(cls, status: os.stat_result) -> _FileSnapshot:
        is_uncertain = abs(time.time_ns() - status.st_ctime_ns) < _CLOCK_TICK_NS
        return cls(_signature_of(status), status.st_size, status.st_mode, is_uncertain)


class TreeSnapshot:
    """A subtree as it was at the last look.

    Attributes:
        folders: where its files lie, as names below the served folder.
        is_uncertain: whether to look again soon: what changed just now can change once more and look the same.
    """

    def __init__(self, subtree: Subtree, text_budget: TextBudget) -> None:
        self.subtree = subtree
        self.folders: frozenset[tuple[str, ...]] = frozenset()
        self.is_uncertain = False
        self._text_budget = text_budget
        self._files: dict[str, _FileSnapshot] = {}
        self._names: dict[str, str] = {}
        self._chooser: Chooser | None = None
        if subtree.glob:
            self._chooser = compile_chooser([subtree.glob])
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
        for path in sorted(self._files.keys() - poll.files.keys()):
            poll.changes.append(Change(self._names.pop(path), "deleted", self._files[path].text))
        self._text_budget.total = text_bytes + _text_size(poll.files.values()) - _text_size(self._files.values())
        self._files = poll.files
        self.folders = frozenset(folders)
        self.is_uncertain = any(snapshot.is_uncertain for snapshot in poll.files.values())
        if not self._has_polled:
            self._has_polled = True
            return []
        return poll.changes

    def release(self) -> None:
        self._text_budget.total -= _text_size(self._files.values())
        self._files = {}

    def _compare_file(self, file: _ListedFile, poll: _Poll) -> None:
        """Add a file to the poll, with what has changed about it."""
        before = self._files.get(file.path)
        try:
            status = file.folder.stat(file.name)
        except OSError:
            return  # removed since
        if before is not None and before.signature == _signature_of(status) and not before.is_uncertain:
            poll.files[file.path] = before
            return
        snapshot = _FileSnapshot.from_status(status)
        added = None
        if stat.S_ISREG(status.st_mode) and (before is not None or time.monotonic() < poll.read_deadline):
            snapshot, added = self._read_contents(file, snapshot, before)
        poll.files[file.path] = snapshot
        if before is None:
            name = entry_display_path(poll.root_of(file.folder.path), file.name)
            self._names[file.path] = name
            poll.changes.append(Change(name, "created", after=snapshot.text))
        elif not _is_unchanged(before, snapshot):
            poll.changes.append(Change(self._names[file.path], "changed", before.text, snapshot.text, added))

    def _iterate_files(self, folders: set[tuple[str, ...]], cancel: CancelToken) -> Iterator[_ListedFile]:
        """Yield each file that is there and meant; `folders` learns where they lie."""
        start = self.subtree.start
        try:
            if self.subtree.name:
                with open_folder(start) as folder:
                    folders.add(start.parts)
                    yield _ListedFile(folder, self.subtree.name, self.subtree.name)
                return
            for entries in walk(start, WalkFilter(), cancel, Skipped()):
                folders.add(entries.folder.path.parts)
                yield from self._choose_files(entries)
        except NotFound:
            if self.subtree.start.parts:
                return  # the folder itself is gone, and may come back
            raise

    def _choose_files(self, entries: FolderEntries) -> Iterator[_ListedFile]:
        """Yield the files of one folder that are meant."""
        place = entries.folder.path
        prefix = "".join(part + "/" for part in entries.parts)
        for name in entries.files:
            path = prefix + name
            if self._chooser is not None and not self._chooser(path):
                continue
            if not place.policy.is_protected((*place.parts, name)):
                yield _ListedFile(entries.folder, path, name)

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
    """

    read_deadline: float
    files: dict[str, _FileSnapshot] = field(default_factory=dict[str, _FileSnapshot])
    changes: list[Change] = field(default_factory=list[Change])
    _roots: dict[tuple[str, ...], ReadablePath] = field(default_factory=dict[tuple[str, ...], ReadablePath])

    def root_of(self, folder: ReadablePath) -> ReadablePath:
        """Return a folder as part of the innermost served folder that it lies in."""
        root = self._roots.get(folder.parts)
        if root is None:
            root = _in_innermost_root(folder)
            self._roots[folder.parts] = root
        return root


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
    data = file.read(min(_MAX_ADDED_BYTES, snapshot.size - before.size))
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
    if change.what == "created":
        if change.after is None:
            return ""
        return pluralize(len(change.after.splitlines()), "line")
    if change.what == "deleted":
        return ""
    if change.before is None or change.after is None:
        return _as_added_lines(change.added or "")
    if change.after.startswith(change.before) and change.before[-1:] in ("", "\n"):
        return _as_added_lines(change.after[len(change.before) :])
    diff = clip_diff(unified_diff(change.before, change.after, change.name))
    _, _, hunks = diff.partition("\n+++ ")
    return hunks.partition("\n")[2]


def _in_innermost_root(folder: ReadablePath) -> ReadablePath:
    """Return a folder as part of the innermost served folder that it lies in, so that each file has one name."""
    location = folder.policy.locate(os.path.join(folder.root.path, *folder.parts))
    if location is None:
        return folder
    return folder.at(*location)


def _as_added_lines(text: str) -> str:
    return "\n".join("+" + line for line in text.splitlines())


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
