"""Names of cells and areas of a sheet, as `B7` and `A1:D20`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mcp_fs.engine.documents.formats.archives import MemberNotFound

__all__ = ["Area", "cell_name", "column_name", "parse_area", "parse_cell"]

_LAST_COLUMN = 16_384
_LAST_ROW = 1_048_576
_A1 = re.compile(r"\$?([A-Za-z]{0,3})\$?(\d{0,7})")


@dataclass(frozen=True, slots=True)
class Area:
    """Rows and columns of a sheet, from 1, the last included."""

    first_row: int = 1
    first_column: int = 1
    last_row: int = _LAST_ROW
    last_column: int = _LAST_COLUMN

    def __str__(self) -> str:
        return f"{cell_name(self.first_row, self.first_column)}:{cell_name(self.last_row, self.last_column)}"

    def holds(self, row: int, column: int) -> bool:
        return self.first_row <= row <= self.last_row and self.first_column <= column <= self.last_column


def parse_area(first: str, last: str) -> Area:
    """Return the area between two cells, columns or rows.

    Raises:
        MemberNotFound: one is none of those.
    """
    corners: list[tuple[int, int]] = []
    for corner in (first, last):
        match = _A1.fullmatch(corner)
        if match is None or not (match[1] or match[2]):
            raise MemberNotFound(f"has no range `{first}:{last}`: write it as `A1:D20`, `A:D` or `1:20`")
        corners.append((int(match[2] or 0), _column_number(match[1])))
    (top, left), (bottom, right) = corners
    return Area(top or 1, left or 1, bottom or _LAST_ROW, right or _LAST_COLUMN)


def cell_name(row: int, column: int) -> str:
    return f"{column_name(column)}{row}"


def column_name(column: int) -> str:
    letters = ""
    while column:
        column, digit = divmod(column - 1, 26)
        letters = chr(65 + digit) + letters
    return letters


def parse_cell(name: str) -> tuple[int, int] | None:
    """Return the row and column of a cell by its name; None if that is none."""
    match = _A1.fullmatch(name)
    if match is None or not (match[1] and match[2]):
        return None
    return int(match[2]), _column_number(match[1])


def _column_number(letters: str) -> int:
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - 64
    return number
