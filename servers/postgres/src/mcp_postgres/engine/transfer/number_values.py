"""Notices values of a file that PostgreSQL keeps as another number, without a word.

A code with zeros in front loses them, and a number with more decimals than its column has is rounded.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Context, Decimal, InvalidOperation
from typing import Any, NamedTuple

from mcp_batteries.errors import quote
from mcp_batteries.sql.results.rows import format_count

__all__ = ["NumberValues"]

_CODE = re.compile(r"\s*[-+]?0[0-9].*", re.ASCII)
_MAX_QUOTED_CHARACTERS = 30
# More digits than a numeric has (https://www.postgresql.org/docs/current/datatype-numeric.html).
_ALL_DIGITS = Context(prec=150_000)


class _Column(NamedTuple):
    """A column of numbers.

    Attributes:
        position: of its field in a record.
        scale: how many decimals it keeps; None if it keeps all.
    """

    position: int
    name: str
    scale: int | None


class _ChangedValues:
    """Values that the table keeps in another form: by the column, the first of them and how many there are."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}
        self._counts: Counter[str] = Counter()

    def add(self, column: str, value: str, record_number: int) -> None:
        self._first.setdefault(column, f"{quote(value, _MAX_QUOTED_CHARACTERS)} in record {record_number:,}")
        self._counts[column] += 1

    def describe(self) -> str:
        """Return the columns, each with how many records have such a value; empty if none has."""
        columns: list[str] = []
        for name, first in self._first.items():
            columns.append(f"{quote(name)} in {format_count(self._counts[name], 'record')}, the first {first}")
        return "; ".join(columns)


class NumberValues:
    """The values for columns of numbers.

    Args:
        columns: those of the file's fields, each with its `name`, `category` and `scale`.
    """

    def __init__(self, columns: Sequence[Mapping[str, Any]]) -> None:
        self._columns = [
            _Column(position, column["name"], column["scale"])
            for position, column in enumerate(columns)
            if column["category"] == "N"
        ]
        self._codes = _ChangedValues()
        self._rounded = _ChangedValues()

    def check(self, record: Sequence[Any], record_number: int) -> None:
        """Look at one record."""
        for column in self._columns:
            value = record[column.position]
            if isinstance(value, str) and _CODE.fullmatch(value):
                self._codes.add(column.name, value, record_number)
            if column.scale is not None and _has_more_decimals(value, column.scale):
                self._rounded.add(column.name, str(value), record_number)

    def describe(self) -> list[str]:
        """Return which columns lost zeros or decimals, as sentences."""
        notes: list[str] = []
        codes = self._codes.describe()
        if codes:
            notes.append(f"Kept as numbers, so `007` is 7: {codes}. A column of type text keeps such codes.")
        rounded = self._rounded.describe()
        if rounded:
            notes.append(f"Rounded to the decimals of the column: {rounded}. Type numeric without a scale keeps all.")
        return notes


def _has_more_decimals(value: Any, scale: int) -> bool:
    """Return whether a value of the file is a number with more decimals than `scale`, zeros at its end left aside."""
    if not isinstance(value, str | int | float):
        return False
    text = str(value).strip()
    _, _, decimals = text.partition(".")
    if len(decimals) <= scale and "e" not in text.lower():
        return False
    try:
        number = Decimal(text)
        return number.is_finite() and number != number.quantize(Decimal((0, (1,), -scale)), context=_ALL_DIGITS)
    except InvalidOperation:  # PostgreSQL refuses it.
        return False
