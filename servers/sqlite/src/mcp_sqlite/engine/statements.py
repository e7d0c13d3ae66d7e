"""Has SQLite explain statements, check them, and search in the text of tables."""

from __future__ import annotations

from mcp_batteries.clipping import DEFAULT_PAGE_BYTES
from mcp_batteries.sql.results.rows import RowPage
from mcp_sqlite.engine.requests import to_request
from mcp_sqlite.engine.workers.pool import WorkerPool
from mcp_sqlite.models import Check, Plan
from mcp_sqlite.policy import Database, ReadStatement, TableName

__all__ = ["check_integrity", "compile_statement", "explain_plan", "search_text"]

_MAX_FOUND_CELL = 500


async def explain_plan(pool: WorkerPool, statement: ReadStatement) -> Plan:
    """Return what SQLite would do for `statement`, which may be one that changes rows."""
    answer = await pool.call({"do": "explain", **to_request(statement)})
    return Plan(
        answer["tree"],
        answer["scans"],
        answer["indexes"],
        answer["tree_with_indexes"],
        answer["candidate_count"],
    )


async def compile_statement(pool: WorkerPool, statement: ReadStatement) -> None:
    """Have SQLite compile `statement`, and run nothing.

    Raises:
        Problem: it is wrong, or would do more than read.
    """
    await pool.call({"do": "explain", "mode": "read", **to_request(statement)})


async def search_text(pool: WorkerPool, database: Database, table: TableName | None, words: str, limit: int) -> RowPage:
    """Return rows of a full-text table that match, the best first.

    Args:
        table: None for the only one that there is.
    """
    answer = await pool.call(
        {
            "do": "search",
            "path": database.address,
            "text": words,
            "limit": limit,
            "table": table and table.text,
            "max_cell": _MAX_FOUND_CELL,
            "max_bytes": DEFAULT_PAGE_BYTES,
        }
    )
    notes: list[str] = answer["notes"]
    if answer["more"]:
        notes.append(f"there are more matches in {answer['table']}")
    return RowPage(
        columns=answer["columns"],
        lines=answer["lines"],
        start=1,
        rows=answer["rows"],
        cursor=None,
        cut=answer["cut"],
        notes=notes,
    )


async def check_integrity(pool: WorkerPool, database: Database, *, quick: bool) -> Check:
    """Return whether the file is whole and its foreign keys hold."""
    answer = await pool.call_long({"do": "check", "path": database.address, "quick": quick})
    return Check(database.name, answer["complaints"], answer["broken_keys"], answer["unchecked"], answer["collated"])
