"""Finds out who holds a database's locks, if the system shows it: on Linux, in /proc/locks.

Nothing is locked and no file is opened to find out: closing one would end the locks that SQLite has on it in this
process (https://sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["find_lock_holder"]

_FIRST, _LAST = 0x40000000, 0x40000000 + 511
"""The bytes of a database file that stand for its locks (https://sqlite.org/fileformat2.html#the_lock_byte_page)."""
_WAL_FIRST, _WAL_LAST = 120, 122
"""The bytes of a `-shm` file that stand for writing (https://sqlite.org/walformat.html#wal_locks)."""


def find_lock_holder(path: str) -> str | None:
    """In words, which program holds a lock on the database at `path` that others wait for; None if nobody can tell.

    Who writes is named before those who read.
    """
    if sys.platform != "linux":
        return None
    try:
        lines = Path("/proc/locks").read_text("ascii").splitlines()
    except OSError:
        return None
    places = _places(path)
    found: list[tuple[bool, int]] = []
    for kind, pid, place, first, last in map(_parsed, lines):
        span = places.get(place, (0, -1))
        if pid > 0 and pid != os.getpid() and first <= span[1] and last >= span[0]:
            found.append((kind != "WRITE", pid))
    if not found:
        return None
    reads, pid = min(found)
    if _parent(pid) == os.getppid():
        return "another call of this server"
    name = _read(f"/proc/{pid}/comm").strip() or "?"
    return f"another program, `{name}` (process {pid}), which {'reads' if reads else 'writes'}"


def _places(path: str) -> dict[str, tuple[int, int]]:
    spans = {path: (_FIRST, _LAST), f"{path}-shm": (_WAL_FIRST, _WAL_LAST)}
    places: dict[str, tuple[int, int]] = {}
    for name, span in spans.items():
        try:
            found = os.stat(name)
        except OSError:
            continue
        places[f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"] = span
    return places


def _parsed(line: str) -> tuple[str, int, str, int, int]:
    """Kind, process, place (device and inode), first and last byte of a line; process 0 if no lock is held."""
    words = line.split()
    if len(words) != 8 or words[1] not in ("POSIX", "OFDLCK"):
        return "", 0, "", 0, 0
    last = (1 << 63) if words[7] == "EOF" else int(words[7])
    return words[3], int(words[4]), words[5], int(words[6]), last


def _parent(pid: int) -> int:
    # The name before it may hold anything, parentheses too.
    words = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return int(words[1]) if len(words) > 1 else 0


def _read(path: str) -> str:
    try:
        return Path(path).read_text("utf-8", "replace")
    except OSError:
        return ""
