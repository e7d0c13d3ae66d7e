"""Open, guarded connections, never to another file than the path names now."""

from __future__ import annotations

import itertools
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from mcp_batteries.sql.identifiers import identifier
from mcp_batteries.subscriptions.glance import glance
from mcp_sqlite.worker.authorizer import Authorizer, Mode, apply_limits, closed_modules, defend
from mcp_sqlite.worker.cells import Failure, text_or_bytes
from mcp_sqlite.worker.part import ServedPart
from mcp_sqlite.worker.vectors import load_into

__all__ = ["BUSY_MS", "Connections", "Database", "Interrupt", "Part", "file_uri", "stamp"]

Part = tuple[Sequence[str], Sequence[Sequence[str]]]
"""What the operator says is served of a database: tables, and masked columns as table and column."""

_LOOK = "PRAGMA schema_version"
"""The cheapest statement that reads the file."""

_STEPS = 1000
"""Virtual machine steps between two looks at the clock: unmeasurable cost, 40 ms of delay at most."""
_numbers = itertools.count()
BUSY_MS = 20
"""How long a lock of somebody else's is waited for here: SQLite's waiting ends at no interrupt, and holds up a worker
that others could use. The server waits longer, and asks again."""
_HELD_KIB = 128 * 1024
"""What a transaction has changed stays in memory up to this. Beyond, SQLite writes it to the file before the commit,
which in the rollback-journal modes shuts out every reader (https://sqlite.org/pragma.html#pragma_cache_spill)."""


class Interrupt:
    """Why the running statement has to end: its deadline, or the caller's cancel, set from another thread."""

    def __init__(self) -> None:
        self.deadline = float("inf")
        self._cancelled = False
        self._running: set[sqlite3.Connection] = set()
        self._lock = threading.Lock()

    def start(self, seconds: float) -> None:
        """A new request, which has `seconds`."""
        self._cancelled = False
        self.deadline = time.monotonic() + seconds

    def cancel(self) -> None:
        with self._lock:
            self._cancelled = True
            for connection in self._running:
                connection.interrupt()

    @property
    def left(self) -> float:
        """Seconds until the deadline."""
        return self.deadline - time.monotonic()

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled

    @property
    def is_due(self) -> bool:
        return self._cancelled or time.monotonic() > self.deadline

    def check(self) -> None:
        """Return, or raise what SQLite raises when it is interrupted."""
        if self.is_due:
            raise sqlite3.OperationalError("interrupted")

    @contextmanager
    def over(self, connection: sqlite3.Connection) -> Generator[None]:
        """Let a cancel reach `connection` for as long as the block lasts."""
        with self._lock:
            self._running.add(connection)
        try:
            yield
        finally:
            with self._lock:
                self._running.discard(connection)

    @contextmanager
    def within(self, seconds: float) -> Generator[None]:
        """An earlier deadline for a part of the work."""
        deadline, self.deadline = self.deadline, min(self.deadline, time.monotonic() + seconds)
        try:
            yield
        finally:
            self.deadline = deadline


