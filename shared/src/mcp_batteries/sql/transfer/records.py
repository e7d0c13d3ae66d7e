"""Reads the records of CSV and JSON files, and finds the kind of each field's values.

This module imports nothing of the common package but `sql.files`, so that a small process can import it alone.
"""

from __future__ import annotations

import codecs
import csv
import hashlib
import io
import itertools
import json
import re
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any, BinaryIO, NamedTuple, cast

from mcp_batteries.sql.transfer.files import Fails

__all__ = [
    "ColumnSummary",
    "CsvDialect",
    "build_record",
    "describe_file",
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
# So many values are shown that keep a column from a type.
_MAX_EXAMPLES = 3
# They are looked for among so many values of a kind.
_MAX_SEARCHED_EXAMPLES = 100
# The values of so many records are described.
_MAX_DESCRIBED_RECORDS = 100_000
# So many different values of a field are counted.
_MAX_DIFFERENT_VALUES = 1000
# A value of at most so many characters is kept as it is, a longer one as its hash.
_MAX_KEPT_CHARACTERS = 200
# A field with so few different values has each listed, if none has more characters than this.
_MAX_LISTED_VALUES = 8
_MAX_SHOWN_CHARACTERS = 24
# Python reads integers of at most so many digits.
_MAX_INTEGER_DIGITS = 4000
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")

# Reads one JSON document.
Loads = Callable[[str], Any]

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
        """What is unusual, as half a sentence; empty if nothing is."""
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
    known: CsvDialect = CsvDialect(),  # noqa: B008
    tabs: bool = False,
    through: Callable[[Iterator[list[Any]]], Iterator[list[Any]]],
) -> CsvDialect:
    """Detect how a file is written: the first delimiter, commas first, that makes records as wide as the header.

    Args:
        known: what the caller says of the file.
        tabs: whether only tabs can separate fields.
        through: wraps the iteration over records, which can stop it.
    """
    delimiter = _delimiter(raw, known.encoding, "\t" if tabs else "".join(_DELIMITERS))
    dialect = known._replace(delimiter=delimiter)
    dialect = dialect._replace(lines_above=_count_lines_above(raw, dialect))
    dialect = dialect._replace(left_out=_find_fields_of_nothing(raw, fails, dialect, through))
    if delimiter == ",":
        return dialect
    candidates: set[int] = set()
    certain: set[int] = set()
    with closing(read_csv_records(raw, fails, dialect)) as records:
        rows = through(records)
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
        return dialect
    return dialect._replace(decimals=frozenset(candidates & possible))


def _count_lines_above(raw: BinaryIO, dialect: CsvDialect) -> int:
    """Return how many lines of nothing but separators stand above the header; whoever reads it reports errors."""
    text = _open_csv(raw, dialect.encoding)
    count = 0
    try:
        for row in csv.reader(text, delimiter=dialect.delimiter, strict=True):
            if not _is_blank(row, 0):
                break
            count += len(row) > 1
    except (ValueError, csv.Error):
        return 0
    finally:
        if not raw.closed:
            text.detach()
    return count


def _find_fields_of_nothing(
    raw: BinaryIO, fails: Fails, dialect: CsvDialect, through: Callable[[Iterator[list[Any]]], Iterator[list[Any]]]
) -> frozenset[int]:
    """Return the positions of fields that have no name and no value in any record."""
    with closing(read_csv_records(raw, fails, dialect)) as records:
        names = next(records, list[Any]())
        positions = {position for position, name in enumerate(names) if not name.strip()}
        if not positions or len(positions) == len(names):
            return frozenset()
        for row in through(records):
            positions = {position for position in positions if not row[position]}
            if not positions:
                break
    return frozenset(positions)


def _is_decimal(value: str) -> bool:
    """Return whether `value` can be a number with a decimal comma, with few enough digits to be kept exactly."""
    return _DECIMAL.fullmatch(value) is not None and sum(map(str.isdecimal, value)) <= _EXACT_DIGITS


