"""Parquet files as records and back (extra `parquet`), by arro3, the small build of Apache Arrow.

This module imports nothing of the common package, so that a small process can import it alone. It is also a program:
`python -m mcp_batteries.sql.transfer.parquet <FILE` writes the records as lines of JSON, so that a file that unpacks to
a thousand times its size ends only that process.
"""

from __future__ import annotations

import base64
import datetime
import decimal
import json
import math
import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import Any, BinaryIO

__all__ = [
    "ColumnKind",
    "UnreadableParquet",
    "column_kinds",
    "column_types",
    "limit_memory",
    "main",
    "read_rows",
    "value_kind",
    "write_rows",
]

# Reading a file may add so many bytes of address space: a page can unpack to a thousand times its size.
_MEMORY = 4 * 1024**3

# So many records are read or written at once.
_BATCH = 1000
_MAGIC = b"PAR1"
_EXACT = 2**53
_MISSING = "Parquet needs the extra `parquet`: the operator can install it with the server."


class UnreadableParquet(Exception):
    """Raised for a file that is not Parquet, or values that Parquet cannot hold, with a message for the caller."""


class ColumnKind(StrEnum):
    """What a column holds."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    REAL = "real"
    TEXT = "text"
    BYTES = "bytes"
    # Only read: integers of which some may be beyond 64 bits with a sign.
    UNSIGNED = "unsigned"
    # The column holds nothing but NULL.
    NOTHING = "nothing"

    def __or__(self, other: ColumnKind) -> ColumnKind:  # type: ignore[override]
        """Return the kind that can hold values of both: text, unless one includes the other."""
        if self is other or other is ColumnKind.NOTHING:
            return self
        if self is ColumnKind.NOTHING:
            return other
        return ColumnKind.REAL if {self, other} == {ColumnKind.INTEGER, ColumnKind.REAL} else ColumnKind.TEXT


def value_kind(value: Any) -> ColumnKind:
    """Return the kind of a column that contains only `value`."""
    match value:
        case None:
            return ColumnKind.NOTHING
        case bool():
            return ColumnKind.BOOLEAN
        case int():
            return ColumnKind.INTEGER
        case float():
            return ColumnKind.REAL
        case bytes() | bytearray() | memoryview():
            return ColumnKind.BYTES
        case _:
            return ColumnKind.TEXT


def column_kinds(file: BinaryIO) -> list[ColumnKind]:
    """Return the kinds of a file's columns, as `read_rows` returns them.

    Raises:
        Unreadable: it is not Parquet.
    """
    schema = _open_parquet(file).schema
    return [_kind_of_type(schema.field(number).type) for number in range(len(schema.names))]


def column_types(file: BinaryIO) -> list[str]:
    """Return the types of a file's columns as Arrow names them, such as `Int64` or `Timestamp(ms, "UTC")`.

    Raises:
        UnreadableParquet: it is not Parquet.
    """
    schema = _open_parquet(file).schema
    types: list[str] = []
    for number in range(len(schema.names)):
        name = str(schema.field(number).type).strip()
        types.append(name.removeprefix("arro3.core.DataType<").removesuffix(">"))
    return types


def _kind_of_type(type_: Any) -> ColumnKind:
    if type_.is_boolean(type_):
        return ColumnKind.BOOLEAN
    if type_.is_unsigned_integer(type_) and type_.bit_width == 64:
        return ColumnKind.UNSIGNED
    if type_.is_integer(type_):
        return ColumnKind.INTEGER
    if type_.is_floating(type_):
        return ColumnKind.REAL
    binary = (type_.is_binary, type_.is_large_binary, type_.is_fixed_size_binary, type_.is_binary_view)
    if any(check(type_) for check in binary):
        return ColumnKind.BYTES
    return ColumnKind.NOTHING if type_.is_null(type_) else ColumnKind.TEXT


def read_rows(file: BinaryIO) -> Iterator[list[Any]]:
    """Yield the columns' names, then the records: None, numbers, texts, truth values and bytes.

    Times are ISO 8601 text, decimals are text too, and nested values are JSON.

    Raises:
        Unreadable: it is not Parquet, or has an unsupported type.
    """
    reader = _open_parquet(file)
    names = [str(name) for name in reader.schema.names]
    yield names
    while (batch := _understood(lambda: next(reader, None))) is not None:
        columns = [_understood(column.to_pylist, name) for name, column in zip(names, batch.columns, strict=True)]
        for record in zip(*columns, strict=True):
            yield [_plain(value) for value in record]


def _open_parquet(file: BinaryIO) -> Any:
    try:
        from arro3.io import read_parquet
    except ImportError:
        raise UnreadableParquet(_MISSING) from None
    _check_ends(file)
    return _understood(lambda: read_parquet(file, batch_size=_BATCH))


def _check_ends(file: BinaryIO) -> None:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 8))
    end = file.read(8)
    file.seek(0)
    is_parquet = file.read(4) == _MAGIC and end[4:] == _MAGIC and int.from_bytes(end[:4], "little") <= size - 12
    file.seek(0)
    if not is_parquet:
        raise UnreadableParquet("The file is not Parquet, or is not whole.")


def _understood(read: Callable[[], Any], name: str = "") -> Any:
    subject = f"Its column `{name[:100]}`" if name else "The file"
    try:
        return read()
    except MemoryError:
        raise
    except BaseException as error:  # pyo3's PanicException is not an Exception
        if type(error).__name__ != "PanicException" and not isinstance(error, Exception):
            raise
        message = str(error).rpartition("value: ")[2][:200]
        raise UnreadableParquet(f"{subject} can't be understood: {message}.") from None


def _plain(value: Any) -> Any:
    match value:
        case None | bool() | int() | float() | str() | bytes():
            return value
        case datetime.datetime():
            return value.isoformat(" ")
        case datetime.date() | datetime.time():
            return value.isoformat()
        case decimal.Decimal():
            return format(value, "f")
        case datetime.timedelta():
            return str(value)
        case _:
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_in_json)


def _in_json(value: Any) -> Any:
    plain = _plain(value)
    return plain.hex() if isinstance(plain, bytes) else plain


def write_rows(
    file: BinaryIO, columns: Sequence[str], kinds: Sequence[ColumnKind], records: Iterable[Sequence[Any]], most: int
) -> int:
    """Write `records` to a new file of at most `most` bytes; returns how many there were.

    Args:
        kinds: of the columns; a column of text takes every value, as text.

    Raises:
        Unreadable: a value does not fit its column's kind, two columns have one name, or the file gets too large.
    """
    try:
        from arro3.core import Array, DataType, Field, RecordBatch, RecordBatchReader, Schema
        from arro3.io import write_parquet
    except ImportError:
        raise UnreadableParquet(_MISSING) from None
    if len(set(columns)) < len(columns):
        raise UnreadableParquet("Two columns have the same name, which Parquet does not take. Name each with AS.")
    types = {
        ColumnKind.BOOLEAN: DataType.bool(), ColumnKind.INTEGER: DataType.int64(), ColumnKind.REAL: DataType.float64(),
        ColumnKind.TEXT: DataType.string(), ColumnKind.BYTES: DataType.binary(), ColumnKind.NOTHING: DataType.string(),
    }  # fmt: skip
    fields = [types[kind] for kind in kinds]
    schema = Schema([Field(name, field, nullable=True) for name, field in zip(columns, fields, strict=True)])
    count = 0
    failed: list[BaseException] = []

    def batches() -> Iterator[Any]:
        # What is raised in here comes out as another error, in the words of the library.
        nonlocal count
        try:
            for batch in _in_batches(records):
                if file.tell() > most:
                    raise UnreadableParquet(f"The rows fill more than {most:,} bytes. Write them in parts.")
                arrays: list[Any] = []
                for number, kind in enumerate(kinds):
                    values = [_fit_value(row[number], kind, columns[number]) for row in batch]
                    arrays.append(Array(values, fields[number]))
                count += len(batch)
                named = dict(zip(columns, arrays, strict=True))
                yield RecordBatch.from_pydict(named, schema=schema)  # pyright: ignore[reportUnknownMemberType]
        except BaseException as error:
            failed.append(error)
            raise

    try:
        reader = RecordBatchReader.from_batches(schema, batches())
        write_parquet(reader, file, compression="zstd(3)", max_row_group_size=100 * _BATCH)
    except BaseException:
        if failed:
            raise failed[0] from None
        raise
    return count


def _in_batches(records: Iterable[Sequence[Any]]) -> Iterator[list[Sequence[Any]]]:
    batch: list[Sequence[Any]] = []
    for record in records:
        batch.append(record)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _fit_value(value: Any, kind: ColumnKind, name: str) -> Any:
    """Return a value as a column of this kind takes it.

    Raises:
        UnreadableParquet: the column `name` does not take it.
    """
    if value is None:
        return None
    own_kind = value_kind(value)
    if own_kind is kind:
        return bytes(value) if kind is ColumnKind.BYTES else value
    if kind is ColumnKind.REAL and own_kind is ColumnKind.INTEGER and abs(value) <= _EXACT:
        return float(value)
    if kind is ColumnKind.TEXT:
        return _as_text(value, own_kind)
    raise UnreadableParquet(f"The column `{name[:100]}` holds {own_kind} among {kind}. Write one of both with CAST.")


def _as_text(value: Any, kind: ColumnKind) -> str:
    """Return a value of this kind as text: bytes as SQL writes them, fractions with all their digits."""
    if kind is ColumnKind.BYTES:
        return f"x'{value.hex()}'"
    if kind is ColumnKind.REAL and math.isfinite(value):
        return repr(value)
    return str(value)


@contextmanager
def limit_memory() -> Generator[None]:
    """Limit this process's memory inside the block, so that it ends rather than exhaust the machine."""
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


def main() -> None:
    """Write the file at standard input as lines of JSON.

    They are the kinds of the columns, their names, the records, and finally an error or null.
    """
    out = sys.stdout
    failure: str | None = None
    try:
        with limit_memory(), os.fdopen(os.dup(0), "rb") as file:
            out.write(json.dumps(column_kinds(file)) + "\n")
            for record in read_rows(file):
                out.write(json.dumps(record, default=lambda item: {"base64": base64.b64encode(item).decode()}) + "\n")
    except UnreadableParquet as error:
        failure = str(error)
    out.write(json.dumps(failure) + "\n")
