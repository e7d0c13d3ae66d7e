"""Copies a database into a new file."""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from typing import Any

from mcp_batteries.sql.transfer.files import create_file
from mcp_sqlite.worker.connection.authorizer import Mode
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.language.failure import Failure, describe_os_error
from mcp_sqlite.worker.query.errors import explain_error

__all__ = ["back_up"]

_PAGES_AT_ONCE = 256
_PAUSE_SECONDS = 0.01
_BLOCK_BYTES = 1 << 20


def back_up(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """Make a consistent copy in a new file by the online backup API, while others read and write."""
    database = connections.reader(request["path"])
    scratch = request["scratch"]
    try:
        _copy_database(database, scratch)
        return {"bytes": _copy_file(database, scratch, request)}
    finally:
        with suppress(FileNotFoundError):
            os.unlink(scratch)


def _copy_database(database: Database, target_path: str) -> None:
    def check(status: int, remaining: int, total: int) -> None:
        database.interrupt.check()

    target = sqlite3.connect(target_path)
    try:
        with database.interrupt.reach(database.connection):
            database.authorizer.begin(Mode.INTERNAL)
            database.connection.backup(target, pages=_PAGES_AT_ONCE, progress=check, sleep=_PAUSE_SECONDS)
    except sqlite3.Error as error:
        raise explain_error(database, error) from None
    finally:
        target.close()


def _copy_file(database: Database, source_path: str, request: dict[str, Any]) -> int:
    """Copy a file into the served folder, and return its bytes."""
    with (
        open(source_path, "rb") as source,
        create_file(request["folder"], request["name"], Failure, describe_os_error) as file,
    ):
        size = os.fstat(source.fileno()).st_size
        while block := source.read(_BLOCK_BYTES):
            database.interrupt.check()
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    return size