def _delimiter(raw: BinaryIO, encoding: str, among: str) -> str:
    text = _open_text(raw, encoding)
    separator = _read_separator(text)
    try:
        sample = text.read(_SAMPLE_CHARACTERS)
    except ValueError:
        return among[0]  # Whoever reads the file reports the error.
    finally:
        if not raw.closed:
            text.detach()
    is_complete = len(sample) < _SAMPLE_CHARACTERS
    if not is_complete:
        sample = sample[: sample.rfind("\n") + 1]
    splits = [_Split.by(delimiter, sample, is_complete=is_complete) for delimiter in among]
    for split in splits:
        if split.delimiter == separator and split.width > 1:
            return split.delimiter
    return _choose_split(splits).delimiter


def _choose_split(splits: Sequence[_Split]) -> _Split:
    """Return the first split into several fields that fits all records, or else one that fits most."""
    for split in splits:
        if split.width > 1 and split.wrong == 0:
            return split
    for split in splits:
        if split.width > 1 and split.is_likely:
            return split
    if splits[0].wrong:
        return max(splits, key=lambda split: split.width)
    return splits[0]


class _Split(NamedTuple):
    """How a delimiter fits a sample: fields of the header, records with as many, and records with more or fewer."""

    delimiter: str
    width: int
    right: int
    wrong: int

    @property
    def is_likely(self) -> bool:
        return self.right >= max(self.wrong, 1)

    @classmethod
    def by(cls, delimiter: str, sample: str, *, is_complete: bool) -> _Split:
        """Count how the records of a sample are split by a delimiter."""
        width = 0
        right = 0
        wrong = 0
        try:
            for row in csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter, strict=True):
                if not width:
                    width = len(row)
                elif len(row or [""]) == width:
                    right += 1
                elif row:  # Among records of several fields empty lines mean nothing.
                    wrong += 1
        except csv.Error as error:
            if is_complete or "end of data" not in str(error):
                wrong += 1
        return cls(delimiter, width, right, wrong)


def read_csv_records(
    raw: BinaryIO,
    fails: Fails,
    dialect: CsvDialect = CsvDialect(),  # noqa: B008
    lines: list[str] | None = None,
) -> Generator[list[str]]:
    """The header, then the records, all as texts, with decimal points and empty fields whatever the file uses.

    A quote inside an unquoted field is an ordinary character, as in most programs. Empty lines are not records, unless
    there is only one field; above the header neither they nor lines of nothing but separators are.

    Args:
        lines: receives the lines of the last record.
    """
    csv.field_size_limit(_MAX_LINE_CHARACTERS)
    number = 0
    width = 0
    text = _open_csv(raw, dialect.encoding)

    def note_lines(lines: list[str]) -> Iterator[str]:
        for line in text:
            lines.append(line)
            yield line

    try:
        source = text if lines is None else note_lines(lines)
        for row in csv.reader(source, delimiter=dialect.delimiter, strict=True):
            if _is_blank(row, width):
                if lines is not None:
                    lines.clear()
                continue
            row = row or [""]
            width = width or len(row)
            if len(row) != width:
                raise _explain_width(row, number, width, dialect, fails)
            if dialect.left_out:
                row = [value for position, value in enumerate(row) if position not in dialect.left_out]
            if number:
                _normalize(row, dialect)
            yield row
            number += 1
    except (ValueError, csv.Error) as error:
        raise _explain_unreadable(number, error, fails) from None
    finally:
        if not raw.closed:
            text.detach()


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
    shown = dialect.delimiter.join(row)[:_MAX_SHOWN_RECORD]
    failure = f"Record {number} has {len(row)} fields, the header {width}: `{shown}`."
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
    """The header, then the records, each with its text without the line end, which tells an empty field from `""`.

    The text separates fields with commas, whatever the file uses, and quotes as CSV requires.
    """
    lines: list[str] = []
    decimals: frozenset[int] = frozenset()
    with closing(read_csv_records(raw, fails, dialect, lines)) as records:
        for row in records:
            written = "".join(lines).removesuffix("\n").removesuffix("\r")
            lines.clear()
            yield row, _separate_by_commas(row, decimals, written, dialect)
            decimals = dialect.decimals


_FIELDS = {
    delimiter: re.compile(rf'("(?:[^"]|"")*"|[^{re.escape(delimiter)}]*)(?:{re.escape(delimiter)}|\Z)')
    for delimiter in _DELIMITERS
}


