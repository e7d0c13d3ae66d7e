"""Reads the records of CSV and JSON files, and finds the kind of each field's values.

This module imports nothing of the common package but `sql.transfer.files`, so that a small process can import it alone.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any, BinaryIO, NamedTuple, cast

from mcp_batteries.sql.transfer.files import Fails

__all__ = [
    "CsvDialect",
    "build_record",
    "detect_dialect",
    "infer_column_kinds",
    "read_csv_lines",
    "read_csv_records",
    "read_json_records",
    "refuse_unusable_names",
]

# A line, a field or a JSON array has at most so many characters read at once.
_MAX_LINE_CHARACTERS = 64_000_000

# So many characters of a record with too many fields, or too few, are shown.
_MAX_SHOWN_RECORD = 100
# So many lines may stand above the names of the columns.
_MAX_TITLE_LINES = 10

# Reads one JSON document.
Loads = Callable[[str], Any]
# Passes records on, and may stop the iteration.
PassOn = Callable[[Iterator[list[Any]]], Iterator[list[Any]]]

_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
# The delimiter is detected in so many characters of a file.
_SAMPLE_CHARACTERS = 1 << 16
_SEPARATOR_LINE = re.compile(r'"?sep=(?P<separator>[^\w\s"]|\t)?"?\s*', re.IGNORECASE)
_MAX_SEPARATOR_LINE = 12
# A number with a decimal comma. Numbers with leading zeros do not count: those are codes.
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]{0,2}(?:\.[0-9]{3})+|[1-9][0-9]*)(?:,[0-9]+)?")
# 1,234 may be either: where no comma of the file is surely a decimal one, such fields stay texts.
_PERHAPS_THOUSANDS = re.compile(r"-?[1-9][0-9]{0,2},[0-9]{3}")
# Every type of numbers keeps so many digits, whatever they are.
_EXACT_DIGITS = 15


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
            descriptions.append(f"fields are separated by {_DELIMITERS[self.delimiter]}")
        if self.decimals:
            columns = ", ".join(f"`{names[place]}`" for place in sorted(self.decimals))
            descriptions.append(f"numbers have a decimal comma in {columns}")
        if self.left_out:
            descriptions.append("fields without a name and without values are left out")
        if self.lines_above:
            descriptions.append("the header is the first line of more than separators")
        return ", ".join(descriptions)


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
    delimiters = "\t" if tabs else "".join(_DELIMITERS)
    dialect = stated._replace(delimiter=_detect_delimiter(raw, stated.encoding, delimiters))
    dialect = dialect._replace(lines_above=_count_lines_above(raw, dialect))
    dialect = dialect._replace(left_out=_find_fields_of_nothing(raw, fails, dialect, pass_on))
    if dialect.delimiter == ",":
        return dialect
    return dialect._replace(decimals=_find_decimal_columns(raw, fails, dialect, pass_on))


def _find_decimal_columns(raw: BinaryIO, fails: Fails, dialect: CsvDialect, pass_on: PassOn) -> frozenset[int]:
    """Return the positions of fields whose values all are numbers with decimal commas, if one comma surely is one."""
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
                elif "," in value:
                    candidates.add(column)
                    if not _PERHAPS_THOUSANDS.fullmatch(value):
                        certain.add(column)
            if not possible:
                break
    if not certain & possible:
        return frozenset()
    return frozenset(candidates & possible)


def _count_lines_above(raw: BinaryIO, dialect: CsvDialect) -> int:
    """Return how many lines of nothing but separators stand above the header; whoever reads it reports errors."""
    text = _open_csv(raw, dialect.encoding)
    count = 0
    try:
        for row in csv.reader(text, delimiter=dialect.delimiter, strict=True):
            if not _is_blank(row, 0):
                break
            if len(row) > 1:
                count += 1
    except (ValueError, csv.Error):
        return 0
    finally:
        if not raw.closed:
            text.detach()
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


def _is_decimal(value: str) -> bool:
    """Return whether `value` can be a number with a decimal comma, with few enough digits to be kept exactly."""
    return _DECIMAL.fullmatch(value) is not None and sum(map(str.isdecimal, value)) <= _EXACT_DIGITS


def _detect_delimiter(raw: BinaryIO, encoding: str, delimiters: str) -> str:
    """Return the one of `delimiters` that separates the fields of a file."""
    text = _open_text(raw, encoding)
    separator = _read_separator(text)
    try:
        sample = text.read(_SAMPLE_CHARACTERS)
    except ValueError:
        return delimiters[0]  # Whoever reads the file reports the error.
    finally:
        if not raw.closed:
            text.detach()
    is_complete = len(sample) < _SAMPLE_CHARACTERS
    if not is_complete:
        sample = sample[: sample.rfind("\n") + 1]
    splits = [_Split.measure(delimiter, sample, is_complete=is_complete) for delimiter in delimiters]
    for split in splits:
        if split.delimiter == separator and split.width > 1:
            return split.delimiter
    return _choose_split(splits).delimiter


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
    csv.field_size_limit(_MAX_LINE_CHARACTERS)
    number = 0
    width = 0
    text = _open_csv(raw, dialect.encoding)
    source = text if lines is None else _copy_lines(text, lines)
    try:
        for row in csv.reader(source, delimiter=dialect.delimiter, strict=True):
            if _is_blank(row, width):
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
        raise _explain_unreadable(number, error, fails) from None
    finally:
        if not raw.closed:
            text.detach()


def _copy_lines(text: Iterable[str], lines: list[str]) -> Iterator[str]:
    """Yield the lines of a text, and add each to `lines`."""
    for line in text:
        lines.append(line)
        yield line


def _without_left_out(row: list[str], dialect: CsvDialect) -> list[str]:
    """Return the fields of a record that remain."""
    if not dialect.left_out:
        return row
    return [value for position, value in enumerate(row) if position not in dialect.left_out]


def _is_blank(row: list[str], width: int) -> bool:
    """Return whether a line is no record.

    Args:
        width: the number of fields of the header; 0 above it.
    """
    if width:
        return not row and width > 1
    return not any(value.strip() for value in row)


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
    separator = _DELIMITERS[dialect.delimiter]
    return fails("invalid", failure, f'Fields are separated by {separator}; one that holds some stands in `"`.')


def read_csv_lines(
    raw: BinaryIO,
    fails: Fails,
    dialect: CsvDialect = CsvDialect(),  # noqa: B008
) -> Generator[tuple[list[str], str]]:
    """Yield the header, then the records, each with its text without the line end.

    The text tells an empty field from `""`.

    The text separates fields with commas, whatever the file uses, and quotes as CSV requires.
    """
    lines: list[str] = []
    decimals: frozenset[int] = frozenset()
    with closing(read_csv_records(raw, fails, dialect, lines)) as records:
        for row in records:
            text = "".join(lines).removesuffix("\n").removesuffix("\r")
            lines.clear()
            yield row, _separate_by_commas(row, decimals, text, dialect)
            decimals = dialect.decimals


_FIELDS = {
    delimiter: re.compile(rf'("(?:[^"]|"")*"|[^{re.escape(delimiter)}]*)(?:{re.escape(delimiter)}|\Z)')
    for delimiter in _DELIMITERS
}


def _separate_by_commas(row: list[str], decimals: frozenset[int], text: str, dialect: CsvDialect) -> str:
    """Return the text of a record with commas between fields."""
    if not dialect.null_words and not dialect.left_out:
        if dialect.delimiter == "," and not any('"' in value for value in row):
            return text
        if not decimals and '"' not in text and "," not in text:
            return text.replace(dialect.delimiter, ",")
    fields = zip(_split_fields(text, dialect), row, strict=False)
    return ",".join(
        _rewrite_field(field, value, is_decimal=column in decimals) for column, (field, value) in enumerate(fields)
    )


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


class _RepeatingRecord(dict[str, Any]):
    """A JSON object that has a name twice, or holds one that has: of the values only the last is there."""


def build_record(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object so that `read_json_records` can tell if it has a field twice; for `object_pairs_hook`."""
    record = dict(fields)
    if len(record) < len(fields) or any(map(_has_repeated_name, record.values())):
        return _RepeatingRecord(record)
    return record


