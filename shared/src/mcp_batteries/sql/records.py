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
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from typing import Any, BinaryIO, NamedTuple, cast

from mcp_batteries.sql.files import Fails

__all__ = ["Dialect", "Seen", "csv_records", "csv_texts", "dialect_of", "json_records", "kinds_of"]

# A line, a field or a JSON array has at most so many characters read at once.
_LINE = 64_000_000

# The values of so many records are described.
_SEEN = 100_000
# So many different values of a field are counted.
_DIFFERENT = 1000
# A value of at most so many characters is kept as it is, a longer one as its hash.
_KEPT = 200
_FEW = 8
_SHORT = 24
"""Values that are told one by one, and characters of one."""
# Python reads integers of at most so many digits.
_DIGITS = 4000
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")

# Reads one JSON document.
Loads = Callable[[str], Any]

_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
# The delimiter is detected in so many characters of a file.
_SAMPLE = 1 << 16
# A number with a decimal comma. Numbers with leading zeros do not count: those are codes.
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]{0,2}(?:\.[0-9]{3})+|[1-9][0-9]*)(?:,[0-9]+)?")
# 1,234 may be either: where no comma of the file is surely a decimal one, such fields stay texts.
_PERHAPS_THOUSANDS = re.compile(r"-?[1-9][0-9]{0,2},[0-9]{3}")
# Every type of numbers keeps so many digits, whatever they are.
_EXACT = 15


class Dialect(NamedTuple):
    """How a CSV file is written.

    Attributes:
        delimiter: between fields.
        decimals: positions of fields whose values all are numbers with decimal commas (`1.234,50`); empty if no comma
            is surely decimal.
    """

    delimiter: str = ","
    decimals: frozenset[int] = frozenset()

    def told(self, names: list[Any]) -> str:
        """What is unusual, as half a sentence; empty if nothing is."""
        if self.delimiter == ",":
            return ""
        said = f"fields are separated by {_DELIMITERS[self.delimiter]}"
        if self.decimals:
            listed = ", ".join(f"`{names[place]}`" for place in sorted(self.decimals))
            said += f", numbers have a decimal comma in {listed}"
        return said


def dialect_of(
    raw: BinaryIO, fails: Fails, *, tabs: bool = False, through: Callable[[Iterator[list[Any]]], Iterator[list[Any]]]
) -> Dialect:
    """Detect how a file is written: the first delimiter, commas first, that makes records as wide as the header.

    Args:
        tabs: whether only tabs can separate fields.
        through: wraps the iteration over records, which can stop it.
    """
    delimiter = _delimiter(raw, "\t" if tabs else "".join(_DELIMITERS))
    if delimiter == ",":
        return Dialect()
    found: set[int] = set()
    sure: set[int] = set()
    with closing(csv_records(raw, fails, Dialect(delimiter))) as records:
        rows = through(records)
        left = set(range(len(next(rows, ()))))
        for row in rows:
            for place in [*left]:
                value = row[place]
                if value and not (_DECIMAL.fullmatch(value) and sum(map(str.isdecimal, value)) <= _EXACT):
                    left.discard(place)
                elif "," in value:
                    found.add(place)
                    if not _PERHAPS_THOUSANDS.fullmatch(value):
                        sure.add(place)
            if not left:
                break
    return Dialect(delimiter, frozenset(found & left) if sure & left else frozenset())


def _delimiter(raw: BinaryIO, among: str) -> str:
    text = _decoded(raw)
    try:
        sample = text.read(_SAMPLE)
    except ValueError:
        return among[0]  # who reads it will say so
    finally:
        if not raw.closed:
            text.detach()
    is_whole = len(sample) < _SAMPLE
    sample = sample if is_whole else sample[: sample.rfind("\n") + 1]
    found = [_Split.by(delimiter, sample, is_whole=is_whole) for delimiter in among]
    several = [split for split in found if split.width > 1]
    likely = [split for split in several if split.wrong == 0] or [split for split in several if split.is_likely]
    if not likely and found[0].wrong:
        likely = [max(found, key=lambda split: split.width)]
    return (likely or found)[0].delimiter


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
    def by(cls, delimiter: str, sample: str, *, is_whole: bool) -> _Split:
        width = right = wrong = 0
        try:
            for row in csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter, strict=True):
                if not width:
                    width = len(row)
                elif len(row or [""]) == width:
                    right += 1
                else:
                    wrong += bool(row)  # among records of several fields empty lines mean nothing
        except csv.Error as error:
            wrong += is_whole or "end of data" not in str(error)
        return cls(delimiter, width, right, wrong)


