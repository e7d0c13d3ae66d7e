"""Exports and imports, as tools; offered when the operator names a folder for files."""

from __future__ import annotations

from dataclasses import dataclass

from mcp_batteries.server.declaration.decorators import described_by, tool
from mcp_batteries.sql import tools
from mcp_batteries.sql.arguments import DatabaseName, FileName
from mcp_batteries.sql.base import Room
from mcp_batteries.sql.tools import IMPORT_DESCRIPTION, MAX_SECONDS, RENAMED_SQL_ARGUMENTS, ROW_FILE_SUFFIXES
from mcp_postgres.engine.service import Engine
from mcp_postgres.models import Export
from mcp_postgres.policy import Policy
from mcp_postgres.tools.arguments import Sql, TableName

__all__ = ["FileTools", "ImportTools"]


@dataclass(frozen=True)
class FileTools(Room[Policy, Engine]):
    """Into files."""

    @tool("Export rows", effect="write", seconds=MAX_SECONDS, adapt=RENAMED_SQL_ARGUMENTS)
    async def copy_to_file(self, sql: Sql, file: FileName, database: DatabaseName = None) -> Export:
        """Copy all rows of a query into a new .csv, .jsonl or .parquet file; a name that exists is refused.

        It is made in the operator's folder for files; .jsonl has an object per line. To see rows use `query_rows`.
        """
        return await self.engine.export(self.policy.read(database, sql), self.policy.new_file(file, ROW_FILE_SUFFIXES))


@described_by({"copy_from_file": IMPORT_DESCRIPTION}, {"table": TableName})
class ImportTools(tools.ImportTools[Policy, Engine]):
    """From files."""
