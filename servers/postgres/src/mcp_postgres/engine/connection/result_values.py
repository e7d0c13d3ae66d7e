"""PostgreSQL's values as JSON: exact, and cut on the server if they are long.

JSON readers take every number for a double. So an integer beyond 2**53 is its digits as text, and so is every
`numeric`; what is not a number (NaN, Infinity) is text; bytes are `{"base64": ...}`; json is itself; everything else is
the text PostgreSQL writes, which has names for what Python's types lack: infinity, years BC, 24:00.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import Any

from mcp_postgres.engine.audit.procedures import FIRST_OWN

__all__ = ["MASK", "NOT_UTF8", "NO_ENCODING", "Column", "RowWriter", "limit_result"]

MASK = "•••"
# What PostgreSQL calls the encoding of a database whose texts may be any bytes.
NO_ENCODING = "SQL_ASCII"
# Stands for a byte of such a text that is not UTF-8.
NOT_UTF8 = "\ufffd"

# Types whose values are short, or whose cast to text says something else than they do (inet, bpchar).
_SHORT_TYPES = {
    16, 18, 19, 20, 21, 23, 24, 26, 27, 28, 29, 650, 700, 701, 774, 790, 829, 869, 1042, 1082, 1083, 1114, 1184, 1186,
    1266, 1700, 2202, 2203, 2204, 2205, 2206, 2278, 2950, 2970, 3220, 4089, 4096, 5069,
}  # fmt: skip

_TEXT_TYPES = {25, 1043}
_BOOLEAN_TYPE = 16
_BYTEA_TYPE = 17
_VOID_TYPE = 2278
_XML_TYPE = 142
_JSON_TYPES = {114, 3802}
_NUMBER_TYPES = {21, 23, 26}
_FLOAT_TYPES = {700, 701}
_LONG_NUMBER_TYPES = {20, 5069}
_MAX_EXACT_INTEGER = 2**53
_SHORT_VECTOR = 100
# How the values of pgvector's types begin; embeddings have a thousand numbers that tell a reader nothing.
_VECTOR = re.compile(r"\[(?:-?\d+(?:\.\d+)?(?:e[+-]?\d+)?,){3}", re.IGNORECASE)
_FINITE = re.compile(r"[-+0-9.e]+")


@dataclass(frozen=True)
class Column:
    """A column of a result, and the type's number in `pg_type`.

    Attributes:
        masked: its values are not shown, nor whether there are any.
    """

    name: str
    type: int
    masked: bool = False


def limit_result(sql: str, columns: Sequence[Column], *, max_cell: int, limit: int, offset: int) -> str:
    """Return `sql`, which the server took for one query, as a subquery whose long cells are cut where they lie.

    A value of 300 MB then never leaves the server; libpq would need three times its size for it.
    """
    if not columns:
        return sql
    names = [f"c{number}" for number in range(len(columns))]
    expressions = [
        "NULL" if column.masked else _limit_cell(f"q.{name}", column.type, max_cell + 1)
        for name, column in zip(names, columns, strict=True)
    ]
    body = sql.rstrip().rstrip(";")
    skip = ""
    if offset:
        skip = f" OFFSET {offset}"
    return f"SELECT {', '.join(expressions)} FROM (\n{body}\n) AS q({', '.join(names)}) LIMIT {limit}{skip}"


def _limit_cell(name: str, type_oid: int, length: int) -> str:
    if type_oid in _SHORT_TYPES:
        return name
    if type_oid in _TEXT_TYPES:
        return f"pg_catalog.left({name}, {length})"
    if type_oid == _BYTEA_TYPE:
        return f"pg_catalog.substring({name}, 1, {length})"
    if type_oid >= FIRST_OWN or type_oid == _XML_TYPE:
        # Its cast to text may be anybody's, and say something else than the value.
        text = f"pg_catalog.left(pg_catalog.format('%s', {name}), {length})"
        return f"CASE WHEN {name} IS DISTINCT FROM NULL THEN {text} END"
    return f"pg_catalog.left({name}::pg_catalog.text, {length})"


class RowWriter:
    """Rows as lines of JSON arrays.

    Args:
        max_cell: characters of a text and bytes of a `bytea` beyond which it is cut, and says so.
    """

    def __init__(self, columns: Sequence[Column], max_cell: int) -> None:
        self.max_cell = max_cell
        # Cells cut so far.
        self.cut_count = 0
        self._writers = [self._choose_writer(column) for column in columns]

    def write(self, row: Sequence[str | None]) -> str:
        """Return the line of a row, with its end."""
        cells = [
            "null" if value is None and write is not _write_mask else write(value)
            for value, write in zip(row, self._writers, strict=True)
        ]
        return f"[{','.join(cells)}]\n"

    def _choose_writer(self, column: Column) -> Callable[[Any], str]:
        """Return what writes the values of a column."""
        kind = column.type
        if column.masked:
            return _write_mask
        if kind in _WRITERS:
            return _WRITERS[kind]
        if kind == _BYTEA_TYPE:
            return self._write_bytes
        if kind >= FIRST_OWN:
            return self._write_own_type
        if kind in _JSON_TYPES:
            return self._write_json
        return self._write_text

    def _write_own_type(self, value: str) -> str:
        """Write a value of a type that is not PostgreSQL's own: a vector is shortened."""
        vector = _shorten_vector(value)
        if vector is None:
            return self._write_text(value)
        return encode_basestring(vector)

    def _write_text(self, value: str) -> str:
        if len(value) <= self.max_cell:
            return encode_basestring(value)
        self.cut_count += 1
        return encode_basestring(value[: self.max_cell] + "…[cut]")

    def _write_json(self, value: str) -> str:
        if len(value) > self.max_cell:
            return self._write_text(value)
        # Line ends in JSON stand between its parts only.
        return value.replace("\r", " ").replace("\n", " ")

    def _write_bytes(self, value: str) -> str:
        content = bytes.fromhex(value[2:])
        cut_note = ""
        if len(content) > self.max_cell:
            self.cut_count += 1
            cut_note = ',"cut":true'
        return f'{{"base64":"{base64.b64encode(content[: self.max_cell]).decode()}"{cut_note}}}'


def _shorten_vector(value: str) -> str | None:
    """Return a vector by its first numbers; None for what is none, or is short."""
    if len(value) < _SHORT_VECTOR or not _VECTOR.match(value):
        return None
    first = value.split(",", 3)[:3]
    many = ""
    if value.endswith("]"):
        many = f" {value.count(',') + 1:,} numbers,"
    return f"{','.join(first)},…{many} all by ::text]"


def _write_long(value: str) -> str:
    if len(value) < 16 or -_MAX_EXACT_INTEGER <= int(value) <= _MAX_EXACT_INTEGER:
        return value
    return f'"{value}"'


def _write_float(value: str) -> str:
    if _FINITE.fullmatch(value):
        return value
    return f'"{value}"'


def _write_boolean(value: str) -> str:
    return "true" if value == "t" else "false"


def _write_mask(_: str | None) -> str:
    return f'"{MASK}"'


def _write_nothing(_: str) -> str:
    return "null"


# What writes the values of these types, whatever their lengths.
_WRITERS: dict[int, Callable[[str], str]] = {
    **dict.fromkeys(_NUMBER_TYPES, str),
    **dict.fromkeys(_LONG_NUMBER_TYPES, _write_long),
    **dict.fromkeys(_FLOAT_TYPES, _write_float),
    _BOOLEAN_TYPE: _write_boolean,
    _VOID_TYPE: _write_nothing,
}
