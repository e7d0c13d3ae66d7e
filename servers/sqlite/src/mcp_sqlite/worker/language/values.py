"""SQLite's values as JSON and back, exact.

JSON has no bytes, no infinity, and readers that take every number for a double. So an integer beyond 2**53 is its
digits as text, an infinite real is `"Infinity"` or `"-Infinity"` (SQLite knows no NaN: it stores NULL), bytes are
`{"base64": ...}`, and text that is not UTF-8 is the same with `"text": true`.
"""

from __future__ import annotations

import base64
import json
import math
import re
import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, ClassVar

__all__ = [
    "MAX_SHORT_NUMBER",
    "LongDecimal",
    "NotUtf8",
    "RowEncoder",
    "decode_text",
    "encode_real",
    "encode_record",
    "encode_value",
    "parse_blob_literal",
    "parse_decimal",
]

_MAX_EXACT_INTEGER = 2**53
_MIN_CELL_LENGTH = 16
_MIN_VECTOR_BYTES = 64
_VALUE_LENGTH = 100
# A number that is written in so few characters has no more digits than a real keeps.
MAX_SHORT_NUMBER = 15
_BLOB_LITERAL = re.compile(r"[xX]'((?:[0-9a-fA-F]{2})*)'")
_to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


class NotUtf8(bytes):
    """The bytes of a TEXT value that is not UTF-8."""


class LongDecimal(float):
    """A number of JSON that a real does not keep: its value is rounded.

    Attributes:
        text: the number as it is written.
    """

    text = ""

    @property
    def is_whole_part_rounded(self) -> bool:
        """Whether more is lost than the last digits of a fraction, as quotients and measurements have them."""
        return abs(self) >= _MAX_EXACT_INTEGER


def parse_decimal(text: str) -> float:
    """Return a number of JSON, as a `LongDecimal` where a real is another than what programs write for one."""
    value = float(text)
    # A zero may have an exponent that no decimal takes.
    if len(text) <= MAX_SHORT_NUMBER or not math.isfinite(value) or value == 0:
        return value
    # Programs write a double in the shortest way, with 17 digits, or with all that it has.
    if Decimal(text) in (Decimal(repr(value)), Decimal(f"{value:.17g}"), Decimal(value)):
        return value
    number = LongDecimal(value)
    number.text = text
    return number


def decode_text(raw: bytes) -> str | NotUtf8:
    """Return a TEXT value; as the `text_factory` of a connection it reads any database."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return NotUtf8(raw)


def parse_blob_literal(text: str) -> bytes | None:
    """Return the bytes of `x'...'`, as SQL and our CSV files write them; None where the text is another."""
    match = _BLOB_LITERAL.fullmatch(text)
    if match is None:
        return None
    return bytes.fromhex(match[1])


def encode_record(row: Sequence[Any]) -> str:
    """Return one line for `row` in a file, whole; `parse_parameters` reads it back the same.

    JSON itself has integers of any size.
    """
    if all(isinstance(value, str | None) or (isinstance(value, int) and type(value) is not bool) for value in row):
        return _to_json(row) + "\n"
    cells = [encode_real(value) if isinstance(value, float) else _to_json(_encode_bytes(value)) for value in row]
    return f"[{','.join(cells)}]\n"


def _encode_bytes(value: Any) -> Any:
    if not isinstance(value, bytes):
        return value
    encoded: dict[str, Any] = {"base64": base64.b64encode(value).decode()}
    if isinstance(value, NotUtf8):
        encoded["text"] = True
    return encoded


def encode_real(value: float) -> str:
    """Return a real as files have it: 1e999 is what SQLite, and every reader of JSON, takes for an infinity."""
    if math.isfinite(value):
        return repr(value)
    return "1e999" if value > 0 else "-1e999"


class RowEncoder:
    """Writes rows as lines of JSON arrays, with long cells cut.

    Attributes:
        shortens_vectors: whether bytes that can only be a vector are its first numbers: a thousand of them tell a
            reader nothing.
        max_cell: characters of a text and bytes of a blob beyond which it is cut, and says so.
        cut_cells: the number of cells that were cut until now.
    """

    shortens_vectors: ClassVar[bool] = False

    def __init__(self, max_cell: int) -> None:
        self.max_cell = max_cell
        self.cut_cells = 0

    def encode(self, row: Sequence[Any]) -> str:
        """Return one line for `row`, with its line break."""
        return _to_json([value if value is None else self._encode_cell(value) for value in row]) + "\n"

    def encode_within(self, row: Sequence[Any], max_bytes: int) -> str:
        """Return the same, with cells cut further where the line would have more than `max_bytes`."""
        cut_before = self.cut_cells
        requested_length = self.max_cell
        line = self.encode(row)
        while len(line) * 4 > max_bytes and len(line.encode()) > max_bytes and self.max_cell > _MIN_CELL_LENGTH:
            self.cut_cells = cut_before
            self.max_cell = max(_MIN_CELL_LENGTH, min(self.max_cell, max_bytes) // 4)
            line = self.encode(row)
        self.max_cell = requested_length
        return line

    def _encode_cell(self, value: Any) -> Any:
        match value:
            case int():
                return value if -_MAX_EXACT_INTEGER <= value <= _MAX_EXACT_INTEGER else str(value)
            case float():
                if math.isfinite(value):
                    return value
                return "Infinity" if value > 0 else "-Infinity"
            case str():
                if len(value) <= self.max_cell:
                    return value
                self.cut_cells += 1
                return f"{value[: self.max_cell]}…[{len(value) - self.max_cell} more characters]"
            case _:
                return self._encode_blob(value)

    def _encode_blob(self, value: bytes) -> dict[str, Any] | str:
        if self.shortens_vectors:
            vector = _shorten_vector(value)
            if vector is not None:
                return vector
        encoded: dict[str, Any] = {"base64": base64.b64encode(value[: self.max_cell]).decode()}
        if len(value) > self.max_cell:
            self.cut_cells += 1
            encoded["more_bytes"] = len(value) - self.max_cell
        if isinstance(value, NotUtf8):
            encoded["text"] = True
        return encoded


def _shorten_vector(value: bytes) -> str | None:
    """Return the first of the float32 numbers in `value`; None where it is something else.

    The numbers of an embedding are near 1. Other bytes read as float32 are so by chance only: less than a quarter of
    all patterns, and no text, since letters make them huge or tiny.
    """
    if len(value) < _MIN_VECTOR_BYTES or len(value) % 4:
        return None
    numbers = struct.unpack(f"<{len(value) // 4}f", value)
    usual_count = sum(1e-9 < abs(number) < 1e4 for number in numbers)
    if 2 * usual_count < len(numbers):
        return None
    if not all(number == 0 or 1e-20 < abs(number) < 1e4 for number in numbers):
        return None
    first = ",".join(f"{number:.4g}" for number in numbers[:3])
    return f"[{first},… {len(numbers):,} numbers, all by vec_to_json()]"


def encode_value(value: Any) -> str:
    """Return a value as a line of JSON shows it."""
    line = RowEncoder(_VALUE_LENGTH).encode([value])
    return line.removeprefix("[").removesuffix("]\n")
