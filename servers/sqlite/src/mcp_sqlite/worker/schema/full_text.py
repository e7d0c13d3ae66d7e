"""Full-text tables, and the tables whose rows they index."""

from __future__ import annotations

import re
import sqlite3
from typing import NamedTuple

from mcp_batteries.sql.language.identifiers import quote_identifier, unquote_identifier
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.schema.lookup import FULL_TEXT_MODULES, parse_virtual_module

__all__ = ["FullTextTable", "count_strays", "list_full_text_tables"]

_VALUE = r"""('(?:[^']|'')*'|"(?:[^"]|"")*"|\[[^]]*\]|`(?:[^`]|``)*`|\w+)"""
_CONTENT = re.compile(rf"[(,]\s*content\s*=\s*{_VALUE}", re.IGNORECASE)
_CONTENT_ROWID = re.compile(rf"[(,]\s*content_rowid\s*=\s*{_VALUE}", re.IGNORECASE)
# From here on `PRAGMA integrity_check` looks into virtual tables.
_CHECKED_SINCE = (3, 44)


class FullTextTable(NamedTuple):
    """A full-text table, and the module and definition that it is made by."""

    name: str
    module: str
    sql: str

    @property
    def content(self) -> str | None:
        """The table whose rows it indexes: None for its own, empty where it keeps none."""
        return _read_option(_CONTENT, self.sql)

    @property
    def content_rowid(self) -> str:
        """The column of `content` that numbers the rows."""
        return _read_option(_CONTENT_ROWID, self.sql) or "rowid"

    @property
    def is_checked_with_file(self) -> bool:
        """Whether SQLite's integrity check compares the index with the rows."""
        if sqlite3.sqlite_version_info < _CHECKED_SINCE:
            return False
        return self.module != "fts5" or self.content is None


def _read_option(pattern: re.Pattern[str], sql: str) -> str | None:
    match = pattern.search(sql)
    if match is None:
        return None
    value = match[1]
    if value.startswith(("[", "`")):
        return value[1:-1]
    if value.startswith("'"):
        return value[1:-1].replace("''", "'")
    return unquote_identifier(value)


def list_full_text_tables(database: Database) -> list[FullTextTable]:
    """Return the full-text tables that are served."""
    rows = database.run_internal(
        "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL%'"
    )
    candidates = [FullTextTable(str(name), parse_virtual_module(str(sql)), str(sql)) for name, sql in rows]
    return [item for item in candidates if item.module in FULL_TEXT_MODULES and database.is_visible(item.name)]


def count_strays(database: Database, table: FullTextTable) -> int:
    """Return how many entries an index has for which the table that it indexes has no row, or no more."""
    if not table.content:
        return 0
    sizes = quote_identifier(f"{table.name}_docsize")
    key = "id" if table.module == "fts5" else "docid"
    content = quote_identifier(table.content)
    rowid = quote_identifier(table.content_rowid)
    return database.read_internal(
        f"SELECT count(*) FROM (SELECT {key} FROM {sizes} EXCEPT SELECT {rowid} FROM {content})"
    )
