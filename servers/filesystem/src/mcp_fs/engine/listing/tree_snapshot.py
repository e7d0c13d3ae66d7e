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
from dataclasses import dataclass, replace
from typing import BinaryIO

from mcp_batteries.errors import NotFound, Problem, TooLarge, quote
from mcp_batteries.limits import Stop
from mcp_batteries.subscriptions.journal import Change
from mcp_fs.engine.handles.path_opening import Folder, open_folder, open_regular
from mcp_fs.engine.listing.selection import Chooser, compile_chooser
from mcp_fs.engine.listing.walk import Skipped, WalkFilter, entry_display_path, walk
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
    """A file as it was: what stat(2) said, whether a change could follow that looks the same, and what was in it."""

    signature: tuple[int, ...]
    size: int
    mode: int
    is_uncertain: bool
    text: str | None = None
    # A digest of the end.
    tail_digest: bytes | None = None
    # Of all of a fresh file.
    digest: bytes | None = None


class TreeSnapshot:
    """A subtree as it was at the last look."""

    def __init__(self, subtree: Subtree, text_budget: TextBudget) -> None:
        self.subtree = subtree
        self._text_budget = text_budget
        self._files: dict[str, _FileSnapshot] = {}
        self._names: dict[str, str] = {}
        self._chooser: Chooser | None = compile_chooser([subtree.glob]) if subtree.glob else None
        self._has_polled = False
        # Where its files lie, as names below the served folder.
        self.folders: frozenset[tuple[str, ...]] = frozenset()
        # Whether to look again soon: what changed just now can change once more and look the same.
        self.is_uncertain = False

    @property
    def has_files(self) -> bool:
        return bool(self._files)

    def poll(self, stop: Stop) -> list[Change]:
        """Return what has changed since the last poll; nothing at the first.

        Raises:
            TooLarge: there are too many files.
            Problem: the served folder can't be reached now.
        """
        changes: list[Change] = []
        files: dict[str, _FileSnapshot] = {}
        roots_of_folders: dict[tuple[str, ...], ReadablePath] = {}
        kept_bytes = self._text_budget.total
        read_deadline = time.monotonic() + _READ_SECONDS
        folders: set[tuple[str, ...]] = {self.subtree.start.parts[:-1]}
        for folder, path, name in self._iterate_files(folders, stop):
            if len(files) >= _MAX_FILES:
                raise TooLarge(
                    f"More than {_MAX_FILES:,} files are in {quote(self.subtree.start.display)}.",
                    "Follow a smaller folder.",
                )
            before = self._files.get(path)
            try:
                status = folder.stat(name)
            except OSError:
                continue  # removed since
            signature = _signature_of(status)
            if before is not None and before.signature == signature and not before.is_uncertain:
                files[path] = before
                continue
            is_uncertain = abs(time.time_ns() - status.st_ctime_ns) < _CLOCK_TICK_NS
            snapshot = _FileSnapshot(signature, status.st_size, status.st_mode, is_uncertain)
            added = None
            if stat.S_ISREG(status.st_mode) and (before is not None or time.monotonic() < read_deadline):
                snapshot, added = self._read_contents(folder, name, snapshot, before)
            files[path] = snapshot
            if before is None:
                place = folder.path
                if place.parts not in roots_of_folders:
                    roots_of_folders[place.parts] = _in_innermost_root(place)
                self._names[path] = entry_display_path(roots_of_folders[place.parts], name)
                changes.append(Change(self._names[path], "created", after=snapshot.text))
            elif not _is_unchanged(before, snapshot):
                changes.append(Change(self._names[path], "changed", before.text, snapshot.text, added))
        for path in sorted(self._files.keys() - files.keys()):
            changes.append(Change(self._names.pop(path), "deleted", self._files[path].text))
        self._text_budget.total = kept_bytes + _text_size(files.values()) - _text_size(self._files.values())
        self._files = files
        self.folders = frozenset(folders)
        self.is_uncertain = any(snapshot.is_uncertain for snapshot in files.values())
        if not self._has_polled:
            self._has_polled = True
            return []
        return changes

    def release(self) -> None:
        self._text_budget.total -= _text_size(self._files.values())
        self._files = {}

    def _iterate_files(
        self, folders: set[tuple[str, ...]], stop: Stop
    ) -> Iterator[tuple[Folder[ReadablePath], str, str]]:
        """(its folder, its path below the start, its name) for each file that is there and meant."""
        start = self.subtree.start
        only = self.subtree.name
        try:
            if only:
                with open_folder(start) as folder:
                    folders.add(start.parts)
                    yield folder, only, only
                return
            for entries in walk(start, WalkFilter(), stop, Skipped()):
                folders.add(entries.folder.path.parts)
                prefix = "".join(part + "/" for part in entries.parts)
                for name in entries.files:
                    if self._chooser is not None and not self._chooser(prefix + name):
                        continue
                    if not start.policy.is_protected((*entries.folder.path.parts, name)):
                        yield entries.folder, prefix + name, name
        except NotFound:
            if self.subtree.start.parts:
                return  # the folder itself is gone, and may come back
            raise

    def _read_contents(
        self, folder: Folder[ReadablePath], name: str, snapshot: _FileSnapshot, before: _FileSnapshot | None
    ) -> tuple[_FileSnapshot, str | None]:
        """Return the file with its text or the digest of its end, and what was added to a larger one."""
        had_text = before is not None and before.text is not None
        keeps_text = snapshot.size <= _MAX_TEXT_BYTES and (had_text or self._text_budget.has_room(snapshot.size))
        try:
            with open_regular(folder, name) as file:
                if keeps_text:
                    decoded = decode(file.read(_MAX_TEXT_BYTES + 1))
                    if decoded is not None:
                        self._text_budget.total += len(decoded.text)
                        return replace(snapshot, text=replace_undecodable(decoded.text)), None
                added = _read_added(file, snapshot, before)
                was_uncertain = before is not None and before.is_uncertain
                if (snapshot.is_uncertain or was_uncertain) and snapshot.size <= _MAX_DIGESTED_BYTES:
                    file.seek(0)
                    snapshot = replace(snapshot, digest=_digest(file.read(_MAX_DIGESTED_BYTES)))
                return replace(snapshot, tail_digest=_digest_tail(file, snapshot.size)), added
        except (OSError, Problem):
            return snapshot, None


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
        if not change.added:
            return ""
        return _as_added_lines(change.added)
    if change.after.startswith(change.before) and change.before[-1:] in ("", "\n"):
        return _as_added_lines(change.after[len(change.before) :])
    diff = clip_diff(unified_diff(change.before, change.after, change.name))
    lines = diff.split("\n")
    header_end = next(number for number, line in enumerate(lines, 1) if line.startswith("+++ "))
    return "\n".join(lines[header_end:])


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
