"""Facts of tables that a list of them and a table by itself tell alike."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from mcp_batteries.sql.language.table_groups import format_number_ranges
from mcp_batteries.sql.results.rows import format_count

__all__ = [
    "INDEX",
    "KINDS_WITHOUT_ROW_COUNT",
    "describe_children",
    "format_comment",
    "format_rows",
    "is_counted",
    "known_row_counts",
    "name_constraints_with_index",
    "null_share",
]

_Json = Mapping[str, Any]
KINDS_WITHOUT_ROW_COUNT = ("view", "sequence", "foreign table")
_WITH_INDEX = ("PRIMARY KEY", "UNIQUE", "EXCLUDE")
_WORD = r'(?:"(?:[^"]|"")+"|[^\s".]+)'
INDEX = re.compile(rf"CREATE (UNIQUE )?INDEX (?P<name>{_WORD}) ON (?:{_WORD}\.)?{_WORD} USING (?P<what>.+)", re.DOTALL)


def is_counted(table: _Json) -> bool:
    """Return whether all rows of a table were counted."""
    return table.get("counted") is not None


def describe_children(count: int, *, is_counted: bool) -> str:
    """Return what else the rows of a table are counted with, or without."""
    preposition = "with" if is_counted else "without"
    return f"{preposition} the {format_count(count, 'table that inherits it', 'tables that inherit it')}"


def null_share(column: _Json) -> int:
    """Return how many of a hundred rows are NULL; all only where there is no other."""
    if column["nulls"] == 1:
        return 100
    return min(99, max(1, round(100 * column["nulls"])))


def format_comment(item: _Json) -> str:
    """Return the comment on an object, behind what else its line says."""
    if item.get("comment"):
        return f" -- {' '.join(item['comment'].split())}"
    return ""


def known_row_counts(group: Sequence[_Json]) -> list[int]:
    """Return what ANALYZE last estimated, where it ran: -1 says that it never did."""
    return [item["rows"] for item in group if item["rows"] is not None and item["rows"] >= 0]


def format_rows(group: Sequence[_Json]) -> str:
    """Return how many rows a table has, or each of several that are alike."""
    if len(group) == 1 and is_counted(group[0]):
        return format_count(group[0]["counted"], "row")
    row_counts = known_row_counts(group)
    if not row_counts:
        return "not analyzed"
    unit = "row" if row_counts == [1] else "rows"
    each = " each" if len(group) > 1 else ""
    text = f"about {format_number_ranges(row_counts)} {unit}{each}"
    if group[0]["uncounted"]:
        text += f" without {format_count(group[0]['uncounted'], 'partition')} that nobody analyzed"
    return text


def name_constraints_with_index(table: _Json) -> set[str]:
    """Return the constraints of a table that are indexes of the same name."""
    return {item["name"] for item in table["constraints"] if item["definition"].startswith(_WITH_INDEX)}
