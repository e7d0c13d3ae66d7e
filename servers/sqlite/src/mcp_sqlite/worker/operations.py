"""The operations of a worker, by name."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from mcp_sqlite.worker import watch
from mcp_sqlite.worker.advisor import plan
from mcp_sqlite.worker.change import foreign_keys, transaction
from mcp_sqlite.worker.connection import lock_holder
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.language.failure import Failure, describe_os_error
from mcp_sqlite.worker.query import errors, rows, search, statements
from mcp_sqlite.worker.schema import catalog, definitions
from mcp_sqlite.worker.transfer import backups, exports, imports

__all__ = ["run"]

_OPERATIONS: dict[str, Callable[[Connections, dict[str, Any]], dict[str, Any]]] = {
    "back_up": backups.back_up,
    "catalog": catalog.list_tables,
    "change": transaction.run_change,
    "describe": catalog.describe_table,
    "explain": plan.explain_plan,
    "export": exports.export_rows,
    "find": search.search_schema,
    "import": imports.import_rows,
    "names": definitions.complete_names,
    "row": rows.read_row,
    "rows": rows.read_rows,
    "schema": definitions.read_definitions,
    "search": search.search_text,
    "watch": watch.poll,
}


def run(connections: Connections, request: dict[str, Any], send: statements.Send) -> dict[str, Any]:
    """The last frame of the answer to `request`; earlier ones go to `send`.

    Raises:
        Failure: It can't be answered, in words for the caller.
    """
    connections.begin_request()
    try:
        request["path"] = connections.resolve(request["path"])
        if beside := request.get("beside"):
            with connections.attach_others(request["path"], beside):
                return _answer(connections, request, send)
        return _answer(connections, request, send)
    except Failure as failure:
        raise _with_holder(failure, request["path"]) from None
    except (sqlite3.Error, sqlite3.Warning, MemoryError) as error:
        to_write = request["path"] if request["do"] in ("change", "import") else None
        raise _with_holder(errors.explain_error(None, error, to_write=to_write), request["path"]) from None
    except OSError as error:
        raise Failure(
            "unavailable", f"The disk does not do it: {describe_os_error(error)}.", "Ask the operator."
        ) from None
    except Exception as error:  # noqa: BLE001 - a damaged file brings values no schema has; the process lives on
        raise Failure(
            "unavailable",
            f"The file holds what can't be understood ({type(error).__name__}).",
            "`run_check` tells more.",
        ) from None
    finally:
        connections.end_request()


def _answer(connections: Connections, request: dict[str, Any], send: statements.Send) -> dict[str, Any]:
    match request["do"]:
        case "query":
            return statements.run_statements(connections, request, send)
        case "check":
            return _check(connections, request)
        case other:
            return _OPERATIONS[other](connections, request)


def _with_holder(failure: Failure, path: str) -> Failure:
    if failure.kind != "locked":
        return failure
    who = lock_holder.find_lock_holder(path) or "another program or another call of this server"
    return Failure("locked", f"The database is locked by {who}", failure.fix)


def _check(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """The complaints of integrity_check (or quick_check), at most 100, and the foreign keys that point nowhere."""
    name = "quick_check" if request["quick"] else "integrity_check"
    said: list[str] = []
    lines: list[str] = []
    try:
        database = connections.reader(request["path"])
        said = [str(row[0]) for row in database.run_internal(f"PRAGMA {name}(100)")]
        broken = foreign_keys.find_broken(database)
        lines = [*sorted(broken.misfits), *foreign_keys.describe_broken_keys(broken.rows)]
        if lines and connections.visible_names(request["path"]) is not None:
            lines = [f"foreign keys of {broken.number:,} rows point nowhere; the operator can find out which"]
    except sqlite3.DatabaseError as error:
        # Damage that stops the check itself is what it was asked for.
        if not errors.is_damage(error):
            raise
        said = [line for line in said if line != "ok"] + [f"{name} can't go on: {error}"]
    if connections.visible_names(request["path"]) is not None:
        said = said if said == ["ok"] else ["something is wrong in the file; the operator can find out what"]
    return {
        "said": [] if said == ["ok"] else said,
        "keys": lines,
    }
