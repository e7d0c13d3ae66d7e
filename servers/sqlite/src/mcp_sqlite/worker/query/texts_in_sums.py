"""Notices sums and other arithmetic over columns that hold texts: SQLite takes `1,000` for 1 and `$5` for 0.

Its averages count such a row too, also one with an empty text, which programs store in place of NULL.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

from mcp_batteries.sql.language.compared_values import NAME, TEXT_OR_COMMENT, Column, find_schemas_of
from mcp_batteries.sql.language.identifiers import quote_identifier, spell_identifier, unquote_identifier
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.schema import lookup

__all__ = ["find_texts_in_sums"]

_MAX_SQL_CHARACTERS = 10_000
# How long the columns may be looked at, all together.
_SECONDS = 0.1
_MAX_READ_ROWS = 20_000
_MAX_SHOWN_CHARACTERS = 24
# A sign of arithmetic, which no `->` is, and no comment.
_SIGN = r"(?:[*+]|-(?![->])|/(?!\*))"
_OPERAND = rf"(?:{NAME}\s*\.\s*)?{NAME}"
_TERM = re.compile(
    rf"""{TEXT_OR_COMMENT}
    |\b(?:SUM|AVG|TOTAL)\s*\(\s*(?:DISTINCT\s+)?(?P<summed>{_OPERAND})\s*\)
    |(?<![\w"'.])(?P<left>{_OPERAND})\s*(?={_SIGN})
    |{_SIGN}\s*(?P<right>{_OPERAND})(?![\w"]|\s*[.(])""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_OPERAND_PARTS = re.compile(rf"(?:(?P<qualifier>{NAME})\s*\.\s*)?(?P<column>{NAME})")
_TEXT = """
SELECT quote(substr(v, 1, {max_characters})), length(v) > {max_characters}, CAST(v AS NUMERIC)
FROM (SELECT {column} AS v FROM {table} LIMIT {max_rows}) WHERE typeof(v) = 'text' AND CAST(v AS NUMERIC) <> v LIMIT 1
"""


class _Text(NamedTuple):
    """A text of a column, as SQL writes its beginning, and the number that SQLite takes it for."""

    literal: str
    is_cut: bool
    number: float


def find_texts_in_sums(database: Database, sql: str, known_columns: set[tuple[str, str]]) -> list[str]:
    """Return a note for each column that a statement sums up, or computes with, and that holds texts as well.

    Args:
        known_columns: tables and columns that were looked at for statements before this one, which are passed over;
            those of this statement are added.
    """
    notes: list[str] = []
    operands = _find_operands(sql)
    if not operands:
        return notes
    try:
        with database.interrupt.shorten(_SECONDS):
            for table in lookup.find_named_tables(sql, lookup.list_table_names(database)):
                if not find_schemas_of(table, sql).isdisjoint(("", "main")):
                    notes.extend(_find_in_table(database, table, sql, operands, known_columns))
    except sqlite3.Error:
        # There was no time for more, or a view is broken: the statement does the same without a note.
        pass
    return notes


def _find_operands(sql: str) -> list[Column]:
    """Return the columns that a statement sums up or computes with; none of a long one."""
    operands: dict[Column, None] = {}
    if len(sql) > _MAX_SQL_CHARACTERS:
        return []
    for match in _TERM.finditer(sql):
        operand = match["summed"] or match["left"] or match["right"]
        parts = _OPERAND_PARTS.fullmatch(operand) if operand else None
        if parts is not None and not _is_keyword(parts["column"]):
            column = Column(unquote_identifier(parts["qualifier"] or ""), unquote_identifier(parts["column"]))
            operands[column] = None
    return list(operands)


def _is_keyword(word: str) -> bool:
    """Return whether a word beside a sign of arithmetic is a keyword, as those beside the `*` of `SELECT * FROM t`."""
    if word.upper() == "END":
        # It needs no quotes as a column's name, but mostly ends a CASE.
        return True
    return not word.startswith('"') and spell_identifier(word) != word


def _find_in_table(
    database: Database, table: str, sql: str, operands: list[Column], known_columns: set[tuple[str, str]]
) -> Iterator[str]:
    names = {name.casefold(): name for name in lookup.list_column_names(database, table)}
    for operand in operands:
        name = names.get(operand.name.casefold())
        if name is None or database.is_masked(table, name) or not operand.may_be_of(table, sql):
            continue
        if (table, name) in known_columns:
            continue
        known_columns.add((table, name))
        select = _TEXT.format(
            column=quote_identifier(name),
            table=quote_identifier(table),
            max_rows=_MAX_READ_ROWS,
            max_characters=_MAX_SHOWN_CHARACTERS,
        )
        for row in database.run_internal(select):
            text = _Text(*row)
            literal = text.literal[:-1] + "…'" if text.is_cut else text.literal
            column = f"{spell_identifier(table)}.{spell_identifier(name)}"
            yield f"`{column}` holds {literal}, which sums and arithmetic take for {text.number}"
