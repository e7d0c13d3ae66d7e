"""Copies a database into a new file."""

from __future__ import annotations

import os
import sqlite3
import sys
from typing import Any

from mcp_batteries.sql.files import new_file
from mcp_sqlite.worker.connection.authorizer import Mode
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.language.failure import Failure, describe_os_error
from mcp_sqlite.worker.query.errors import explain_error

__all__ = ["back_up"]

_PAGES = 256


def back_up(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """A consistent copy into a new file by the online backup API, while others read and write."""
    database = connections.reader(request["path"])
    scratch = request["scratch"]
    target = sqlite3.connect(scratch)

    def step(status: int, remaining: int, total: int) -> None:
        database.interrupt.check()

    try:
        with database.interrupt.reach(database.connection):
            database.authorizer.begin(Mode.INTERNAL)
            database.connection.backup(target, pages=_PAGES, progress=step, sleep=0.01)
    except sqlite3.Error as error:
        raise explain_error(database, error) from None
    finally:
        target.close()
        if sys.exc_info()[0] is not None:
            os.unlink(scratch)
    try:
        with (
            open(scratch, "rb") as copied,
            new_file(request["folder"], request["name"], Failure, describe_os_error) as file,
        ):
            size = os.fstat(copied.fileno()).st_size
            while block := copied.read(1 << 20):
                database.interrupt.check()
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
    finally:
        os.unlink(scratch)
    return {"bytes": size}
