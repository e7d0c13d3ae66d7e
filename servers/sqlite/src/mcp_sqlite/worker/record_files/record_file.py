"""The records of a served file, in the form for a table."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, BinaryIO, NamedTuple

from mcp_batteries.sql.files import served_file
from mcp_batteries.sql.records import Dialect, csv_records, dialect_of, json_records
from mcp_sqlite.worker.connection.interrupt import Interrupt
from mcp_sqlite.worker.language.failure import Failure, describe_os_error
from mcp_sqlite.worker.record_files.parquet import read_column_types, read_parquet

__all__ = ["ENDINGS", "RecordFile"]

ENDINGS = (".csv", ".tsv", ".json", ".jsonl", ".parquet")


class RecordFile(NamedTuple):
    """A file of records.

    Attributes:
        folder: that the operator serves.
        name: of the file, from there on.
    """

    folder: str
    name: str
    interrupt: Interrupt

    @property
    def is_csv(self) -> bool:
        """Whether all values are texts."""
        return self._ends(".csv", ".tsv")

    @property
    def is_parquet(self) -> bool:
        return self._ends(".parquet")

    def _ends(self, *endings: str) -> bool:
        return self.name.lower().endswith(endings)

    def open(self) -> AbstractContextManager[BinaryIO]:
        return served_file(self.folder, self.name, Failure, describe_os_error)

    def read_snapshot(self, most: int) -> BinaryIO:
        """The content at one moment, at most `most` bytes of it.

        Raises:
            Failure: it is larger, or somebody is writing it.
        """
        for _ in range(2):
            with self.open() as raw:
                before = os.fstat(raw.fileno())
                if before.st_size > most:
                    raise Failure(
                        "too_large",
                        f"`{self.name}` has {before.st_size:,} bytes; the files that one call reads have "
                        f"{most:,} at most.",
                        "`copy_from_file` imports larger ones.",
                    )
                data = raw.read(before.st_size + 1)
                after = os.fstat(raw.fileno())
            if len(data) == after.st_size and before.st_mtime_ns == after.st_mtime_ns:
                return io.BytesIO(data)
        raise Failure("unavailable", f"`{self.name}` is being written.", "Try again in a moment.")

    def dialect(self, file: BinaryIO) -> Dialect:
        """How the file is written, if it is CSV."""
        if not self.is_csv:
            return Dialect()
        return dialect_of(file, Failure, tabs=self._ends(".tsv"), through=self.until_interrupted)

    def types(self, file: BinaryIO) -> list[str]:
        """The columns' types, where the format has any."""
        return read_column_types(file) if self.is_parquet else []

    def records(
        self, file: BinaryIO, dialect: Dialect, fields: list[Any] | None = None, *, grows: bool = False
    ) -> Iterator[list[Any]]:
        """The names of the fields, then the values of each record."""
        if self.is_csv:
            return csv_records(file, Failure, dialect)
        if self.is_parquet:
            return read_parquet(file)
        return json_records(file, Failure, _loaded, fields, grows=grows)

    def until_interrupted(self, records: Iterator[list[Any]]) -> Iterator[list[Any]]:
        """`records` until the time is up."""
        for number, item in enumerate(records):
            if not number % 256:
                self.interrupt.check()
            yield item

    def with_nulls(self, records: Iterator[list[Any]], optional: list[bool]) -> Iterator[list[Any]]:
        """`records` with NULL for the empty fields of a CSV file, in the columns that take it."""
        if not self.is_csv:
            return records
        return (
            [None if not field and may else field for field, may in zip(row, optional, strict=True)] for row in records
        )

    def to_column_values(self, values: list[Any], *, is_new: bool) -> list[Any]:
        """A record as a table takes it."""
        return values if self.is_csv or self.is_parquet else [_stored(value, is_new) for value in values]


def _loaded(text: str) -> Any:
    return json.loads(text, parse_constant=_constant)


def _constant(word: str) -> float:
    if word == "NaN":
        raise ValueError("SQLite has no NaN")
    return float(word)


def _stored(value: Any, is_new: bool) -> Any:
    """A JSON value as a table takes it: objects and arrays as text, in a new one integers beyond 64 bits too."""
    match value:
        case {"base64": str()}:
            return value
        case dict() | list():
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        case int() if is_new and not -(2**63) <= value < 2**63:
            return str(value)
        case _:
            return value
