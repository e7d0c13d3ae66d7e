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

from mcp_batteries.errors import NotFound, Problem, TooLarge, quote
from mcp_batteries.limits import Stop
from mcp_batteries.subscriptions.journal import Change
from mcp_fs.engine.handles.path_opening import Folder, open_folder, open_regular
from mcp_fs.engine.listing.selection import Chooser, compile_chooser
from mcp_fs.engine.listing.walk import Skipped, WalkFilter, entry_display_path, walk
from mcp_fs.engine.text.edit import unified_diff
from mcp_fs.engine.text.encodings import decode, is_text
from mcp_fs.engine.text.encodings import replace_undecodable as readable
from mcp_fs.models import clipped_diff, pluralize
from mcp_fs.policy import Readable

__all__ = ["Subtree", "TextBudget", "TreeSnapshot", "describe_change"]

_MAX_FILES = 100_000
_MAX_TEXT_BYTES = 262_144
"""Bytes of a file whose text is kept."""
_TAIL_BYTES = 4096
"""Bytes at the end of a larger file by which it is known again."""
_MAX_ADDED_BYTES = 65_536
_MAX_DIGESTED_BYTES = 4_194_304
_READ_SECONDS = 2.0
"""Which a look may spend on reading what is not known to have changed."""
_CLOCK_TICK_NS = 20_000_000
"""Two changes closer than this may leave one time stamp."""


@dataclass(frozen=True, slots=True)
class Subtree:
    """What is followed: files below a folder, or one file.

    Attributes:
        start: the folder.
        glob: which files below it; all for nothing.
        only: the one name in it.
    """

    start: Readable
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
    tail_digest: bytes | None = None
    """A digest of the end."""
    digest: bytes | None = None
    """Of all of a fresh file."""


