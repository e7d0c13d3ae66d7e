"""Reads the records of JSON files: an array of objects, an object on each line, or an array on each line.

This module imports nothing of the common package but its neighbours, so that a small process can import it alone.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Generator, Iterator
from typing import Any, BinaryIO, cast

from mcp_batteries.sql.transfer.files import Fails
from mcp_batteries.sql.transfer.record_text import MAX_LINE_CHARACTERS, explain_unreadable, open_text

__all__ = ["build_record", "read_json_records"]

# No table has more columns. Objects whose fields are keys, as of an index, bring new ones with each record, and all of
# them would be in every record.
_MAX_FIELDS = 2000
# Reads one JSON document.
Loads = Callable[[str], Any]


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
    encoding: str = "",
) -> Generator[list[Any]]:
    """Yield the fields' names, then the values of each record.

    The file is an array of objects, has an object on each line, or an array on each line, the first with the names.

    Args:
        loads: reads a document, its objects with `build_record`.
        names: the fields of objects, if known. Else the yielded list grows in place where later objects have more.
        encoding: the one that the caller named.
    """
    number = 0
    fields = _JsonFields(fails, names)
    if names is not None:
        yield names
    try:
        with open_text(raw, encoding) as text:
            for number, document in enumerate(_read_documents(text, fails, loads), 1):
                if _has_repeated_name(document):
                    raise fails("invalid", f"Record {number} has a field twice.", "Give each a name of its own.")
                if isinstance(document, dict):
                    yield from fields.read_object(cast("dict[str, Any]", document), number)
                elif isinstance(document, list):
                    yield from fields.read_array(cast("list[Any]", document), number)
                else:
                    raise fails("invalid", f"Record {number} is not an object.", "Give an array, or lines, of objects.")
    except RecursionError:
        failure = f"Record {number + 1} holds more arrays or objects in one another than can be read."
        raise fails("invalid", failure, "Flatten it, or give that field as a text.") from None
    except ValueError as error:
        raise explain_unreadable(number, error, "", fails) from None


def _read_documents(text: io.TextIOWrapper, fails: Fails, loads: Loads) -> Iterator[Any]:
    """Yield the elements of one array of objects, which is read as a whole, or the document of each line."""
    first = text.readline(MAX_LINE_CHARACTERS)
    if first.lstrip()[:1] == "[" and not _is_complete_json(first):
        yield from loads(_read_array_text(first, text, fails))
        return
    if first.strip():
        yield from _unwrap_records(loads(first))
    while line := text.readline(MAX_LINE_CHARACTERS):
        if len(line) >= MAX_LINE_CHARACTERS:
            raise fails("too_large", f"A line may have {MAX_LINE_CHARACTERS:,} characters.", "")
        if line.strip():
            yield loads(line)


def _is_complete_json(line: str) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _read_array_text(first: str, text: io.TextIOWrapper, fails: Fails) -> str:
    """Return the text of an array that goes on behind its first line."""
    array = first + text.read(MAX_LINE_CHARACTERS - len(first) + 1)
    if len(array) > MAX_LINE_CHARACTERS:
        failure = f"A JSON array may have {MAX_LINE_CHARACTERS:,} characters."
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


class _JsonFields:
    """The fields that the records of a JSON file have.

    Args:
        names: None if the records say them. The list grows in place, because whoever reads the records has it.
    """

    def __init__(self, fails: Fails, names: list[Any] | None) -> None:
        self._fails = fails
        self._names = names
        self._distinct_names = set(names or ())
        self._are_names_known = names is not None
        # Where arrays follow names that were known before, the first of them repeats these.
        self._may_repeat_names = True

    def read_object(self, record: dict[str, Any], number: int) -> Iterator[list[Any]]:
        """Yield the values of an object, and before the first object the names."""
        self._may_repeat_names = False
        if self._names is None:
            self._names = list(record)
            self._distinct_names = set(record)
            yield self._names
        self._add_names([name for name in record if name not in self._distinct_names], number)
        yield [record.get(name) for name in self._names]

    def read_array(self, values: list[Any], number: int) -> Iterator[list[Any]]:
        """Yield an array of values, or the names that the first one holds."""
        repeats_names = self._may_repeat_names and self._names is not None
        self._may_repeat_names = False
        if self._names is None:
            self._names = self._check_names(values)
            self._distinct_names = set(self._names)
            yield self._names
            return
        if len(values) != len(self._names):
            raise self._fails("invalid", f"Line {number} has {len(values)} values, the first {len(self._names)}.", "")
        if not repeats_names:
            yield values

    def _add_names(self, names: list[str], number: int) -> None:
        if not names:
            return
        if self._are_names_known:
            failure = f"Record {number} has a field that was not there a moment ago: `{names[0][:100]}`."
            raise self._fails("invalid", failure, "The file changes: import it when it is whole.")
        assert self._names is not None
        self._names += names
        self._distinct_names.update(names)
        if len(self._names) > _MAX_FIELDS:
            failure = f"The first {number:,} records have {len(self._names):,} different fields, a table fewer columns."
            raise self._fails("invalid", failure, "Write each such name as the value of a field.")

    def _check_names(self, names: list[Any]) -> list[Any]:
        if all(isinstance(name, str) for name in names):
            return names
        failure = "The first array does not name the fields: it has other values than texts."
        raise self._fails("invalid", failure, "Give objects, or the fields' names as the first array.")