def _separate_by_commas(row: list[str], decimals: frozenset[int], written: str, dialect: CsvDialect) -> str:
    """Return the text of a record with commas between fields."""
    delimiter = dialect.delimiter
    if not dialect.null_words and not dialect.left_out:
        if delimiter == "," and not any('"' in text for text in row):
            return written
        if not decimals and '"' not in written and "," not in written:
            return written.replace(delimiter, ",")
    texts: list[str] = []
    written_fields = [
        match[1]
        for position, match in enumerate(_FIELDS[delimiter].finditer(written))
        if position not in dialect.left_out
    ]
    for column, (text, value) in enumerate(zip(written_fields, row, strict=False)):
        is_null = not value and text.replace('"', "") != ""
        if column in decimals or is_null:
            text = value
        if text[:1] != '"' and ('"' in text or "," in text):
            text = '"' + text.replace('"', '""') + '"'
        texts.append(text)
    return ",".join(texts)


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
    """The fields' names, then the values: from an array or lines of objects, or from lines of arrays after the names.

    Args:
        loads: reads a document, its objects with `build_record`.
        names: the fields of objects, if known.
        grows: whether to add later fields to the names instead of refusing them.
        encoding: the one that the caller named.
    """
    number = 0
    if names is not None:
        yield names
    has_started = False
    try:
        for number, item in enumerate(_documents(_open_text(raw, encoding), fails, loads), 1):
            if _has_repeated_name(item):
                raise fails("invalid", f"Record {number} has a field twice.", "Give each a name of its own.")
            if isinstance(item, dict):
                fields = cast("dict[str, Any]", item)
                if names is None:
                    yield (names := list(fields))
                if unknown := [name for name in fields if name not in names]:
                    if not grows:
                        failure = f"Record {number} has a field that the first has not: `{unknown[0][:100]}`."
                        raise fails("invalid", failure, "Give all in the first record, null where there is nothing.")
                    names += unknown
                has_started = True
                yield [fields.get(name) for name in names]
            elif isinstance(item, list):
                values = cast("list[Any]", item)
                if names is None:
                    if not all(isinstance(name, str) for name in values):
                        failure = "The first array does not name the fields: it has other values than texts."
                        raise fails("invalid", failure, "Give objects, or the fields' names as the first array.")
                    names = values
                    has_started = True
                    yield names
                    continue
                if len(values) != len(names):
                    raise fails("invalid", f"Line {number} has {len(values)} values, the first {len(names)}.", "")
                if not has_started:  # the names again
                    has_started = True
                    continue
                yield values
            else:
                raise fails("invalid", f"Record {number} is not an object.", "Give an array, or lines, of objects.")
    except (ValueError, RecursionError) as error:
        raise _explain_unreadable(number, error, fails) from None


def _documents(text: io.TextIOWrapper, fails: Fails, loads: Loads) -> Iterator[Any]:
    """The elements of one array of objects, read whole, or the documents of each line."""
    try:
        first = text.readline(_MAX_LINE_CHARACTERS)
        if first.lstrip()[:1] == "[" and not _is_whole(first):
            first += text.read(_MAX_LINE_CHARACTERS - len(first) + 1)
            if len(first) > _MAX_LINE_CHARACTERS:
                failure = f"A JSON array may have {_MAX_LINE_CHARACTERS:,} characters."
                raise fails("too_large", failure, "Write an object per line, as .jsonl.")
            yield from loads(first)
            return
        start = loads(first) if first.strip() else None
        if isinstance(start, list) and all(isinstance(item, dict | list) for item in cast("list[Any]", start)):
            yield from cast("list[Any]", start)
        elif start is not None:
            yield start
        while line := text.readline(_MAX_LINE_CHARACTERS):
            if len(line) >= _MAX_LINE_CHARACTERS:
                raise fails("too_large", f"A line may have {_MAX_LINE_CHARACTERS:,} characters.", "")
            if line.strip():
                yield loads(line)
    finally:
        if not text.buffer.closed:
            text.detach()


def _is_whole(line: str) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _open_csv(raw: BinaryIO, encoding: str) -> io.TextIOWrapper:
    """The text of a CSV file, behind the line with which some of them name the separator to Excel."""
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
    """The text of a file in the encoding that was named, in UTF-8, or in UTF-16 with a byte order mark."""
    raw.seek(0)
    if encoding:
        return io.TextIOWrapper(raw, encoding=encoding, newline="")
    marked = raw.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    raw.seek(0)
    return io.TextIOWrapper(raw, encoding="utf-16" if marked else "utf-8-sig", newline="")


