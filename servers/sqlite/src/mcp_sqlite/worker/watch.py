"""What really changed, decided by digests of what is served; for the worker that follows subscriptions.

The gates stand in the order of their cost: another file at the path, what its header and its times say of commits,
`data_version` (a commit by anybody else), `schema_version`, and then a digest of each thing somebody subscribed to.

Where readers hold up writers, in the rollback-journal modes, a look takes no lock: it reads the file as one that can't
change, and believes what it read only if the file did not change meanwhile and no journal says that somebody writes.
In WAL mode readers hold up nobody, and one transaction shows one moment.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, BinaryIO

from mcp_sqlite.worker import rows, schema, statements
from mcp_sqlite.worker.cells import Failure
from mcp_sqlite.worker.connections import Connections, Database

__all__ = ["look"]

_SECONDS = 0.05
_seen: dict[str, tuple[Any, ...]] = {}
_QUIET_SECONDS = 0.25
"""How long a look waits for a moment in which nobody writes."""
_FRESH_SECONDS = 0.02
"""A file changed this recently may go on changing without its time telling: clocks of file systems are coarse."""
_JOURNAL = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
"""How a journal begins while its transaction is under way (https://sqlite.org/fileformat2.html#the_rollback_journal)."""
_files: dict[str, tuple[tuple[int, int], BinaryIO]] = {}


def look(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """Digests of `subjects` (key to request), or None when nothing can have changed since the last look.

    `schema` is a digest of the tables' names, or None where nobody let it be read: the next look will tell.
    A subject that takes longer than its budget has a digest of its own each time: it may have changed.
    """
    path, new = request["path"], request["new"]
    try:
        found = _Unlocked(connections, path).look(request)
        if found is not None:
            return found
        database = connections.reader(path)
        # One moment for everything that is looked at.
        database.own("BEGIN")
        try:
            layout = database.own("PRAGMA schema_version")[0][0]
            state = (database.identity, database.own("PRAGMA data_version")[0][0], layout)
            if state == _seen.get(path) and not new:
                return {"digests": None}
            digests = {
                key: _digest(connections, {**wanted, "path": path}, state)
                for key, wanted in request["subjects"].items()
            }
            names = database.own("SELECT type, name FROM sqlite_master ORDER BY 1, 2")
        finally:
            if database.connection.in_transaction:
                database.own("ROLLBACK")
    except (Failure, sqlite3.Error, OSError) as error:
        locked = getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
        if locked and not new:
            return {"digests": None}  # nothing was committed by whoever still holds the lock
        mark = f"unreadable {type(error).__name__}"
        return {"digests": dict.fromkeys(request["subjects"], mark), "schema": "unreadable"}
    if not new:
        _seen[path] = state
    return {
        "digests": digests,
        "schema": hashlib.blake2b(repr(names).encode("utf-8", "replace"), digest_size=8).hexdigest(),
    }


def _digest(connections: Connections, subject: dict[str, Any], state: tuple[Any, ...]) -> str:
    try:
        with connections.interrupt.within(_SECONDS):
            match subject["do"]:
                case "schema":
                    found = schema.schema(connections, subject)
                case "row":
                    found = rows.row(connections, subject)
                case "rows":
                    found = rows.rows(connections, subject)
                case _:
                    found = statements.query(connections, subject, lambda _: None)
    except Failure as failure:
        if failure.kind == "stopped":
            return f"unknown at {state}"
        found = {"failure": failure.what}
    except sqlite3.Error:
        return f"unknown at {state}"
    shown = (
        repr(sorted(found.items())) if "lines" not in found else f"{found['columns']}{found['more']}{found['lines']}"
    )
    return hashlib.blake2b(shown.encode("utf-8", "replace"), digest_size=12).hexdigest()


class _Changed(Exception):
    """Raised when somebody writes, so that what was read is not to be believed."""


class _Unlocked:
    """Looks at a database in a rollback-journal mode without a lock."""

    def __init__(self, connections: Connections, path: str) -> None:
        self._connections, self._path = connections, path
        self._state: tuple[Any, ...] | None = None
        self._database: Database | None = None

    def look(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """What `look` answers; None where it takes a lock to know."""
        state = _state(self._path)
        if state is None:
            return None
        if state == _seen.get(self._path) and not request["new"]:
            return {"digests": None}
        try:
            digests = {
                key: self._read(lambda wanted=wanted: self._digest(wanted)) or f"unknown at {time.monotonic()}"
                for key, wanted in request["subjects"].items()
            }
            names = self._read(self._names)
        except (_Changed, Failure, sqlite3.Error, OSError):
            return None
        finally:
            self._close()
        if names is not None and not request["new"] and time.time() - state[-1] / 1e9 > _FRESH_SECONDS:
            _seen[self._path] = state
        return {"digests": digests, "schema": names}

    def _digest(self, wanted: dict[str, Any]) -> str:
        return _digest(self._connections, {**wanted, "path": self._path}, (self._state,))

    def _names(self) -> str:
        assert self._database is not None
        names = self._database.own("SELECT type, name FROM sqlite_master ORDER BY 1, 2")
        return hashlib.blake2b(repr(names).encode("utf-8", "replace"), digest_size=8).hexdigest()

    def _read(self, read: Callable[[], str]) -> str | None:
        """What `read` finds at one moment; None where it takes longer than anybody lets the file rest.

        Raises:
            _Changed: somebody writes all the time.
        """
        until = time.monotonic() + _QUIET_SECONDS
        while True:
            try:
                with self._moment():
                    return read()
            except _Changed:
                if self._state is None:
                    raise
            except sqlite3.Error:
                # Half a commit is no database.
                if time.monotonic() > until:
                    raise
            if time.monotonic() > until:
                return None

    @contextmanager
    def _moment(self) -> Generator[None]:
        """Let what is done in the block pass only if the file stayed as it was.

        Raises:
            _Changed: it did not.
        """
        until = time.monotonic() + _QUIET_SECONDS
        while _is_written(self._path):
            if time.monotonic() > until:
                self._state = None
                raise _Changed
            time.sleep(0.001)
        state = _state(self._path)
        if state is None:
            self._state = None
            raise _Changed
        if self._database is None or state != self._state:
            self._close()
            self._database, self._state = Database(self._path, self._connections.interrupt, immutable=True), state
            self._connections.use(self._path, self._database)
        yield
        if _is_written(self._path) or _state(self._path) != state:
            raise _Changed

    def _close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None
            self._connections.start()


def _state(path: str) -> tuple[Any, ...] | None:
    """What every commit changes in a rollback-journal mode; None in another, and for an empty file.

    Raises:
        OSError: the file can't be read.
    """
    header = _header(path)
    found = os.stat(path)
    if len(header) < 28 or header[18:20] != b"\1\1":
        return None
    return found.st_dev, found.st_ino, header[24:28], found.st_size, found.st_mtime_ns


def _header(path: str) -> bytes:
    if os.name == "nt":  # a file held open there can't be replaced
        with open(path, "rb", buffering=0) as file:
            return file.read(28)
    # Kept open: closing it would end the locks that SQLite has on it in this process (POSIX, "fcntl").
    found = os.stat(path)
    identity = found.st_dev, found.st_ino
    if path not in _files or _files[path][0] != identity:
        if path in _files:
            _files.pop(path)[1].close()
        file = open(path, "rb", buffering=0)  # noqa: SIM115
        found = os.fstat(file.fileno())
        _files[path] = (found.st_dev, found.st_ino), file
    file = _files[path][1]
    file.seek(0)
    return file.read(28)


def _is_written(path: str) -> bool:
    try:
        with open(f"{path}-journal", "rb", buffering=0) as journal:
            return journal.read(len(_JOURNAL)) == _JOURNAL
    except OSError:
        return False
