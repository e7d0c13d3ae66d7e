"""Copies rows into files and out of them, and whole databases."""

from __future__ import annotations

from collections.abc import Sequence

from mcp_batteries.scratch import Scratch
from mcp_batteries.sql.results.changes import Export, Import
from mcp_sqlite.engine.requests import to_request
from mcp_sqlite.engine.workers.pool import WorkerPool
from mcp_sqlite.models import Backup
from mcp_sqlite.policy import ImportTable, NewFile, ReadStatement, ServedFile, WholeDatabase

__all__ = ["back_up", "export_rows", "import_rows"]

_MAX_EXPORT_BYTES = 1_000_000_000


async def export_rows(pool: WorkerPool, statement: ReadStatement, file: NewFile) -> Export:
    """Write all rows of a query into a new file."""
    answer = await pool.call_long(
        {
            "do": "export",
            **to_request(statement),
            "folder": file.folder,
            "name": file.name,
            "max_bytes": _MAX_EXPORT_BYTES,
        }
    )
    return Export(file.name, answer["columns"], answer["rows"], answer["bytes"])


async def import_rows(pool: WorkerPool, table: ImportTable, file: ServedFile, *, dry_run: bool) -> Import:
    """Insert all records of a file into a table, or none."""
    answer = await pool.call_long(
        {
            "do": "import",
            "path": table.database.address,
            "table": table.name,
            "folder": file.folder,
            "name": file.name,
            "encoding": file.encoding,
            "null_words": file.null_words,
            "dry_run": dry_run,
            "make": table.make,
        }
    )
    return Import(
        table=answer["table"],
        columns=answer["columns"],
        rows=answer["rows"],
        dry_run=dry_run,
        new_columns=answer["new_columns"],
        descriptions=answer["contents"],
        dialect=answer["dialect"],
        records=answer["records"],
        texts=answer["texts"],
        notes=[
            *_explain_codes(answer["codes"]),
            *_explain_rounded(answer["rounded"]),
            *filter(None, [answer["skipped_triggers"]]),
        ],
        replaced=answer["replaced"],
    )


def _explain_codes(columns: Sequence[str]) -> list[str]:
    """Return what became of codes, which look like numbers, in columns that make numbers of texts."""
    if not columns:
        return []
    return [f"Kept as numbers, so `007` is 7 and `1.10` 1.1: {'; '.join(columns)}. Type TEXT keeps such codes."]


def _explain_rounded(columns: Sequence[str]) -> list[str]:
    """Return which columns keep numbers with fewer digits than the file has."""
    if not columns:
        return []
    return [f"Rounded to the 16 digits or so of a real: {'; '.join(columns)}. Type TEXT keeps all."]


async def back_up(pool: WorkerPool, scratch: Scratch, database: WholeDatabase, file: NewFile) -> Backup:
    """Make a consistent copy of the database in a new file."""
    answer = await pool.call_long(
        {
            "do": "back_up",
            "path": database.database.address,
            "folder": file.folder,
            "name": file.name,
            "scratch": scratch.new(".db"),
        }
    )
    return Backup(file.name, answer["bytes"])
