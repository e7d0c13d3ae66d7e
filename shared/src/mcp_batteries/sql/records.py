"""The records of CSV and JSON files, and of what kind the values of each field are.

This module imports nothing of the common package but `sql.files`, so that a process that has to stay small can
import it alone.
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
from typing import Any, BinaryIO, cast

from mcp_batteries.sql.files import Fails

__all__ = ["Seen", "csv_records", "csv_texts", "json_records", "kinds_of"]

_LINE = 64_000_000
"""Characters of a line, a field or a JSON array that are read at once."""

_SEEN = 100_000
"""Records of which is told what their values are like."""
_DIFFERENT = 1000
"""Different values of a field that are counted."""
_KEPT = 200
"""Characters of a value that is kept as it is; of a longer one its hash."""
_FEW, _SHORT = 8, 24
"""Values that are told one by one, and characters of one."""
_DIGITS = 4000
"""Of an integer that Python reads."""
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")

Loads = Callable[[str], Any]
"""Reads one JSON document."""


def csv_records(raw: BinaryIO, fails: Fails) -> Generator[list[Any]]:
    """The header, then the records, all texts."""
    for record, _ in csv_texts(raw, fails):
        yield record


def csv_texts(raw: BinaryIO, fails: Fails) -> Generator[tuple[list[str], str]]:
    """The header, then the records, each with its text, without the line end: it tells an empty field from `""`.

    A quote in a field that has none around it is one more character, as in most programs; in the text it is written
    as CSV wants it. Empty lines are no records, unless there is one field only.
    """
    csv.field_size_limit(_LINE)
    number = width = 0
    lines: list[str] = []
    text = _decoded(raw)

    def taken() -> Iterator[str]:
        for line in text:
            lines.append(line)
            yield line

    try:
        for row in csv.reader(taken(), strict=True):
            written = "".join(lines)
            lines.clear()
            if not row and width:
                if width > 1:
                    continue
                row = [""]
            width = width or len(row)
            if len(row) != width:
                what = f"Record {number} has {len(row)} fields, the header {width}."
                raise fails("invalid", what, "Separate them by commas.")
            yield row, _requoted(row, written.removesuffix("\n").removesuffix("\r"))
            number += 1
    except (ValueError, csv.Error) as error:
        raise _unreadable(number, error, fails) from None
    finally:
        text.detach()


_FIELD = re.compile(r'("(?:[^"]|"")*"|[^,]*)(,|\Z)')


def _requoted(row: list[str], written: str) -> str:
    def field(found: re.Match[str]) -> str:
        text, end = found.groups()
        if text[:1] == '"' or '"' not in text:
            return found[0]
        return '"' + text.replace('"', '""') + '"' + end

    return _FIELD.sub(field, written) if any('"' in text for text in row) else written


def json_records(
    raw: BinaryIO, fails: Fails, loads: Loads, names: list[Any] | None = None, *, grows: bool = False
) -> Generator[list[Any]]:
    """The fields' names, then the values: of an array or lines of objects, or of lines of arrays behind the names.

    Args:
        names: the fields of objects, where they are known.
        grows: a field that comes later is added to the names, instead of being refused.
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
                    names, begun = values, True
                    yield names
                    continue
                if len(values) != len(names):
                    raise fails("invalid", f"Line {number} has {len(values)} values, the first {len(names)}.", "")
                if not begun:  # the names again
                    begun = True
                    continue
                yield values
            else:
                raise fails("invalid", f"Record {number} is no object.", "Give an array, or lines, of objects.")
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
        if isinstance(start, list) and all(isinstance(item, dict) for item in cast("list[Any]", start)):
            yield from cast("list[Any]", start)
        elif start is not None:
            yield start
        while line := text.readline(_LINE):
            if len(line) >= _LINE:
                raise fails("too_large", f"A line may have {_LINE:,} characters.", "")
            if line.strip():
                yield loads(line)
    finally:
        text.detach()


def _is_whole(line: str) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _decoded(raw: BinaryIO) -> io.TextIOWrapper:
    """The text of a file in UTF-8, or in UTF-16 if it begins by saying so, as spreadsheets write it."""
    marked = raw.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    raw.seek(0)
    return io.TextIOWrapper(raw, encoding="utf-16" if marked else "utf-8-sig", newline="")


def _unreadable(number: int, error: Exception, fails: Fails) -> Exception:
    said = str(error) or type(error).__name__
    what = f"Behind record {number} the file can't be read: {said[:200]}."
    return fails("invalid", what, "Give CSV or JSON in UTF-8 or UTF-16.")


def kinds_of(records: Iterator[list[Any]], kind: Callable[[Any], str]) -> tuple[list[Any], list[set[str]]]:
    """The names of the fields, and the kinds of the values of each."""
    names = next(records, list[Any]())
    found: list[set[str]] = []
    _add(found, names)
    for row in records:
        _add(found, row)
        for seen, value in zip(found, row, strict=False):
            seen.add(kind(value))
    return names, found


def _add(found: list[set[str]], row: Iterable[Any]) -> None:
    found += [set[str]() for _ in list(row)[len(found) :]]


class Seen:
    """What the values of each field are like: which there are, or how many and between which."""

    def __init__(self) -> None:
        self.records = 0
        self._fields: list[_Values] = []

    def through(self, records: Iterator[list[Any]]) -> Iterator[list[Any]]:
        """`records` as they are, the names first; the values of the first ones are looked at as they pass."""
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
        self._are_numbers, self._quoted = True, False
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
    """The number that `text` spells; an integer, which Python compares with others exactly, where it is one."""
    return int(text) if len(text) < _DIGITS and text.removeprefix("-").isdecimal() else float(text)
