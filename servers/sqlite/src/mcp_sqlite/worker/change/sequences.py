"""The numbers that AUTOINCREMENT has reached, which a table that is rebuilt loses."""

from __future__ import annotations

from collections.abc import Mapping

from mcp_sqlite.worker.connection.database import Database

__all__ = ["describe_lost_numbers", "read_sequences"]

_HAS_SEQUENCES = "SELECT EXISTS (SELECT 1 FROM main.sqlite_master WHERE name = 'sqlite_sequence')"
_SEQUENCES = """SELECT m.name, coalesce(max(CAST(s.seq AS INTEGER)), 0)
FROM main.sqlite_master m LEFT JOIN main.sqlite_sequence s ON s.name = m.name
WHERE m.type = 'table' AND m.sql LIKE '%AUTOINCREMENT%' GROUP BY m.name"""


def read_sequences(database: Database) -> dict[str, int]:
    """Return the greatest number that each table with AUTOINCREMENT has had."""
    if not database.read_internal(_HAS_SEQUENCES):
        return {}
    return {str(table): int(number) for table, number in database.run_internal(_SEQUENCES)}


def describe_lost_numbers(before: Mapping[str, int], after: Mapping[str, int]) -> list[str]:
    """Return a line for each table that would number new rows as rows that are gone."""
    return [
        f"{table}: goes on behind {number:,}, before behind {before[table]:,}"
        for table, number in after.items()
        if number < before.get(table, 0)
    ]
