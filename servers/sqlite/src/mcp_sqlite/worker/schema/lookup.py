"""Reads a schema: its tables, their columns, what belongs to virtual ones, and the DDL."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from typing import Any

from mcp_batteries.sql.identifiers import identifier
from mcp_sqlite.worker.connection.authorizer import CREATABLE_MODULES
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.language.failure import Failure

__all__ = [
    "FULL_TEXT_MODULES",
    "TABLES",
    "estimate_row_count",
    "find_named_tables",
    "find_shadow_tables",
    "find_table",
    "list_columns",
    "list_table_names",
    "open_virtual_tables",
    "parse_virtual_module",
    "query_unless_broken",
    "reread_schema",
]

FULL_TEXT_MODULES = ("fts3", "fts4", "fts5")
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


def find_table(database: Database, table: str) -> str:
    """`table` as the schema spells it.

    Raises:
        Failure: There is no such table or view.
    """
    rows = database.run_internal(
        "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name = ? COLLATE NOCASE", [table]
    )
    rows = [row for row in rows if database.is_visible(str(row[0]))]
    if (
        not rows
        and database.visible_schema is None
        and table.lower() in ("sqlite_master", "sqlite_schema", "sqlite_sequence", "sqlite_stat1")
    ):
        return table.lower()
    if not rows:
        import difflib

        near = difflib.get_close_matches(table, list_table_names(database), n=3, cutoff=0.5)
        words = " or ".join(f"`{item}`" for item in near)
        shown = table if len(table) <= 100 else table[:99] + "…"
        fix = f"Did you mean {words}?" if near else "`list_tables` lists them."
        raise Failure("not_found", f"There is no table or view `{shown}`.", fix)
    return str(rows[0][0])


def list_table_names(database: Database) -> list[str]:
    """Tables and views in the order of their names, without those that virtual ones keep for themselves; then files."""
    hidden = find_shadow_tables(database)
    names = [str(name) for name, *_ in database.run_internal(TABLES)]
    return [name for name in names if name.lower() not in hidden and database.is_visible(name)] + [
        *database.file_tables
    ]


def find_named_tables(sql: str, tables: Sequence[str]) -> list[str]:
    """Those of `tables` that a statement names."""
    return [table for table in tables if re.search(rf"(?<!\w){re.escape(table)}(?!\w)", sql, re.IGNORECASE)]


_SHADOWS = (
    "_config", "_content", "_data", "_docsize", "_idx", "_node", "_parent", "_rowid", "_segdir", "_segments", "_stat",
    "_auxiliary", "_chunks", "_info", "_rowids",
    *(f"_{kind}{number:02}" for kind in ("vector_chunks", "metadatachunks", "metadatatext") for number in range(16)),
)  # fmt: skip
"""What FTS3 to FTS5, R-Tree and sqlite-vec append to their names."""


def find_shadow_tables(database: Database) -> dict[str, str]:
    """Tables that hold what a virtual one shows, in lower case, and that one's name: nobody asks for them."""
    rows = database.run_internal("SELECT name, sql LIKE 'CREATE VIRTUAL%' FROM sqlite_master WHERE type = 'table'")
    owners = [str(name) for name, is_virtual in rows if is_virtual]
    names = {str(name).lower() for name, _ in rows}
    return {
        (owner + ending).lower(): owner for owner in owners for ending in _SHADOWS if (owner + ending).lower() in names
    }


def open_virtual_tables(database: Database) -> None:
    """Have SQLite open the virtual tables of its own modules now; what they prepare for it is not a caller's doing."""
    rows = database.run_internal(
        "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL%'"
    )
    for name, sql in rows:
        if parse_virtual_module(str(sql)) in CREATABLE_MODULES:
            query_unless_broken(database, f"SELECT 1 FROM main.{identifier(str(name))} LIMIT 0")


def estimate_row_count(database: Database, table: str) -> int | None:
    """How many rows a table had at the last ANALYZE; a partial index has fewer."""
    rows = query_unless_broken(database, "SELECT max(CAST(stat AS INTEGER)) FROM sqlite_stat1 WHERE tbl = ?", [table])
    return rows[0][0] if rows else None


def reread_schema(database: Database) -> None:
    """Read again what others have changed of the schema. EXPLAIN does not look: it begins no transaction."""
    for _, name, _ in database.run_internal("PRAGMA database_list"):
        database.run_internal(f"SELECT 1 FROM {identifier(str(name))}.sqlite_master LIMIT 1")


def query_unless_broken(database: Database, sql: str, parameters: Any = ()) -> list[tuple[Any, ...]]:
    """Rows, or none where the object is broken: a view over a table that is gone, a module this build has not."""
    try:
        return database.run_internal(sql, parameters)
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF != sqlite3.SQLITE_ERROR:
            raise  # a lock or a damaged page is not an answer
        return []


def list_columns(database: Database, table: str) -> list[tuple[Any, ...]]:
    """PRAGMA table_xinfo of `table` without what virtual tables hide from SELECT *; generated columns are there."""
    within = "temp" if table in database.file_tables else "main"
    return [
        row for row in query_unless_broken(database, f"PRAGMA {within}.table_xinfo({identifier(table)})") if row[6] != 1
    ]


def parse_virtual_module(sql: str) -> str:
    """The module of a CREATE VIRTUAL TABLE, in lower case: the word behind the USING that is behind the name."""
    found = _USING.match(sql)
    return found[1].lower() if found else ""
