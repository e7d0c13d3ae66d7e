"""Finds the values that a statement's conditions compare columns with, to tell which of them no row has.

A guess of a value finds nothing, and an empty result doesn't say whether it was the guess.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from mcp_batteries.sql.language.identifiers import unquote_identifier

__all__ = ["MAX_KNOWN_VALUES", "Comparison", "describe_absent_value", "find_comparisons", "is_empty_result"]

# A column with more values is not one whose values anybody would list.
MAX_KNOWN_VALUES = 8
_MAX_VALUE_CHARACTERS = 24
_MAX_COMPARISONS = 4
_LITERAL = r"(?>'(?:[^']|'')*'|-?[0-9]+(?:\.[0-9]+)?(?![\w.]))"
_TEXT_OR_COMPARISON = re.compile(
    rf"""'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/
    |(?P<column>"(?:[^"]|"")+"|(?<![\w"'])(?!NOT\b)[^\W\d]\w*)\s*
    (?:==?\s*(?P<value>{_LITERAL})|\bIN\s*\(\s*(?P<values>{_LITERAL}(?:\s*,\s*{_LITERAL})*)\s*\))(?!\s*(?:\|\||[+*%]|-(?!-)|/(?!\*)))
    |(?P<where>\bWHERE\b)""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_LITERALS = re.compile(_LITERAL)
# Behind such a sign a column is a part of what is compared.
_OPERATORS = tuple("+-*/%|&")
_EMPTY_ROW = re.compile(r"\[(?:(?:0|0\.0|null|\"0\"),?)+\]\n?")


class Comparison(NamedTuple):
    """A column, as it is named, and the literals of SQL that a condition compares it with."""

    column: str
    literals: Sequence[str]


def find_comparisons(sql: str) -> list[Comparison]:
    """Return the first comparisons with literals behind the first WHERE of a statement."""
    comparisons: list[Comparison] = []
    is_condition = False
    for match in _TEXT_OR_COMPARISON.finditer(sql):
        if match["where"]:
            is_condition = True
        is_part = sql[: match.start()].rstrip().endswith(_OPERATORS)
        if match["column"] and is_condition and not is_part:
            literals = _LITERALS.findall(match["value"] or match["values"])
            comparisons.append(Comparison(unquote_identifier(match["column"]), literals))
    return comparisons[:_MAX_COMPARISONS]


def is_empty_result(lines: str) -> bool:
    """Return whether a result, a JSON array per row, has no rows, or one that counts nothing."""
    return not lines or _EMPTY_ROW.fullmatch(lines) is not None


def describe_absent_value(column: str, literal: str, known: Sequence[str]) -> str:
    """Say that no row has a value, and which there are; empty where they are too many or too long to be listed.

    Args:
        column: as SQL spells it, with its table.
        known: all values of the column, as SQL writes them.
    """
    if not 0 < len(known) <= MAX_KNOWN_VALUES or any(len(value) > _MAX_VALUE_CHARACTERS for value in known):
        return ""
    return f"`{column}` is never {literal}, only {', '.join(known)}"
