"""Checks whether a file is whole, and whether its foreign keys point to rows."""

from __future__ import annotations

import sqlite3
from typing import Any

from mcp_batteries.sql.language.identifiers import quote_identifier
from mcp_sqlite.worker.change import foreign_keys
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.query import errors
from mcp_sqlite.worker.schema.full_text import count_strays, list_full_text_tables

__all__ = ["check_integrity"]

_MAX_COMPLAINTS = 100
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0"
_MISSING_COLLATION = "no such collation sequence: "


def check_integrity(connections: Connections, request: dict[str, Any]) -> dict[str, Any]:
    """Return the complaints of integrity_check (or quick_check), and the foreign keys that point nowhere.

    Full-text indexes are compared with the numbers of the rows only; those whose words SQLite did not check are named.
    """
    pragma = "quick_check" if request["quick"] else "integrity_check"
    complaints: list[str] = []
    broken_keys: list[str] = []
    unchecked: list[str] = []
    collated: list[str] = []
    shows_part = connections.visible_names(request["path"]) is not None
    try:
        database = connections.reader(request["path"])
        try:
            complaints = _run_pragma(database, f"{pragma}({_MAX_COMPLAINTS})")
        except sqlite3.OperationalError as error:
            if shows_part or not str(error).startswith(_MISSING_COLLATION):
                raise
            complaints, collated = _check_each_table(database, pragma)
        unchecked = [table.name for table in list_full_text_tables(database) if not table.is_checked_with_file]
        if not shows_part and not request["quick"]:
            complaints += _compare_full_text(database)
        broken_keys = _describe_broken_keys(foreign_keys.find_broken(database), shows_part=shows_part)
    except sqlite3.DatabaseError as error:
        # Damage that stops the check itself is what it was asked for.
        if not errors.is_damage(error):
            raise
        complaints.append(f"{pragma} can't go on: {error}")
    if complaints and shows_part:
        complaints = ["something is wrong in the file; the operator can find out what"]
    return {"complaints": complaints, "broken_keys": broken_keys, "unchecked": unchecked, "collated": collated}


def _run_pragma(database: Database, check: str) -> list[str]:
    return [str(complaint) for (complaint,) in database.run_internal(f"PRAGMA {check}") if complaint != "ok"]


def _check_each_table(database: Database, pragma: str) -> tuple[list[str], list[str]]:
    """Return the complaints of all tables that SQLite can check, and those that need an application's collation."""
    complaints: list[str] = []
    collated: list[str] = []
    for (table,) in database.run_internal(_TABLES):
        try:
            complaints += _run_pragma(database, f"{pragma}({quote_identifier(table)})")
        except sqlite3.OperationalError as error:
            if not str(error).startswith(_MISSING_COLLATION):
                raise
            collated.append(table)
    return complaints[:_MAX_COMPLAINTS], collated


def _compare_full_text(database: Database) -> list[str]:
    """Return which full-text indexes have entries without a row; what can't be read is no finding."""
    complaints: list[str] = []
    for table in list_full_text_tables(database):
        try:
            stray_count = count_strays(database, table)
        except sqlite3.OperationalError:
            database.interrupt.check()
            continue
        if stray_count:
            complaints.append(
                f"full-text index {table.name} has entries that {table.content} has no rows for: {stray_count:,}"
            )
    return complaints


def _describe_broken_keys(broken: foreign_keys.BrokenKeys, *, shows_part: bool) -> list[str]:
    lines = [*sorted(broken.misfits), *foreign_keys.describe_broken_keys(broken.rows)]
    if lines and shows_part:
        return [f"foreign keys of {broken.number:,} rows point nowhere; the operator can find out which"]
    return lines
