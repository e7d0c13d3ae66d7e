"""Exports, imports and backups, as tools; offered when the operator names a folder for files."""

from __future__ import annotations

from dataclasses import dataclass

from mcp_batteries.server.declare import tool
from mcp_batteries.server.fields import DryRun
from mcp_batteries.sql.arguments import DatabaseName
from mcp_batteries.sql.room import Room
from mcp_batteries.sql.tools import LONGEST
from mcp_sqlite.engine.service import Engine
from mcp_sqlite.models import Backup, Export, Import
from mcp_sqlite.policy import Policy
from mcp_sqlite.tools.arguments import FileName, Parameters, Sql, TableName

__all__ = ["FileTools", "ImportTools"]

_ROWS = (".csv", ".jsonl", ".parquet")


@dataclass(frozen=True)
class FileTools(Room[Policy, Engine]):
    """Into files."""

    @tool("Export rows", effect="write", seconds=LONGEST)
    async def copy_to_file(
        self, sql: Sql, file: FileName, parameters: Parameters = None, database: DatabaseName = None
    ) -> Export:
        """Copy all rows of a query into a new .csv, .jsonl or .parquet file; a name that exists is refused."""
        statement = self.policy.read(database, sql, parameters)
        return await self.engine.export(statement, self.policy.new_file(file, _ROWS))

    @tool("Back up", effect="write", seconds=LONGEST)
    async def copy_database(self, file: FileName, database: DatabaseName = None) -> Backup:
        """Copy a database, consistent while others write, into a new .db file in the export folder.

        Rows only: `copy_to_file`.
        """
        target = self.policy.new_file(file, (".db", ".sqlite", ".sqlite3"))
        return await self.engine.back_up(self.policy.database(database), target)


@dataclass(frozen=True)
class ImportTools(Room[Policy, Engine]):
    """From files."""

    @tool("Import rows", effect="write", seconds=LONGEST)
    async def copy_from_file(
        self, file: FileName, table: TableName, database: DatabaseName = None, dry_run: DryRun = False
    ) -> Import:
        """Insert a .csv (with a header), .json, .jsonl or .parquet file into a table, all of it or nothing.

        With `edit_schema` there, a table that is missing is made, with types guessed: `dry_run` shows them.
        """
        source = self.policy.served_file(file, (*_ROWS, ".json"))
        return await self.engine.import_rows(self.policy.import_table(database, table), source, dry_run=dry_run)
