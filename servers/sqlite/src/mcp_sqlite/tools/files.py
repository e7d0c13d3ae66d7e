"""Exports, imports and backups, as tools; offered when the operator names a folder for files."""

from __future__ import annotations

from dataclasses import dataclass

from mcp_batteries.server.declaration.decorators import described_by, tool
from mcp_batteries.sql import tools
from mcp_batteries.sql.arguments import DatabaseName, FileName
from mcp_batteries.sql.base import Room
from mcp_batteries.sql.tools import IMPORT_DESCRIPTION, MAX_SECONDS, RENAMED_SQL_ARGUMENTS, ROW_FILE_SUFFIXES
from mcp_sqlite.engine.service import Engine
from mcp_sqlite.models import Backup, Export
from mcp_sqlite.policy import Policy
from mcp_sqlite.tools.arguments import PlanParameters, Sql, TableName

__all__ = ["FileTools", "ImportTools"]


@dataclass(frozen=True)
class FileTools(Room[Policy, Engine]):
    """Into files."""

    @tool("Export rows", effect="write", seconds=MAX_SECONDS, adapt=RENAMED_SQL_ARGUMENTS)
    async def copy_to_file(
        self, sql: Sql, file: FileName, parameters: PlanParameters = None, database: DatabaseName = None
    ) -> Export:
        """Copy all rows of a query into a new .csv, .jsonl or .parquet file; a name that exists is refused.

        It is made in the operator's folder for files. To see rows use `query_rows`, to copy all tables `copy_database`.
        """
        statement = self.policy.read(database, sql, parameters)
        return await self.engine.export(statement, self.policy.new_file(file, ROW_FILE_SUFFIXES))

    @tool("Back up", effect="write", seconds=MAX_SECONDS)
    async def copy_database(self, file: FileName, database: DatabaseName = None) -> Backup:
        """Copy a database, consistent while others write, into a new .db file in the export folder.

        Rows only: `copy_to_file`.
        """
        target = self.policy.new_file(file, (".db", ".sqlite", ".sqlite3"))
        return await self.engine.back_up(self.policy.whole(database), target)


@described_by({"copy_from_file": IMPORT_DESCRIPTION}, {"table": TableName})
class ImportTools(tools.ImportTools[Policy, Engine]):
    """From files."""
