"""The operations of a worker, by name."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from mcp_sqlite.worker import integrity, watch
from mcp_sqlite.worker.advisor import plan
from mcp_sqlite.worker.change.run import run_change
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.language.failure import Failure, describe_os_error
from mcp_sqlite.worker.query import errors, rows, search, statements
from mcp_sqlite.worker.schema import catalog, definitions, description
from mcp_sqlite.worker.transfer import backups, exports, imports

__all__ = ["run"]

_OPERATIONS: dict[str, Callable[[Connections, dict[str, Any]], dict[str, Any]]] = {
    "back_up": backups.back_up,
    "catalog": catalog.list_tables,
    "change": run_change,
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
    except Failure:
        raise  # `Exception` below would take it too
    except (sqlite3.Error, sqlite3.Warning, MemoryError, UnicodeEncodeError) as error:
        path_to_write = request["path"] if request["do"] in _WRITING_OPERATIONS else None
        raise errors.explain_error(None, error, path_to_write=path_to_write) from None
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
