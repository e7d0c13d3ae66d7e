"""Parquet files, in and out (extra `parquet`)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

from mcp_sqlite.worker.cells import Failure
from mcp_sqlite.worker.connections import Database

__all__ = ["read_parquet", "types_of", "write_parquet"]

_MEMORY = 4 * 1024**3
"""Bytes of address space beyond those in use while a file is read: a page can unpack to a thousand times its size."""


def read_parquet(raw: BinaryIO) -> Iterator[list[Any]]:
    """The columns' names, then the records."""
    from mcp_batteries.sql.parquet import Unreadable, read

    with _bounded_memory():
        try:
            yield from read(raw)
        except Unreadable as error:
            raise Failure("invalid", str(error)) from None


def types_of(raw: BinaryIO) -> list[str]:
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
    database.own("BEGIN")
    try:
        for row in rows():
            kinds = [known | kind_of(value) for known, value in zip(kinds, row, strict=True)]
        return write(file, columns, kinds, rows(), most)
    except Unreadable as error:
        raise Failure("invalid", str(error)) from None
    finally:
        database.own("ROLLBACK")


@contextmanager
def _bounded_memory() -> Generator[None]:
    """Have this process end, rather than the machine's memory, while the block lasts."""
    if sys.platform != "linux":
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    limit = used + _MEMORY if soft == resource.RLIM_INFINITY else min(soft, used + _MEMORY)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
