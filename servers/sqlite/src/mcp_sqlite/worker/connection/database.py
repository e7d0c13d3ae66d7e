"""One open, guarded connection to the file that a path names."""

from __future__ import annotations

import itertools
import os
import sqlite3
import stat
from collections.abc import Sequence
from typing import Any, NamedTuple

from mcp_batteries.subscriptions.file_state import read_file_state
from mcp_sqlite.worker.connection.authorizer import Authorizer, Mode, apply_limits, closed_modules, set_defensive
from mcp_sqlite.worker.connection.interrupt import Interrupt
from mcp_sqlite.worker.connection.vectors import load_into
from mcp_sqlite.worker.connection.visible_schema import VisibleSchema
from mcp_sqlite.worker.language.failure import Failure, extended_code, is_locked, primary_code
from mcp_sqlite.worker.language.values import decode_text

__all__ = [
    "BUSY_MS",
    "Database",
    "DatabaseFileState",
    "TableKey",
    "VisibleNames",
    "file_uri",
    "read_database_file_state",
]

# The cheapest statement that reads the file.
_READ_FILE = "PRAGMA schema_version"
# Virtual machine steps between two looks at the clock: unmeasurable cost, 40 ms of delay at most.
_STEPS_BETWEEN_CHECKS = 1000
# How long a lock of somebody else's is waited for here: SQLite's waiting ends at no interrupt, and holds up a worker
# that others could use. The server waits longer, and asks again.
BUSY_MS = 20
# What a transaction has changed stays in memory up to this. Beyond, SQLite writes it to the file before the commit,
# which in the rollback-journal modes shuts out every reader (https://sqlite.org/pragma.html#pragma_cache_spill).
_CACHE_KIB = 128 * 1024
# Where a database's header says by which means it is written and read (https://sqlite.org/fileformat2.html).
_HEADER_BYTES = 20
_WAL_VERSIONS = b"\2\2"
_connection_numbers = itertools.count()


class VisibleNames(NamedTuple):
    """What the operator says is served of a database.

    Attributes:
        tables: tables and views, all where there are none.
        masked_columns: pairs of table and column.
    """

    tables: Sequence[str]
    masked_columns: Sequence[Sequence[str]]


class FileIdentity(NamedTuple):
    """What tells a file from another."""

    device: int
    inode: int


class DatabaseFileState(NamedTuple):
    """What tells a file from another, and from itself at another time."""

    identity: FileIdentity
    size: int
    modified_ns: int
    changed_ns: int


class TableKey(NamedTuple):
    """A table as the schema spells it, and the quoted columns of its key."""

    table: str
    columns: list[str]


