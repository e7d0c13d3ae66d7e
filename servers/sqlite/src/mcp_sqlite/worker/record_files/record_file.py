"""The records of a served file, in the form for a table."""

from __future__ import annotations

import io
import json
import os
from collections import deque
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager
from typing import Any, BinaryIO, NamedTuple

from mcp_batteries.sql.transfer.csv_detection import detect_dialect
from mcp_batteries.sql.transfer.csv_records import CsvDialect, read_csv_records
from mcp_batteries.sql.transfer.files import open_served_file
from mcp_batteries.sql.transfer.json_records import build_record, read_json_records
from mcp_sqlite.worker.connection.interrupt import Interrupt
from mcp_sqlite.worker.language.failure import Failure, describe_os_error
from mcp_sqlite.worker.language.values import LongDecimal, parse_blob_literal, parse_decimal
from mcp_sqlite.worker.record_files.parquet import read_column_types, read_parquet

__all__ = ["ENDINGS", "RecordFile"]

ENDINGS = (".csv", ".tsv", ".json", ".jsonl", ".parquet")
_RECORDS_BETWEEN_CHECKS = 256


class RecordFile(NamedTuple):
    """A file of records.

    Attributes:
        folder: the one that the operator serves.
        name: the path of the file from there on.
        stated_dialect: what the caller knows of how it is written.
    """

    folder: str
    name: str
    interrupt: Interrupt
    stated_dialect: CsvDialect = CsvDialect()

    @property
    def is_csv(self) -> bool:
        """Whether all values are texts."""
        return self._has_ending(".csv", ".tsv")

    @property
    def is_parquet(self) -> bool:
        """Whether the columns have types."""
        return self._has_ending(".parquet")

    def _has_ending(self, *endings: str) -> bool:
        return self.name.lower().endswith(endings)

    def open(self) -> AbstractContextManager[BinaryIO]:
        """Open the file, in the served folder only."""
        return open_served_file(self.folder, self.name, Failure, describe_os_error)

    def read_snapshot(self, max_bytes: int) -> BinaryIO:
        """Return the content at one moment, at most `max_bytes` of it.

        Raises:
            Failure: it is larger, or somebody is writing it.
        """
        for _ in range(2):
            with self.open() as raw:
                before = os.fstat(raw.fileno())
                if before.st_size > max_bytes:
                    raise Failure(
                        "too_large",
                        f"`{self.name}` has {before.st_size:,} bytes; the files that one call reads have "
                        f"{max_bytes:,} at most.",
                        "`copy_from_file` imports larger ones.",
                    )
                content = raw.read(before.st_size + 1)
                after = os.fstat(raw.fileno())
            if len(content) == after.st_size and before.st_mtime_ns == after.st_mtime_ns:
                return io.BytesIO(content)
        raise Failure("unavailable", f"`{self.name}` is being written.", "Try again in a moment.")

    def dialect(self, file: BinaryIO) -> CsvDialect:
        """Return how the file is written, if it is CSV."""
        if not self.is_csv:
            return self.stated_dialect
        return detect_dialect(
            file,
            Failure,
            stated=self.stated_dialect,
            tabs=self._has_ending(".tsv"),
            pass_on=self.until_interrupted,
        )

    def types(self, file: BinaryIO) -> list[str]:
        """Return the columns' types, where the format has any."""
        return read_column_types(file) if self.is_parquet else []

    def fields(self, file: BinaryIO) -> list[Any] | None:
        """Return the names of the fields that any record of JSON has; None where the first line names them all."""
        if self.is_csv or self.is_parquet:
            return None
        records = self.until_interrupted(self.records(file, self.stated_dialect))
        fields = next(records, None)
        # The list grows in place.
        deque(records, maxlen=0)
        return fields

    def records(self, file: BinaryIO, dialect: CsvDialect, fields: list[Any] | None = None) -> Iterator[list[Any]]:
        """Return the names of the fields, then the values of each record.

        Args:
            fields: the names, where they are known already. Else the list grows where later records bring more.
        """
        if self.is_csv:
            return read_csv_records(file, Failure, dialect)
        if self.is_parquet:
            return read_parquet(file)
        return read_json_records(file, Failure, _parse_json, fields, encoding=self.stated_dialect.encoding)

    def until_interrupted(self, records: Iterator[list[Any]]) -> Iterator[list[Any]]:
        """Return `records` until the time is up."""
        for number, record in enumerate(records):
            if number % _RECORDS_BETWEEN_CHECKS == 0:
                self.interrupt.check()
            yield record

    def with_nulls(self, records: Iterator[list[Any]], nullable: list[bool]) -> Iterator[list[Any]]:
        """Return `records` with NULL for the empty fields of a CSV file, in the columns that take it."""
        if not self.is_csv:
            return records
        return (_replace_empty(record, nullable) for record in records)

    def to_column_values(
        self, record: list[Any], blob_positions: Collection[int], untyped_positions: Collection[int]
    ) -> list[Any]:
        """Return a record as a table takes it, whose columns at some positions are for bytes, or have no type."""
        if not self.is_csv:
            values = list(map(_to_column_value, record))
            for position in untyped_positions:
                values[position] = _to_untyped_value(record[position], values[position])
            return values
        for position in blob_positions:
            value = record[position]
            blob = parse_blob_literal(value) if value else None
            if blob is not None:
                record[position] = blob
        return record


def _replace_empty(record: list[Any], nullable: list[bool]) -> list[Any]:
    return [None if is_nullable and not field else field for field, is_nullable in zip(record, nullable, strict=True)]


def _parse_json(text: str) -> Any:
    return _DECODER.decode(text)


def _parse_constant(word: str) -> float:
    if word == "NaN":
        raise ValueError("SQLite has no NaN")
    return float(word)


# json.loads would make one for each record.
_DECODER = json.JSONDecoder(parse_float=parse_decimal, parse_constant=_parse_constant, object_pairs_hook=build_record)


def _to_untyped_value(value: Any, column_value: Any) -> Any:
    """Return what a column without a type takes: it makes no number of a text, and sorts all texts behind numbers."""
    if isinstance(value, LongDecimal) and not value.is_whole_part_rounded:
        return float(value)
    return column_value


def _to_column_value(value: Any) -> Any:
    """Return a value of JSON or Parquet as a table takes it: objects, arrays and numbers of too many digits as text."""
    match value:
        case {"base64": str()}:
            return value
        case dict() | list():
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        case LongDecimal():
            return value.text
        case int() if not -(2**63) <= value < 2**63:
            return str(value)
        case _:
            return value
