"""The connections that a worker has open, never to another file than the path names now."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from mcp_batteries.sql.language.identifiers import quote_identifier
from mcp_sqlite.worker.connection.database import Database, VisibleNames, file_uri, read_database_file_state
from mcp_sqlite.worker.connection.interrupt import Interrupt
from mcp_sqlite.worker.language.failure import Failure

__all__ = ["Connections"]


class _Purpose(NamedTuple):
    """A database's file, and whether the connection to it can change it."""

    path: str
    writable: bool


class Connections:
    """What this worker has open; one connection per database and purpose.

    Args:
        visible_names: what the operator says is served, by the path of the database; of others everything is.
        folder: the operator's, whose files can be read as tables.
    """

    def __init__(
        self,
        interrupt: Interrupt,
        visible_names: Mapping[str, VisibleNames] | None = None,
        folder: str | None = None,
    ) -> None:
        self.interrupt = interrupt
        self.folder = folder
        self._configured_names = visible_names or {}
        self._visible_names: dict[str, VisibleNames | None] = {}
        self._open: dict[_Purpose, Database] = {}
        # Those of this request: one request is about one file, whatever is at its path meanwhile.
        self._of_request: dict[_Purpose, Database] = {}
        self._resolved_paths: dict[str, str] = {}

    def reader(self, path: str) -> Database:
        """Return a connection that can't change the file at `path`."""
        return self._get(_Purpose(path, writable=False))

    def writer(self, path: str) -> Database:
        """Return a connection that can change the file at `path`."""
        return self._get(_Purpose(path, writable=True))

    def use_reader(self, path: str, database: Database) -> None:
        """Read the file at `path` by `database` until the request ends, whatever else is open."""
        self._of_request[_Purpose(path, writable=False)] = database

    @contextmanager
    def attach_others(self, path: str, others: Mapping[str, str]) -> Generator[None]:
        """Let the reader of `path` see the files `others` too, by their names there, while the block lasts.

        The statement that may run on it is compiled once they are there; it can attach nothing itself.
        """
        for other in others.values():
            self.reader(self.resolve(other))  # what it needs to be readable is done as for any other
        database = Database(path, self.interrupt, folder=self.folder)
        try:
            database.connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, len(others))
            for name, other in others.items():
                _attach(database, name, self.resolve(other))
            database.connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            self.use_reader(path, database)
            yield
        finally:
            database.close()
            self._of_request.clear()

    def begin_request(self) -> None:
        """Forget what the last request has looked up: it may be another thing by now."""
        self._of_request.clear()
        for database in self._open.values():
            database.table_keys.clear()

    def end_request(self) -> None:
        """Leave nothing of this request: close what read files, and their tables with it."""
        for purpose, database in list(self._open.items()):
            if database.file_bytes_read:
                del self._open[purpose]
                database.close()

    def close(self) -> None:
        """Close all that is open."""
        for database in self._open.values():
            database.close()
        self._open.clear()

    def resolve(self, path: str) -> str:
        """Return the file that `path` leads to now; close what is open of another one, where a link led before."""
        resolved = os.path.realpath(path)
        previous = self._resolved_paths.get(path, resolved)
        if previous != resolved:
            self._close_file(previous)
        self._resolved_paths[path] = resolved
        self._visible_names[resolved] = self._configured_names.get(path)
        return resolved

    def visible_names(self, path: str) -> VisibleNames | None:
        """Return what is served of the file at `path`, which this request has resolved."""
        return self._visible_names[path]

    def _get(self, purpose: _Purpose) -> Database:
        if purpose not in self._of_request:
            self._of_request[purpose] = self._open_current(purpose)
        return self._of_request[purpose]

    def _open_current(self, purpose: _Purpose) -> Database:
        database = self._open.get(purpose)
        visible_names = self.visible_names(purpose.path)
        try:
            if database is not None and database.visible_names == visible_names and not database.is_outdated():
                database.roll_back_hot_journal()
                database.refresh_visible_schema()
                return database
            read_database_file_state(purpose.path)
        except OSError:
            self._close_file(purpose.path)
            raise Failure("not_found", "The database's file is gone.", "Ask the operator to put it back.") from None
        except Failure:
            self._close_file(purpose.path)
            raise
        if database is not None:
            del self._open[purpose]
            database.close()
        database = Database(
            purpose.path,
            self.interrupt,
            writable=purpose.writable,
            visible_names=visible_names,
            folder=self.folder,
        )
        self._open[purpose] = database
        return database

    def _close_file(self, path: str) -> None:
        for purpose in [purpose for purpose in self._open if purpose.path == path]:
            self._open.pop(purpose).close()


def _attach(database: Database, name: str, path: str) -> None:
    """Let a connection see another file by a name.

    Raises:
        Failure: their texts are not of one encoding.
    """
    try:
        database.run_internal(f"ATTACH ? AS {quote_identifier(name)}", [f"{file_uri(path)}?mode=ro"])
    except sqlite3.OperationalError as error:
        if "text encoding" not in str(error):
            raise
        raise Failure(
            "invalid",
            f"SQLite can't read `{name}` together with the first database: one keeps texts as UTF-8, one as UTF-16.",
            "Query each by itself, or `copy_to_file` what you need of one and name the file as a table.",
        ) from None
