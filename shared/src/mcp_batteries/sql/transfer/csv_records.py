"""Reads the records of CSV files; how a file is written is a `CsvDialect`, which `csv_detection` finds.

This module imports nothing of the common package but its neighbours, so that a small process can import it alone.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Any, BinaryIO, NamedTuple

from mcp_batteries.sql.transfer.files import Fails
from mcp_batteries.sql.transfer.record_text import MAX_LINE_CHARACTERS, explain_unreadable, open_text

__all__ = [
    "DELIMITERS",
    "CsvDialect",
    "is_blank_line",
    "open_csv",
    "read_csv_lines",
    "read_csv_records",
    "read_separator_line",
]

# What may separate fields, in the order in which it is tried, and what it is called.
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
# The first line with which some files name the separator to Excel.
_SEPARATOR_LINE = re.compile(r'"?sep=(?P<separator>[^\w\s"]|\t)?"?\s*', re.IGNORECASE)
_MAX_SEPARATOR_LINE = 12
# A field as it stands in the text of a record, with its quotes, by what separates it from the next.
_FIELDS = {
    delimiter: re.compile(rf'("(?:[^"]|"")*"|[^{re.escape(delimiter)}]*)(?:{re.escape(delimiter)}|\Z)')
    for delimiter in DELIMITERS
}
# So many characters of a record with too many fields, or too few, are shown.
_MAX_SHOWN_RECORD = 100
# So many lines may stand above the names of the columns.
_MAX_TITLE_LINES = 10


class CsvDialect(NamedTuple):
    """How a CSV file is written.

    Attributes:
        delimiter: between fields.
        decimals: positions of fields whose values all are numbers with decimal commas (`1.234,50`); empty if no comma
            is surely decimal.
        encoding: the one that the caller named; empty where the file says it.
        null_words: fields that mean the same as an empty one.
        left_out: positions of fields without a name and without values, which records are read without: spreadsheets
            leave a separator at the end of each line. All other positions are those of the fields that remain.
        lines_above: lines of nothing but separators above the header, which are no records.
    """

    delimiter: str = ","
    decimals: frozenset[int] = frozenset()
    encoding: str = ""
    null_words: frozenset[str] = frozenset()
    left_out: frozenset[int] = frozenset()
    lines_above: int = 0

    def describe(self, names: list[Any]) -> str:
        """Return what is unusual, as half a sentence; empty if nothing is."""
        descriptions: list[str] = []
        if self.delimiter != ",":
            descriptions.append(f"fields are separated by {DELIMITERS[self.delimiter]}")
        if self.decimals:
            columns = ", ".join(f"`{names[position]}`" for position in sorted(self.decimals))
            descriptions.append(f"numbers have a decimal comma, dots between thousands, in {columns}")
        if self.left_out:
            descriptions.append("fields without a name and without values are left out")
        if self.lines_above:
            descriptions.append("the header is the first line of more than separators")
        return ", ".join(descriptions)


@contextmanager
def open_csv(raw: BinaryIO, encoding: str) -> Generator[io.TextIOWrapper]:
    """Read a CSV file as text, behind the line that names the separator if there is one."""
    with open_text(raw, encoding) as text:
        read_separator_line(text)
        yield text


def read_separator_line(text: io.TextIOWrapper) -> str:
    """Read the line that names the separator, if the file begins with one; return it, empty if none is named."""
    try:
        line = _SEPARATOR_LINE.fullmatch(text.readline(_MAX_SEPARATOR_LINE))
    except ValueError:
        line = None  # Whoever reads the file reports the error.
    if line is None:
        text.seek(0)
        return ""
    return line["separator"] or ""


def is_blank_line(row: list[str]) -> bool:
    """Return whether a line has nothing but separators and spaces."""
    return not any(value.strip() for value in row)


def read_csv_records(
    raw: BinaryIO,
    fails: Fails,
    dialect: CsvDialect = CsvDialect(),  # noqa: B008
    lines: list[str] | None = None,
) -> Generator[list[str]]:
    """Yield the header, then the records, all as texts, with decimal points and empty fields whatever the file uses.

    A quote inside an unquoted field is an ordinary character, as in most programs. Empty lines are not records, unless
    there is only one field; above the header neither they nor lines of nothing but separators are.

    Args:
        lines: receives the lines of the last record.
    """
    csv.field_size_limit(MAX_LINE_CHARACTERS)
    number = 0
    width = 0
    with open_csv(raw, dialect.encoding) as text:
        source = text if lines is None else _copy_lines(text, lines)
        try:
            for row in csv.reader(source, delimiter=dialect.delimiter, strict=True):
                if _is_no_record(row, width):
                    if lines is not None:
                        lines.clear()
                    continue
                row = row or [""]
                width = width or len(row)
                if len(row) != width:
                    raise _explain_width(row, number, width, dialect, fails)
                row = _without_left_out(row, dialect)
                if number:
                    _normalize(row, dialect)
                yield row
                number += 1
        except (ValueError, csv.Error) as error:
            raise explain_unreadable(number, error, _suggest_fix(error), fails) from None


def _copy_lines(text: Iterable[str], lines: list[str]) -> Iterator[str]:
    """Yield the lines of a text, and add each to `lines`."""
    for line in text:
        lines.append(line)
        yield line


def _is_no_record(row: list[str], width: int) -> bool:
    """Return whether a line is neither the header nor a record.

    Args:
        width: the number of fields of the header; 0 above it.
    """
    if width:
        return not row and width > 1
    return is_blank_line(row)


def _without_left_out(row: list[str], dialect: CsvDialect) -> list[str]:
    """Return the fields of a record that remain."""
    if not dialect.left_out:
        return row
    return [value for position, value in enumerate(row) if position not in dialect.left_out]


def _normalize(row: list[str], dialect: CsvDialect) -> None:
    """Write the values of a record as most files do."""
    for column in dialect.decimals:
        row[column] = row[column].replace(".", "").replace(",", ".")
    if not dialect.null_words:
        return
    for column, value in enumerate(row):
        if value in dialect.null_words:
            row[column] = ""


def _explain_width(row: list[str], number: int, width: int, dialect: CsvDialect, fails: Fails) -> Exception:
    """Return what is wrong with a record that has another number of fields than the header."""
    excerpt = dialect.delimiter.join(row)[:_MAX_SHOWN_RECORD]
    failure = f"Record {number} has {len(row)} fields, the header {width}: `{excerpt}`."
    if width == 1 and number <= _MAX_TITLE_LINES:
        return fails("invalid", failure, "The first line names the columns: remove what stands above that line.")
    if len(row) < width:
        return fails("invalid", failure, "Add the fields that are missing; an empty one is nothing between separators.")
    separator = DELIMITERS[dialect.delimiter]
    return fails("invalid", failure, f'Fields are separated by {separator}; one that holds some stands in `"`.')


def _suggest_fix(error: Exception) -> str:
    if isinstance(error, csv.Error) and "end of data" in str(error):
        return 'A `"` that begins a field is never closed.'
    return ""


def read_csv_lines(
    raw: BinaryIO,
    fails: Fails,
    dialect: CsvDialect = CsvDialect(),  # noqa: B008
) -> Generator[tuple[list[str], str]]:
    """Yield the header, then the records, each with its text without the line end.

    The text tells an empty field from `""`. It separates fields with commas, whatever the file uses, and quotes as CSV
    requires.
    """
    lines: list[str] = []
    # The names in the header are no numbers.
    decimals: frozenset[int] = frozenset()
    with closing(read_csv_records(raw, fails, dialect, lines)) as records:
        for row in records:
            text = "".join(lines).removesuffix("\n").removesuffix("\r")
            lines.clear()
            yield row, _separate_by_commas(row, decimals, text, dialect)
            decimals = dialect.decimals


def _separate_by_commas(row: list[str], decimals: frozenset[int], text: str, dialect: CsvDialect) -> str:
    """Return the text of a record with commas between fields.

    Args:
        row: what the fields mean.
        decimals: positions of the fields that are numbers with a decimal comma.
        text: how they stand in the file.
    """
    # Most records need no look at each field.
    if not dialect.null_words and not dialect.left_out:
        if dialect.delimiter == "," and not any('"' in value for value in row):
            return text
        if not decimals and '"' not in text and "," not in text:
            return text.replace(dialect.delimiter, ",")
    fields: list[str] = []
    for column, (field, value) in enumerate(zip(_split_fields(text, dialect), row, strict=False)):
        fields.append(_rewrite_field(field, value, is_decimal=column in decimals))
    return ",".join(fields)


def _split_fields(text: str, dialect: CsvDialect) -> list[str]:
    """Return the fields of a record that remain, as the file has them, with their quotes."""
    fields = [match[1] for match in _FIELDS[dialect.delimiter].finditer(text)]
    return _without_left_out(fields, dialect)


def _rewrite_field(field: str, value: str, *, is_decimal: bool) -> str:
    """Return a field as it stands between commas.

    Args:
        value: what it means, which replaces a number with a decimal comma and a word for NULL.
    """
    is_null_word = not value and field.replace('"', "") != ""
    if is_decimal or is_null_word:
        field = value
    if field[:1] != '"' and ('"' in field or "," in field):
        return '"' + field.replace('"', '""') + '"'
    return field
