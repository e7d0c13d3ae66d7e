"""The records of a CSV or JSON file, and the table that they would fill."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Generator, Iterator, Sequence
from typing import Any, BinaryIO, cast

from mcp_batteries.errors import Invalid, TooLarge

__all__ = ["LOOKED_AT", "created", "csv_records", "json_records"]

LOOKED_AT = 1000
"""Records that types are guessed from."""
_MOST_COLUMNS = 500
_LINE = 64_000_000
"""Bytes of a line, or of a JSON array, that are read at once."""

_TIME = r"[12][0-9]{3}-[01][0-9]-[0-3][0-9][ T][0-2][0-9]:[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,6})?)?"
_KINDS = (
    ("boolean", re.compile(r"true|false", re.I)),
    # Without leading zeros: those are codes, and would be lost.
    ("bigint", re.compile(r"-?(?:0|[1-9][0-9]{0,17})")),
    ("numeric", re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,3})?")),
    ("uuid", re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.I)),
    ("date", re.compile(r"[12][0-9]{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])")),
    ("timestamp", re.compile(_TIME)),
    ("timestamptz", re.compile(_TIME + r"(?:Z|[-+][0-9]{2}(?::?[0-9]{2})?)")),
)  # fmt: skip
_WIDER = ({"bigint", "numeric"}, "numeric"), ({"date", "timestamp"}, "timestamp")


def csv_records(raw: BinaryIO) -> Generator[list[Any]]:
    """The header, then the records, all texts.

    Raises:
        Invalid: it is no CSV in UTF-8.
    """
    csv.field_size_limit(_LINE)
    number, width = 0, 0
    text = io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")
    try:
        for row in csv.reader(text, strict=True):
            width = width or len(row)
            if len(row) != width:
                raise Invalid(f"Record {number} has {len(row)} fields, the header {width}.", "Separate them by commas.")
            yield row
            number += 1
    except (ValueError, csv.Error) as error:
        raise _unreadable(number, error) from None
    finally:
        text.detach()


def json_records(raw: BinaryIO) -> Generator[list[Any]]:
    """The fields' names, then the values: of an array or lines of objects, or of lines of arrays behind the names.

    Raises:
        Invalid: it is none of these.
    """
    names: list[Any] | None = None
    number = 0
    try:
        for number, item in enumerate(_documents(raw), 1):
            if isinstance(item, dict):
                fields = cast("dict[str, Any]", item)
                if names is None:
                    yield (names := list(fields))
                if unknown := fields.keys() - set(names):
                    raise Invalid(f"Record {number} has a field that the first has not: `{min(unknown)[:100]}`.")
                yield [fields.get(name) for name in names]
            elif isinstance(item, list):
                values = cast("list[Any]", item)
                names = values if names is None else names
                if len(values) != len(names):
                    raise Invalid(f"Line {number} has {len(values)} values, the first {len(names)}.")
                yield values
            else:
                raise Invalid(f"Record {number} is no object.", "Give an array, or lines, of objects.")
    except (ValueError, RecursionError) as error:
        raise _unreadable(number, error) from None


def _documents(raw: BinaryIO) -> Iterator[Any]:
    if raw.read(3) != b"\xef\xbb\xbf":
        raw.seek(0)
    first = raw.readline(_LINE)
    if first.lstrip()[:1] == b"[" and not _whole(first):
        first += raw.read(_LINE - len(first) + 1)
        if len(first) > _LINE:
            raise TooLarge(f"A JSON array may have {_LINE:,} bytes.", "Write an object per line, as .jsonl.")
        yield from json.loads(first, parse_float=_Digits, parse_constant=_no_number)
        return
    start = _loads(first) if first.strip() else None
    if isinstance(start, list) and all(isinstance(item, dict) for item in cast("list[Any]", start)):
        yield from cast("list[Any]", start)
    elif start is not None:
        yield start
    while line := raw.readline(_LINE):
        if len(line) >= _LINE:
            raise TooLarge(f"A line may have {_LINE:,} bytes.")
        if line.strip():
            yield _loads(line)


class _Digits(float):
    """A number as it stands in the file: PostgreSQL takes more digits than a double has."""

    _text: str

    def __new__(cls, text: str) -> _Digits:
        made = super().__new__(cls, text)
        made._text = text
        return made

    def __repr__(self) -> str:
        return self._text


def _loads(line: bytes) -> Any:
    return json.loads(line, parse_float=_Digits, parse_constant=_no_number)


def _whole(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _no_number(word: str) -> str:
    raise ValueError(f"{word} is no JSON")


def _unreadable(number: int, error: Exception) -> Invalid:
    said = str(error) or type(error).__name__
    return Invalid(f"Behind record {number} the file can't be read: {said[:200]}.", "Give CSV or JSON in UTF-8.")


def created(
    table: str, names: Sequence[Any], seen: Sequence[Sequence[Any]], *, typed: bool, types: Sequence[str | None] = ()
) -> str:
    """The CREATE TABLE for records like those `seen`.

    Args:
        table: as SQL spells it.
        typed: whether a text is a text, and not what a format without types makes of a number.
        types: of the columns, as far as they are known.

    Raises:
        Invalid: the fields have no usable names.
    """
    known = [str(name).strip() for name in names]
    if not known or len(known) > _MOST_COLUMNS or len(set(known)) < len(known) or "" in known:
        raise Invalid(
            "The fields can't name the columns of a new table.",
            f"Give each a name of its own, {_MOST_COLUMNS} at most.",
        )
    guessed = [_type([row[number] for row in seen], typed=typed) for number in range(len(known))]
    kinds = [told or guess for told, guess in zip(types or [None] * len(guessed), guessed, strict=True)]
    columns = [f'    "{name.replace(chr(34), chr(34) * 2)}" {kind}' for name, kind in zip(known, kinds, strict=True)]
    return f"CREATE TABLE {table} (\n" + ",\n".join(columns) + "\n)"


def _type(values: Sequence[Any], *, typed: bool) -> str:
    kinds = {_kind(value, typed=typed) for value in values} - {""}
    if len(kinds) == 1:
        return kinds.pop()
    return next((wide for narrow, wide in _WIDER if kinds and kinds <= narrow), "text")


def _kind(value: Any, *, typed: bool) -> str:
    match value:
        case None | "":
            return ""
        case bool():
            return "boolean"
        case int():
            return "bigint" if -(2**63) <= value < 2**63 else "numeric"
        case float():
            return "numeric"
        case str():
            # JSON has numbers and truth values of its own; times it has as text.
            found = next((kind for kind, form in _KINDS if form.fullmatch(value)), "text")
            return "text" if typed and found in ("boolean", "bigint", "numeric") else found
        case _:
            return "jsonb"
