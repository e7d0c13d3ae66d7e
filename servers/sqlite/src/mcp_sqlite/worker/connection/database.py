"""One open, guarded connection to the file that a path names."""

from __future__ import annotations

import itertools
import os
import sqlite3
import stat
from collections.abc import Sequence
from typing import Any

from mcp_batteries.subscriptions.glance import glance
from mcp_sqlite.worker.connection.authorizer import Authorizer, Mode, apply_limits, closed_modules, set_defensive
from mcp_sqlite.worker.connection.interrupt import Interrupt
from mcp_sqlite.worker.connection.vectors import load_into
from mcp_sqlite.worker.connection.visible_schema import VisibleSchema
from mcp_sqlite.worker.language.failure import Failure
from mcp_sqlite.worker.language.values import decode_text

__all__ = ["BUSY_MS", "Database", "VisibleNames", "file_uri", "read_file_state"]

VisibleNames = tuple[Sequence[str], Sequence[Sequence[str]]]

"""What the operator says is served of a database: tables, and masked columns as table and column."""

_LOOK = "PRAGMA schema_version"

"""The cheapest statement that reads the file."""

_STEPS = 1000

"""Virtual machine steps between two looks at the clock: unmeasurable cost, 40 ms of delay at most."""

_numbers = itertools.count()

BUSY_MS = 20

"""How long a lock of somebody else's is waited for here: SQLite's waiting ends at no interrupt, and holds up a worker
that others could use. The server waits longer, and asks again."""

_CACHE_KIB = 128 * 1024

"""What a transaction has changed stays in memory up to this. Beyond, SQLite writes it to the file before the commit,
which in the rollback-journal modes shuts out every reader (https://sqlite.org/pragma.html#pragma_cache_spill)."""


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
        visible_names: VisibleNames | None = None,
        folder: str | None = None,
    ) -> None:
        self.path, self.writable, self.folder = path, writable, folder
        self.file_tables: dict[str, str] = {}
        self.file_bytes_read = 0
        self.visible_names = visible_names
        self.visible_schema = None if visible_names is None else VisibleSchema(*visible_names, closed_modules())
        self.authorizer = Authorizer()
        self.authorizer.visible_schema = self.visible_schema
        self.interrupt = interrupt
        self.number = next(_numbers)
        self.file_state = read_file_state(path)
        self.identity = self.file_state[:2]
        self.immutable = immutable
        self._version: Any = None
        self.key_columns: dict[str, tuple[str, list[str]]] = {}
        """Tables looked up by this request, by the caller's word: the name and the key's columns."""
        self.connection = self._connect("rw" if writable else "ro")
        try:
            self._prepare()
            if writable:
                self.run_internal(_LOOK)
                self.run_internal(
                    f"PRAGMA cache_spill = -{_CACHE_KIB}"
                )  # counted in pages, whose size is known only now
            else:
                self._read_first_page()
                self._version = self.run_internal("PRAGMA data_version")
            self.refresh_visible_schema()
        except BaseException:
            self.close()
            raise

    def _connect(self, mode: str) -> sqlite3.Connection:
        uri = f"{file_uri(self.path)}?mode={mode}" + ("&immutable=1" if self.immutable else "")
        # Nothing cached: the authorizer is asked when a statement is compiled, and each is compiled for its purpose.
        return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, cached_statements=0)

    def _prepare(self) -> None:
        self.set_busy_timeout(BUSY_MS)
        self.connection.text_factory = decode_text
        self.authorizer.begin(Mode.INTERNAL)
        load_into(self.connection)
        if self.visible_schema is not None:
            self.run_internal("PRAGMA temp_store = MEMORY")
        apply_limits(self.connection, self.authorizer, read_only=not self.writable)
        self.check_interrupt_while_running()

    def set_busy_timeout(self, milliseconds: int) -> None:
        """Wait so long for locks."""
        self.run_internal(f"PRAGMA busy_timeout = {milliseconds}")

    def is_outdated(self) -> bool:
        """Whether somebody has overwritten the file, as no commit does: what SQLite remembers of it is wrong then.

        A commit changes the file and what `data_version` says. Our own change the file only.
        """
        now = read_file_state(self.path)
        if now == self.file_state:
            return False
        if now[:2] != self.identity or self.writable:
            return True
        try:
            version = self.run_internal("PRAGMA data_version")
        except sqlite3.OperationalError:
            return False  # locked: whoever asks next will be told
        changed, self._version = version != self._version, version
        self.file_state = now
        return not changed

    def describe_files(self, sql: str) -> list[str]:
        """What is to be told of the files that `sql` names and this call has read."""
        return [f"`{name}`: {said}" for name, said in self.file_tables.items() if said and name in sql]

    def refresh_visible_schema(self) -> None:
        """Have what is served be as the schema is now."""
        if self.visible_schema is not None:
            self.visible_schema.refresh(self.run_internal, lambda on: set_defensive(self.connection, on))

    def is_visible(self, name: str) -> bool:
        """Whether a table or view is served."""
        return self.visible_schema is None or self.visible_schema.is_visible(name)

    def remember_file_state(self) -> None:
        """Know the file as it is now, after a change of our own."""
        self.file_state = read_file_state(self.path)

    def check_interrupt_while_running(self) -> None:
        """Look at the clock while statements run."""
        self.connection.set_progress_handler(lambda: self.interrupt.is_due, _STEPS)

    def _read_first_page(self) -> None:
        # A database in WAL mode whose folder can't be written to has no shared memory and no other way in.
        try:
            self.run_internal(_LOOK)
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
                self.run_internal(_LOOK)
            else:
                raise

    def roll_back_hot_journal(self) -> None:
        """Have what a crashed program left half-written rolled back, if that has happened since the last request."""
        if self.writable or not _size(f"{self.path}-journal"):
            return
        try:
            self.run_internal(_LOOK)
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
            self.run_internal(_LOOK)
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise
            raise Failure(
                "unavailable",
                "A program died while it wrote the database, and what it left has to be rolled back before anybody "
                "can read; this server may not write the file.",
                "The operator can run `sqlite3 FILE .tables` as a user who may write the file and its folder.",
            ) from None

    def run_internal(self, sql: str, parameters: Any = ()) -> list[tuple[Any, ...]]:
        """All rows of a statement of this program's."""
        self.authorizer.begin(Mode.INTERNAL)
        with self.interrupt.reach(self.connection):
            return self.connection.execute(sql, parameters).fetchall()

    def close(self) -> None:
        self.authorizer.begin(Mode.INTERNAL)
        self.connection.close()


def file_uri(path: str) -> str:
    """The `file:` URI of an absolute path, as SQLite reads it (https://sqlite.org/uri.html)."""
    from urllib.parse import quote_from_bytes

    if os.name == "nt":
        return "file:///" + quote_from_bytes(path.replace("\\", "/").encode("utf-8", "surrogatepass"), safe="/:")
    return "file:" + quote_from_bytes(os.fsencode(path))


def read_file_state(path: str) -> tuple[int, ...]:
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
