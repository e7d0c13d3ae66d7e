"""Arguments in SQLite's own words; those that mcp-postgres has too are in `mcp_batteries.sql.arguments`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from mcp_batteries.server.declaration.trusted import FreeText, trusted
from mcp_batteries.sql.arguments import DATABASE, OTHER_RELATION
from mcp_sqlite.policy import (
    AlterableDatabase,
    Policy,
    QueryTarget,
    TableName,
    WritableDatabase,
    parse_table_name,
)

__all__ = [
    "AlterableDb",
    "FullTextTable",
    "OptionalSql",
    "OtherRelation",
    "PlanParameters",
    "ReadParameters",
    "ReadableDb",
    "Relation",
    "Sql",
    "WritableDb",
    "WriteParameters",
]

# Left out, each database is the only served one: `default("")`.
ReadableDb = Annotated[QueryTarget, trusted(Policy.query_target), DATABASE]
WritableDb = Annotated[WritableDatabase, trusted(Policy.writable_database), DATABASE]
AlterableDb = Annotated[AlterableDatabase, trusted(Policy.alterable_database), DATABASE]

Relation = Annotated[TableName, trusted(parse_table_name), Field(description="Table or view.")]
OtherRelation = Annotated[TableName | None, trusted(parse_table_name), OTHER_RELATION]
FullTextTable = Annotated[
    TableName | None, trusted(parse_table_name), Field(description="Full-text table, if there are several.")
]
_sql = Field(description="SQLite SQL.")
Sql = Annotated[FreeText, _sql]
OptionalSql = Annotated[FreeText | None, _sql]

_one = 'Array for ?, object for :name; bytes as {"base64": "…"}.'
_values = f"{_one} An array of arrays for several statements"
PlanParameters = Annotated[list[Any] | dict[FreeText, Any] | None, Field(description=_one)]
ReadParameters = Annotated[list[Any] | dict[FreeText, Any] | None, Field(description=f"{_values}.")]
WriteParameters = Annotated[
    list[Any] | dict[FreeText, Any] | None, Field(description=f"{_values}, or for several rows that one writes.")
]
