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
from mcp_fs.engine.listing.selection import Chooser, chooser
from mcp_fs.engine.listing.walk import Filter, Skipped, shown, walk
from mcp_fs.engine.text.edit import unified_diff
from mcp_fs.engine.text.encodings import decode, is_text
from mcp_fs.engine.text.encodings import shown as readable
from mcp_fs.models import clipped_diff, counted
from mcp_fs.policy import Readable

__all__ = ["Followed", "Kept", "Subtree", "shown_change"]

_MOST_FILES = 100_000
_MOST_TEXT = 262_144
"""Bytes of a file whose text is kept."""
_END = 4096
"""Bytes at the end of a larger file by which it is known again."""
_MOST_ADDED = 65_536
_MOST_DIGESTED = 4_194_304
_READ_SECONDS = 2.0
"""Which a look may spend on reading what is not known to have changed."""
_COARSE_NS = 20_000_000
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
    only: str = ""


class Kept:
    """How much text is kept, of all that is followed."""

    MOST = 16_777_216

    def __init__(self) -> None:
        self.total = 0

    def has_room(self, size: int) -> bool:
        return self.total + size <= self.MOST


@dataclass(frozen=True, slots=True)
class _Seen:
    """A file as it was: what stat(2) said, whether a change could follow that looks the same, and what was in it."""

    signature: tuple[int, ...]
    size: int
    mode: int
    fresh: bool
    text: str | None = None
    mark: bytes | None = None
    """A digest of the end."""
    digest: bytes | None = None
    """Of all of a fresh file."""


class Followed:
    """A subtree as it was at the last look."""

    def __init__(self, subtree: Subtree, kept: Kept) -> None:
        self.subtree, self._kept = subtree, kept
        self._files: dict[str, _Seen] = {}
        self._names: dict[str, str] = {}
        self._meant: Chooser | None = chooser([subtree.glob]) if subtree.glob else None
        self._began = False
        self.folders: frozenset[tuple[str, ...]] = frozenset()
        """Where its files lie, as names below the served folder."""
        self.fresh = False
        """Whether to look again soon: what changed just now can change once more and look the same."""

    @property
    def has_files(self) -> bool:
        return bool(self._files)

    def look(self, stop: Stop) -> list[Change]:
        """What has changed since the last look; nothing at the first.

        Raises:
            TooLarge: there are too many files.
            Problem: the served folder can't be reached now.
        """
        changes: list[Change] = []
        files: dict[str, _Seen] = {}
        called: dict[tuple[str, ...], Readable] = {}
        kept = self._kept.total
        until = time.monotonic() + _READ_SECONDS
        folders: set[tuple[str, ...]] = {self.subtree.start.parts[:-1]}
        for folder, path, name in self._present(folders, stop):
            if len(files) >= _MOST_FILES:
                raise TooLarge(
                    f"More than {_MOST_FILES:,} files are in {quote(self.subtree.start.display)}.",
                    "Follow a smaller folder.",
                )
            before = self._files.get(path)
            try:
                found = folder.stat(name)
            except OSError:
                continue  # removed since
            signature = (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev, found.st_mode)
            if before is not None and before.signature == signature and not before.fresh:
                files[path] = before
                continue
            fresh = abs(time.time_ns() - found.st_ctime_ns) < _COARSE_NS
            seen = _Seen(signature, found.st_size, found.st_mode, fresh)
            if stat.S_ISREG(found.st_mode) and (before is not None or time.monotonic() < until):
                seen, added = self._read(folder, name, seen, before)
            else:
                added = None
            files[path] = seen
            if before is None:
                place = folder.place
                if place.parts not in called:
                    called[place.parts] = _innermost(place)
                self._names[path] = shown(called[place.parts], name)
                changes.append(Change(self._names[path], "created", after=seen.text))
            elif not _same(before, seen):
                changes.append(Change(self._names[path], "changed", before.text, seen.text, added))
        gone = sorted(self._files.keys() - files.keys())
        changes += [Change(self._names.pop(path), "deleted", self._files[path].text) for path in gone]
        self._kept.total = kept + _weight(files.values()) - _weight(self._files.values())
        self._files, self.folders = files, frozenset(folders)
        self.fresh = any(seen.fresh for seen in files.values())
        began, self._began = self._began, True
        return changes if began else []

    def forget(self) -> None:
        self._kept.total -= _weight(self._files.values())
        self._files = {}

    def _present(self, folders: set[tuple[str, ...]], stop: Stop) -> Iterator[tuple[Folder[Readable], str, str]]:
        """(its folder, its path below the start, its name) for each file that is there and meant."""
        start, only = self.subtree.start, self.subtree.only
        try:
            if only:
                with open_folder(start) as folder:
                    folders.add(start.parts)
                    yield folder, only, only
                return
            for visit in walk(start, Filter(), stop, Skipped()):
                folders.add(visit.folder.place.parts)
                prefix = "".join(part + "/" for part in visit.parts)
                for name in visit.files:
                    if self._meant is not None and not self._meant(prefix + name):
                        continue
                    if not start.policy.protected((*visit.folder.place.parts, name)):
                        yield visit.folder, prefix + name, name
        except NotFound:
            if self.subtree.start.parts:
                return  # the folder itself is gone, and may come back
            raise

    def _read(self, folder: Folder[Readable], name: str, seen: _Seen, before: _Seen | None) -> tuple[_Seen, str | None]:
        """The file with its text or its mark, and what was added to a larger one."""
        keeps = seen.size <= _MOST_TEXT and (
            self._kept.has_room(seen.size) or (before is not None and before.text is not None)
        )
        try:
            with open_regular(folder, name) as file:
                if keeps:
                    decoded = decode(file.read(_MOST_TEXT + 1))
                    if decoded is not None:
                        self._kept.total += len(decoded.text)
                        return replace(seen, text=readable(decoded.text)), None
                    file.seek(0)
                added = None
                if before is not None and before.mark is not None and seen.size >= before.size:
                    file.seek(max(0, before.size - _END))
                    if _digest(file.read(min(_END, before.size))) == before.mark:
                        data = file.read(min(_MOST_ADDED, seen.size - before.size))
                        added = data.decode("utf-8", "replace") if is_text(data) else None
                if (seen.fresh or (before is not None and before.fresh)) and seen.size <= _MOST_DIGESTED:
                    file.seek(0)
                    seen = replace(seen, digest=_digest(file.read(_MOST_DIGESTED)))
                file.seek(max(0, seen.size - _END))
                return replace(seen, mark=_digest(file.read(min(_END, seen.size)))), added
        except (OSError, Problem):
            return seen, None