def csv_records(
    raw: BinaryIO,
    fails: Fails,
    dialect: Dialect = Dialect(),  # noqa: B008
    lines: list[str] | None = None,
) -> Generator[list[str]]:
    """The header, then the records, all as texts, with decimal points whatever the file uses.

    A quote inside an unquoted field is an ordinary character, as in most programs. Empty lines are not records, unless
    there is only one field.

    Args:
        lines: receives the lines of the last record.
    """
    csv.field_size_limit(_LINE)
    number = width = 0
    text = _decoded(raw)

    def taken(lines: list[str]) -> Iterator[str]:
        for line in text:
            lines.append(line)
            yield line

    try:
        source = text if lines is None else taken(lines)
        for row in csv.reader(source, delimiter=dialect.delimiter, strict=True):
            if not row and width:
                if width > 1:
                    if lines is not None:
                        lines.clear()
                    continue
                row = [""]
            width = width or len(row)
            if len(row) != width:
                what = f"Record {number} has {len(row)} fields, the header {width}."
                raise fails("invalid", what, f"Separate them by {_DELIMITERS[dialect.delimiter]}.")
            for place in dialect.decimals if number else ():
                row[place] = row[place].replace(".", "").replace(",", ".")
            yield row
            number += 1
    except (ValueError, csv.Error) as error:
        raise _unreadable(number, error, fails) from None
    finally:
        if not raw.closed:
            text.detach()


def csv_texts(
    raw: BinaryIO,
    fails: Fails,
    dialect: Dialect = Dialect(),  # noqa: B008
) -> Generator[tuple[list[str], str]]:
    """The header, then the records, each with its text without the line end, which tells an empty field from `""`.

    The text separates fields with commas, whatever the file uses, and quotes as CSV requires.
    """
    lines: list[str] = []
    decimals: frozenset[int] = frozenset()
    with closing(csv_records(raw, fails, dialect, lines)) as records:
        for row in records:
            written = "".join(lines).removesuffix("\n").removesuffix("\r")
            lines.clear()
            yield row, _rewritten(row, decimals, written, dialect.delimiter)
            decimals = dialect.decimals


_FIELDS = {
    delimiter: re.compile(rf'("(?:[^"]|"")*"|[^{re.escape(delimiter)}]*)(?:{re.escape(delimiter)}|\Z)')
    for delimiter in _DELIMITERS
}


def _rewritten(row: list[str], decimals: frozenset[int], written: str, delimiter: str) -> str:
    """The text of a record with commas between fields."""
    if delimiter == "," and not any('"' in text for text in row):
        return written
    if not decimals and '"' not in written and "," not in written:
        return written.replace(delimiter, ",")
    texts: list[str] = []
    for place, (found, value) in enumerate(zip(_FIELDS[delimiter].finditer(written), row, strict=False)):
        text = value if place in decimals else found[1]
        if text[:1] != '"' and ('"' in text or "," in text):
            text = '"' + text.replace('"', '""') + '"'
        texts.append(text)
    return ",".join(texts)


def json_records(
    raw: BinaryIO, fails: Fails, loads: Loads, names: list[Any] | None = None, *, grows: bool = False
) -> Generator[list[Any]]:
    """The fields' names, then the values: from an array or lines of objects, or from lines of arrays after the names.

    Args:
        names: the fields of objects, if known.
        grows: whether to add later fields to the names instead of refusing them.
    """
    number = 0
    if names is not None:
        yield names
    begun = False
    try:
        for number, item in enumerate(_documents(_decoded(raw), fails, loads), 1):
            if isinstance(item, dict):
                fields = cast("dict[str, Any]", item)
                if names is None:
                    yield (names := list(fields))
                if unknown := [name for name in fields if name not in names]:
                    if not grows:
                        what = f"Record {number} has a field that the first has not: `{unknown[0][:100]}`."
                        raise fails("invalid", what, "Give all in the first record, null where there is nothing.")
                    names += unknown
                begun = True
                yield [fields.get(name) for name in names]
            elif isinstance(item, list):
                values = cast("list[Any]", item)
                if names is None:
                    if not all(isinstance(name, str) for name in values):
                        what = "The first array does not name the fields: it has other values than texts."
                        raise fails("invalid", what, "Give objects, or the fields' names as the first array.")
                    names = values
                    begun = True
                    yield names
                    continue
                if len(values) != len(names):
                    raise fails("invalid", f"Line {number} has {len(values)} values, the first {len(names)}.", "")
                if not begun:  # the names again
                    begun = True
                    continue
                yield values
            else:
                raise fails("invalid", f"Record {number} is not an object.", "Give an array, or lines, of objects.")
    except (ValueError, RecursionError) as error:
        raise _unreadable(number, error, fails) from None


