"""Tells why a statement found nothing: a value that it compares a column with, and that no row has."""

from __future__ import annotations

import sqlite3

from mcp_batteries.sql.language.compared_values import (
    MAX_KNOWN_VALUES,
    Comparison,
    describe_absent_value,
    find_comparisons,
)
from mcp_batteries.sql.language.identifiers import quote_identifier, spell_identifier
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.schema import lookup

__all__ = ["find_absent_values"]

# How long the values may be looked for, of all columns together.
_SECONDS = 0.1


def find_absent_values(database: Database, sql: str) -> list[str]:
    """Return a note for each value that a condition of `sql` asks for in vain, of columns with few values."""
    notes: list[str] = []
    comparisons = find_comparisons(sql)
    if not comparisons:
        return notes
    try:
        with database.interrupt.shorten(_SECONDS):
            for table in lookup.find_named_tables(sql, lookup.list_table_names(database)):
                for comparison in comparisons:
                    notes += _find_in_table(database, table, comparison)
    except sqlite3.Error:
        # There was no time for more, or a view is broken: the result is right without a note.
        pass
    return notes


def _find_in_table(database: Database, table: str, comparison: Comparison) -> list[str]:
    columns = {name.casefold(): name for name in lookup.list_column_names(database, table)}
    column = columns.get(comparison.column.casefold())
    if column is None or database.is_masked(table, column):
        return []
    source = quote_identifier(table)
    name = quote_identifier(column)
    rows = database.run_internal(
        f"SELECT quote(v) FROM (SELECT DISTINCT {name} AS v FROM {source} LIMIT ?)", [MAX_KNOWN_VALUES + 1]
    )
    known = [str(value) for (value,) in rows]
    label = f"{spell_identifier(table)}.{spell_identifier(column)}"
    notes: list[str] = []
    for literal in comparison.literals:
        if not database.run_internal(f"SELECT 1 FROM {source} WHERE {name} = {literal} LIMIT 1"):
            notes.append(describe_absent_value(label, literal, known))
    return list(filter(None, notes))