def _explain_unreadable(number: int, error: Exception, fails: Fails) -> Exception:
    if isinstance(error, RecursionError):
        failure = f"Record {number + 1} holds more arrays or objects in one another than can be read."
        return fails("invalid", failure, "Flatten it, or give that field as a text.")
    message = str(error) or type(error).__name__
    failure = f"Behind record {number} the file can't be read: {message[:200]}."
    if isinstance(error, UnicodeError):
        return fails("invalid", failure, "Name its `encoding`, such as cp1252, in which Excel often writes.")
    is_open = isinstance(error, csv.Error) and "end of data" in message
    return fails("invalid", failure, 'A `"` that begins a field is never closed.' if is_open else "")


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
    """The names of the fields, and the kinds of each field's values."""
    names = next(records, list[Any]())
    kinds: list[set[str]] = []
    _add(kinds, names)
    for row in records:
        _add(kinds, row)
        for field_kinds, value in zip(kinds, row, strict=False):
            if "TEXT" not in field_kinds or not isinstance(value, str):  # nothing that a text is makes it less
                field_kinds.add(kind(value))
    return names, kinds


def _add(found: list[set[str]], row: Iterable[Any]) -> None:
    found += [set[str]() for _ in list(row)[len(found) :]]


class ColumnSummary:
    """Summarizes what the values of each field are like: all of them, or their number and range.

    Args:
        kind: returns the kind of a value, as that of a column is inferred.
        related: kinds of which a column can have several, and still has a type.
    """

    def __init__(self, kind: Callable[[Any], str] = lambda value: "", related: Sequence[frozenset[str]] = ()) -> None:
        self.records = 0
        self._fields: list[_Values] = []
        self._kinds: list[_KindCounts] = []
        self._kind = kind
        self._related = related
        self._is_complete = True

    def through(self, records: Iterator[list[Any]]) -> Iterator[list[Any]]:
        """Pass `records` on unchanged, names first, and examine the first values on the way."""
        yield from itertools.islice(records, 1)
        for row in itertools.islice(records, _MAX_DESCRIBED_RECORDS):
            self.records += 1
            self._fields += [_Values() for _ in row[len(self._fields) :]]
            self._kinds += [_KindCounts() for _ in row[len(self._kinds) :]]
            for field, kinds, value in zip(self._fields, self._kinds, row, strict=False):
                field.add(value)
                kinds.add(self._kind(value), value, self.records)
            yield row
        for row in records:
            self._is_complete = False
            yield row

    def describe(self) -> list[str]:
        """Return a line for each field."""
        part = "" if self._is_complete else f"of the first {self.records:,} rows "
        return [
            part + field.told(self.records) + kinds.describe_exceptions(self._related)
            for field, kinds in zip(self._fields, self._kinds, strict=True)
        ]


def describe_file(records: Iterator[list[Any]], summary: ColumnSummary) -> str:
    """Return what the values of each field of a file are like, in lines that end a message."""
    summarized = summary.through(records)
    names = next(summarized, list[Any]())
    deque(summarized, maxlen=0)
    lines = [f"{name}: {line}" for name, line in zip(names, summary.describe(), strict=False)]
    return "\n".join(["\nIn the file:", *(" ".join(line.split()) for line in lines)])


