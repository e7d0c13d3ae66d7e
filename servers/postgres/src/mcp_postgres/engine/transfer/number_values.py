"""Looks at values of a file for columns of numbers: a code with zeros in front comes in as the number without them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from mcp_batteries.errors import quote

__all__ = ["NumberValues"]

_CODE = re.compile(r"\s*[-+]?0[0-9].*", re.ASCII)
_MAX_QUOTED_CHARACTERS = 30


class NumberValues:
    """The values for columns of numbers.

    Args:
        columns: those of the file's fields, each with its `name` and `category`.
    """

    def __init__(self, columns: Sequence[Mapping[str, Any]]) -> None:
        self._columns = [(place, column["name"]) for place, column in enumerate(columns) if column["category"] == "N"]
        self._first_codes: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def check(self, record: Sequence[Any], number: int) -> None:
        """Look at one record."""
        for place, name in self._columns:
            value = record[place]
            if isinstance(value, str) and _CODE.fullmatch(value):
                self._first_codes.setdefault(name, f"{quote(value, _MAX_QUOTED_CHARACTERS)} in record {number:,}")
                self._counts[name] = self._counts.get(name, 0) + 1

    def describe(self) -> list[str]:
        """Return which columns lost zeros, as a sentence."""
        columns = [
            f"{quote(name)} in {self._counts[name]:,} {'record' if self._counts[name] == 1 else 'records'}, "
            f"the first {first}"
            for name, first in self._first_codes.items()
        ]
        if not columns:
            return []
        return [f"Kept as numbers, so `007` is 7: {'; '.join(columns)}. A column of type text keeps such codes."]