class Database:
    """One open connection with its authorizer.

    Attributes:
        number: no other connection of this process has it.
        immutable: whether it was opened as a file that can't change, and what the write-ahead log holds is not seen.
        visible_names: what the operator says is served, None for everything.
        visible_schema: the same, as the schema is now.
        folder: whose files can be read as tables, None where there is none.
        file_tables: those that were, and notes on how they are written where that is not usual.
        file_bytes_read: the bytes of these files.
        table_keys: tables that this request has looked up, by the caller's word.
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
        self.path = path
        self.writable = writable
        self.folder = folder
        self.file_tables: dict[str, str] = {}
        self.file_bytes_read = 0
        self.table_keys: dict[str, TableKey] = {}
        self.visible_names = visible_names
        self.visible_schema: VisibleSchema | None = None
        if visible_names is not None:
            self.visible_schema = VisibleSchema(visible_names.tables, visible_names.masked_columns, closed_modules())
        self.authorizer = Authorizer()
        self.authorizer.visible_schema = self.visible_schema
        self.interrupt = interrupt
        self.number = next(_connection_numbers)
        self.file_state = read_database_file_state(path)
        self.immutable = immutable
        self._data_version: Any = None
        self.connection = self._connect()
        try:
            self._prepare()
            self._read_first_page()
            self.refresh_visible_schema()
        except BaseException:
            self.close()
            raise

    @property
    def identity(self) -> FileIdentity:
        """The device and inode of the file that was opened."""
        return self.file_state.identity

    def _connect(self) -> sqlite3.Connection:
        uri = f"{file_uri(self.path)}?mode={'rw' if self.writable else 'ro'}"
        if self.immutable:
            uri += "&immutable=1"
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

    def _read_first_page(self) -> None:
        if self.writable:
            self.run_internal(_READ_FILE)
            # It is counted in pages, whose size is known only now.
            self.run_internal(f"PRAGMA cache_spill = -{_CACHE_KIB}")
            return
        try:
            self.run_internal(_READ_FILE)
        except sqlite3.OperationalError as error:
            if _is_hot_journal(error):
                self.recover()
            elif _is_readonly_wal(self.path, error):
                self._reopen_as_immutable()
            else:
                raise
        self._data_version = self.run_internal("PRAGMA data_version")

    def _reopen_as_immutable(self) -> None:
        """Open the file as one that can't change.

        A database in WAL mode whose folder can't be written to has no shared memory and no other way in.
        """
        if _measure_file(f"{self.path}-wal"):
            raise Failure(
                "unavailable",
                "The last commits lie in a write-ahead log that can't be read where nothing can be written.",
                "The operator can run `PRAGMA wal_checkpoint(TRUNCATE)` where the file may be written, or let "
                "this server write beside it.",
            ) from None
        self.connection.close()
        self.immutable = True
        self.connection = self._connect()
        self._prepare()
        self.run_internal(_READ_FILE)

    def set_busy_timeout(self, milliseconds: int) -> None:
        """Have SQLite wait so long for locks."""
        self.run_internal(f"PRAGMA busy_timeout = {milliseconds}")

    def is_outdated(self) -> bool:
        """Return whether somebody has overwritten the file, as no commit does: SQLite's cache of it is wrong then.

        A commit changes the file and what `data_version` says. Our own change the file only.
        """
        file_state = read_database_file_state(self.path)
        if file_state == self.file_state:
            return False
        if file_state.identity != self.identity or self.writable:
            return True
        try:
            data_version = self.run_internal("PRAGMA data_version")
        except sqlite3.OperationalError:
            return False  # it is locked: whoever asks next will hear of it
        was_committed = data_version != self._data_version
        self._data_version = data_version
        self.file_state = file_state
        return not was_committed

    def describe_files(self, sql: str) -> list[str]:
        """Return the notes on the files that `sql` names and this call has read."""
        return [f"`{name}`: {note}" for name, note in self.file_tables.items() if note and name in sql]

    def refresh_visible_schema(self) -> None:
        """Have what is served be as the schema is now."""
        if self.visible_schema is not None:
            self.visible_schema.refresh(self.run_internal, lambda on: set_defensive(self.connection, on))

    def is_visible(self, name: str) -> bool:
        """Return whether a table or view is served."""
        return self.visible_schema is None or self.visible_schema.is_visible(name)

    def is_masked(self, table: str, column: str | None = None) -> bool:
        """Return whether a column of a table is masked, or any."""
        return self.visible_schema is not None and self.visible_schema.is_masked(table, column)

    def remember_file_state(self) -> None:
        """Know the file as it is now, after a change of our own."""
        self.file_state = read_database_file_state(self.path)

    def check_interrupt_while_running(self) -> None:
        """Have SQLite look at the clock while statements run."""
        self.connection.set_progress_handler(lambda: self.interrupt.is_due, _STEPS_BETWEEN_CHECKS)

    def roll_back_hot_journal(self) -> None:
        """Have what a crashed program left half-written rolled back, if that has happened since the last request."""
        if self.writable or not _measure_file(f"{self.path}-journal"):
            return
        try:
            self.run_internal(_READ_FILE)
        except sqlite3.OperationalError as error:
            if _is_hot_journal(error):
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
            self.run_internal(_READ_FILE)
        except sqlite3.OperationalError as error:
            if is_locked(error):
                raise
            raise Failure(
                "unavailable",
                "A program died while it wrote the database, and what it left has to be rolled back before anybody "
                "can read; this server may not write the file.",
                "The operator can run `sqlite3 FILE .tables` as a user who may write the file and its folder.",
            ) from None

    def run_internal(self, sql: str, parameters: Any = ()) -> list[tuple[Any, ...]]:
        """Run a statement of this program's, and return all its rows."""
        self.authorizer.begin(Mode.INTERNAL)
        with self.interrupt.reach(self.connection):
            return self.connection.execute(sql, parameters).fetchall()

    def read_internal(self, sql: str, parameters: Any = ()) -> Any:
        """Run a statement of this program's that has one value, and return it."""
        ((value,),) = self.run_internal(sql, parameters)
        return value

    def close(self) -> None:
        """Close the connection."""
        self.authorizer.begin(Mode.INTERNAL)
        self.connection.close()


def file_uri(path: str) -> str:
    """Return the `file:` URI of an absolute path, as SQLite reads it (https://sqlite.org/uri.html)."""
    from urllib.parse import quote_from_bytes

    if os.name == "nt":
        return "file:///" + quote_from_bytes(path.replace("\\", "/").encode("utf-8", "surrogatepass"), safe="/:")
    return "file:" + quote_from_bytes(os.fsencode(path))


def read_database_file_state(path: str) -> DatabaseFileState:
    """Return the state of the file at `path`.

    Raises:
        OSError: there is none.
        Failure: it is something else than a file.
    """
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        kind = "device"
        if stat.S_ISDIR(status.st_mode):
            kind = "folder"
        elif stat.S_ISFIFO(status.st_mode):
            kind = "pipe"
        raise Failure("unavailable", f"A {kind} is where the database's file was.", "Ask the operator to put it back.")
    identity = FileIdentity(status.st_dev, status.st_ino)
    return DatabaseFileState(identity, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _is_hot_journal(error: sqlite3.OperationalError) -> bool:
    """Return whether a reader has met a journal as of a program that died: to a reader that is a lock, no refusal."""
    return extended_code(error) == sqlite3.SQLITE_READONLY_ROLLBACK


def _measure_file(path: str) -> int:
    """Return the bytes of a file; 0 where there is none."""
    try:
        status = read_file_state(path)
    except OSError:
        return 0
    return status.size if stat.S_ISREG(status.mode) else 0


def _is_readonly_wal(path: str, error: sqlite3.OperationalError) -> bool:
    if primary_code(error) not in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
        return False
    with open(path, "rb") as file:
        header = file.read(_HEADER_BYTES)
    return header.endswith(_WAL_VERSIONS) and len(header) == _HEADER_BYTES
