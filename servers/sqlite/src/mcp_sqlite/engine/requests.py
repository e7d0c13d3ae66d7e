"""What workers are asked: trusted requests as frames."""

from __future__ import annotations

from typing import Any

from mcp_sqlite.policy import JoiningStatement, QueryOf, ReadStatement, Request, RowOf, RowsOf, SchemaOf

__all__ = ["to_content_request", "to_request"]

_QUERY_LIMITS = {"limit": 100, "max_bytes": 100_000, "max_cell": 10_000}


def to_request(statement: ReadStatement) -> dict[str, Any]:
    """Return a statement as a worker reads it."""
    request = {"path": statement.database.address, "sql": statement.sql, "parameters": statement.parameters}
    if isinstance(statement, JoiningStatement):
        request["beside"] = {other.name: other.address for other in statement.others}
    return request


def to_content_request(request: Request) -> dict[str, Any]:
    """Return what a worker is asked for the content of a resource."""
    match request:
        case SchemaOf(database, table):
            return {"do": "schema", "path": database.address, "table": table and table.name}
        case RowsOf(table, limit, column, value, newest):
            frame = {"do": "rows", "path": table.database.address, "table": table.name, "limit": limit}
            if column is not None:
                frame |= {"column": column, "value": value}
            if newest:
                frame["newest"] = True
            return frame
        case RowOf(table, key):
            return {"do": "row", "path": table.database.address, "table": table.name, "key": key}
        case QueryOf(statement):
            return {"do": "query", **to_request(statement), **_QUERY_LIMITS}
