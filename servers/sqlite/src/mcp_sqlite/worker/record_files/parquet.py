"""Parquet files, in and out (extra `parquet`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.language.failure import Failure

__all__ = ["read_column_types", "read_parquet", "write_parquet"]


def read_parquet(raw: BinaryIO) -> Iterator[list[Any]]:
    """The columns' names, then the records."""
    from mcp_batteries.sql.parquet import Unreadable, bounded_memory, read

    with bounded_memory():
        try:
            yield from read(raw)
        except Unreadable as error:
            raise Failure("invalid", str(error)) from None


def read_column_types(raw: BinaryIO) -> list[str]:
    """The types of columns that take what `read_parquet` gives."""
    from mcp_batteries.sql.parquet import Kind, Unreadable, kinds

    types = {Kind.BOOLEAN: "INTEGER", Kind.INTEGER: "INTEGER", Kind.REAL: "REAL", Kind.BYTES: "BLOB"}
    try:
        return [types.get(kind, "TEXT") for kind in kinds(raw)]
    except Unreadable as error:
        raise Failure("invalid", str(error)) from None


def write_parquet(
    file: BinaryIO,
    database: Database,
    columns: Sequence[str],
    rows: Callable[[], Iterator[Sequence[Any]]],
    most: int,
) -> int:
    """Write what `rows` gives twice, at one moment of `database`: first to learn of each column what it holds."""
    from mcp_batteries.sql.parquet import Kind, Unreadable, kind_of, write

    kinds = [Kind.NOTHING] * len(columns)
    database.run_internal("BEGIN")
    try:
        for row in rows():
            kinds = [known | kind_of(value) for known, value in zip(kinds, row, strict=True)]
        return write(file, columns, kinds, rows(), most)
    except Unreadable as error:
        raise Failure("invalid", str(error)) from None
    finally:
        database.run_internal("ROLLBACK")
