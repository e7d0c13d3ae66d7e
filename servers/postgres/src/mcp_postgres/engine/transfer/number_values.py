"""Looks at values of a file for columns of numbers: of some PostgreSQL keeps another number, without a word.

A code with zeros in front comes in without them, and a number with more decimals than its column has is rounded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Context, Decimal, InvalidOperation
from typing import Any, NamedTuple

from mcp_batteries.errors import quote

__all__ = ["NumberValues"]

_CODE = re.compile(r"\s*[-+]?0[0-9].*", re.ASCII)
_MAX_QUOTED_CHARACTERS = 30
# More digits than a numeric has (https://www.postgresql.org/docs/current/datatype-numeric.html).
_ALL_DIGITS = Context(prec=150_000)


class _Column(NamedTuple):
    """A column of numbers, the place of its field in a record, and how many decimals it keeps; None for any number."""

    place: int
    name: str
    scale: int | None


class _NotedValues:
    """Values that are others in the table: by the column, the first of them and how many there are."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def add(self, column: str, value: str, number: int) -> None:
        self._first.setdefault(column, f"{quote(value, _MAX_QUOTED_CHARACTERS)} in record {number:,}")
        self._counts[column] = self._counts.get(column, 0) + 1

    def describe(self) -> str:
        """Return the columns, each with how many records have such a value; empty if none has."""
        return "; ".join(
            f"{quote(name)} in {self._counts[name]:,} {'record' if self._counts[name] == 1 else 'records'}, "
            f"the first {first}"
            for name, first in self._first.items()
        )


class NumberValues:
    """The values for columns of numbers.

    Args:
        columns: those of the file's fields, each with its `name`, `category` and `scale`.
    """

    def __init__(self, columns: Sequence[Mapping[str, Any]]) -> None:
        self._columns = [
            _Column(place, column["name"], column["scale"])
            for place, column in enumerate(columns)
            if column["category"] == "N"
        ]
        self._codes = _NotedValues()
        self._rounded = _NotedValues()

    def check(self, record: Sequence[Any], number: int) -> None:
        """Look at one record."""
        for column in self._columns:
            value = record[column.place]
            if isinstance(value, str) and _CODE.fullmatch(value):
                self._codes.add(column.name, value, number)
            if column.scale is not None and _has_more_decimals(value, column.scale):
                self._rounded.add(column.name, str(value), number)

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
    """Return whether a value, as the file has it, is a number that is not one of so many decimals."""
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
