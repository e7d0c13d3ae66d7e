"""What really changed, decided by digests of what is served; for the worker that follows subscriptions.

The gates stand in the order of their cost: another file at the path, `data_version` (a commit by anybody else),
`schema_version`, and then a digest of each thing somebody subscribed to.
"""

from __future__ import annotations

import hashlib
import sqlite3
from typing import Any

from mcp_sqlite.worker import rows, schema, statements
from mcp_sqlite.worker.cells import Failure
from mcp_sqlite.worker.connections import Connections

__all__ = ["look"]

_SECONDS = 0.05
_seen: dict[str, tuple[Any, ...]] = {}


def look(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """Digests of `subjects` (key to request), or None when nothing can have changed since the last look.

    A subject that takes longer than its budget has a digest of its own each time: it may have changed.
    """
    path, new = request["path"], request["new"]
    try:
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
