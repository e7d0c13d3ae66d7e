"""Parquet files, in and out (extra `parquet`): read by a separate process, written by a thread."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from typing import Any, BinaryIO, cast

import anyio.from_thread

from mcp_batteries.concurrency.threads import run_in_thread
from mcp_batteries.errors import Invalid
from mcp_batteries.executables import NO_WINDOW
from mcp_batteries.processes.python_child import child_environment, python_command
from mcp_batteries.sql.transfer.parquet import ColumnKind, UnreadableParquet, write_rows
from mcp_postgres.engine.connection.result_values import MASK, Column

__all__ = ["read_records", "read_types", "write_parquet"]

_BATCH_ROWS = 500
_TYPE_NAMES = {
    ColumnKind.BOOLEAN: "boolean",
    ColumnKind.INTEGER: "bigint",
    ColumnKind.UNSIGNED: "numeric",
    ColumnKind.REAL: "double precision",
    ColumnKind.BYTES: "bytea",
}
_KINDS = {
    16: ColumnKind.BOOLEAN,
    17: ColumnKind.BYTES,
    20: ColumnKind.INTEGER,
    21: ColumnKind.INTEGER,
    23: ColumnKind.INTEGER,
    26: ColumnKind.INTEGER,
    700: ColumnKind.REAL,
    701: ColumnKind.REAL,
}
_VALUES: dict[ColumnKind, Callable[[str], Any]] = {
    ColumnKind.BOOLEAN: lambda text: text == "t",
    ColumnKind.BYTES: lambda text: bytes.fromhex(text[2:]),
    ColumnKind.INTEGER: int,
    ColumnKind.REAL: float,
    ColumnKind.TEXT: str,
}


def read_records(raw: BinaryIO) -> Generator[list[Any]]:
    """Yield the columns' names, then the records: numbers, texts, truth values, and bytes as `{"base64": ...}`.

    Raises:
        Invalid: it is not Parquet.
    """
    for number, line in enumerate(_read_lines(raw)):
        if number:
            yield line


def read_types(raw: BinaryIO) -> list[str | None]:
    """Return the types of columns that take what `read_records` yields; None where only the values tell."""
    lines = _read_lines(raw)
    try:
        return [_TYPE_NAMES.get(ColumnKind(kind)) for kind in next(lines)]
    finally:
        lines.close()


def _read_lines(raw: BinaryIO) -> Generator[list[Any]]:
    with subprocess.Popen(
        python_command("mcp_batteries.sql.transfer.parquet"),
        stdin=raw,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=os.path.abspath(os.sep),
        env=child_environment(),
        creationflags=NO_WINDOW,
    ) as reader:
        assert reader.stdout is not None
        try:
            for line in reader.stdout:
                line_value = json.loads(line)
                if isinstance(line_value, str):
                    raise Invalid(line_value)
                if line_value is None:
                    return
                yield cast("list[Any]", line_value)
            raise Invalid("The file needs more memory than it may take, or can't be understood.", "Send it in parts.")
        finally:
            reader.kill()


def _read_mask(_: str | None) -> str:
    return MASK


def _read_value(read: Callable[[Any], Any], value: str | None) -> Any:
    """Return a value as Parquet takes it; NULL stays, but behind a mask nothing shows which values are NULL."""
    if value is None and read is not _read_mask:
        return None
    return read(value)


def _choose_kind(column: Column) -> ColumnKind:
    if column.masked:
        return ColumnKind.TEXT
    return _KINDS.get(column.type, ColumnKind.TEXT)


def _choose_reader(column: Column) -> Callable[[Any], Any]:
    if column.masked:
        return _read_mask
    return _VALUES[_choose_kind(column)]


async def write_parquet(
    file: BinaryIO, columns: Sequence[Column], rows: AsyncIterator[Sequence[str | None]], max_bytes: int
) -> int:
    """Write rows to a new file, at most `max_bytes` of it; return how many there were.

    Raises:
        Invalid: Parquet can't hold them.
    """
    readers = list(map(_choose_reader, columns))

    async def read_batch() -> list[Sequence[str | None]]:
        batch: list[Sequence[str | None]] = []
        async for row in rows:
            batch.append(row)
            if len(batch) == _BATCH_ROWS:
                break
        return batch

    def records() -> Iterator[list[Any]]:
        while batch := anyio.from_thread.run(read_batch):
            for row in batch:
                yield [_read_value(read, value) for read, value in zip(readers, row, strict=True)]

    names = [column.name for column in columns]
    kinds = list(map(_choose_kind, columns))
    try:
        return await run_in_thread(lambda _: write_rows(file, names, kinds, records(), max_bytes), long=True)
    except UnreadableParquet as error:
        raise Invalid(str(error)) from None
