"""Finds out who holds a database's locks, if the system shows it: on Linux, in /proc/locks."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["find_lock_holder"]


class _Span(NamedTuple):
    """The bytes of a file from the first to the last."""

    first: int
    last: int

    def overlaps(self, other: _Span) -> bool:
        return self.first <= other.last and self.last >= other.first


class _Lock(NamedTuple):
    """A line of /proc/locks.

    Attributes:
        kind: READ or WRITE.
        file: its device and inode, as the system writes them.
    """

    kind: str
    process: int
    file: str
    span: _Span


# The bytes of a database file that stand for its locks (https://sqlite.org/fileformat2.html#the_lock_byte_page).
_DATABASE_LOCKS = _Span(0x40000000, 0x40000000 + 511)
# The bytes of a `-shm` file that stand for writing (https://sqlite.org/walformat.html#wal_locks).
_WAL_LOCKS = _Span(120, 122)
_END_OF_FILE = 1 << 63


def find_lock_holder(path: str) -> str | None:
    """Return in words which program holds a lock on the database at `path` that others wait for; None if unknown.

    Who writes is named before those who read.
    """
    if sys.platform != "linux":
        return None
    spans = _find_lock_spans(os.path.realpath(path))
    locks = [lock for lock in _read_locks() if lock.file in spans and lock.span.overlaps(spans[lock.file])]
    writers = [lock.process for lock in locks if lock.kind == "WRITE"]
    readers = [lock.process for lock in locks if lock.kind != "WRITE"]
    if writers:
        return _describe_process(min(writers), "writes")
    if readers:
        return _describe_process(min(readers), "reads")
    return None


def _read_locks() -> Iterator[_Lock]:
    """Return the locks that are held now."""
    try:
        lines = Path("/proc/locks").read_text("ascii").splitlines()
    except OSError:
        return
    for line in lines:
        lock = _parse_lock(line)
        if lock is not None and lock.process > 0:
            yield lock


def _describe_process(process: int, verb: str) -> str:
    if _read_parent(process) == os.getpid():
        return "another call of this server"
    name = _read_text(f"/proc/{process}/comm").strip() or "?"
    return f"another program, `{name}` (process {process}), which {verb}"


def _find_lock_spans(path: str) -> dict[str, _Span]:
    """Return the bytes that stand for locks by the file they are in, as /proc/locks writes it."""
    spans: dict[str, _Span] = {}
    for name, span in ((path, _DATABASE_LOCKS), (f"{path}-shm", _WAL_LOCKS)):
        try:
            status = os.stat(name)
        except OSError:
            continue
        device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
        spans[f"{device}:{status.st_ino}"] = span
    return spans


def _parse_lock(line: str) -> _Lock | None:
    """Return the lock of a line; None if none is held."""
    words = line.split()
    if len(words) != 8 or words[1] not in ("POSIX", "OFDLCK"):
        return None
    _, _, _, kind, process, file, first, last = words
    last_byte = _END_OF_FILE if last == "EOF" else int(last)
    return _Lock(kind, int(process), file, _Span(int(first), last_byte))


def _read_parent(process: int) -> int:
    # The name before it may hold anything, parentheses too.
    words = _read_text(f"/proc/{process}/stat").rpartition(")")[2].split()
    return int(words[1]) if len(words) > 1 else 0


def _read_text(path: str) -> str:
    try:
        return Path(path).read_text("utf-8", "replace")
    except OSError:
        return ""
