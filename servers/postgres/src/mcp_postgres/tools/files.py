"""Exports and imports, as tools; offered when the operator names a folder for files."""

from __future__ import annotations

from mcp_batteries.server.calling.results import TextResult
from mcp_batteries.server.declaration.decorators import tool
from mcp_batteries.server.declaration.fields import DryRun
from mcp_batteries.server.declaration.trusted import default
from mcp_batteries.sql.arguments import MAX_SECONDS, RENAMED_SQL_ARGUMENTS, Encoding, NewRowFile, Nulls, RowFile
from mcp_batteries.sql.results.changes import Export
from mcp_postgres.engine.pools import ConnectionPools
from mcp_postgres.engine.transfer.files import export_rows, import_rows
from mcp_postgres.tools.arguments import ReadableDb, Relation, Sql, WritableDb

__all__ = ["copy_from_file", "copy_to_file"]


@tool("Export rows", effect="write", gate="files", seconds=MAX_SECONDS, adapt=RENAMED_SQL_ARGUMENTS)
async def copy_to_file(
    pools: ConnectionPools, *, sql: Sql, file: NewRowFile, database: ReadableDb = default("")
) -> Export:
    """Copy all rows of a query into a new .csv, .jsonl or .parquet file; a name that exists is refused.

    The query may have sums and joins. The file is made in the folder for files; .jsonl has an object per line. To see
    rows use `query_rows`.
    """
    return await export_rows(pools, database.read(sql), file)


@tool("Import rows", effect="write", gate=("files", "write"), seconds=MAX_SECONDS)
async def copy_from_file(
    pools: ConnectionPools,
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
    return await import_rows(pools, database.import_table(table), source, dry_run=dry_run)
