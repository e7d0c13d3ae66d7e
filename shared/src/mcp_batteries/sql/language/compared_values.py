"""Finds the values that a statement's conditions compare columns with, to tell which of them no row has.

A guess of a value finds nothing, and an empty result doesn't say whether it was the guess.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from mcp_batteries.sql.language.identifiers import unquote_identifier

__all__ = [
    "COLUMN",
    "CONTINUATION",
    "LITERAL",
    "MAX_KNOWN_VALUES",
    "MAX_VALUE_CHARACTERS",
    "NAME",
    "TEXT_OR_COMMENT",
    "Column",
    "Comparison",
    "describe_absent_values",
    "find_comparisons",
    "find_schemas_of",
    "is_empty_result",
    "read_column",
]

# A column with more values is not one whose values anybody would list.
MAX_KNOWN_VALUES = 8
MAX_VALUE_CHARACTERS = 24
_MAX_COMPARISONS = 4
# The patterns take time by the square of a statement that is made for it.
_MAX_SQL_CHARACTERS = 10_000
NAME = r'(?:"(?:[^"]|"")+"|[^\W\d]\w*)'
# What a search for comparisons passes over.
TEXT_OR_COMMENT = r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/"
# Before a comparison, for `read_column`.
COLUMN = rf"""(?<![\w"'])(?:(?P<qualifier>{NAME})\s*\.\s*)?(?P<column>(?!NOT\b){NAME})\s*"""
LITERAL = r"(?>'(?:[^']|'')*'|-?[0-9]+(?:\.[0-9]+)?(?![\w.]))"
# Behind a literal, what makes it a part of what is compared, or says how it is compared.
CONTINUATION = r"\s*(?:[|+*%&<>^#~@:]|-(?!-)|/(?!\*)|COLLATE\b)"
_TEXT_OR_COMPARISON = re.compile(
    rf"""{TEXT_OR_COMMENT}
    |{COLUMN}(?:==?\s*(?P<value>{LITERAL})|\bIN\s*\(\s*(?P<values>{LITERAL}(?:\s*,\s*{LITERAL})*)\s*\))(?!{CONTINUATION})
    |(?P<where>\bWHERE\b)""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_LITERALS = re.compile(LITERAL)
# Behind such a sign a column is a part of what is compared.
_OPERATORS = tuple("+-*/%|&<>^#~@:")
_EMPTY_ROW = re.compile(r"\[(?:(?:0|0\.0|null|\"0\"),?)+\]\n?")


class Column(NamedTuple):
    """A column as a statement names it.

    Attributes:
        qualifier: the table or alias before its name; empty where there is none.
    """

    qualifier: str
    name: str

    def may_be_of(self, table: str, sql: str) -> bool:
        """Return whether the qualifier, if there is one, is the table or an alias that `sql` gives it."""
        if self.qualifier.casefold() in ("", table.casefold()):
            return True
        alias = rf"""(?<!\w){re.escape(table)}["`\]]?\s+(?:AS\s+)?["`\[]?{re.escape(self.qualifier)}(?!\w)"""
        return re.search(alias, sql, re.IGNORECASE) is not None


class Comparison(NamedTuple):
    """A column, and the literals of SQL that a condition compares it with."""

    column: Column
    literals: Sequence[str]


def read_column(match: re.Match[str]) -> Column | None:
    """Return the column that a match of `COLUMN` is about; None if it is not one that is compared by itself."""
    if match["column"] is None or match.string[: match.start()].rstrip().endswith(_OPERATORS):
        return None
    return Column(unquote_identifier(match["qualifier"] or ""), unquote_identifier(match["column"]))


def find_comparisons(sql: str) -> list[Comparison]:
    """Return the first comparisons with literals behind the first WHERE of a statement; none of a very long one."""
    comparisons: list[Comparison] = []
    if len(sql) > _MAX_SQL_CHARACTERS:
        return comparisons
    is_condition = False
    for match in _TEXT_OR_COMPARISON.finditer(sql):
        if match["where"]:
            is_condition = True
        column = read_column(match)
        if column is None or not is_condition:
            continue
        comparison = Comparison(column, _LITERALS.findall(match["value"] or match["values"]))
        # Of a long list, a note would be longer than what it tells.
        is_long = len(comparison.literals) > MAX_KNOWN_VALUES
        if not is_long and comparison not in comparisons and not _is_defined(column.name, sql):
            comparisons.append(comparison)
    return comparisons[:_MAX_COMPARISONS]


def _is_defined(column: str, sql: str) -> bool:
    """Return whether a statement gives the name of a column to an expression."""
    return re.search(rf"""\bAS\s+["`\[]?{re.escape(column)}(?!\w)""", sql, re.IGNORECASE) is not None


def find_schemas_of(table: str, sql: str) -> set[str]:
    """Return the schemas before a table's name in a statement, casefolded, "" for a name without one.

    There are none where the statement doesn't name the table, or where its WITH defines what is called so.
    """
    name = re.compile(
        rf"""(?:(?P<schema>{NAME})\s*\.\s*)?(?<!\w)["`\[]?{re.escape(table)}["`\]]?(?!\w)
        (?P<definition>\s*(?:\([^()]*\)\s*)?\bAS\s*(?:(?:NOT\s+)?MATERIALIZED\s*)?\()?""",
        re.IGNORECASE | re.VERBOSE,
    )
    schemas: set[str] = set()
    for match in name.finditer(sql):
        if match["definition"]:
            return set()
        schemas.add(unquote_identifier(match["schema"] or "").casefold())
    return schemas


def is_empty_result(lines: str) -> bool:
    """Return whether a result, a JSON array per row, has no rows, or one that counts nothing."""
    return not lines or _EMPTY_ROW.fullmatch(lines) is not None


def describe_absent_values(column: str, literals: Sequence[str], all_values: Sequence[str]) -> str:
    """Say that no row has values, and which there are; empty where these are too many or too long to be listed.

    Args:
        column: as SQL spells it, with its table.
        literals: the absent values.
        all_values: all values of the column, as SQL writes them.
    """
    if not literals or not 0 < len(all_values) <= MAX_KNOWN_VALUES:
        return ""
    if any(len(value) > MAX_VALUE_CHARACTERS for value in all_values):
        return ""
    return f"`{column}` is never {' or '.join(literals)}, only {', '.join(all_values)}"
