"""Parquet files, in and out (extra `parquet`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.language.failure import Failure

__all__ = ["read_column_types", "read_parquet", "write_parquet"]


def read_parquet(file: BinaryIO) -> Iterator[list[Any]]:
    """Return the columns' names, then the records."""
    from mcp_batteries.sql.transfer.parquet import UnreadableParquet, limit_memory, read_rows

    with limit_memory():
        try:
            yield from read_rows(file)
        except UnreadableParquet as error:
            raise Failure("invalid", str(error)) from None


def read_column_types(file: BinaryIO) -> list[str]:
    """Return the types of columns that take what `read_parquet` returns."""
    from mcp_batteries.sql.transfer.parquet import ColumnKind, UnreadableParquet, column_kinds

    types = {
        ColumnKind.BOOLEAN: "INTEGER",
        ColumnKind.INTEGER: "INTEGER",
        ColumnKind.REAL: "REAL",
        # Without a type it keeps the integers, and as text those that SQLite has no integer for.
        ColumnKind.UNSIGNED: "",
        ColumnKind.BYTES: "BLOB",
    }
    try:
        return [types.get(kind, "TEXT") for kind in column_kinds(file)]
    except UnreadableParquet as error:
        raise Failure("invalid", str(error)) from None


def write_parquet(
    file: BinaryIO,
    database: Database,
    columns: Sequence[str],
    read_rows: Callable[[], Iterator[Sequence[Any]]],
    max_bytes: int,
) -> int:
    """Write the rows, and return their number.

    They are read twice, at one moment of `database`: first to learn of each column what it holds.
    """
    from mcp_batteries.sql.transfer.parquet import ColumnKind, UnreadableParquet, value_kind, write_rows

    kinds = [ColumnKind.NOTHING] * len(columns)
    database.run_internal("BEGIN")
    try:
        for row in read_rows():
            kinds = [kind | value_kind(value) for kind, value in zip(kinds, row, strict=True)]
        return write_rows(file, columns, kinds, read_rows(), max_bytes)
    except UnreadableParquet as error:
        raise Failure("invalid", str(error)) from None
    finally:
        database.run_internal("ROLLBACK")