def _has_repeated_name(value: Any) -> bool:
    """Return whether an object in `value` has a name twice."""
    if isinstance(value, list):
        return any(map(_has_repeated_name, cast("list[Any]", value)))
    return isinstance(value, _RepeatingRecord)


def read_json_records(
    raw: BinaryIO,
    fails: Fails,
    loads: Loads,
    names: list[Any] | None = None,
    *,
    grows: bool = False,
    encoding: str = "",
) -> Generator[list[Any]]:
    """Yield the fields' names, then the values of each record.

    The file is an array of objects, has an object on each line, or an array on each line, the first with the names.

    Args:
        loads: reads a document, its objects with `build_record`.
        names: the fields of objects, if known.
        grows: whether to add later fields to the names instead of refusing them.
        encoding: the one that the caller named.
    """
    number = 0
    fields = _JsonFields(fails, names, grows=grows)
    if names is not None:
        yield names
    try:
        for number, document in enumerate(_read_documents(_open_text(raw, encoding), fails, loads), 1):
            if _has_repeated_name(document):
                raise fails("invalid", f"Record {number} has a field twice.", "Give each a name of its own.")
            if isinstance(document, dict):
                yield from fields.read_object(cast("dict[str, Any]", document), number)
            elif isinstance(document, list):
                yield from fields.read_array(cast("list[Any]", document), number)
            else:
                raise fails("invalid", f"Record {number} is not an object.", "Give an array, or lines, of objects.")
    except (ValueError, RecursionError) as error:
        raise _explain_unreadable(number, error, fails) from None


