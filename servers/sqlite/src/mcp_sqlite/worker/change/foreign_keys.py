"""Foreign keys that point nowhere: the number of rows, and those that a change has broken."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from mcp_sqlite.worker.connection.database import Database

__all__ = [
    "BrokenKeys",
    "BrokenRows",
    "ForeignKey",
    "describe_broken_keys",
    "find_broken",
    "find_newly_broken",
    "find_parentless_keys",
    "would_fail_commit",
]

# Rows that are known one by one, of all keys together; of more only the number is.
_MAX_KNOWN_ROWS = 200_000
_MAX_EXAMPLES = 2
_KEY_COLUMNS = """SELECT m.name, k.id, k."from", k."table"
FROM main.sqlite_master m, pragma_foreign_key_list(m.name, 'main') k WHERE m.type = 'table' ORDER BY 1, 2, k.seq"""
_TABLES = "SELECT name FROM main.sqlite_master WHERE type = 'table'"
# Two temporary tables, with a deferred key between them: a row of one refers to a row of the other, spelled otherwise.
_PROBE_TABLES = (
    "CREATE TEMP TABLE mcp_probe_parent (k TEXT COLLATE mcp_probe PRIMARY KEY)",
    "CREATE TEMP TABLE mcp_probe_child (k REFERENCES mcp_probe_parent DEFERRABLE INITIALLY DEFERRED)",
    "INSERT INTO mcp_probe_parent VALUES ('a')",
    "INSERT INTO mcp_probe_child VALUES ('A')",
)
_BROKEN_ROWS = "SELECT fkid, rowid FROM pragma_foreign_key_check(?, 'main')"


class ForeignKey(NamedTuple):
    """A table, its columns, and the table that they refer to."""

    table: str
    columns: str
    parent: str


@dataclass
class BrokenRows:
    """Rows whose key points nowhere.

    Attributes:
        number: how many there are.
        rowids: how many have each rowid, which is None where there is none; not all where they are many.
    """

    number: int = 0
    rowids: Counter[int | None] = field(default_factory=Counter[int | None])

    @property
    def are_all_known(self) -> bool:
        """Whether each of the rows is known by its rowid."""
        return self.rowids.total() == self.number


@dataclass(frozen=True)
class BrokenKeys:
    """What is wrong with foreign keys.

    Attributes:
        misfits: keys that refer to columns which are not unique, in SQLite's words; their rows can't be checked.
    """

    rows: Mapping[ForeignKey, BrokenRows]
    misfits: frozenset[str]

    @property
    def number(self) -> int:
        """The number of rows of all keys."""
        return sum(rows.number for rows in self.rows.values())


def find_broken(database: Database) -> BrokenKeys:
    """Return all that is broken, as this connection sees it.

    Raises:
        sqlite3.Error: the file is damaged, or the time is over.
    """
    rows: dict[ForeignKey, BrokenRows] = {}
    misfits: set[str] = set()
    known_rows_left = _MAX_KNOWN_ROWS
    for table, keys in _read_keys(database).items():
        try:
            with database.interrupt.reach(database.connection):
                for number, rowid in database.connection.execute(_BROKEN_ROWS, (table,)):
                    broken = rows.setdefault(keys[number], BrokenRows())
                    broken.number += 1
                    if known_rows_left > 0:
                        broken.rowids[rowid] += 1
                        known_rows_left -= 1
        except sqlite3.OperationalError as error:
            if "foreign key mismatch" not in str(error):
                raise
            misfits.add(str(error))
    return BrokenKeys(rows, frozenset(misfits))


def would_fail_commit(database: Database) -> bool:
    """Return whether a COMMIT of the transaction under way would fail because a deferred foreign key points nowhere.

    SQLite counts such keys as rows change, and tells nobody the number. But while it is 0, a new row of a parent table
    can mend nothing, so that SQLite does not compare it with the rows that refer to that table; a collation of ours
    notices whether it does. To look through all keys takes minutes where tables are large.
    """
    compared: set[str] = set()

    def compare(left: str, right: str) -> int:
        compared.update((left, right))
        left = left.lower()
        right = right.lower()
        return (left > right) - (left < right)

    database.connection.create_collation("mcp_probe", compare)
    database.run_internal("SAVEPOINT probe")
    try:
        for statement in _PROBE_TABLES:
            database.run_internal(statement)
        compared.clear()
        database.run_internal("INSERT INTO mcp_probe_parent VALUES ('b')")
        return "A" in compared
    finally:
        database.run_internal("ROLLBACK TO probe")
        database.run_internal("RELEASE probe")
        database.connection.create_collation("mcp_probe", None)


def _read_keys(database: Database) -> dict[str, dict[int, ForeignKey]]:
    """Return the foreign keys by table, and by the number that SQLite gives them there."""
    keys: dict[str, dict[int, ForeignKey]] = {}
    for table, number, column, parent in database.run_internal(_KEY_COLUMNS):
        keys_of_table = keys.setdefault(table, {})
        if number in keys_of_table:
            column = f"{keys_of_table[number].columns}, {column}"
        keys_of_table[number] = ForeignKey(table, column, parent)
    return keys


def find_parentless_keys(database: Database) -> set[ForeignKey]:
    """Return the keys that refer to tables which are not there: SQLite refuses each row that uses one."""
    tables = {str(name).lower() for (name,) in database.run_internal(_TABLES)}
    keys = _read_keys(database).values()
    return {key for keys_of_table in keys for key in keys_of_table.values() if key.parent.lower() not in tables}


def find_newly_broken(before: BrokenKeys, now: BrokenKeys) -> dict[ForeignKey, BrokenRows]:
    """Return what is broken `now` and was not `before`.

    Where a table or column has been renamed, that breaks nothing.
    """
    renamed_away = [rows for key, rows in before.rows.items() if key not in now.rows]
    newly_broken: dict[ForeignKey, BrokenRows] = {}
    for key, rows in now.rows.items():
        if key not in before.rows and rows in renamed_away:
            renamed_away.remove(rows)
            continue
        new_rows = _subtract(rows, before.rows.get(key, BrokenRows()))
        if new_rows.number > 0:
            newly_broken[key] = new_rows
    return newly_broken


def _subtract(rows: BrokenRows, rows_before: BrokenRows) -> BrokenRows:
    """Return the rows that were not broken before, or how many more there are where not all are known."""
    if rows.are_all_known and rows_before.are_all_known:
        new_rows = rows.rowids - rows_before.rowids
        return BrokenRows(new_rows.total(), new_rows)
    return BrokenRows(rows.number - rows_before.number)


def describe_broken_keys(broken: Mapping[ForeignKey, BrokenRows]) -> list[str]:
    """Return a line for each key: of how many rows it points nowhere, and the rowids of some."""
    return [_describe_broken_key(key, rows) for key, rows in broken.items()]


def _describe_broken_key(key: ForeignKey, rows: BrokenRows) -> str:
    subject = "1 row refers to a missing row" if rows.number == 1 else f"{rows.number:,} rows refer to missing rows"
    line = f"{key.table}.{key.columns}: {subject} of {key.parent}"
    examples = [str(rowid) for rowid in islice(rows.rowids, _MAX_EXAMPLES) if rowid is not None]
    if not examples:
        return line
    rowids = " and ".join(examples)
    if len(examples) == rows.number:
        return f"{line}: rowid {rowids}"
    return f"{line}, such as rowid {rowids}"
