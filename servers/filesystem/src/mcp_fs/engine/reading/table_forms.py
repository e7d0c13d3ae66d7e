"""Groups the values of each column of CSV files by how they are written."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from mcp_batteries.text_forms import Form, TextForms, show_text
from mcp_fs.engine.reading.line_forms import describe_dates
from mcp_fs.models import pluralize

__all__ = ["TableForms"]

_SEPARATORS = ",;\t|"
_REGULAR_SHARE = 0.75
_MAX_FORMS = 12
# Where even the last level has more of them, as of names and remarks.
_MAX_FORMS_OF_MANY = 4
_MAX_SHOWN_CHARACTERS = 60
_MAX_HEADER_CHARACTERS = 600
_DIGIT = re.compile(r"\d")


class TableForms:
    """Counts the values of each column by their forms, file by file.

    Attributes:
        row_count: rows below the names of the columns.
    """

    def __init__(self) -> None:
        self.row_count = 0
        self._file_count = 0
        self._named_file_count = 0
        self._header_counts = Counter[str]()
        # Of each column its values, which are far fewer than cells; of several of one name each by its number.
        self._columns: dict[tuple[str, int], Counter[str]] = {}
        self._misfits: list[str] = []

    def add_file(self, lines: Sequence[str]) -> None:
        self._file_count += 1
        header = lines[0]
        separator = max(_SEPARATORS, key=header.count)
        # Who has numbers there has no names of columns.
        if separator not in header or _DIGIT.search(header):
            return
        self._header_counts[header] += 1
        reader = csv.reader([f"{line}\n" for line in lines], delimiter=separator)
        try:
            names, *rows = reader
        except csv.Error:
            return
        self._named_file_count += 1
        columns = self._find_columns(names)
        for row in rows:
            if row:
                self._add_row(columns, row, separator)

    def _find_columns(self, names: Sequence[str]) -> list[Counter[str]]:
        columns: list[Counter[str]] = []
        name_counts = Counter[str]()
        for name in map(str.strip, names):
            columns.append(self._columns.setdefault((name, name_counts[name]), Counter()))
            name_counts[name] += 1
        return columns

    def _add_row(self, columns: Sequence[Counter[str]], row: Sequence[str], separator: str) -> None:
        self.row_count += 1
        if len(row) != len(columns):
            self._misfits.append(separator.join(row))
            return
        for values, value in zip(columns, row, strict=True):
            values[value] += 1

    def is_regular(self) -> bool:
        """Return whether all files have names of columns, and most rows a value for each of them."""
        if not self.row_count or self._named_file_count < self._file_count:
            return False
        return len(self._misfits) <= self.row_count * (1 - _REGULAR_SHARE)

    def describe(self, max_bytes: int) -> list[str]:
        """Return the names of the columns as they are, and the forms of each column.

        Args:
            max_bytes: that these may take, but for one.
        """
        rows = [self._describe_header(header, count) for header, count in self._header_counts.most_common()]
        if self._misfits:
            rows.append(f"[{pluralize(len(self._misfits), 'row')} of another length: {_show(self._misfits[0])}]")
        shown_rows: list[str] = []
        for row in self._columns_below(rows, max_bytes):
            max_bytes -= _count_bytes(row) + 1
            if shown_rows and max_bytes < 0:
                line_count = len(rows) + len(self._columns)
                return [*shown_rows, f"[{pluralize(line_count - len(shown_rows), 'line')} more]"]
            shown_rows.append(row)
        return shown_rows

    def _columns_below(self, rows: Sequence[str], max_bytes: int) -> Iterator[str]:
        """Yield the rows and then one of each column, told as finely as its share of the bytes allows."""
        for row in rows:
            max_bytes -= _count_bytes(row) + 1
            yield row
        for number, ((name, _), values) in enumerate(self._columns.items()):
            # Most columns need less than an equal share.
            share = 2 * max_bytes // (len(self._columns) - number + 1)
            row = _describe_column(name, values, share)
            max_bytes -= _count_bytes(row) + 1
            yield row

    def _describe_header(self, header: str, count: int) -> str:
        if len(header) > _MAX_HEADER_CHARACTERS:
            header = f"{header[:_MAX_HEADER_CHARACTERS]}... ({len(header):,} characters)"
        if count == self._file_count:
            return f"{count:,}\t{header}"
        return f"{count:,} in {count:,}\t{header}"


def _describe_column(name: str, values: Counter[str], max_bytes: int) -> str:
    note = ""
    dates = describe_dates(values)
    if dates:
        note = f" ({dates})"
    column = f"{_show(name)}{note}: "
    max_bytes -= _count_bytes(column)

    def fits(forms: Sequence[Form]) -> bool:
        return _count_bytes(_describe_forms(forms)) <= max_bytes

    text_forms = TextForms(values)
    forms = sorted(text_forms.forms, key=lambda form: -form.count)
    if len(forms) > _MAX_FORMS:
        left_out = f" | {len(forms) - _MAX_FORMS_OF_MANY:,} forms more"
        return column + _describe_forms(forms[:_MAX_FORMS_OF_MANY]) + left_out
    return column + _describe_forms(text_forms.tell_apart(forms, _MAX_FORMS, fits))


def _describe_forms(forms: Sequence[Form]) -> str:
    examples: list[str] = []
    for form in forms:
        example = f"{form.count:,}x {_show(form.texts[0])}"
        if len(form.texts) > 1:
            example += f" ({len(form.texts):,} values)"
        examples.append(example)
    return " | ".join(examples)


def _count_bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _show(text: str) -> str:
    return show_text(text, _MAX_SHOWN_CHARACTERS)
