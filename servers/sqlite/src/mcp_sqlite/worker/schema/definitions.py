"""The definitions of a schema as SQL, and its names for completions."""

from __future__ import annotations

from typing import Any

from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.language.tokens import terminate
from mcp_sqlite.worker.schema.lookup import find_table, list_columns, list_table_names

__all__ = ["complete_names", "read_definitions"]


def read_definitions(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """The DDL of the database, or of one table with its indexes and triggers."""
    database = connections.reader(request["path"])
    where, values = "", []
    if request.get("table") is not None:
        where, values = "AND tbl_name = ?", [find_table(database, request["table"])]
    rows = database.run_internal(
        "SELECT sql, tbl_name FROM sqlite_master "
        f"WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite!_%' ESCAPE '!' {where} "
        "ORDER BY tbl_name, CASE type WHEN 'table' THEN 0 WHEN 'view' THEN 1 ELSE 2 END, name",
        values,
    )
    return {"sql": "".join(f"{terminate(sql)}\n" for sql, table in rows if database.is_visible(str(table)))}


def complete_names(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """Names of tables and views, or of one table's columns, that begin with `typed`; for completions."""
    database = connections.reader(request["path"])
    if request.get("table") is None:
        found = list_table_names(database)
    else:
        columns = list_columns(database, request["table"]) if database.is_visible(request["table"]) else []
        found = [str(row[1]) for row in columns]
    typed = request["typed"].casefold()
    return {"names": [name for name in found if name.casefold().startswith(typed)][:1000]}
