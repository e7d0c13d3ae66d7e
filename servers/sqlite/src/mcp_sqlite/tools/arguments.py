"""Arguments in SQLite's own words; those that mcp-postgres has too are in `mcp_batteries.sql.arguments`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from mcp_batteries.sql.policy import MAX_SQL

__all__ = ["OptionalSql", "Parameters", "PlanParameters", "ReadParameters", "SearchedTable", "Sql", "TableName"]

TableName = Annotated[str, Field(description="Table or view.")]
SearchedTable = Annotated[str | None, Field(description="Full-text table, if there are several.")]
_sql = Field(max_length=MAX_SQL, description="SQLite SQL.")
Sql = Annotated[str, _sql]
OptionalSql = Annotated[str | None, _sql]
_one = 'Array for ?, object for :name; bytes as {"base64": "…"}.'
_values = f"{_one} An array of arrays for several statements"
PlanParameters = Annotated[list[Any] | dict[str, Any] | None, Field(description=_one)]
ReadParameters = Annotated[list[Any] | dict[str, Any] | None, Field(description=f"{_values}.")]
Parameters = Annotated[
    list[Any] | dict[str, Any] | None, Field(description=f"{_values}, or for several rows that one writes.")
]