class _JsonFields:
    """The fields that the records of a JSON file have.

    Args:
        names: None if the first record says them. The list grows in place, because whoever reads the records has it.
        grows: whether to add later fields to the names instead of refusing them.
    """

    def __init__(self, fails: Fails, names: list[Any] | None, *, grows: bool) -> None:
        self._fails = fails
        self._names = names
        self._grows = grows
        # Where arrays follow names that were known before, the first of them repeats these.
        self._may_repeat_names = True

    def read_object(self, record: dict[str, Any], number: int) -> Iterator[list[Any]]:
        """Yield the values of an object, and before the first object the names."""
        self._may_repeat_names = False
        if self._names is None:
            self._names = list(record)
            yield self._names
        self._add_names([name for name in record if name not in self._names], number)
        yield [record.get(name) for name in self._names]

    def read_array(self, values: list[Any], number: int) -> Iterator[list[Any]]:
        """Yield an array of values, or the names that the first one holds."""
        repeats_names = self._may_repeat_names and self._names is not None
        self._may_repeat_names = False
        if self._names is None:
            self._names = self._check_names(values)
            yield self._names
            return
        if len(values) != len(self._names):
            raise self._fails("invalid", f"Line {number} has {len(values)} values, the first {len(self._names)}.", "")
        if not repeats_names:
            yield values

    def _add_names(self, names: list[str], number: int) -> None:
        if not names:
            return
        if not self._grows:
            failure = f"Record {number} has a field that the first has not: `{names[0][:100]}`."
            raise self._fails("invalid", failure, "Give all in the first record, null where there is nothing.")
        assert self._names is not None
        self._names += names

    def _check_names(self, names: list[Any]) -> list[Any]:
        if all(isinstance(name, str) for name in names):
            return names
        failure = "The first array does not name the fields: it has other values than texts."
        raise self._fails("invalid", failure, "Give objects, or the fields' names as the first array.")


def _read_documents(text: io.TextIOWrapper, fails: Fails, loads: Loads) -> Iterator[Any]:
    """Yield the elements of one array of objects, which is read as a whole, or the document of each line."""
    try:
        first = text.readline(_MAX_LINE_CHARACTERS)
        if first.lstrip()[:1] == "[" and not _is_complete_json(first):
            yield from loads(_read_array_text(first, text, fails))
            return
        if first.strip():
            yield from _unwrap_records(loads(first))
        while line := text.readline(_MAX_LINE_CHARACTERS):
            if len(line) >= _MAX_LINE_CHARACTERS:
                raise fails("too_large", f"A line may have {_MAX_LINE_CHARACTERS:,} characters.", "")
            if line.strip():
                yield loads(line)
    finally:
        if not text.buffer.closed:
            text.detach()


def _read_array_text(first: str, text: io.TextIOWrapper, fails: Fails) -> str:
    """Return the text of an array that goes on behind its first line."""
    array = first + text.read(_MAX_LINE_CHARACTERS - len(first) + 1)
    if len(array) > _MAX_LINE_CHARACTERS:
        failure = f"A JSON array may have {_MAX_LINE_CHARACTERS:,} characters."
        raise fails("too_large", failure, "Write an object per line, as .jsonl.")
    return array


def _unwrap_records(document: Any) -> list[Any]:
    """Return the records of the first line: those in an array of them, else the document; none for null."""
    if document is None:
        return []
    if isinstance(document, list):
        items = cast("list[Any]", document)
        if all(isinstance(item, dict | list) for item in items):
            return items
    return [document]


