"""Looks up what a schema has: tables, their columns, and what belongs to virtual ones."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from mcp_batteries.sql.language import suggestions
from mcp_batteries.sql.language.identifiers import quote_identifier, spell_identifier, unquote_identifier
from mcp_batteries.sql.transfer.files import READ_FILE_SUFFIXES
from mcp_sqlite.worker.connection.authorizer import CREATABLE_MODULES
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.language.failure import Failure, primary_code

__all__ = [
    "FULL_TEXT_MODULES",
    "Column",
    "TableEntry",
    "estimate_row_count",
    "find_named_tables",
    "find_shadow_tables",
    "find_table",
    "list_column_names",
    "list_columns",
    "list_key_columns",
    "list_objects",
    "list_table_names",
    "name_tables",
    "open_virtual_tables",
    "parse_virtual_module",
    "query_unless_broken",
    "read_all_columns",
    "read_table_info",
    "reread_schema",
]

FULL_TEXT_MODULES = ("fts3", "fts4", "fts5")
_TABLES = """
SELECT name, type, coalesce(sql, '') FROM sqlite_master
WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY name
"""
_TABLE_NAMED = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name = ? COLLATE NOCASE"
_VIRTUAL_TABLES = "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL%'"
# What SQLite keeps of a CREATE VIRTUAL TABLE begins so, in the words of its author.
_USING = re.compile(
    r"""\s*CREATE\s+VIRTUAL\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?"""
    r"""(?:"(?:[^"]|"")*"|\[[^]]*\]|`(?:[^`]|``)*`|'(?:[^']|'')*'|\w+)\s+USING\s+["'`\[]?(\w+)""",
    re.IGNORECASE,
)
# What FTS3 to FTS5, R-Tree and sqlite-vec append to their names.
_SHADOW_ENDINGS = (
    "_config", "_content", "_data", "_docsize", "_idx", "_node", "_parent", "_rowid", "_segdir", "_segments", "_stat",
    "_auxiliary", "_chunks", "_info", "_rowids",
    *(f"_vector_chunks{number:02}" for number in range(16)),
    *(f"_metadatachunks{number:02}" for number in range(16)),
    *(f"_metadatatext{number:02}" for number in range(16)),
)  # fmt: skip
_INTERNAL_TABLES = ("sqlite_master", "sqlite_schema", "sqlite_sequence", "sqlite_stat1")
_MAX_NAME_LENGTH = 100
_ROWID_NAMES = ("rowid", "_rowid_", "oid")


class TableEntry(NamedTuple):
    """A table or view, as `sqlite_master` has it."""

    name: str
    kind: str
    sql: str


class Column(NamedTuple):
    """A row of PRAGMA table_xinfo (https://sqlite.org/pragma.html#pragma_table_xinfo).

    Attributes:
        key_position: its place in the primary key, from 1; 0 if it is in none.
        hidden: 1 for what SELECT * hides, 2 and 3 for generated columns.
    """

    number: int
    name: str
    type: str
    not_null: int
    default: str | None
    key_position: int
    hidden: int = 0


def find_table(database: Database, table: str) -> str:
    """Return `table` as the schema spells it; it may stand in quotes, as lists spell it.

    Raises:
        Failure: there is no such table or view.
    """
    for spelling in (table, unquote_identifier(table)):
        for (name,) in database.run_internal(_TABLE_NAMED, [spelling]):
            if database.is_visible(str(name)):
                return str(name)
    if database.visible_schema is None and table.lower() in _INTERNAL_TABLES:
        return table.lower()
    if database.folder is not None and table.lower().endswith(READ_FILE_SUFFIXES):
        fix = f"`list_tables` describes files, and `FROM {quote_identifier(table)}` reads one."
    else:
        fix = _suggest_tables(database, table)
    label = table if len(table) <= _MAX_NAME_LENGTH else table[: _MAX_NAME_LENGTH - 1] + "…"
    raise Failure("not_found", f"There is no table or view `{label}`.", fix)


def _suggest_tables(database: Database, name: str) -> str:
    """Return what was meant by the name of a table, and which tables there are."""
    spellings = [spell_identifier(table) for table in list_table_names(database)]
    similar = suggestions.find_similar(name, spellings)
    answer = suggestions.join_sentences(suggestions.ask_which(similar), name_tables(database, similar))
    return answer or "`list_tables` lists them."


def name_tables(database: Database, concerned: Collection[str]) -> str:
    """Return which tables and views there are, with their columns.

    Args:
        concerned: those that a statement names, or may mean, as SQL spells them; of many tables only these are named.
    """
    names = list_table_names(database)
    spellings = {spell_identifier(name): name for name in names}
    if len(names) > suggestions.MAX_NAMED_TABLES:
        spellings = {spelling: name for spelling, name in spellings.items() if spelling in concerned}
    columns: dict[str, list[str]] = {}
    for spelling, name in spellings.items():
        columns[spelling] = [spell_identifier(column) for column in list_column_names(database, name)]
    return suggestions.name_tables(columns, concerned, len(names))


def list_objects(database: Database) -> list[TableEntry]:
    """Return the served tables and views in the order of their names, without those that virtual ones keep."""
    shadow_tables = find_shadow_tables(database)
    entries = [TableEntry(str(name), kind, sql) for name, kind, sql in database.run_internal(_TABLES)]
    return [entry for entry in entries if entry.name.lower() not in shadow_tables and database.is_visible(entry.name)]


