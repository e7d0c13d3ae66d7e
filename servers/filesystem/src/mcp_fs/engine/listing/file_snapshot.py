"""Tells what a file was at a moment, as far as it is kept, and what became of it since.

Of small text files the text is kept, so that a change can be shown; of large ones a digest of their end, so that what
was added can.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import BinaryIO

from mcp_batteries.errors import Problem
from mcp_fs.engine.handles.path_opening import Folder, open_regular
from mcp_fs.engine.text.encodings import decode, is_text, replace_undecodable
from mcp_fs.policy import ReadablePath

__all__ = ["MAX_ADDED_BYTES", "FileSnapshot", "TextBudget", "read_contents", "text_length"]

MAX_ADDED_BYTES = 1_048_576
# Bytes of a file whose text is kept.
_MAX_TEXT_BYTES = 262_144
# Bytes at the end of a larger file by which it is known again.
_TAIL_BYTES = 4096
_MAX_DIGESTED_BYTES = 4_194_304
# Two changes closer than this may leave one time stamp.
_CLOCK_TICK_NS = 20_000_000


class TextBudget:
    """How much text is kept, of all that is followed.

    Attributes:
        total: characters of it.
    """

    MAX_BYTES = 16_777_216

    def __init__(self) -> None:
        self.total = 0

    def has_room(self, size: int) -> bool:
        return self.total + size <= self.MAX_BYTES


@dataclass(frozen=True, slots=True)
class FileSnapshot:
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
    def from_status(cls, status: os.stat_result) -> FileSnapshot:
        # A link is not changed but replaced, by one with another inode.
        is_file = stat.S_ISREG(status.st_mode)
        is_uncertain = is_file and _was_changed_just_now(status)
        return cls(_signature_of(status), status.st_size, status.st_mode, is_uncertain)

    def is_certainly(self, status: os.stat_result) -> bool:
        """Return whether what has this status is the same file, with the same contents."""
        return self.signature == _signature_of(status) and not self.is_uncertain

    def is_unchanged_since(self, before: FileSnapshot) -> bool:
        """Return whether nothing has changed but times: of what looks the same, or holds the same."""
        if before.mode != self.mode:
            return False
        if before.text is not None and self.text is not None:
            return before.text == self.text
        if before.signature != self.signature:
            return False
        return not before.is_uncertain or (before.digest is not None and before.digest == self.digest)

    def is_rewritten_since(self, before: FileSnapshot) -> bool:
        """Return whether the file has no line that it had: a program may have copied and emptied it."""
        return bool(before.text) and self.text is not None and not self.shares_lines_with(before)

    def is_moved_from(self, old: FileSnapshot, added: str | None) -> bool:
        """Return whether the file is one that was at another path: its number alone may be that of one that is gone.

        Args:
            added: what was added to that, as `read_contents` returns it.
        """
        if added is not None or (old.signature[0] == self.signature[0] and old.size == self.size):
            return True
        return self.begins_with(old)

    def begins_with(self, old: FileSnapshot) -> bool:
        """Return whether the file begins with all that another held, which was not empty."""
        return self.text is not None and bool(old.text) and self.text.startswith(old.text or "")

    def shares_lines_with(self, other: FileSnapshot) -> bool:
        """Return whether two files have a line in common: then one is a copy that an editor kept of the other."""
        if self.text is None or other.text is None:
            return False
        return any(line.strip() for line in {*self.text.splitlines()} & {*other.text.splitlines()})


def read_contents(
    folder: Folder[ReadablePath], name: str, snapshot: FileSnapshot, before: FileSnapshot | None, budget: TextBudget
) -> tuple[FileSnapshot, str | None]:
    """Return a file with its text or the digest of its end, and what was added to a larger one.

    Args:
        snapshot: of the status of the file.
        before: what it was, or what it may be the continuation of.
        budget: is charged with the text.
    """
    try:
        with open_regular(folder, name) as file:
            text = _read_text(file, snapshot, before, budget)
            if text is not None:
                return replace(snapshot, text=text), None
            added = _read_added(file, snapshot, before)
            return _with_digests(file, snapshot, before), added
    except (OSError, Problem):
        return snapshot, None


def text_length(files: Iterable[FileSnapshot]) -> int:
    """Return how many characters of files are kept."""
    return sum(len(snapshot.text) for snapshot in files if snapshot.text is not None)


def _read_text(file: BinaryIO, snapshot: FileSnapshot, before: FileSnapshot | None, budget: TextBudget) -> str | None:
    """Return the text of a file where there is room for it; None of a binary one too."""
    if snapshot.size > _MAX_TEXT_BYTES:
        return None
    had_text = before is not None and before.text is not None
    if not had_text and not budget.has_room(snapshot.size):
        return None
    decoded = decode(file.read(_MAX_TEXT_BYTES + 1))
    if decoded is None:
        return None
    budget.total += len(decoded.text)
    return replace_undecodable(decoded.text)


def _read_added(file: BinaryIO, snapshot: FileSnapshot, before: FileSnapshot | None) -> str | None:
    """Return the text at the end of a file that still begins as it was; None if it does not, or is no text."""
    if before is None or before.tail_digest is None or snapshot.size < before.size:
        return None
    if _digest_tail(file, before.size) != before.tail_digest:
        return None
    added_bytes = snapshot.size - before.size
    if added_bytes > MAX_ADDED_BYTES:
        file.seek(snapshot.size - MAX_ADDED_BYTES)
        file.readline()
    data = file.read(min(MAX_ADDED_BYTES, added_bytes))
    if not is_text(data):
        return None
    return data.decode("utf-8", "replace")


def _with_digests(file: BinaryIO, snapshot: FileSnapshot, before: FileSnapshot | None) -> FileSnapshot:
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


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


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
