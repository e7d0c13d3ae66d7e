"""Arguments in PostgreSQL's own words; those that mcp-sqlite has too are in `mcp_batteries.sql.arguments`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from mcp_batteries.sql.policy import MAX_SQL

__all__ = ["Parameters", "Several", "Sql", "Statements", "TableName"]

TableName = Annotated[str, Field(description="Table, view or sequence, as name or schema.name.")]
Sql = Annotated[str, Field(min_length=1, max_length=MAX_SQL, description="One PostgreSQL statement.")]
Statements = Annotated[str, Field(min_length=1, max_length=MAX_SQL, description="Statements, `;` between them.")]
Several = Annotated[str | None, Field(min_length=1, max_length=MAX_SQL, description="Statements, `;` between them.")]
Parameters = Annotated[
    list[Any] | None, Field(description='Values for $1, $2 …; an array for arrays, bytes as {"base64": "…"}.')
]
