"""Tools of both SQL servers. Each server describes them in its own words, and defines the form of SQL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mcp_batteries.clipping import DEFAULT_PAGE_BYTES
from mcp_batteries.server.calling.results import TextResult
from mcp_batteries.server.declaration.decorators import rename_arguments, tool
from mcp_batteries.server.declaration.fields import Cursor, DryRun, Limit, MaxBytes
from mcp_batteries.server.declaration.views import TABLE
from mcp_batteries.sql.arguments import ComparedWith, DatabaseName, FilePath, MaxCell, Sample, SearchWords
from mcp_batteries.sql.base import E, P, Room
from mcp_batteries.sql.results.rows import Results, RowPage, SearchHits

__all__ = [
    "IMPORT_DESCRIPTION",
    "MAX_SECONDS",
    "RENAMED_SQL_ARGUMENTS",
    "ROW_FILE_SUFFIXES",
    "ImportTools",
    "ReadTools",
    "SchemaTools",
    "WriteTools",
]

# This is above every time limit that an operator can set, and that limit is what really ends a statement.
MAX_SECONDS = 6100.0

# Rows are copied to files with these endings.
ROW_FILE_SUFFIXES = (".csv", ".jsonl", ".parquet")

IMPORT_DESCRIPTION = (
    f"Insert a .csv (with a header), {', '.join(('.json', *ROW_FILE_SUFFIXES[1:-1]))} or {ROW_FILE_SUFFIXES[-1]} file "
    "of the operator's folder into a table, all or nothing.\n\nWith `edit_schema` a missing table is made; `dry_run` "
    "shows its types and values. For a few rows use `write_rows`."
)

# Other servers call these arguments so.
RENAMED_SQL_ARGUMENTS = rename_arguments(query="sql", statement="sql", params="parameters")


@dataclass(frozen=True)
class ReadTools(Room[P, E]):
    """Tables, their names, and queries."""

    @tool("Describe a table", seconds=MAX_SECONDS)
    async def get_table(
        self,
        table: Any,
        database: DatabaseName = None,
        sample: Sample = 0,
        compare_with: ComparedWith = None,
    ) -> TextResult:
        """Get what is known of a table."""
        if compare_with is not None:
            other = self.policy.table(database, compare_with)
            return await self.engine.compare(self.policy.table(database, table), other)
        return await self.engine.describe(self.policy.table(database, table), sample=sample)

    @tool("Search the schema", seconds=MAX_SECONDS)
    async def search_schema(self, query: SearchWords, database: DatabaseName = None, limit: Limit = 100) -> SearchHits:
        """Search names in the schema."""
        return await self.engine.find(self.policy.search(database, query), limit=limit)

    @tool("Query", seconds=MAX_SECONDS, view=TABLE, adapt=RENAMED_SQL_ARGUMENTS)
    async def query_rows(
        self,
        sql: Any = None,
        parameters: Any = None,
        database: DatabaseName = None,
        limit: Limit = 100,
        max_bytes: MaxBytes = DEFAULT_PAGE_BYTES,
        max_cell: MaxCell = 2000,
        cursor: Cursor = None,
    ) -> RowPage | Results:
        """Query with statements that only read."""
        request = self.policy.page(database, sql, parameters, cursor)
        return await self.engine.rows(request, limit=limit, max_bytes=max_bytes, max_cell=max_cell)


@dataclass(frozen=True)
class WriteTools(Room[P, E]):
    """Changes of rows."""

    @tool("Change rows", effect="destroy", seconds=MAX_SECONDS, adapt=RENAMED_SQL_ARGUMENTS)
    async def write_rows(
        self, sql: Any, parameters: Any = None, database: DatabaseName = None, dry_run: DryRun = False
    ) -> TextResult:
        """Change rows in one transaction."""
        return await self.engine.change(self.policy.write(database, sql, parameters), dry_run=dry_run)


@dataclass(frozen=True)
class SchemaTools(Room[P, E]):
    """Changes of the schema."""

    @tool("Change the schema", effect="destroy", seconds=MAX_SECONDS, adapt=RENAMED_SQL_ARGUMENTS)
    async def edit_schema(self, sql: Any, database: DatabaseName = None, dry_run: DryRun = False) -> TextResult:
        """Change the schema in one transaction."""
        return await self.engine.change(self.policy.schema_change(database, sql), dry_run=dry_run)


@dataclass(frozen=True)
class ImportTools(Room[P, E]):
    """Rows of files."""

    @tool("Import rows", effect="write", seconds=MAX_SECONDS)
    async def copy_from_file(
        self, file: FilePath, table: Any, database: DatabaseName = None, dry_run: DryRun = False
    ) -> TextResult:
        """Insert a file's records into a table."""
        source = self.policy.served_file(file, (*ROW_FILE_SUFFIXES, ".json", ".tsv"))
        return await self.engine.import_rows(self.policy.import_table(database, table), source, dry_run=dry_run)