def shown_change(change: Change) -> str:
    """A change of a text file in lines: what was added at its end, else a diff; nothing where that is not known."""
    if change.what == "created":
        return "" if change.after is None else counted(len(change.after.splitlines()), "line")
    if change.what == "deleted":
        return ""
    if change.before is None or change.after is None:
        return _plus(change.added) if change.added else ""
    if change.after.startswith(change.before) and change.before[-1:] in ("", "\n"):
        return _plus(change.after[len(change.before) :])
    diff = clipped_diff(unified_diff(change.before, change.after, change.name))
    lines = diff.split("\n")
    return "\n".join(lines[next(number for number, line in enumerate(lines) if line.startswith("+++ ")) + 1 :])


def _innermost(folder: Readable) -> Readable:
    """A folder as part of the innermost served folder that it lies in, so that each file has one name."""
    found = folder.policy.locate(os.path.join(folder.root.path, *folder.parts))
    return folder if found is None else folder.at(*found)


def _plus(text: str) -> str:
    return "\n".join("+" + line for line in text.splitlines())


def _same(before: _Seen, now: _Seen) -> bool:
    """Whether nothing has changed but times: of what looks the same, or holds the same."""
    if before.mode != now.mode:
        return False
    if before.text is not None and now.text is not None:
        return before.text == now.text
    if before.signature != now.signature:
        return False
    return not before.fresh or (before.digest is not None and before.digest == now.digest)


def _weight(files: Collection[_Seen]) -> int:
    return sum(len(seen.text) for seen in files if seen.text is not None)


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()
