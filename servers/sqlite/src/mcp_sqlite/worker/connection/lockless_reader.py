"""Reading a database in a rollback-journal mode without a lock, so that no commit of another program fails.

The file is read as immutable, and the result counts only if the file did not change in the meantime and no journal
shows that somebody writes.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Callable
from typing import Any

from mcp_batteries.subscriptions.glance import glance
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.connection.database import Database, read_file_state
from mcp_sqlite.worker.language.failure import Failure

__all__ = ["BeingWritten", "LocklessReader", "read_journal_time", "read_rollback_state"]

_JOURNAL = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
"""How a journal begins while its transaction is under way (https://sqlite.org/fileformat2.html#the_rollback_journal)."""
_ABANDONED_SECONDS = 5.0
"""A journal that nobody has touched for this long may be that of a program that died."""
_RESTS_SECONDS = 0.05
"""A journal that was written later than this ago is taken for one of a transaction under way, where it isn't opened."""
_HEADER = 44
_files: dict[str, tuple[tuple[int, ...], int]] = {}


class BeingWritten(Exception):
    """Raised when somebody writes all the time, so that nothing can be read."""


class LocklessReader:
    """Reads while the block lasts.

    Args:
        quiet: seconds to wait in all for moments in which nobody writes.
    """

    def __init__(self, connections: Connections, path: str, quiet: float) -> None:
        self.connections, self.path = connections, path
        self._until = time.monotonic() + quiet
        self._state: tuple[Any, ...] | None = None
        self._database: Database | None = None

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self._close()

    def layout(self, database: Database) -> Any:
        """What changes with the schema."""
        return self._state and (self._state[:2], self._state[2][40:44])

    def read(self, read: Callable[[Database], str]) -> str:
        """What `read` finds at one moment.

        Raises:
            Written: there was no such moment.
            sqlite3.Error: it can't be read, though nobody writes.
        """
        while True:
            database = self._moment()
            try:
                found, wrong = read(database), None
            except sqlite3.Error as error:
                # Half a commit is not a database.
                found, wrong = "", error
            if not _is_written(self.path) and read_rollback_state(self.path) == self._state:
                if wrong is not None:
                    raise wrong
                return found
            if time.monotonic() > self._until:
                raise BeingWritten

    def _moment(self) -> Database:
        """The database at a moment when nobody seems to write."""
        while _is_written(self.path):
            if time.monotonic() > self._until:
                self._recover()
                raise BeingWritten
            time.sleep(0.001)
        state = read_rollback_state(self.path)
        if state is None:
            raise BeingWritten  # in another mode by now: the next look will know
        if self._database is None or state != self._state:
            self._close()
            try:
                self._database = Database(
                    self.path,
                    self.connections.interrupt,
                    immutable=True,
                    visible_names=self.connections.visible_names(self.path),
                    folder=self.connections.folder,
                )
            except sqlite3.Error as error:
                if read_rollback_state(self.path) != state or _is_written(self.path):
                    raise BeingWritten from error
                raise
            self._state = state
            self.connections.use_reader(self.path, self._database)
        return self._database

    def _recover(self) -> None:
        """Have the journal of a program that died rolled back; one glance at the file does it."""
        try:
            if time.time() - glance(f"{self.path}-journal").modified_ns / 1e9 < _ABANDONED_SECONDS:
                return
            self._close()
            self.connections.reader(self.path)
        except (OSError, sqlite3.Error, Failure):
            pass  # still somebody's; the next look tries again

    def _close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None
            self.connections.begin_request()


def read_rollback_state(path: str) -> tuple[Any, ...] | None:
    """What every commit changes in a rollback-journal mode, the time of the last change at its end; None in WAL mode.

    Raises:
        OSError: the file can't be read.
        Failure: it is not a file.
    """
    device, inode, size, modified, changed = read_file_state(path)
    header = _header(path, (device, inode))
    if header[18:20] not in (b"\1\1", b""):
        return None
    return device, inode, header, size, changed, modified


def _header(path: str, identity: tuple[int, ...]) -> bytes:
    if sys.platform == "win32":  # a file held open there can't be replaced
        with open(path, "rb", buffering=0) as file:
            return file.read(_HEADER)
    # Kept open: closing it would end the locks that SQLite has on it in this process (POSIX, "fcntl").
    if path not in _files or _files[path][0] != identity:
        if path in _files:
            os.close(_files.pop(path)[1])
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        found = os.fstat(fd)
        _files[path] = (found.st_dev, found.st_ino), fd
    return os.pread(_files[path][1], _HEADER, 0)


def _is_written(path: str) -> bool:
    return read_journal_time(path) is not None


def read_journal_time(path: str) -> float | None:
    """Since when the transaction under way has written its journal; None where there is none."""
    try:
        if sys.platform == "win32":
            # What is open can't be deleted there, and deleting it is what ends a commit.
            seen = glance(f"{path}-journal")
            if not seen.size:
                return None
            written = seen.modified_ns / 1e9
            if time.time() - written < _RESTS_SECONDS:
                return written
        with open(f"{path}-journal", "rb", buffering=0) as journal:
            if journal.read(len(_JOURNAL)) != _JOURNAL:
                return None
            return os.fstat(journal.fileno()).st_mtime
    except OSError:
        return None
