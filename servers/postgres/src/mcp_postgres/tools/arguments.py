"""Arguments that several tools share, described in the same words everywhere."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from mcp_postgres.policy import MAX_SQL

__all__ = ["LONGEST", "Cursor", "DatabaseName", "DryRun", "Limit", "OptionalSql", "Parameters", "Sql", "TableName"]

LONGEST = 3700.0
"""Seconds: above every time limit an operator can set, which is what really ends a statement."""

DatabaseName = Annotated[str | None, Field(description="Which database; not needed when only one is served.")]
TableName = Annotated[str, Field(description="Table, view or sequence, as name or schema.name.")]
_sql = Field(min_length=1, max_length=MAX_SQL, description="One PostgreSQL statement.")
Sql = Annotated[str, _sql]
OptionalSql = Annotated[str | None, _sql]
Parameters = Annotated[
    list[Any] | None, Field(description='Values for $1, $2 …; an array for arrays, bytes as {"base64": "…"}.')
]
Cursor = Annotated[str | None, Field(description="From the answer that was truncated.")]
Limit = Annotated[int, Field(ge=1, le=5000, description="Most entries of one answer.")]
DryRun = Annotated[bool, Field(description="Show what it would do, roll it back.")]
