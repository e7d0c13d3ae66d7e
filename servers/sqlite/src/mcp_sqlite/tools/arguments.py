"""Arguments that several tools share, described in the same words everywhere."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from mcp_sqlite.policy import MAX_SQL

__all__ = ["Cursor", "DatabaseName", "DryRun", "FileName", "Parameters", "Sql", "TableName"]

DatabaseName = Annotated[str | None, Field(description="Which database; not needed when only one is served.")]
TableName = Annotated[str, Field(description="Table or view.")]
Sql = Annotated[str, Field(min_length=1, max_length=MAX_SQL, description="SQLite SQL.")]
Parameters = Annotated[
    list[Any] | dict[str, Any] | None,
    Field(description='Values for ? (array) or :name (object); bytes as {"base64": "…"}.'),
]
Cursor = Annotated[str | None, Field(description="From the answer that was truncated.")]
DryRun = Annotated[bool, Field(description="Show what it would do, change nothing.")]
FileName = Annotated[str, Field(description="Plain name in the folder for files.")]
