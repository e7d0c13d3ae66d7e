"""Exports, imports and backups, as tools; offered when the operator names a folder for files."""

from __future__ import annotations

from typing import Annotated

from mcp_batteries.scratch import Scratch
from mcp_batteries.server.calling.results import TextResult
from mcp_batteries.server.declaration.decorators import tool
from mcp_batteries.server.declaration.fields import DryRun
from mcp_batteries.server.declaration.trusted import default, trusted
from mcp_batteries.sql.arguments import (
    DATABASE,
    MAX_SECONDS,
    NEW_FILE,
    RENAMED_SQL_ARGUMENTS,
    Encoding,
    NewRowFile,
    Nulls,
    RowFile,
)
from mcp_batteries.sql.results.changes import Export
from mcp_sqlite.engine import files
from mcp_sqlite.engine.workers.pool import WorkerPool
from mcp_sqlite.models import Backup
from mcp_sqlite.policy import NewFile, Policy, WholeDatabase
from mcp_sqlite.tools.arguments import PlanParameters, ReadableDb, Relation, Sql, WritableDb

__all__ = ["copy_database", "copy_from_file", "copy_to_file"]


@tool("Export rows", effect="write", gate="files", seconds=MAX_SECONDS, adapt=RENAMED_SQL_ARGUMENTS)
async def copy_to_file(
    pool: WorkerPool,
    *,
    sql: Sql,
    file: NewRowFile,
    parameters: PlanParameters = None,
    database: ReadableDb = default(""),
) -> Export:
    """Copy all rows of a query into a new .csv, .jsonl or .parquet file; a name that exists is refused.

    The query may have sums and joins. The file is made in the folder for files. To see rows use `query_rows`, to copy
    all tables `copy_database`.
    """
    return await files.export_rows(pool, database.read(sql, parameters), file)


@tool("Back up", effect="write", gate="files", seconds=MAX_SECONDS)
async def copy_database(
    pool: WorkerPool,
    scratch: Scratch,
    *,
    file: Annotated[NewFile, trusted(Policy.new_database_file), NEW_FILE],
    database: Annotated[WholeDatabase, trusted(Policy.whole_database), DATABASE] = default(""),
) -> Backup:
    """Copy a database, consistent while others write, into a new .db file in the folder for files.

    Rows only: `copy_to_file`.
    """
    return await files.back_up(pool, scratch, database, file)


@tool("Import rows", effect="write", gate=("files", "write"), seconds=MAX_SECONDS)
async def copy_from_file(
    pool: WorkerPool,
    *,
    file: RowFile,
    table: Relation,
    database: WritableDb = default(""),
    encoding: Encoding = None,
    nulls: Nulls = None,
    dry_run: DryRun = False,
) -> TextResult:
    """Insert a .csv (with a header), .json, .jsonl or .parquet file of the folder for files into a table, all or
    nothing.

    With `edit_schema` a missing table is made; `dry_run` shows its types and values. For a few rows use `write_rows`.
    """
    source = file.with_format(encoding, nulls or ())
    return await files.import_rows(pool, database.import_table(table), source, dry_run=dry_run)