class Database:
    """One open connection with its authorizer.

    Attributes:
        identity: device and inode of the file that was opened.
        number: no other connection of this process has it.
        immutable: whether it was opened as a file that can't change, and what the write-ahead log holds is not seen.
        part: what is served, None for everything.
        folder: whose files can be read as tables, None where there is none.
        files: those that were, and in which form they are, where that is not the usual one.
        read: their bytes.
    """

    def __init__(
        self,
        path: str,
        interrupt: Interrupt,
        *,
        writable: bool = False,
        immutable: bool = False,
        part: Part | None = None,
        folder: str | None = None,
    ) -> None:
        self.path, self.writable, self.folder = path, writable, folder
        self.files: dict[str, str] = {}
        self.read = 0
        self.told = part
        self.part = None if part is None else ServedPart(*part, closed_modules())
        self.authorizer = Authorizer()
        self.authorizer.part = self.part
        self.interrupt = interrupt
        self.number = next(_numbers)
        self.stamp = stamp(path)
        self.identity = self.stamp[:2]
        self.immutable = immutable
        self._version: Any = None
        self.names: dict[str, tuple[str, list[str]]] = {}
        """Tables looked up by this request, by the caller's word: the name and the key's columns."""
        self.connection = self._connect("rw" if writable else "ro")
        try:
            self._prepare()
            if writable:
                self.own(_LOOK)
                self.own(f"PRAGMA cache_spill = -{_HELD_KIB}")  # counted in pages, whose size is known only now
            else:
                self._try()
                self._version = self.own("PRAGMA data_version")
            self.load_part()
        except BaseException:
            self.close()
            raise

    def _connect(self, mode: str) -> sqlite3.Connection:
        uri = f"{file_uri(self.path)}?mode={mode}" + ("&immutable=1" if self.immutable else "")
        # Nothing cached: the authorizer is asked when a statement is compiled, and each is compiled for its purpose.
        return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, cached_statements=0)

    def _prepare(self) -> None:
        self.be_patient(BUSY_MS)
        self.connection.text_factory = text_or_bytes
        self.authorizer.begin(Mode.OWN)
        load_into(self.connection)
        if self.part is not None:
            self.own("PRAGMA temp_store = MEMORY")
        apply_limits(self.connection, self.authorizer, read_only=not self.writable)
        self.watch()

    def be_patient(self, milliseconds: int) -> None:
        """Wait so long for locks."""
        self.own(f"PRAGMA busy_timeout = {milliseconds}")

    def is_outdated(self) -> bool:
        """Whether somebody has overwritten the file, as no commit does: what SQLite remembers of it is wrong then.

        A commit changes the file and what `data_version` says. Our own change the file only.
        """
        now = stamp(self.path)
        if now == self.stamp:
            return False
        if now[:2] != self.identity or self.writable:
            return True
        try:
            version = self.own("PRAGMA data_version")
        except sqlite3.OperationalError:
            return False  # locked: whoever asks next will be told
        changed, self._version = version != self._version, version
        self.stamp = now
        return not changed

    def told_of(self, sql: str) -> list[str]:
        """What is to be told of the files that `sql` names and this call has read."""
        return [f"`{name}`: {said}" for name, said in self.files.items() if said and name in sql]

    def load_part(self) -> None:
        """Have what is served be as the schema is now."""
        if self.part is not None:
            self.part.load(self.own, lambda on: defend(self.connection, on))

    def serves(self, name: str) -> bool:
        """Whether a table or view is served."""
        return self.part is None or self.part.serves(name)

    def settle(self) -> None:
        """Know the file as it is now, after a change of our own."""
        self.stamp = stamp(self.path)

    def watch(self) -> None:
        """Look at the clock while statements run."""
        self.connection.set_progress_handler(lambda: self.interrupt.is_due, _STEPS)

    def _try(self) -> None:
        # A database in WAL mode whose folder can't be written to has no shared memory and no other way in.
        try:
            self.own(_LOOK)
        except sqlite3.OperationalError as error:
            if _is_half_written(error):
                self.recover()
            elif _is_readonly_wal(self.path, error):
                if _size(f"{self.path}-wal"):
                    raise Failure(
                        "unavailable",
                        "The last commits lie in a write-ahead log that can't be read where nothing can be written.",
                        "The operator can run `PRAGMA wal_checkpoint(TRUNCATE)` where the file may be written, or let "
                        "this server write beside it.",
                    ) from None
                self.connection.close()
                self.immutable = True
                self.connection = self._connect("ro")
                self._prepare()
                self.own(_LOOK)
            else:
                raise

    def check_journal(self) -> None:
        """Have what a crashed program left half-written rolled back, if that has happened since the last request."""
        if self.writable or not _size(f"{self.path}-journal"):
            return
        try:
            self.own(_LOOK)
        except sqlite3.OperationalError as error:
            if _is_half_written(error):
                self.recover()

    def recover(self) -> None:
        """Roll back a transaction that a program died in, as every program does that may write the file and reads it.

        Until then nobody can read (https://sqlite.org/lockingv3.html#hot_journals). No word of the caller's reaches
        the connection that does it.

        Raises:
            Failure: this process may not write the file.
        """
        try:
            Database(self.path, self.interrupt, writable=True).close()
            self.own(_LOOK)
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise
            raise Failure(
                "unavailable",
                "A program died while it wrote the database, and what it left has to be rolled back before anybody "
                "can read; this server may not write the file.",
                "The operator can run `sqlite3 FILE .tables` as a user who may write the file and its folder.",
            ) from None

    def own(self, sql: str, parameters: Any = ()) -> list[tuple[Any, ...]]:
        """All rows of a statement of this program's."""
        self.authorizer.begin(Mode.OWN)
        with self.interrupt.over(self.connection):
            return self.connection.execute(sql, parameters).fetchall()

    def close(self) -> None:
        self.authorizer.begin(Mode.OWN)
        self.connection.close()


