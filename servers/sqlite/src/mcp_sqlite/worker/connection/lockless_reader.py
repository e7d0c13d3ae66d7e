"""Reads a database in a rollback-journal mode without a lock, so that no commit of another program fails.

The file is read as immutable, and the result counts only if the file did not change in the meantime and no journal
shows that somebody writes.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from mcp_batteries.subscriptions.file_state import read_file_state
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.connection.database import Database, DatabaseFileState, FileIdentity, read_database_file_state
from mcp_sqlite.worker.language.failure import Failure

__all__ = ["BeingWritten", "LocklessReader", "RollbackState", "read_journal_time", "read_rollback_state"]

# How a journal begins while its transaction is under way (https://sqlite.org/fileformat2.html#the_rollback_journal).
_JOURNAL_MAGIC = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
# A journal that nobody has touched for this long may be that of a program that died.
_ABANDONED_SECONDS = 5.0
# A journal that was written later than this ago is taken for one of a transaction under way, where it isn't opened.
_RECENT_SECONDS = 0.05
_PAUSE_SECONDS = 0.001
# The parts of a database's header (https://sqlite.org/fileformat2.html#the_database_header) that are read.
_HEADER_BYTES = 44
_VERSIONS = slice(18, 20)
_ROLLBACK_VERSIONS = b"\1\1"
_SCHEMA_COOKIE = slice(40, 44)


class _OpenFile(NamedTuple):
    """A database's file that is kept open to read its header."""

    identity: FileIdentity
    descriptor: int


_open_files: dict[str, _OpenFile] = {}


class BeingWritten(Exception):
    """Raised when somebody writes all the time, so that nothing can be read."""


class RollbackState(NamedTuple):
    """What every commit changes in a rollback-journal mode."""

    file: DatabaseFileState
    header: bytes

    @property
    def modified_ns(self) -> int:
        """The time of the last change."""
        return self.file.modified_ns


class LocklessReader:
    """Reads while the block lasts.

    Args:
        patience_seconds: how long to wait in all for moments in which nobody writes.
    """

    def __init__(self, connections: Connections, path: str, patience_seconds: float) -> None:
        self.connections = connections
        self.path = path
        self._deadline = time.monotonic() + patience_seconds
        self._state: RollbackState | None = None
        self._database: Database | None = None

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self._close()

    def layout(self, database: Database) -> Any:
        """Return what changes with the schema."""
        if self._state is None:
            return None
        return (self._state.file.identity, self._state.header[_SCHEMA_COOKIE])

    def read(self, read: Callable[[Database], str]) -> str:
        """Return what `read` finds at one moment.

        Raises:
            BeingWritten: there was no such moment.
            sqlite3.Error: it can't be read, though nobody writes.
        """
        while True:
            database = self._wait_for_quiet_moment()
            result = ""
            failure: sqlite3.Error | None = None
            try:
                result = read(database)
            except sqlite3.Error as error:
                failure = error  # half a commit is not a database
            if not _is_being_written(self.path) and read_rollback_state(self.path) == self._state:
                if failure is not None:
                    raise failure
                return result
            if time.monotonic() > self._deadline:
                raise BeingWritten

    def _wait_for_quiet_moment(self) -> Database:
        """Return the database at a moment when nobody seems to write."""
        while _is_being_written(self.path):
            if time.monotonic() > self._deadline:
                self._recover()
                raise BeingWritten
            time.sleep(_PAUSE_SECONDS)
        state = read_rollback_state(self.path)
        if state is None:
            raise BeingWritten  # it is in another mode by now: the next poll will know
        if self._database is None or state != self._state:
            self._close()
            self._database = self._open(state)
            self._state = state
            self.connections.use_reader(self.path, self._database)
        return self._database

    def _open(self, state: RollbackState) -> Database:
        try:
            return Database(
                self.path,
                self.connections.interrupt,
                immutable=True,
                visible_names=self.connections.visible_names(self.path),
                folder=self.connections.folder,
            )
        except sqlite3.Error as error:
            if read_rollback_state(self.path) != state or _is_being_written(self.path):
                raise BeingWritten from error
            raise

    def _recover(self) -> None:
        """Have the journal of a program that died rolled back, as every reader does that finds one."""
        try:
            if time.time() - read_file_state(f"{self.path}-journal").modified_ns / 1e9 < _ABANDONED_SECONDS:
                return
            self._close()
            self.connections.reader(self.path)
        except (OSError, sqlite3.Error, Failure):
            pass  # it is still somebody's; the next poll tries again

    def _close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None
            self.connections.begin_request()


def read_rollback_state(path: str) -> RollbackState | None:
    """Return the state of a file in a rollback-journal mode; None in WAL mode.

    Raises:
        OSError: the file can't be read.
        Failure: it is not a file.
    """
    file_state = read_database_file_state(path)
    header = _read_header(path, file_state.identity)
    if header[_VERSIONS] not in (_ROLLBACK_VERSIONS, b""):
        return None
    return RollbackState(file_state, header)


def _read_header(path: str, identity: FileIdentity) -> bytes:
    if sys.platform == "win32":  # a file held open there can't be replaced
        with open(path, "rb", buffering=0) as file:
            return file.read(_HEADER_BYTES)
    # Kept open: closing it would end the locks that SQLite has on it in this process (POSIX, "fcntl").
    open_file = _open_files.get(path)
    if open_file is None or open_file.identity != identity:
        if open_file is not None:
            os.close(open_file.descriptor)
            del _open_files[path]
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        status = os.fstat(descriptor)
        open_file = _OpenFile(FileIdentity(status.st_dev, status.st_ino), descriptor)
        _open_files[path] = open_file
    return os.pread(open_file.descriptor, _HEADER_BYTES, 0)


def _is_being_written(path: str) -> bool:
    return read_journal_time(path) is not None


def read_journal_time(path: str) -> float | None:
    """Return since when the transaction under way has written its journal; None where there is none."""
    try:
        if sys.platform == "win32":
            # What is open can't be deleted there, and deleting it is what ends a commit.
            status = read_file_state(f"{path}-journal")
            if not status.size:
                return None
            modified = status.modified_ns / 1e9
            if time.time() - modified < _RECENT_SECONDS:
                return modified
        with open(f"{path}-journal", "rb", buffering=0) as journal:
            if journal.read(len(_JOURNAL_MAGIC)) != _JOURNAL_MAGIC:
                return None
            return os.fstat(journal.fileno()).st_mtime
    except OSError:
        return None
