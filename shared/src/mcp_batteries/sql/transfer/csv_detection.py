"""Finds how a CSV file is written: its delimiter, where its header is, fields of nothing, and decimal commas.

This module imports nothing of the common package but its neighbours, so that a small process can import it alone.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any, BinaryIO, NamedTuple

from mcp_batteries.sql.transfer.csv_records import (
    DELIMITERS,
    CsvDialect,
    is_blank_line,
    open_csv,
    read_csv_records,
    read_separator_line,
)
from mcp_batteries.sql.transfer.files import Fails
from mcp_batteries.sql.transfer.record_text import open_text

__all__ = ["detect_dialect"]

# Passes records on, and may stop the iteration.
PassOn = Callable[[Iterator[list[Any]]], Iterator[list[Any]]]

# The delimiter is detected in so many characters of a file.
_SAMPLE_CHARACTERS = 1 << 16
# A number with a decimal comma. Numbers with leading zeros do not count: those are codes.
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]{0,2}(?:\.[0-9]{3})+|[1-9][0-9]*)(?:,[0-9]+)?")
# 1,234 may be either: where no comma of the file is surely a decimal one, such fields stay texts.
_PERHAPS_THOUSANDS = re.compile(r"-?[1-9][0-9]{0,2},[0-9]{3}")
# Beside decimal commas, dots stand between thousands.
_THOUSANDS = re.compile(r"-?[1-9][0-9]{0,2}(?:\.[0-9]{3})+")
# Every type of numbers keeps so many digits, whatever they are.
_EXACT_DIGITS = 15


def detect_dialect(
    raw: BinaryIO,
    fails: Fails,
    *,
    stated: CsvDialect = CsvDialect(),  # noqa: B008
    tabs: bool = False,
    pass_on: PassOn,
) -> CsvDialect:
    """Detect how a file is written: the first delimiter, commas first, that makes records as wide as the header.

    Args:
        stated: what the caller says of the file.
        tabs: whether only tabs can separate fields.
        pass_on: can stop a detection that takes too long.
    """
    delimiters = "\t" if tabs else "".join(DELIMITERS)
    dialect = stated._replace(delimiter=_detect_delimiter(raw, stated.encoding, delimiters))
    dialect = dialect._replace(lines_above=_count_lines_above(raw, dialect))
    dialect = dialect._replace(left_out=_find_fields_of_nothing(raw, fails, dialect, pass_on))
    if dialect.delimiter == ",":
        return dialect
    return dialect._replace(decimals=_find_decimal_columns(raw, fails, dialect, pass_on))


def _detect_delimiter(raw: BinaryIO, encoding: str, delimiters: str) -> str:
    """Return the one of `delimiters` that separates the fields of a file."""
    with open_text(raw, encoding) as text:
        separator = read_separator_line(text)
        try:
            sample = text.read(_SAMPLE_CHARACTERS)
        except ValueError:
            return delimiters[0]  # Whoever reads the file reports the error.
    is_complete = len(sample) < _SAMPLE_CHARACTERS
    if not is_complete:
        sample = sample[: sample.rfind("\n") + 1]
    splits = [_Split.measure(delimiter, sample, is_complete=is_complete) for delimiter in delimiters]
    for split in splits:
        if split.delimiter == separator and split.width > 1:
            return split.delimiter
    return _choose_split(splits).delimiter


class _Split(NamedTuple):
    """How a delimiter fits a sample.

    Attributes:
        width: the number of fields of the header.
        fits: how many records have as many.
        misfits: how many have more or fewer.
    """

    delimiter: str
    width: int
    fits: int
    misfits: int

    @property
    def is_likely(self) -> bool:
        return self.fits >= max(self.misfits, 1)

    @classmethod
    def measure(cls, delimiter: str, sample: str, *, is_complete: bool) -> _Split:
        """Count how the records of a sample are split by a delimiter."""
        width = 0
        fits = 0
        misfits = 0
        try:
            for row in csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter, strict=True):
                if not width:
                    width = len(row)
                elif len(row or [""]) == width:
                    fits += 1
                elif row:  # Among records of several fields empty lines mean nothing.
                    misfits += 1
        except csv.Error as error:
            if is_complete or "end of data" not in str(error):
                misfits += 1
        return cls(delimiter, width, fits, misfits)


def _choose_split(splits: Sequence[_Split]) -> _Split:
    """Return the first split into several fields that fits all records, or else one that fits most."""
    for split in splits:
        if split.width > 1 and split.misfits == 0:
            return split
    for split in splits:
        if split.width > 1 and split.is_likely:
            return split
    if splits[0].misfits:
        return max(splits, key=lambda split: split.width)
    return splits[0]


def _count_lines_above(raw: BinaryIO, dialect: CsvDialect) -> int:
    """Return how many lines of nothing but separators stand above the header; whoever reads it reports errors."""
    count = 0
    with open_csv(raw, dialect.encoding) as text:
        try:
            for row in csv.reader(text, delimiter=dialect.delimiter, strict=True):
                if not is_blank_line(row):
                    break
                if len(row) > 1:
                    count += 1
        except (ValueError, csv.Error):
            return 0
    return count


def _find_fields_of_nothing(raw: BinaryIO, fails: Fails, dialect: CsvDialect, pass_on: PassOn) -> frozenset[int]:
    """Return the positions of fields that have no name and no value in any record."""
    with closing(read_csv_records(raw, fails, dialect)) as records:
        names = next(records, list[Any]())
        positions = {position for position, name in enumerate(names) if not name.strip()}
        if not positions or len(positions) == len(names):
            return frozenset()
        for row in pass_on(records):
            positions = {position for position in positions if not row[position]}
            if not positions:
                break
    return frozenset(positions)


def _find_decimal_columns(raw: BinaryIO, fails: Fails, dialect: CsvDialect, pass_on: PassOn) -> frozenset[int]:
    """Return the positions of fields whose values all are numbers of a file in which one comma surely is a decimal one.

    Left out are those without commas and dots, which mean the same everywhere.
    """
    candidates: set[int] = set()
    certain: set[int] = set()
    with closing(read_csv_records(raw, fails, dialect)) as records:
        rows = pass_on(records)
        possible = set(range(len(next(rows, ()))))
        for row in rows:
            for column in [*possible]:
                value = row[column]
                if value and not _is_decimal(value):
                    possible.discard(column)
                elif _THOUSANDS.fullmatch(value):
                    candidates.add(column)
                elif "," in value:
                    candidates.add(column)
                    if not _PERHAPS_THOUSANDS.fullmatch(value):
                        certain.add(column)
            if not possible:
                break
    if not certain & possible:
        return frozenset()
    return frozenset(candidates & possible)


def _is_decimal(value: str) -> bool:
    """Return whether `value` can be a number with a decimal comma, with few enough digits to be kept exactly."""
    return _DECIMAL.fullmatch(value) is not None and sum(map(str.isdecimal, value)) <= _EXACT_DIGITS
