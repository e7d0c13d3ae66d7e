"""The connections that a worker has open, never to another file than the path names now."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator, Mapping
from contextlib import contextmanager

from mcp_batteries.sql.identifiers import identifier
from mcp_sqlite.worker.connection.database import Database, VisibleNames, file_uri, read_file_state
from mcp_sqlite.worker.connection.interrupt import Interrupt
from mcp_sqlite.worker.language.failure import Failure

__all__ = ["Connections"]


class Connections:
    """What this worker has open; one connection per database and purpose.

    Args:
        folder: the operator's, whose files can be read as tables.
    """

    def __init__(
        self, interrupt: Interrupt, parts: Mapping[str, VisibleNames] | None = None, folder: str | None = None
    ) -> None:
        self.interrupt, self.folder = interrupt, folder
        self._parts = parts or {}
        self._part_of: dict[str, VisibleNames | None] = {}
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

    def use_reader(self, path: str, database: Database) -> None:
        """Read the file at `path` by `database` until the request ends, whatever else is open."""
        self._looked_at[path, False] = database

    @contextmanager
    def attach_others(self, path: str, beside: Mapping[str, str]) -> Generator[None]:
        """Let the reader of `path` be one that sees other files too, by their names in `beside`, while the block lasts.

        The statement that may run on it is compiled once they are there; it can attach nothing itself.
        """
        for other in beside.values():
            self.reader(self.resolve(other))  # what it needs to be readable is done as for any other
        database = Database(path, self.interrupt, folder=self.folder)
        try:
            database.connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, len(beside))
            for name, other in beside.items():
                uri = f"{file_uri(self.resolve(other))}?mode=ro"
                database.run_internal(f"ATTACH ? AS {identifier(name)}", [uri])
            database.connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            self.use_reader(path, database)
            yield
        finally:
            database.close()
            self._looked_at.clear()

    def begin_request(self) -> None:
        """A new request: what the last one has looked up may be another thing by now."""
        self._looked_at.clear()
        for database in self._open.values():
            database.key_columns.clear()

    def end_request(self) -> None:
        """Leave nothing of this request: what read files is closed, and their tables with it."""
        for key in [key for key, database in self._open.items() if database.file_bytes_read]:
            self._open.pop(key).close()

    def close(self) -> None:
        """Close all that is open."""
        for database in self._open.values():
            database.close()
        self._open.clear()

    def resolve(self, path: str) -> str:
        """The file that `path` leads to now; what was open of another one, where a link led before, is closed."""
        real = os.path.realpath(path)
        before = self._led.get(path, real)
        if before != real:
            self._forget(before)
        self._led[path] = real
        self._part_of[real] = self._parts.get(path)
        return real

    def visible_names(self, path: str) -> VisibleNames | None:
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
            if known is not None and known.visible_names == self.visible_names(path) and not known.is_outdated():
                known.roll_back_hot_journal()
                known.refresh_visible_schema()
                return known
            read_file_state(path)
        except OSError:
            self._forget(path)
            raise Failure("not_found", "The database's file is gone.", "Ask the operator to put it back.") from None
        except Failure:
            self._forget(path)
            raise
        if known is not None:
            self._open.pop((path, writable)).close()
        opened = self._open[path, writable] = Database(
            path, self.interrupt, writable=writable, visible_names=self.visible_names(path), folder=self.folder
        )
        return opened

    def _forget(self, path: str) -> None:
        for key in [key for key in self._open if key[0] == path]:
            self._open.pop(key).close()
