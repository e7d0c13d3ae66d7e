"""Arguments in SQLite's own words; those that mcp-postgres has too are in `mcp_batteries.sql.arguments`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from mcp_batteries.sql.policy import MAX_SQL

__all__ = ["OptionalSql", "OptionalTable", "Parameters", "Sql", "TableName"]

_table = Field(description="Table or view.")
TableName = Annotated[str, _table]
OptionalTable = Annotated[str | None, _table]
_sql = Field(max_length=MAX_SQL, description="SQLite SQL.")
Sql = Annotated[str, _sql]
OptionalSql = Annotated[str | None, _sql]
Parameters = Annotated[
    list[Any] | dict[str, Any] | None,
    Field(
        description='Array for ?, object for :name; bytes as {"base64": "…"}. An array of arrays for several '
        "statements, or for several rows that one writes."
    ),
]