class Connections:
    """What this worker has open; one connection per database and purpose.

    Args:
        folder: the operator's, whose files can be read as tables.
    """

    def __init__(
        self, interrupt: Interrupt, parts: Mapping[str, Part] | None = None, folder: str | None = None
    ) -> None:
        self.interrupt, self.folder = interrupt, folder
        self._parts = parts or {}
        self._part_of: dict[str, Part | None] = {}
        self._open: dict[tuple[str, bool], Database] = {}
        self._looked_at: dict[tuple[str, bool], Database] = {}
        """Those of this request: one request is about one file, whatever is at its path meanwhile."""
        self._led: dict[str, str] = {}

    def reader(self, path: str) -> Database:
        """A connection that can't change the file at `path`."""
        return self._get(path, writable=False)

    def writer(self, path: str) -> Database:
        """A connection that can."""
        return self._get(path, writable=True)

    def use(self, path: str, database: Database) -> None:
        """Read the file at `path` by `database` until the request ends, whatever else is open."""
        self._looked_at[path, False] = database

    @contextmanager
    def across(self, path: str, beside: Mapping[str, str]) -> Generator[None]:
        """Let the reader of `path` be one that sees other files too, by their names in `beside`, while the block lasts.

        The statement that may run on it is compiled once they are there; it can attach nothing itself.
        """
        for other in beside.values():
            self.reader(self.resolved(other))  # what it needs to be readable is done as for any other
        database = Database(path, self.interrupt, folder=self.folder)
        try:
            database.connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, len(beside))
            for name, other in beside.items():
                uri = f"{file_uri(self.resolved(other))}?mode=ro"
                database.own(f"ATTACH ? AS {identifier(name)}", [uri])
            database.connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            self.use(path, database)
            yield
        finally:
            database.close()
            self._looked_at.clear()

    def start(self) -> None:
        """A new request: what the last one has looked up may be another thing by now."""
        self._looked_at.clear()
        for database in self._open.values():
            database.names.clear()

    def finish(self) -> None:
        """Leave nothing of this request: what read files is closed, and their tables with it."""
        for key in [key for key, database in self._open.items() if database.read]:
            self._open.pop(key).close()

    def close(self) -> None:
        """Close all that is open."""
        for database in self._open.values():
            database.close()
        self._open.clear()

    def resolved(self, path: str) -> str:
        """The file that `path` leads to now; what was open of another one, where a link led before, is closed."""
        real = os.path.realpath(path)
        before = self._led.get(path, real)
        if before != real:
            self._forget(before)
        self._led[path] = real
        self._part_of[real] = self._parts.get(path)
        return real

    def part(self, path: str) -> Part | None:
        """What is served of the file at `path`, which this request has resolved."""
        return self._part_of[path]

    def _get(self, path: str, *, writable: bool) -> Database:
        key = path, writable
        if key not in self._looked_at:
            self._looked_at[key] = self._current(path, writable=writable)
        return self._looked_at[key]

    def _current(self, path: str, *, writable: bool) -> Database:
        known = self._open.get((path, writable))
        try:
            if known is not None and known.told == self.part(path) and not known.is_outdated():
                known.check_journal()
                known.load_part()
                return known
            stamp(path)
        except OSError:
            self._forget(path)
            raise Failure("not_found", "The database's file is gone.", "Ask the operator to put it back.") from None
        except Failure:
            self._forget(path)
            raise
        if known is not None:
            self._open.pop((path, writable)).close()
        opened = self._open[path, writable] = Database(
            path, self.interrupt, writable=writable, part=self.part(path), folder=self.folder
        )
        return opened

    def _forget(self, path: str) -> None:
        for key in [key for key in self._open if key[0] == path]:
            self._open.pop(key).close()


def file_uri(path: str) -> str:
    """The `file:` URI of an absolute path, as SQLite reads it (https://sqlite.org/uri.html)."""
    from urllib.parse import quote_from_bytes

    if os.name == "nt":
        return "file:///" + quote_from_bytes(path.replace("\\", "/").encode("utf-8", "surrogatepass"), safe="/:")
    return "file:" + quote_from_bytes(os.fsencode(path))


def stamp(path: str) -> tuple[int, ...]:
    """What tells a file from another and from itself at another time: device and inode, then size and times.

    Raises:
        OSError: there is none.
        Failure: it is something else.
    """
    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode):
        what = "folder" if stat.S_ISDIR(found.st_mode) else "pipe" if stat.S_ISFIFO(found.st_mode) else "device"
        raise Failure("unavailable", f"A {what} is where the database's file was.", "Ask the operator to put it back.")
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _is_half_written(error: sqlite3.OperationalError) -> bool:
    return getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_READONLY_ROLLBACK


def _size(path: str) -> int:
    try:
        seen = glance(path)
    except OSError:
        return 0
    return seen.size if stat.S_ISREG(seen.mode) else 0


def _is_readonly_wal(path: str, error: sqlite3.OperationalError) -> bool:
    if getattr(error, "sqlite_errorcode", 0) & 0xFF not in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
        return False
    with open(path, "rb") as file:
        header = file.read(20)
    return header[18:20] == b"\2\2"
