"""SQLite's values as JSON and back, exact.

JSON has no bytes, no infinity, and readers that take every number for a double. So an integer beyond 2**53 is its
digits as text, an infinite real is `"Infinity"` or `"-Infinity"` (SQLite knows no NaN: it stores NULL), bytes are
`{"base64": ...}`, and text that is not UTF-8 is the same with `"text": true`.
"""

from __future__ import annotations

import base64
import json
import math
import struct
from collections.abc import Sequence
from typing import Any, ClassVar

__all__ = ["NotUtf8", "RowEncoder", "decode_text", "encode_real", "encode_record", "encode_value"]

_EXACT = 2**53
_SHORTEST = 16
_SHORTEST_VECTOR = 64
"""Bytes."""
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


class NotUtf8(bytes):
    """The bytes of a TEXT value that is not UTF-8."""


def decode_text(raw: bytes) -> str | NotUtf8:
    """The `text_factory` of a connection that reads any database."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return NotUtf8(raw)


def encode_record(row: Sequence[Any]) -> str:
    """One line for `row` in a file, whole; `parameters` reads it back the same.

    JSON itself has integers of any size.
    """
    if all(isinstance(value, str | None) or (isinstance(value, int) and type(value) is not bool) for value in row):
        return _encode(row) + "\n"
    cells = [_encode(_plain(value)) if not isinstance(value, float) else encode_real(value) for value in row]
    return f"[{','.join(cells)}]\n"


def _plain(value: Any) -> Any:
    if not isinstance(value, bytes):
        return value
    shown: dict[str, Any] = {"base64": base64.b64encode(value).decode()}
    return {**shown, "text": True} if isinstance(value, NotUtf8) else shown


def encode_real(value: float) -> str:
    """A real as files have it: 1e999 is what SQLite, and every reader of JSON, takes for an infinity."""
    return repr(value) if math.isfinite(value) else ("1e999" if value > 0 else "-1e999")


class RowEncoder:
    """Rows as lines of JSON arrays, with long cells cut.

    Args:
        max_cell: characters of a text and bytes of a blob beyond which it is cut, and says so.
    """

    shortens_vectors: ClassVar[bool] = False
    """Whether bytes that can only be a vector are its first numbers: a thousand of them tell a reader nothing."""

    def __init__(self, max_cell: int) -> None:
        self.max_cell = max_cell
        self.cut_cells = 0
        """Cells cut so far."""

    def encode(self, row: Sequence[Any]) -> str:
        """One line for `row`, with its end."""
        return _encode([value if value is None else self._cell(value) for value in row]) + "\n"

    def encode_within(self, row: Sequence[Any], room: int) -> str:
        """The same, with cells cut further where the line would have more than `room` bytes."""
        cut, asked = self.cut_cells, self.max_cell
        text = self.encode(row)
        while len(text) * 4 > room and len(text.encode()) > room and self.max_cell > _SHORTEST:
            self.cut_cells, self.max_cell = cut, max(_SHORTEST, min(self.max_cell, room) // 4)
            text = self.encode(row)
        self.max_cell = asked
        return text

    def _cell(self, value: Any) -> Any:
        match value:
            case int():
                return value if -_EXACT <= value <= _EXACT else str(value)
            case float():
                return value if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")
            case str():
                if len(value) <= self.max_cell:
                    return value
                self.cut_cells += 1
                return f"{value[: self.max_cell]}…[{len(value) - self.max_cell} more characters]"
            case _:
                return self._bytes(value)

    def _bytes(self, value: bytes) -> dict[str, Any] | str:
        if self.shortens_vectors and (short := _vector(value)) is not None:
            return short
        shown: dict[str, Any] = {"base64": base64.b64encode(value[: self.max_cell]).decode()}
        if len(value) > self.max_cell:
            self.cut_cells += 1
            shown["more_bytes"] = len(value) - self.max_cell
        if isinstance(value, NotUtf8):
            shown["text"] = True
        return shown


def _vector(value: bytes) -> str | None:
    """The float32 numbers in `value`, short; None where it is something else.

    The numbers of an embedding are near 1. Other bytes read as float32 are so by chance only: less than a quarter of
    all patterns, and no text, since letters make them huge or tiny.
    """
    if len(value) < _SHORTEST_VECTOR or len(value) % 4:
        return None
    numbers = struct.unpack(f"<{len(value) // 4}f", value)
    usual = sum(1e-9 < abs(number) < 1e4 for number in numbers)
    if 2 * usual < len(numbers) or not all(number == 0 or 1e-20 < abs(number) < 1e4 for number in numbers):
        return None
    first = ",".join(f"{number:.4g}" for number in numbers[:3])
    return f"[{first},… {len(numbers):,} numbers, all by vec_to_json()]"


def encode_value(value: Any) -> str:
    """A value as a line of JSON shows it."""
    return RowEncoder(100).encode([value])[1:-2]
