"""Reads a schema: its tables, their columns, what belongs to virtual ones, and the DDL."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from typing import Any

from mcp_batteries.sql.identifiers import identifier
from mcp_sqlite.worker.connection.authorizer import MODULES
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.language.failure import Failure

__all__ = [
    "FTS",
    "TABLES",
    "columns_of",
    "module_of",
    "name_of",
    "named_in",
    "notice_changes",
    "open_virtual",
    "rows_by_statistics",
    "safe",
    "shadows",
    "table_names",
]

FTS = ("fts3", "fts4", "fts5")
TABLES = """
SELECT name, type, coalesce(sql, '') FROM sqlite_master
WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY name
"""
_USING = re.compile(
    r"""\s*CREATE\s+VIRTUAL\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(?:"(?:[^"]|"")*"|\[[^]]*\]|`(?:[^`]|``)*`|'(?:[^']|'')*'|\w+)"""
    r"""\s+USING\s+["'`\[]?(\w+)""",
    re.IGNORECASE,
)
"""What SQLite keeps of a CREATE VIRTUAL TABLE begins so, in the words of its author."""


def name_of(database: Database, table: str) -> str:
    """`table` as the schema spells it.

    Raises:
        Failure: There is no such table or view.
    """
    rows = database.own(
        "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name = ? COLLATE NOCASE", [table]
    )
    rows = [row for row in rows if database.serves(str(row[0]))]
    if (
        not rows
        and database.part is None
        and table.lower() in ("sqlite_master", "sqlite_schema", "sqlite_sequence", "sqlite_stat1")
    ):
        return table.lower()
    if not rows:
        import difflib

        near = difflib.get_close_matches(table, table_names(database), n=3, cutoff=0.5)
        words = " or ".join(f"`{item}`" for item in near)
        shown = table if len(table) <= 100 else table[:99] + "…"
        fix = f"Did you mean {words}?" if near else "`list_tables` lists them."
        raise Failure("not_found", f"There is no table or view `{shown}`.", fix)
    return str(rows[0][0])


def table_names(database: Database) -> list[str]:
    """Tables and views in the order of their names, without those that virtual ones keep for themselves; then files."""
    hidden = shadows(database)
    names = [str(name) for name, *_ in database.own(TABLES)]
    return [name for name in names if name.lower() not in hidden and database.serves(name)] + [*database.files]


def named_in(sql: str, tables: Sequence[str]) -> list[str]:
    """Those of `tables` that a statement names."""
    return [table for table in tables if re.search(rf"(?<!\w){re.escape(table)}(?!\w)", sql, re.IGNORECASE)]


_SHADOWS = (
    "_config", "_content", "_data", "_docsize", "_idx", "_node", "_parent", "_rowid", "_segdir", "_segments", "_stat",
    "_auxiliary", "_chunks", "_info", "_rowids",
    *(f"_{kind}{number:02}" for kind in ("vector_chunks", "metadatachunks", "metadatatext") for number in range(16)),
)  # fmt: skip
"""What FTS3 to FTS5, R-Tree and sqlite-vec append to their names."""


def shadows(database: Database) -> dict[str, str]:
    """Tables that hold what a virtual one shows, in lower case, and that one's name: nobody asks for them."""
    rows = database.own("SELECT name, sql LIKE 'CREATE VIRTUAL%' FROM sqlite_master WHERE type = 'table'")
    owners = [str(name) for name, is_virtual in rows if is_virtual]
    names = {str(name).lower() for name, _ in rows}
    return {
        (owner + ending).lower(): owner for owner in owners for ending in _SHADOWS if (owner + ending).lower() in names
    }


def open_virtual(database: Database) -> None:
    """Have SQLite open the virtual tables of its own modules now; what they prepare for it is not a caller's doing."""
    rows = database.own("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL%'")
    for name, sql in rows:
        if module_of(str(sql)) in MODULES:
            safe(database, f"SELECT 1 FROM main.{identifier(str(name))} LIMIT 0")


def rows_by_statistics(database: Database, table: str) -> int | None:
    """How many rows a table had at the last ANALYZE; a partial index has fewer."""
    rows = safe(database, "SELECT max(CAST(stat AS INTEGER)) FROM sqlite_stat1 WHERE tbl = ?", [table])
    return rows[0][0] if rows else None


def notice_changes(database: Database) -> None:
    """Read again what others have changed of the schema. EXPLAIN does not look: it begins no transaction."""
    for _, name, _ in database.own("PRAGMA database_list"):
        database.own(f"SELECT 1 FROM {identifier(str(name))}.sqlite_master LIMIT 1")


def safe(database: Database, sql: str, parameters: Any = ()) -> list[tuple[Any, ...]]:
    """Rows, or none where the object is broken: a view over a table that is gone, a module this build has not."""
    try:
        return database.own(sql, parameters)
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF != sqlite3.SQLITE_ERROR:
            raise  # a lock or a damaged page is not an answer
        return []


def columns_of(database: Database, table: str) -> list[tuple[Any, ...]]:
    """PRAGMA table_xinfo of `table` without what virtual tables hide from SELECT *; generated columns are there."""
    within = "temp" if table in database.files else "main"
    return [row for row in safe(database, f"PRAGMA {within}.table_xinfo({identifier(table)})") if row[6] != 1]


def module_of(sql: str) -> str:
    """The module of a CREATE VIRTUAL TABLE, in lower case: the word behind the USING that is behind the name."""
    found = _USING.match(sql)
    return found[1].lower() if found else ""
