"""The operations of a worker, by name."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from mcp_sqlite.worker import integrity, watch
from mcp_sqlite.worker.advisor import plan
from mcp_sqlite.worker.change import transaction
from mcp_sqlite.worker.connection import lock_holder
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.language.failure import Failure, describe_os_error
from mcp_sqlite.worker.query import errors, rows, search, statements
from mcp_sqlite.worker.schema import catalog, definitions, description
from mcp_sqlite.worker.transfer import backups, exports, imports

__all__ = ["run"]

_OPERATIONS: dict[str, Callable[[Connections, dict[str, Any]], dict[str, Any]]] = {
    "back_up": backups.back_up,
    "catalog": catalog.list_tables,
    "change": transaction.run_change,
    "check": integrity.check_integrity,
    "describe": description.describe_table,
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
_WRITING_OPERATIONS = ("change", "import")


def run(connections: Connections, request: dict[str, Any], send: statements.Send) -> dict[str, Any]:
    """Return the last frame of the answer to `request`; earlier ones go to `send`.

    Raises:
        Failure: it can't be answered, in words for the caller.
    """
    connections.begin_request()
    try:
        request["path"] = connections.resolve(request["path"])
        others = request.get("beside")
        if not others:
            return _answer(connections, request, send)
        with connections.attach_others(request["path"], others):
            return _answer(connections, request, send)
    except Failure as failure:
        raise _name_lock_holder(failure, request["path"]) from None
    except (sqlite3.Error, sqlite3.Warning, MemoryError) as error:
        path_to_write = request["path"] if request["do"] in _WRITING_OPERATIONS else None
        failure = errors.explain_error(None, error, path_to_write=path_to_write)
        raise _name_lock_holder(failure, request["path"]) from None
    except OSError as error:
        message = f"The disk does not do it: {describe_os_error(error)}."
        raise Failure("unavailable", message, "Ask the operator.") from None
    except Exception as error:  # noqa: BLE001 - a damaged file brings values no schema has; the process lives on
        message = f"The file holds what can't be understood ({type(error).__name__})."
        raise Failure("unavailable", message, "`run_check` tells more.") from None
    finally:
        connections.end_request()


def _answer(connections: Connections, request: dict[str, Any], send: statements.Send) -> dict[str, Any]:
    if request["do"] == "query":
        return statements.run_statements(connections, request, send)
    return _OPERATIONS[request["do"]](connections, request)


def _name_lock_holder(failure: Failure, path: str) -> Failure:
    """Return the failure, with who holds the lock if that is what it is about."""
    if failure.kind != "locked":
        return failure
    holder = lock_holder.find_lock_holder(path) or "another program or another call of this server"
    fix = failure.fix
    if holder.startswith("another program"):
        fix += " If a browser or the like keeps it, the operator can serve a copy of the file and of its `-wal`."
    return Failure("locked", f"The database is locked by {holder}", fix)