def _is_complete_json(line: str) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _open_csv(raw: BinaryIO, encoding: str) -> io.TextIOWrapper:
    """Return the text of a CSV file, behind the line with which some of them name the separator to Excel."""
    text = _open_text(raw, encoding)
    _read_separator(text)
    return text


def _read_separator(text: io.TextIOWrapper) -> str:
    """Read the line that names the separator, if the file begins with one; return it, empty if none is named."""
    try:
        line = _SEPARATOR_LINE.fullmatch(text.readline(_MAX_SEPARATOR_LINE))
    except ValueError:
        line = None  # Whoever reads the file reports the error.
    if line is None:
        text.seek(0)
        return ""
    return line["separator"] or ""


def _open_text(raw: BinaryIO, encoding: str) -> io.TextIOWrapper:
    """Return the text of a file in the encoding that was named, in UTF-8, or in UTF-16 with a byte order mark."""
    raw.seek(0)
    if encoding:
        return io.TextIOWrapper(raw, encoding=encoding, newline="")
    is_utf16 = raw.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    raw.seek(0)
    return io.TextIOWrapper(raw, encoding="utf-16" if is_utf16 else "utf-8-sig", newline="")


def _explain_unreadable(number: int, error: Exception, fails: Fails) -> Exception:
    if isinstance(error, RecursionError):
        failure = f"Record {number + 1} holds more arrays or objects in one another than can be read."
        return fails("invalid", failure, "Flatten it, or give that field as a text.")
    message = str(error) or type(error).__name__
    failure = f"Behind record {number} the file can't be read: {message[:200]}."
    if isinstance(error, UnicodeError):
        return fails("invalid", failure, "Name its `encoding`, such as cp1252, in which Excel often writes.")
    if isinstance(error, csv.Error) and "end of data" in message:
        return fails("invalid", failure, 'A `"` that begins a field is never closed.')
    return fails("invalid", failure, "")


def refuse_unusable_names(names: Sequence[str], max_columns: int, fails: Fails, *, ignores_case: bool) -> None:
    """Raise a failure if fields can't name the columns of a new table.

    Args:
        ignores_case: whether two names that differ in case alone are one to the database.
    """
    if not names:
        raise fails("invalid", "The file has no fields.", "The first line of a .csv names the columns.")
    unnamed = [number for number, name in enumerate(names, 1) if not name]
    if len(unnamed) * 2 > len(names):
        failure = f"The first line does not name the columns: {len(unnamed)} of its {len(names)} fields are empty."
        raise fails("invalid", failure, "Remove what stands above the line with the names.")
    if unnamed:
        raise fails("invalid", f"{_describe_place(names, unnamed[0])} has values and no name.", "Name it.")
    if len(names) > max_columns:
        failure = f"The file has {len(names):,} fields, a new table {max_columns} columns at most."
        raise fails("invalid", failure, "Create the table for the fields that you need, and leave out the others.")
    keys: set[str] = set()
    for name in names:
        if "\0" in name:
            raise fails("invalid", "The name of a field has a zero byte.", "Write it without.")
        key = name.casefold() if ignores_case else name
        if key in keys:
            failure = f"Two fields have one name, `{name[:_MAX_SHOWN_RECORD]}`."
            raise fails("invalid", failure, "Give each a name of its own.")
        keys.add(key)


def _describe_place(names: Sequence[str], number: int) -> str:
    """Return which field it is by the one before it, as the fields that are left out have no number."""
    if number == 1:
        return "The first field"
    return f"A field behind `{names[number - 2][:_MAX_SHOWN_RECORD]}`"


def infer_column_kinds(records: Iterator[list[Any]], kind: Callable[[Any], str]) -> tuple[list[Any], list[set[str]]]:
    """Return the names of the fields, and the kinds of each field's values."""
    names = next(records, list[Any]())
    kinds: list[set[str]] = []
    _add_fields(kinds, names)
    for row in records:
        _add_fields(kinds, row)
        for field_kinds, value in zip(kinds, row, strict=False):
            if "TEXT" not in field_kinds or not isinstance(value, str):  # nothing that a text is makes it less
                field_kinds.add(kind(value))
    return names, kinds


def _add_fields(kinds: list[set[str]], row: Sequence[Any]) -> None:
    """Give each field of a record a set of kinds."""
    while len(kinds) < len(row):
        kinds.append(set())