class _KindCounts:
    """Counts the values of a field by their kinds, and keeps the first of each."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._examples: dict[str, dict[str, int]] = {}

    def add(self, kind: str, value: Any, record: int) -> None:
        if not kind:
            return
        self._counts[kind] = self._counts.get(kind, 0) + 1
        examples = self._examples.setdefault(kind, {})
        # Most kinds have many values, and only few of them are of interest where there are few.
        if len(examples) < _MAX_EXAMPLES and self._counts[kind] <= _MAX_SEARCHED_EXAMPLES:
            if isinstance(value, str):
                value = value[:_MAX_SHOWN_CHARACTERS]
            examples.setdefault(json.dumps(value, ensure_ascii=False, default=repr)[:_MAX_SHOWN_CHARACTERS], record)

    def describe_exceptions(self, related: Sequence[frozenset[str]]) -> str:
        """Return how many values keep the field from the kind that most of them have; empty where none does."""
        if not self._counts:
            return ""
        kind = max(self._counts, key=lambda name: self._counts[name])
        families = [kinds for kinds in related if kind in kinds] or [frozenset((kind,))]
        exceptions = [[name for name in self._counts if name not in family] for family in families]
        others = min(exceptions, key=lambda names: sum(self._counts[name] for name in names))
        count = sum(self._counts[name] for name in others)
        if not others or kind.lower() == "text" or 2 * count > sum(self._counts.values()):
            return ""
        examples: list[str] = []
        for name in others:
            examples += [f"{value} in record {record:,}" for value, record in self._examples[name].items()]
        return f"; {kind.lower()} but for {count:,}: {', '.join(examples[:_MAX_EXAMPLES])}"


class _Values:
    def __init__(self) -> None:
        self._times: dict[Any, int] = {}
        self._values = 0
        self._least: Any = None
        self._most: Any = None
        self._are_numbers = True
        self._quoted = False
        self._texts: list[str] = []

    def add(self, value: Any) -> None:
        if value is None or value == "":
            return
        self._values += 1
        self._quoted = self._quoted or isinstance(value, str)
        if isinstance(value, bool | dict | list | bytes):
            value = json.dumps(value, ensure_ascii=False, default=repr)
            self._are_numbers = False
        key = _value_key(value)
        if key in self._times:
            self._times[key] += 1
            return
        if len(self._times) <= _MAX_DIFFERENT_VALUES:
            self._times[key] = 1
        self._compare(value)

    def _compare(self, value: Any) -> None:
        """Note the least and the greatest value, as texts and, as long as all are numbers, as numbers."""
        text = str(value)
        if self._texts:
            self._texts = [min(text, *self._texts), max(text, *self._texts)]
        else:
            self._texts = [text, text]
        if not self._are_numbers or not _is_number(value, text):
            self._are_numbers = False
            return
        number = _parse_number(text)
        # As databases order them, NaN comes last.
        rank = (False, number, text) if number == number else (True, 0, text)
        self._least = min(rank, self._least or rank)
        self._most = max(rank, self._most or rank)

    def told(self, records: int) -> str:
        different = len(self._times)
        if not different:
            return "empty"
        empty = ""
        if records > self._values:
            empty = f", {records - self._values:,} empty"
        if self._has_few_values():
            ranked = sorted(self._times.items(), key=lambda item: -item[1])
            return ", ".join(f"{self._format(str(key))} {times:,}" for key, times in ranked) + empty
        if different == self._values:
            number = "all"
        elif different <= _MAX_DIFFERENT_VALUES:
            number = f"{different:,}"
        else:
            number = f"more than {_MAX_DIFFERENT_VALUES:,}"
        least, most = self._texts
        if self._are_numbers:
            least = self._least[-1]
            most = self._most[-1]
        return f"{number} different, {self._format(least)} to {self._format(most)}{empty}"

    def _has_few_values(self) -> bool:
        different = len(self._times)
        if different > _MAX_LISTED_VALUES or 2 * different > self._values:
            return False
        return all(len(str(key)) <= _MAX_SHOWN_CHARACTERS for key in self._times)

    def _format(self, text: str) -> str:
        if len(text) > _MAX_SHOWN_CHARACTERS:
            text = f"{text[: _MAX_SHOWN_CHARACTERS - 1]}…"
        if self._quoted and not self._are_numbers:
            return json.dumps(text, ensure_ascii=False)
        return text


def _value_key(value: Any) -> Any:
    """Return a key for counting a value: the value itself, or a hash, because long ones would fill the memory."""
    if isinstance(value, str) and len(value) > _MAX_KEPT_CHARACTERS:
        return hashlib.sha256(value.encode(errors="surrogatepass")).hexdigest()
    if value != value:  # NaN equals nothing, not even itself.
        return "nan"
    return value


def _is_number(value: Any, text: str) -> bool:
    if isinstance(value, str):
        return _NUMBER.fullmatch(text) is not None
    return isinstance(value, int | float)


def _parse_number(text: str) -> int | float:
    """Return the number in `text`; as an integer if it is one, which Python compares exactly."""
    if len(text) < _MAX_INTEGER_DIGITS and text.removeprefix("-").isdecimal():
        return int(text)
    return float(text)
