"""The definitions of a schema as SQL, and its names for completions."""

from __future__ import annotations

from typing import Any

from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.language.tokens import terminate
from mcp_sqlite.worker.schema.lookup import find_table, list_column_names, list_table_names

__all__ = ["complete_names", "read_definitions"]

_MAX_COMPLETIONS = 1000


def read_definitions(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """Return the DDL of the database, or of one table with its indexes and triggers."""
    database = connections.reader(request["path"])
    condition = ""
    values: list[str] = []
    if request.get("table") is not None:
        condition = "AND tbl_name = ?"
        values = [find_table(database, request["table"])]
    rows = database.run_internal(
        "SELECT sql, tbl_name FROM sqlite_master "
        f"WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite!_%' ESCAPE '!' {condition} "
        "ORDER BY tbl_name, CASE type WHEN 'table' THEN 0 WHEN 'view' THEN 1 ELSE 2 END, name",
        values,
    )
    return {"sql": "".join(f"{terminate(sql)}\n" for sql, table in rows if database.is_visible(str(table)))}


def complete_names(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """Return names of tables and views, or of one table's columns, that begin with `typed`."""
    database = connections.reader(request["path"])
    table = request.get("table")
    names: list[str] = []
    if table is None:
        names = list_table_names(database)
    elif database.is_visible(table):
        names = list_column_names(database, table)
    prefix = request["typed"].casefold()
    return {"names": [name for name in names if name.casefold().startswith(prefix)][:_MAX_COMPLETIONS]}