def _documents(text: io.TextIOWrapper, fails: Fails, loads: Loads) -> Iterator[Any]:
    """The elements of one array of objects, read whole, or the documents of each line."""
    try:
        first = text.readline(_LINE)
        if first.lstrip()[:1] == "[" and not _is_whole(first):
            first += text.read(_LINE - len(first) + 1)
            if len(first) > _LINE:
                what = f"A JSON array may have {_LINE:,} characters."
                raise fails("too_large", what, "Write an object per line, as .jsonl.")
            yield from loads(first)
            return
        start = loads(first) if first.strip() else None
        if isinstance(start, list) and all(isinstance(item, dict | list) for item in cast("list[Any]", start)):
            yield from cast("list[Any]", start)
        elif start is not None:
            yield start
        while line := text.readline(_LINE):
            if len(line) >= _LINE:
                raise fails("too_large", f"A line may have {_LINE:,} characters.", "")
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


def _decoded(raw: BinaryIO) -> io.TextIOWrapper:
    """The text of a file in UTF-8, or in UTF-16 with a byte order mark, as spreadsheets write it."""
    raw.seek(0)
    marked = raw.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    raw.seek(0)
    return io.TextIOWrapper(raw, encoding="utf-16" if marked else "utf-8-sig", newline="")


def _unreadable(number: int, error: Exception, fails: Fails) -> Exception:
    said = str(error) or type(error).__name__
    what = f"Behind record {number} the file can't be read: {said[:200]}."
    if isinstance(error, UnicodeError):
        return fails("invalid", what, "Give CSV or JSON in UTF-8 or UTF-16.")
    is_open = isinstance(error, csv.Error) and "end of data" in said
    return fails("invalid", what, 'A `"` that begins a field is never closed.' if is_open else "")


def kinds_of(records: Iterator[list[Any]], kind: Callable[[Any], str]) -> tuple[list[Any], list[set[str]]]:
    """The names of the fields, and the kinds of each field's values."""
    names = next(records, list[Any]())
    found: list[set[str]] = []
    _add(found, names)
    for row in records:
        _add(found, row)
        for seen, value in zip(found, row, strict=False):
            if "TEXT" not in seen or not isinstance(value, str):  # nothing that a text is makes it less
                seen.add(kind(value))
    return names, found


def _add(found: list[set[str]], row: Iterable[Any]) -> None:
    found += [set[str]() for _ in list(row)[len(found) :]]


class Seen:
    """What the values of each field are like: all of them, or their number and range."""

    def __init__(self) -> None:
        self.records = 0
        self._fields: list[_Values] = []

    def through(self, records: Iterator[list[Any]]) -> Iterator[list[Any]]:
        """Pass `records` on unchanged, names first, and examine the first values on the way."""
        yield from itertools.islice(records, 1)
        for row in itertools.islice(records, _SEEN):
            self.records += 1
            self._fields += [_Values() for _ in row[len(self._fields) :]]
            for field, value in zip(self._fields, row, strict=False):
                field.add(value)
            yield row
        yield from records

    def told(self) -> list[str]:
        """A line for each field."""
        return [field.told(self.records) for field in self._fields]


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
        # A thousand documents would be more than memory holds.
        is_long = isinstance(value, str) and len(value) > _KEPT
        key = hashlib.sha256(value.encode(errors="surrogatepass")).hexdigest() if is_long else value
        key = key if key == key else "nan"  # which is nothing else's equal, not even its own
        if key in self._times:
            self._times[key] += 1
            return
        if len(self._times) <= _DIFFERENT:
            self._times[key] = 1
        self._compare(value)

    def _compare(self, value: Any) -> None:
        text = str(value)
        self._texts = [min(text, *self._texts), max(text, *self._texts)] if self._texts else [text, text]
        if self._are_numbers and (
            _NUMBER.fullmatch(text) if isinstance(value, str) else isinstance(value, int | float)
        ):
            number = _exactly(text)
            # As databases order them, NaN comes last.
            found = (False, number, text) if number == number else (True, 0, text)
            self._least = min(found, self._least or found)
            self._most = max(found, self._most or found)
        else:
            self._are_numbers = False

    def told(self, records: int) -> str:
        different = len(self._times)
        if not different:
            return "empty"
        empty = f", {records - self._values:,} empty" if records > self._values else ""
        shown = sorted(self._times.items(), key=lambda item: -item[1])
        if different <= _FEW and 2 * different <= self._values and all(len(str(key)) <= _SHORT for key in self._times):
            return ", ".join(f"{self._one(str(key))} {times:,}" for key, times in shown) + empty
        number = f"{different:,}" if different <= _DIFFERENT else f"more than {_DIFFERENT:,}"
        number = "all" if different == self._values else number
        least, most = (self._least[-1], self._most[-1]) if self._are_numbers else self._texts
        return f"{number} different, {self._one(least)} to {self._one(most)}{empty}"

    def _one(self, text: str) -> str:
        text = text if len(text) <= _SHORT else f"{text[: _SHORT - 1]}…"
        return json.dumps(text, ensure_ascii=False) if self._quoted and not self._are_numbers else text


def _exactly(text: str) -> int | float:
    """The number in `text`; as an integer if it is one, which Python compares exactly."""
    return int(text) if len(text) < _DIGITS and text.removeprefix("-").isdecimal() else float(text)
