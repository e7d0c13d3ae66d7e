"""The transaction that holds the write lock while statements change something, or a file is imported."""

from __future__ import annotations

import math
import sqlite3

from mcp_sqlite.worker.connection.database import BUSY_MS, Database
from mcp_sqlite.worker.language.failure import Failure
from mcp_sqlite.worker.query.errors import explain_error

__all__ = ["Transaction"]

# How long a commit waits for readers, and what part of the time left: the answer has to say so.
_COMMIT_SECONDS = 5.0
_COMMIT_SHARE = 0.4
_UNCHANGED = "Nothing was changed."


class Transaction:
    """A block in one transaction that holds the write lock; kept at its end if `keep` and nothing was raised.

    Inside it the busy timeout is 0 until COMMIT: a second connection opened there may meet our own lock.
    """

    def __init__(self, database: Database, *, keep: bool, checks_keys: bool = True) -> None:
        self._database = database
        self._keep = keep
        self._checks_keys = checks_keys

    def __enter__(self) -> None:
        try:
            if not self._checks_keys:
                self._database.run_internal("PRAGMA foreign_keys = OFF")
            self._database.run_internal("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            self._database.run_internal("PRAGMA foreign_keys = ON")
            raise explain_error(self._database, error) from None
        # Until the commit a lock is wanted only to write pages early. SQLite keeps them where that fails, and would
        # wait anew in each statement for a reader that may be our own.
        self._database.set_busy_timeout(0)

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        database = self._database
        seconds_left = database.interrupt.seconds_left
        if error_type is not None:
            database.interrupt.deadline = math.inf
        database.connection.set_progress_handler(None, 0)
        try:
            if error_type is None:
                self._end(seconds_left)
            elif database.connection.in_transaction:
                database.run_internal("ROLLBACK")
        except sqlite3.Error as error:
            if database.connection.in_transaction:
                database.run_internal("ROLLBACK")
            raise explain_error(database, error) from None
        finally:
            database.run_internal("PRAGMA foreign_keys = ON")
            database.set_busy_timeout(BUSY_MS)
            database.remember_file_state()
            database.check_interrupt_while_running()

    def _end(self, seconds_left: float) -> None:
        """Commit what was done without an error, or roll it back in a dry run."""
        if not self._database.connection.in_transaction:
            raise Failure("conflict", "The statement ended its transaction.", _UNCHANGED)
        if not self._keep:
            self._database.run_internal("ROLLBACK")
            return
        # Who reads holds up the commit; to begin anew would not help, to wait does: no further reader comes in.
        seconds = min(_COMMIT_SECONDS, seconds_left * _COMMIT_SHARE)
        self._database.set_busy_timeout(max(BUSY_MS, round(seconds * 1000)))
        self._database.run_internal("COMMIT")
