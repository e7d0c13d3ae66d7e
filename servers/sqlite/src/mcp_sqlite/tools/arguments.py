"""Arguments that several tools share, described in the same words everywhere."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from mcp_sqlite.policy import MAX_SQL

__all__ = [
    "Cursor", "DatabaseName", "DryRun", "FileName", "OptionalSql", "OptionalTable", "Parameters", "Sql",
    "TableName",
]  # fmt: skip

DatabaseName = Annotated[str | None, Field(description="Which database; not needed when only one is served.")]
_table = Field(description="Table or view.")
TableName = Annotated[str, _table]
OptionalTable = Annotated[str | None, _table]
_sql = Field(min_length=1, max_length=MAX_SQL, description="SQLite SQL.")
Sql = Annotated[str, _sql]
OptionalSql = Annotated[str | None, _sql]
Parameters = Annotated[
    list[Any] | dict[str, Any] | None,
    Field(description='Values for ? (array) or :name (object); bytes as {"base64": "…"}.'),
]
Cursor = Annotated[str | None, Field(description="From the answer that was truncated.")]
DryRun = Annotated[bool, Field(description="Show what it would do, change nothing.")]
FileName = Annotated[str, Field(description="Plain name in the folder for files.")]
