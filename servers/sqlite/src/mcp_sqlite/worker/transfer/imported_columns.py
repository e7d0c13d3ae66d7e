"""The columns that an import fills, and the values that these do not keep as they are in the file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mcp_sqlite.worker.language.failure import Failure
from mcp_sqlite.worker.language.values import MAX_SHORT_NUMBER, LongDecimal, parse_decimal
from mcp_sqlite.worker.schema.lookup import Column

__all__ = ["ImportedColumn", "NotedValues"]

# What SQLite reads as an integer, and Python too; shorter ones have no more than 64 bits.
_INTEGER = re.compile(r"\s*[-+]?[0-9]{1,1000}\s*", re.ASCII)
_MIN_LONG_DIGITS = 19
_INTEGER_TYPE = re.compile("INT", re.IGNORECASE)
_REAL_OR_ANY_TYPE = re.compile("REAL|FLOA|DOUB|^ANY$", re.IGNORECASE)
_TEXT_TYPE = re.compile("CHAR|CLOB|TEXT", re.IGNORECASE)
_TEXT_OR_BLOB_TYPE = re.compile("CHAR|CLOB|TEXT|BLOB", re.IGNORECASE)
# Types that are about numbers; SQLite lets texts into their columns, and takes them for 0 in sums.
_NUMBER_TYPE = re.compile("INT|REAL|FLOA|DOUB|NUMERIC|DECIMAL|NUMBER|MONEY", re.IGNORECASE)
_NUMBER = re.compile(r"\s*[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\s*", re.ASCII)
# Numbers that are codes: as a number, one has no zeros in front. Where the type is not about numbers, as STRING, a
# version loses its last zero, and `1E5` its letter.
_CODE = re.compile(r"\s*[-+]?0[0-9].*", re.ASCII)
_CODE_OR_VERSION = re.compile(r"\s*[-+]?(?:0[0-9].*|[0-9]*\.[0-9]*0|.*[eE].*)\s*", re.ASCII)
_MAX_QUOTED_TEXT = 30


@dataclass(frozen=True)
class ImportedColumn:
    """A column that a field of a file fills.

    Attributes:
        position: of the field in a record.
        type: as the table declares it.
        is_required: whether it is NOT NULL.
    """

    position: int
    name: str
    type: str
    is_required: bool

    @classmethod
    def of(cls, position: int, column: Column) -> ImportedColumn:
        """Return a column of a table, as the one for the field at a position."""
        return cls(position, str(column.name), str(column.type), bool(column.not_null))

    @property
    def may_hold_bytes(self) -> bool:
        """Whether bytes may be in it: any type but one of texts or numbers may have them, as UUID or JSONB."""
        return _TEXT_TYPE.search(self.type) is None and not self.is_for_numbers

    @property
    def is_untyped(self) -> bool:
        return self.type.upper() in ("", "ANY")

    @property
    def is_for_numbers(self) -> bool:
        """Whether its type is about numbers."""
        return _NUMBER_TYPE.search(self.type) is not None and _TEXT_OR_BLOB_TYPE.search(self.type) is None

    @property
    def is_numeric(self) -> bool:
        """Whether it makes numbers of texts (https://sqlite.org/datatype3.html#affname)."""
        if _INTEGER_TYPE.search(self.type):
            return True
        return bool(self.type) and _TEXT_OR_BLOB_TYPE.search(self.type) is None

    @cached_property
    def rounds_long_integers(self) -> bool:
        """Whether it makes a real of an integer beyond 64 bits, without being for reals."""
        if _INTEGER_TYPE.search(self.type):
            return True
        # ANY is the type of STRICT tables that keeps a text.
        return self.is_numeric and _REAL_OR_ANY_TYPE.search(self.type) is None

    @cached_property
    def code_pattern(self) -> re.Pattern[str] | None:
        """Texts that a column turns into numbers which are written otherwise; None for one that keeps texts."""
        if not self.is_numeric or self.type.upper() == "ANY":
            return None
        return _CODE if _NUMBER_TYPE.search(self.type) else _CODE_OR_VERSION

    def check_integer(self, value: Any, record_number: int) -> None:
        """Check that a column which rounds long integers keeps a value with all of its digits.

        Raises:
            Failure: it is an integer beyond 64 bits, so that SQLite would make a real of it.
        """
        if not isinstance(value, str) or len(value) < _MIN_LONG_DIGITS:
            return
        if _INTEGER.fullmatch(value) and not -(2**63) <= int(value) < 2**63:
            raise Failure(
                "invalid",
                f"Record {record_number}: `{self.name}` would round {value.strip()}, which is beyond 64 bits.",
                "A column of type TEXT keeps all digits.",
            )

    def leaves_text(self, value: Any) -> bool:
        """Return whether SQLite keeps a value as a text, even in a column of numbers."""
        return isinstance(value, str) and _NUMBER.fullmatch(value) is None

    def drops_code(self, value: Any) -> bool:
        """Return whether a value is a text of which the column keeps only the number."""
        if self.code_pattern is None or not isinstance(value, str):
            return False
        return self.code_pattern.fullmatch(value) is not None and _NUMBER.fullmatch(value) is not None

    def rounds(self, value: Any) -> bool:
        """Return whether a value is a number with more digits than a real keeps, and the column makes one of it."""
        if not isinstance(value, str) or len(value) <= MAX_SHORT_NUMBER or _NUMBER.fullmatch(value) is None:
            return False
        if _INTEGER.fullmatch(value) and self.rounds_long_integers:
            return False
        return isinstance(parse_decimal(value.strip()), LongDecimal)


@dataclass
class _ColumnNote:
    """The first of the noted values of a column, the number of its record, and how many values there are."""

    first: str
    record_number: int
    count: int = 0


class NotedValues:
    """Values of a file that one column or another does not keep as they are, all for the same reason."""

    def __init__(self) -> None:
        self._notes: dict[str, _ColumnNote] = {}

    def add(self, column: ImportedColumn, value: str, record_number: int) -> None:
        """Note a value for a column."""
        note = self._notes.setdefault(column.name, _ColumnNote(value, record_number))
        note.count += 1

    def describe(self, *, quotes_first: bool) -> list[str]:
        """Return the columns, and how many values each has; with the first if that is asked for."""
        descriptions: list[str] = []
        for name, note in self._notes.items():
            records = "record" if note.count == 1 else "records"
            description = f"`{name}` in {note.count:,} {records}"
            if quotes_first:
                first = note.first
                if len(first) > _MAX_QUOTED_TEXT:
                    first = f"{first[:_MAX_QUOTED_TEXT]}…"
                description += f', the first "{first}" in record {note.record_number:,}'
            descriptions.append(description)
        return descriptions
