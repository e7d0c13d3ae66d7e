"""Looks at dates and times of a file before PostgreSQL reads them: some it would take for others without a word.

By `DateStyle`, it may take a year of two digits for a day. A column without a time zone drops a time's offset, and a
column of dates drops the time of day.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from mcp_batteries.errors import Invalid, quote

__all__ = ["TimeValues"]

_TIME_OF_DAY = re.compile(r"(?:^|[T\s])\d{1,2}:.*", re.DOTALL)
_TIME_AFTER_MIDNIGHT = re.compile(r"[T\s](?=[\d:.]*[1-9])\d{1,2}:\d\d")
_DIGIT = re.compile(r"\d")
# A year that can be nothing else; written without separators, it is part of a longer number.
_WHOLE_YEAR = re.compile(r"\d{3}")
_OFFSET = re.compile(r":\d\d(?:\.\d+)?\s*([+-]\d{1,2}(?::?\d\d)*)\s*$")
_NO_OFFSET = re.compile(r"[+-][0:]+")
_MAX_OFFSETS = 3
_MAX_QUOTED_CHARACTERS = 30


class TimeValues:
    """The dates and times among the values of a file.

    Args:
        columns: those of the file's fields, each with its `name` and, in `time`, `date`, `local` or `zoned`.
    """

    def __init__(self, columns: Sequence[Mapping[str, Any]]) -> None:
        self._columns = [
            (position, column["name"], column["time"]) for position, column in enumerate(columns) if column["time"]
        ]
        self._offsets: dict[str, dict[str, None]] = {}
        self._times_of_day: dict[str, str] = {}

    def check(self, record: Sequence[Any], record_number: int) -> None:
        """Look at one record.

        Raises:
            Invalid: a date of it has a year of two digits.
        """
        for position, name, kind in self._columns:
            value = record[position]
            if not isinstance(value, str):
                continue
            date = _TIME_OF_DAY.sub("", value)
            if _DIGIT.search(date) and not _WHOLE_YEAR.search(date):
                raise Invalid(
                    f"Record {record_number} has a date for {quote(name)} whose year has two digits: "
                    f"{quote(value, 50)}. PostgreSQL would take its first number for the year.",
                    "Write years with four digits, first; or import it into a new table, where `edit_schema` is "
                    "offered, and INSERT from that with to_date(name, 'DD/MM/YY').",
                )
            if kind == "date" and _TIME_AFTER_MIDNIGHT.search(value):
                self._times_of_day.setdefault(
                    name, f"{quote(value, _MAX_QUOTED_CHARACTERS)} in record {record_number:,}"
                )
            offset = _OFFSET.search(value)
            if kind == "local" and offset is not None and not _NO_OFFSET.fullmatch(offset[1]):
                self._offsets.setdefault(name, {})[offset[1]] = None

    def describe(self) -> list[str]:
        """Return which offsets and times of day PostgreSQL leaves out, as a sentence for each column."""
        notes: list[str] = []
        for name, offsets in self._offsets.items():
            examples = ", ".join(list(offsets)[:_MAX_OFFSETS])
            notes.append(f"{quote(name)} has no time zone: of its times the offsets are left out, as {examples}.")
        for name, first in self._times_of_day.items():
            notes.append(f"{quote(name)} keeps dates: of its times the time of day is left out, as of {first}.")
        return notes
