"""Arguments in PostgreSQL's own words; those that mcp-sqlite has too are in `mcp_batteries.sql.arguments`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from mcp_batteries.server.declaration.trusted import FreeText, trusted
from mcp_batteries.sql.arguments import DATABASE, OTHER_RELATION
from mcp_postgres.policy import (
    AlterableDatabase,
    PlannerSettings,
    Policy,
    QueryTarget,
    TableName,
    WritableDatabase,
    parse_planner_settings,
    parse_table_name,
)

__all__ = [
    "AlterableDb",
    "OptionalStatements",
    "OtherRelation",
    "Parameters",
    "Planner",
    "ReadableDb",
    "Relation",
    "Sql",
    "Statements",
    "WritableDb",
]

# Left out, each database is the only served one: `default("")`.
ReadableDb = Annotated[QueryTarget, trusted(Policy.query_target), DATABASE]
WritableDb = Annotated[WritableDatabase, trusted(Policy.writable_database), DATABASE]
AlterableDb = Annotated[AlterableDatabase, trusted(Policy.alterable_database), DATABASE]

Relation = Annotated[
    TableName, trusted(parse_table_name), Field(description="Table, view or sequence, as name or schema.name.")
]
OtherRelation = Annotated[TableName | None, trusted(parse_table_name), OTHER_RELATION]
_statements = Field(min_length=1, description="Statements, `;` between them.")
Sql = Annotated[FreeText, Field(min_length=1, description="One PostgreSQL statement.")]
Statements = Annotated[FreeText, _statements]
OptionalStatements = Annotated[FreeText | None, _statements]
Parameters = Annotated[
    list[Any] | None, Field(description='Values for $1, $2 …; an array for arrays, bytes as {"base64": "…"}.')
]
Planner = Annotated[
    PlannerSettings | None,
    trusted(parse_planner_settings),
    Field(max_length=10, description='Plan with these: {"enable_seqscan": "off"}.'),
]
