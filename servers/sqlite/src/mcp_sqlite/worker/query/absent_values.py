"""Tells why a statement found nothing: a value that it compares a column with, and that no row has."""

from __future__ import annotations

import sqlite3

from mcp_batteries.sql.language.compared_values import (
    MAX_KNOWN_VALUES,
    MAX_VALUE_CHARACTERS,
    Comparison,
    describe_absent_values,
    find_comparisons,
    find_schemas_of,
)
from mcp_batteries.sql.language.identifiers import quote_identifier, spell_identifier
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.connection.visible_schema import MASK
from mcp_sqlite.worker.schema import lookup

__all__ = ["find_absent_values"]

# How long the values may be looked for, of all columns together.
_SECONDS = 0.1
# True of a value that is not listed: one that is long, is bytes, or has a NUL, at which quote() ends. It is looked for
# first: SQLite doesn't look at the clock while it reads one long value, and to compare several takes long.
_IS_UNLISTED = (
    "CASE typeof({value}) WHEN 'blob' THEN 1"
    f" WHEN 'text' THEN length({{value}}) > {MAX_VALUE_CHARACTERS} OR instr({{value}}, char(0)) > 0 END"
)
# Before the name of a table of the database that is asked: none, or SQLite's own.
_SCHEMAS = {"", "main"}


def find_absent_values(database: Database, sql: str) -> list[str]:
    """Return a note for each value that a condition of `sql` asks for in vain, of columns with few values."""
    notes: list[str] = []
    comparisons = find_comparisons(sql)
    if not comparisons:
        return notes
    try:
        with database.interrupt.shorten(_SECONDS):
            for table in lookup.find_named_tables(sql, lookup.list_table_names(database)):
                if find_schemas_of(table, sql).isdisjoint(_SCHEMAS):
                    continue
                for comparison in comparisons:
                    if comparison.column.may_be_of(table, sql):
                        notes.append(_find_in_table(database, table, comparison))
    except sqlite3.Error:
        # There was no time for more, or a view is broken: the result is right without a note.
        pass
    return list(filter(None, notes))


def _find_in_table(database: Database, table: str, comparison: Comparison) -> str:
    """Return a note on the literals that no row has; empty where all are there, or the values can't be listed."""
    columns = {name.casefold(): name for name in lookup.list_column_names(database, table)}
    column = columns.get(comparison.column.name.casefold())
    if column is None or database.is_masked(table, column):
        return ""
    source = quote_identifier(table)
    name = quote_identifier(column)
    if database.run_internal(f"SELECT 1 FROM {source} WHERE {_IS_UNLISTED.format(value=name)} LIMIT 1"):
        return ""
    are_equal = ", ".join(f"v = {literal}" for literal in comparison.literals)
    rows = database.run_internal(
        f"SELECT quote(v), {are_equal} FROM (SELECT DISTINCT {name} AS v FROM {source} LIMIT {MAX_KNOWN_VALUES + 1})"
    )
    all_values: list[str] = []
    present: set[str] = set()
    for sql_value, *matches in rows:
        # A text that is not UTF-8 is bytes; a view has the mask of a table's column.
        if not isinstance(sql_value, str) or sql_value == f"'{MASK}'":
            return ""
        all_values.append(sql_value)
        present.update(literal for literal, is_equal in zip(comparison.literals, matches, strict=True) if is_equal)
    label = f"{spell_identifier(table)}.{spell_identifier(column)}"
    absent = [literal for literal in dict.fromkeys(comparison.literals) if literal not in present]
    return describe_absent_values(label, absent, all_values)