class TreeSnapshot:
    """A subtree as it was at the last look."""

    def __init__(self, subtree: Subtree, kept: TextBudget) -> None:
        self.subtree, self._text_budget = subtree, kept
        self._files: dict[str, _FileSnapshot] = {}
        self._names: dict[str, str] = {}
        self._chooser: Chooser | None = compile_chooser([subtree.glob]) if subtree.glob else None
        self._has_polled = False
        self.folders: frozenset[tuple[str, ...]] = frozenset()
        """Where its files lie, as names below the served folder."""
        self.is_uncertain = False
        """Whether to look again soon: what changed just now can change once more and look the same."""

    @property
    def has_files(self) -> bool:
        return bool(self._files)

    def poll(self, stop: Stop) -> list[Change]:
        """What has changed since the last look; nothing at the first.

        Raises:
            TooLarge: there are too many files.
            Problem: the served folder can't be reached now.
        """
        changes: list[Change] = []
        files: dict[str, _FileSnapshot] = {}
        called: dict[tuple[str, ...], Readable] = {}
        kept = self._text_budget.total
        until = time.monotonic() + _READ_SECONDS
        folders: set[tuple[str, ...]] = {self.subtree.start.parts[:-1]}
        for folder, path, name in self._iterate_files(folders, stop):
            if len(files) >= _MAX_FILES:
                raise TooLarge(
                    f"More than {_MAX_FILES:,} files are in {quote(self.subtree.start.display)}.",
                    "Follow a smaller folder.",
                )
            before = self._files.get(path)
            try:
                found = folder.stat(name)
            except OSError:
                continue  # removed since
            signature = (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev, found.st_mode)
            if before is not None and before.signature == signature and not before.is_uncertain:
                files[path] = before
                continue
            fresh = abs(time.time_ns() - found.st_ctime_ns) < _CLOCK_TICK_NS
            seen = _FileSnapshot(signature, found.st_size, found.st_mode, fresh)
            if stat.S_ISREG(found.st_mode) and (before is not None or time.monotonic() < until):
                seen, added = self._read_contents(folder, name, seen, before)
            else:
                added = None
            files[path] = seen
            if before is None:
                place = folder.place
                if place.parts not in called:
                    called[place.parts] = _in_innermost_root(place)
                self._names[path] = entry_display_path(called[place.parts], name)
                changes.append(Change(self._names[path], "created", after=seen.text))
            elif not _is_unchanged(before, seen):
                changes.append(Change(self._names[path], "changed", before.text, seen.text, added))
        gone = sorted(self._files.keys() - files.keys())
        changes += [Change(self._names.pop(path), "deleted", self._files[path].text) for path in gone]
        self._text_budget.total = kept + _text_size(files.values()) - _text_size(self._files.values())
        self._files, self.folders = files, frozenset(folders)
        self.is_uncertain = any(seen.is_uncertain for seen in files.values())
        began, self._has_polled = self._has_polled, True
        return changes if began else []

    def release(self) -> None:
        self._text_budget.total -= _text_size(self._files.values())
        self._files = {}

    def _iterate_files(self, folders: set[tuple[str, ...]], stop: Stop) -> Iterator[tuple[Folder[Readable], str, str]]:
        """(its folder, its path below the start, its name) for each file that is there and meant."""
        start, only = self.subtree.start, self.subtree.name
        try:
            if only:
                with open_folder(start) as folder:
                    folders.add(start.parts)
                    yield folder, only, only
                return
            for visit in walk(start, WalkFilter(), stop, Skipped()):
                folders.add(visit.folder.place.parts)
                prefix = "".join(part + "/" for part in visit.parts)
                for name in visit.files:
                    if self._chooser is not None and not self._chooser(prefix + name):
                        continue
                    if not start.policy.protected((*visit.folder.place.parts, name)):
                        yield visit.folder, prefix + name, name
        except NotFound:
            if self.subtree.start.parts:
                return  # the folder itself is gone, and may come back
            raise

    def _read_contents(
        self, folder: Folder[Readable], name: str, seen: _FileSnapshot, before: _FileSnapshot | None
    ) -> tuple[_FileSnapshot, str | None]:
        """The file with its text or its mark, and what was added to a larger one."""
        keeps = seen.size <= _MAX_TEXT_BYTES and (
            self._text_budget.has_room(seen.size) or (before is not None and before.text is not None)
        )
        try:
            with open_regular(folder, name) as file:
                if keeps:
                    decoded = decode(file.read(_MAX_TEXT_BYTES + 1))
                    if decoded is not None:
                        self._text_budget.total += len(decoded.text)
                        return replace(seen, text=readable(decoded.text)), None
                    file.seek(0)
                added = None
                if before is not None and before.tail_digest is not None and seen.size >= before.size:
                    file.seek(max(0, before.size - _TAIL_BYTES))
                    if _digest(file.read(min(_TAIL_BYTES, before.size))) == before.tail_digest:
                        data = file.read(min(_MAX_ADDED_BYTES, seen.size - before.size))
                        added = data.decode("utf-8", "replace") if is_text(data) else None
                if (
                    seen.is_uncertain or (before is not None and before.is_uncertain)
                ) and seen.size <= _MAX_DIGESTED_BYTES:
                    file.seek(0)
                    seen = replace(seen, digest=_digest(file.read(_MAX_DIGESTED_BYTES)))
                file.seek(max(0, seen.size - _TAIL_BYTES))
                return replace(seen, tail_digest=_digest(file.read(min(_TAIL_BYTES, seen.size)))), added
        except (OSError, Problem):
            return seen, None


def describe_change(change: Change) -> str:
    """A change of a text file in lines: what was added at its end, else a diff; nothing where that is not known."""
    if change.what == "created":
        return "" if change.after is None else pluralize(len(change.after.splitlines()), "line")
    if change.what == "deleted":
        return ""
    if change.before is None or change.after is None:
        return _as_added_lines(change.added) if change.added else ""
    if change.after.startswith(change.before) and change.before[-1:] in ("", "\n"):
        return _as_added_lines(change.after[len(change.before) :])
    diff = clipped_diff(unified_diff(change.before, change.after, change.name))
    lines = diff.split("\n")
    return "\n".join(lines[next(number for number, line in enumerate(lines) if line.startswith("+++ ")) + 1 :])


def _in_innermost_root(folder: Readable) -> Readable:
    """A folder as part of the innermost served folder that it lies in, so that each file has one name."""
    found = folder.policy.locate(os.path.join(folder.root.path, *folder.parts))
    return folder if found is None else folder.at(*found)


def _as_added_lines(text: str) -> str:
    return "\n".join("+" + line for line in text.splitlines())


def _is_unchanged(before: _FileSnapshot, now: _FileSnapshot) -> bool:
    """Whether nothing has changed but times: of what looks the same, or holds the same."""
    if before.mode != now.mode:
        return False
    if before.text is not None and now.text is not None:
        return before.text == now.text
    if before.signature != now.signature:
        return False
    return not before.is_uncertain or (before.digest is not None and before.digest == now.digest)


def _text_size(files: Collection[_FileSnapshot]) -> int:
    return sum(len(seen.text) for seen in files if seen.text is not None)


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()
