"""Columns in the line of a table: as much of each as the list has room for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, NamedTuple

from mcp_batteries.server.calling.results import to_compact_json
from mcp_postgres.models.facts import null_share

__all__ = ["ColumnValues", "Layout", "format_columns", "shorten"]

_Json = Mapping[str, Any]
_MAX_COLUMNS = 30
_MAX_PROFILE_CHARACTERS = 160
_MAX_VALUE_CHARACTERS = 60
_MAX_COMMENT_CHARACTERS = 80
_MAX_DEFAULT_CHARACTERS = 40
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_BOOLEANS = {"t": "true", "f": "false"}
_SHORT_TYPES = {
    "timestamp with time zone": "timestamptz", "timestamp without time zone": "timestamp",
    "time without time zone": "time", "character varying": "varchar", "double precision": "float8",
    "character(": "char(",
}  # fmt: skip
_PLAIN_KEY_TYPES = ("integer", "bigint")


@dataclass(frozen=True)
class ColumnValues:
    """What all rows of a table say of a column.

    Attributes:
        nulls: rows where it is NULL.
        values: all its values with their numbers of rows, NULL among them; empty where there are many.
        others: its range, and what is odd, where the values are not listed.
    """

    nulls: int
    values: Sequence[str] = ()
    others: Sequence[str] = ()

    def text(self, *, is_reference: bool) -> str:
        """Return what is to be said; of a column that refers to another table only how often it is NULL."""
        if self.values and not is_reference:
            return "|".join(self.values)
        facts: list[str] = []
        if not is_reference:
            facts += self.others
        if self.nulls:
            facts.append(f"null:{self.nulls}")
        return ", ".join(facts)


class Layout(NamedTuple):
    """How much a list says of each table.

    Attributes:
        has_types: whether it has the types of columns.
        is_profiled: whether it has most of the values, and the comments, of columns.
        common_grants: what is granted on all of them alike, which is told once.
    """

    has_types: bool = False
    is_profiled: bool = False
    common_grants: Sequence[str] = ()


def shorten(text: str, limit: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[:limit]}…"


def format_columns(item: _Json, details: Sequence[_Json], layout: Layout) -> str:
    if item["kind"] == "sequence":
        return ""
    types: Sequence[str] = (item["types"] or ()) if layout.has_types else ()
    columns = [
        _format_listed_column(column, type_name, item["key"] or (), detail, layout)
        for column, type_name, detail in zip_longest(
            (*(item["columns"] or ()), *(item["wide"] or ())), types, details, fillvalue=""
        )
    ]
    text = f": {', '.join(columns[:_MAX_COLUMNS])}"
    if len(columns) > _MAX_COLUMNS:
        text += f", … {len(columns) - _MAX_COLUMNS} more"
    return text


def _format_listed_column(column: str, type_name: str, key: Sequence[str], detail: _Json | str, layout: Layout) -> str:
    """Return a column with its type, if neither the table it refers to nor that it is a plain key shows it."""
    name, arrow, table = column.partition(" -> ")
    is_key = name in key
    text = name
    if type_name and not table and not (is_key and type_name in _PLAIN_KEY_TYPES):
        for long, short in _SHORT_TYPES.items():
            type_name = type_name.replace(long, short)
        text += f" {type_name}"
    if isinstance(detail, str):
        facts = ""
    else:
        facts = _format_column_facts(detail, layout, is_reference=bool(table) or is_key)
        if detail["not_null"] and not is_key:
            text += "!"
    text += f"{arrow}{table}"
    if is_key:
        text += " (key)"
    return text + facts


def _format_column_facts(column: _Json, layout: Layout, *, is_reference: bool) -> str:
    """Return a column's default, its values and its comment."""
    facts = ""
    if column.get("masked"):
        facts += " masked"
    default = column["default"]
    if column["generated"]:
        facts += " generated"
    elif default is not None and not default.startswith("nextval("):
        facts += f" default {shorten(default, _MAX_DEFAULT_CHARACTERS)}"
    counted: ColumnValues | None = column.get("counted")
    if counted is not None:
        values = counted.text(is_reference=is_reference)
    else:
        shown_column = {**column, "values": None} if is_reference else column
        values = _format_shares(shown_column, _MAX_PROFILE_CHARACTERS if layout.is_profiled else _MAX_VALUE_CHARACTERS)
    if values:
        facts += f" ({values})"
    if column["comment"] and layout.is_profiled:
        facts += f" /* {shorten(column['comment'], _MAX_COMMENT_CHARACTERS)} */"
    return facts


def _format_shares(column: _Json, max_characters: int) -> str:
    """Return values of a column with their share of the rows, if they are short, and that of NULL."""
    shares: Mapping[str, int] = column["values"] or {}
    texts = [f"{_format_value(column, value)} {share}%" for value, share in shares.items()]
    if sum(map(len, texts)) > max_characters:
        texts = []
    if column["nulls"]:
        texts.append(f"null {null_share(column)}%")
    return "|".join(texts)


def _format_value(column: _Json, value: str) -> str:
    if column["type"] == "boolean":
        return _BOOLEANS.get(value, value)
    return value if _NUMBER.fullmatch(value) else to_compact_json(value)
