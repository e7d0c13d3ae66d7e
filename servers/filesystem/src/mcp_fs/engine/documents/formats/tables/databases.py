"""Reads what SQLite databases and Parquet files hold: their columns and their first rows."""

from __future__ import annotations

import importlib.util
import itertools
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, BinaryIO

from mcp_fs.engine.documents.formats.archives import NotInstalled, Unreadable

__all__ = ["read_parquet", "read_sqlite"]

_BLOCK_BYTES = 256 * 1024
# The process holds a database twice.
_MAX_DATABASE_BYTES = 192 * 1024 * 1024
# Of each table.
_MAX_ROWS = 10
_MAX_CELL_CHARACTERS = 200
_MAX_TYPE_CHARACTERS = 100
# In the header of a database: how it is written and read (https://www.sqlite.org/fileformat2.html#the_database_header).
_VERSIONS = slice(18, 20)
_ROLLBACK_JOURNAL = 1
_WRITE_AHEAD_LOG = 2
_OBJECTS = "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"


def read_sqlite(file: BinaryIO) -> Iterator[str]:
    """Yield the statement that made each table, view, index and trigger, and the first rows of each table.

    Of a large database only the beginning is looked at. What is still in its write-ahead log is in another file.
    """
    data = _read_beginning_of_database(file)
    if _WRITE_AHEAD_LOG in data[_VERSIONS]:
        yield "[without what its write-ahead log may hold]\n"
        data[_VERSIONS] = bytes((_ROLLBACK_JOURNAL, _ROLLBACK_JOURNAL))
    is_partial = len(data) == _MAX_DATABASE_BYTES
    if is_partial:
        yield f"[of the first {_MAX_DATABASE_BYTES:,} bytes of the database; mcp-sqlite reads all of it]\n"
    with closing(sqlite3.connect(":memory:")) as database:
        database.deserialize(data)
        del data
        database.text_factory = _decode
        try:
            # Without it, SQLite opens no file that is cut.
            database.execute("PRAGMA writable_schema = ON")
            database.execute("PRAGMA trusted_schema = OFF")
            objects = database.execute(_OBJECTS).fetchall()
        except sqlite3.Error as error:
            raise Unreadable(f"is damaged: {error}") from None
        for kind, name, statement in objects:
            yield f"{statement.strip()};\n"
            if kind == "table" and not statement.lstrip().upper().startswith("CREATE VIRTUAL"):
                yield from _read_table(database, name, is_partial=is_partial)


def _read_beginning_of_database(file: BinaryIO) -> bytearray:
    data = bytearray()
    while (remaining := _MAX_DATABASE_BYTES - len(data)) and (block := file.read(min(_BLOCK_BYTES, remaining))):
        data += block
    return data


def _read_table(database: sqlite3.Connection, name: str, *, is_partial: bool) -> Iterator[str]:
    quoted_name = '"' + name.replace('"', '""') + '"'
    try:
        cursor = database.execute(f"SELECT * FROM {quoted_name} LIMIT {_MAX_ROWS}")
        rows = cursor.fetchall()
    except sqlite3.Error as error:
        reason = str(error)
        if is_partial:
            reason = "they lie behind what is looked at"
        yield f"[{name}: its rows can't be read, {reason}]\n"
        return
    yield f"[{name}: {_describe_count(len(rows), _count_rows(database, quoted_name))}]\n"
    yield from _format_rows([column[0] for column in cursor.description], rows)


def _count_rows(database: sqlite3.Connection, quoted_name: str) -> int | None:
    """Return how many rows a table has; None where that can't be told."""
    try:
        ((count,),) = database.execute(f"SELECT count(*) FROM {quoted_name}").fetchall()
    except sqlite3.Error:
        return None
    return count


def read_parquet(file: BinaryIO) -> Iterator[str]:
    """Yield the columns of a Parquet file with their types, and its first rows.

    Raises:
        NotInstalled: the library is missing.
        Unreadable: it is damaged, or holds what the library can't read.
    """
    if importlib.util.find_spec("arro3") is None:
        raise NotInstalled("a Parquet table")
    from mcp_batteries.sql.transfer.parquet import UnreadableParquet, column_types, read_rows

    try:
        types = column_types(file)
        file.seek(0)
        rows = read_rows(file)
        names = next(rows)
        first_rows = list(itertools.islice(rows, _MAX_ROWS + 1))
    except UnreadableParquet as error:
        raise Unreadable(f"can't be read: {str(error).rstrip('.')}") from None
    for name, kind in zip(names, types, strict=True):
        yield f"{name}\t{_cut(kind, _MAX_TYPE_CHARACTERS)}\n"
    total = None
    if len(first_rows) <= _MAX_ROWS:
        total = len(first_rows)
    shown_rows = first_rows[:_MAX_ROWS]
    yield f"[{_describe_count(len(shown_rows), total)}]\n"
    yield from _format_rows(names, shown_rows)


def _describe_count(shown: int, total: int | None) -> str:
    if not shown:
        return "no rows"
    if total is None:
        return f"rows 1-{shown}, more follow"
    return f"rows 1-{shown} of {total:,}"


def _format_rows(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    """Yield a line of names and one for each row, their cells between tabs; nothing of a table without rows."""
    if not rows:
        return
    yield "\t".join(map(_format_cell, names)) + "\n"
    for row in rows:
        yield "\t".join(map(_format_cell, row)) + "\n"


def _format_cell(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"<{len(value):,} bytes>"
    return _cut(" ".join(str(value).split()), _MAX_CELL_CHARACTERS)


def _cut(text: str, length: int) -> str:
    if len(text) <= length:
        return text
    return f"{text[:length]}…"


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "replace")