def list_table_names(database: Database) -> list[str]:
    """Return the names of what `list_objects` lists; then those of files that this request reads as tables."""
    return [*(entry.name for entry in list_objects(database)), *database.file_tables]


def find_named_tables(sql: str, tables: Sequence[str]) -> list[str]:
    """Return those of `tables` that a statement names; the quoted name of a file `a.csv` does not name a table `a`."""
    end = r"""(?!\w|\.\w+["'`])"""
    folded_sql = sql.casefold()
    # A pattern for each of many tables takes long.
    candidates = [table for table in tables if table.casefold() in folded_sql]
    return [table for table in candidates if re.search(rf"(?<!\w){re.escape(table)}{end}", sql, re.IGNORECASE)]


def find_shadow_tables(database: Database) -> dict[str, str]:
    """Return tables that hold what a virtual one shows, in lower case, and that one's name: nobody asks for them."""
    rows = database.run_internal("SELECT name, sql LIKE 'CREATE VIRTUAL%' FROM sqlite_master WHERE type = 'table'")
    names = {str(name).lower() for name, _ in rows}
    shadow_tables: dict[str, str] = {}
    for name, is_virtual in rows:
        if is_virtual:
            owner = str(name)
            for ending in _SHADOW_ENDINGS:
                shadow_table = (owner + ending).lower()
                if shadow_table in names:
                    shadow_tables[shadow_table] = owner
    return shadow_tables


def open_virtual_tables(database: Database) -> None:
    """Have SQLite open the virtual tables of its own modules now.

    What they prepare when they are first used is not a caller's doing.
    """
    for name, sql in database.run_internal(_VIRTUAL_TABLES):
        if parse_virtual_module(str(sql)) in CREATABLE_MODULES:
            query_unless_broken(database, f"SELECT 1 FROM main.{quote_identifier(str(name))} LIMIT 0")


def estimate_row_count(database: Database, table: str) -> int | None:
    """Return how many rows a table had at the last ANALYZE; a partial index has fewer."""
    sql = "SELECT max(CAST(stat AS INTEGER)) FROM sqlite_stat1 WHERE tbl = ?"
    rows = query_unless_broken(database, sql, [table])
    return rows[0][0] if rows else None


def reread_schema(database: Database) -> None:
    """Read again what others have changed of the schema. EXPLAIN does not look: it begins no transaction."""
    for _, name, _ in database.run_internal("PRAGMA database_list"):
        database.run_internal(f"SELECT 1 FROM {quote_identifier(str(name))}.sqlite_master LIMIT 1")


def query_unless_broken(database: Database, sql: str, parameters: Any = ()) -> list[tuple[Any, ...]]:
    """Return rows, or none where the object is broken: a view over a table that is gone, a module this build lacks."""
    try:
        return database.run_internal(sql, parameters)
    except sqlite3.Error as error:
        if hasattr(error, "sqlite_errorcode") and primary_code(error) != sqlite3.SQLITE_ERROR:
            raise  # a lock or a damaged page is not an answer
        return []


def read_table_info(database: Database, table: str) -> list[Column]:
    """Return the columns that a row of `table` is inserted with: neither hidden nor generated ones."""
    return [Column(*row) for row in database.run_internal(f"PRAGMA main.table_info({quote_identifier(table)})")]


def read_all_columns(database: Database, table: str) -> list[Column]:
    """Return all columns, those too that virtual tables hide from SELECT *.

    Raises:
        sqlite3.Error: the table is broken.
    """
    return [Column(*row) for row in database.run_internal(f"PRAGMA main.table_xinfo({quote_identifier(table)})")]


def list_column_names(database: Database, table: str) -> list[str]:
    """Return the names of the columns that `list_columns` has."""
    return [str(column.name) for column in list_columns(database, table)]


def list_columns(database: Database, table: str) -> list[Column]:
    """Return the columns that SELECT * shows, generated ones too; none where the table is broken."""
    schema = "temp" if table in database.file_tables else "main"
    rows = query_unless_broken(database, f"PRAGMA {schema}.table_xinfo({quote_identifier(table)})")
    columns = [Column(*row) for row in rows]
    return [column for column in columns if column.hidden != 1]


def list_key_columns(database: Database, table: str) -> list[str]:
    """Return the primary key's columns, quoted; `rowid` where there is none; nothing for a view."""
    columns = read_table_info(database, table)
    key_columns = sorted((column.key_position, column.name) for column in columns if column.key_position)
    if key_columns:
        return [quote_identifier(str(name)) for _, name in key_columns]
    kinds = database.run_internal("SELECT type FROM sqlite_master WHERE name = ?", [table])
    if not kinds or kinds[0] != ("table",):
        return []
    if database.is_masked(table):
        return []  # what is read in its place is a view
    names = {str(column.name).lower() for column in columns}
    return [name for name in _ROWID_NAMES if name not in names][:1]


def parse_virtual_module(sql: str) -> str:
    """Return the module of a CREATE VIRTUAL TABLE, in lower case; nothing for another statement.

    It is the word behind the USING that is behind the name.
    """
    match = _USING.match(sql)
    return match[1].lower() if match else ""
