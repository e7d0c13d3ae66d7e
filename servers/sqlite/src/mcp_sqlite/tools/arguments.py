"""Arguments that several tools share, described in the same words everywhere."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from mcp_sqlite.policy import MAX_SQL

__all__ = [
    "Cursor", "DatabaseName", "DryRun", "FileName", "OptionalSql", "OptionalTable", "Parameters", "Sql",
    "TableName",
]  # fmt: skip

DatabaseName = Annotated[str | None, Field(description="Needed where several are served.")]
_table = Field(description="Table or view.")
TableName = Annotated[str, _table]
OptionalTable = Annotated[str | None, _table]
_sql = Field(max_length=MAX_SQL, description="SQLite SQL.")
Sql = Annotated[str, _sql]
OptionalSql = Annotated[str | None, _sql]
Parameters = Annotated[
    list[Any] | dict[str, Any] | None,
    Field(description='Array for ?, object for :name; bytes as {"base64": "…"}.'),
]
Cursor = Annotated[str | None, Field(description="From a truncated answer.")]
DryRun = Annotated[bool, Field(description="Only show what it would do.")]
FileName = Annotated[str, Field(description="Plain name, no path.")]
