"""Foreign keys that point nowhere: the number of rows, and those that a change has broken."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice

from mcp_sqlite.worker.connection.database import Database

__all__ = ["BrokenKeys", "describe_broken_keys", "find_broken", "find_newly_broken"]

_KNOWN = 200_000
"""Rows that are known one by one, of all keys together; of more only the number is."""
_EXAMPLES = 2
_KEYS = """SELECT m.name, k.id, k."from", k."table"
FROM main.sqlite_master m, pragma_foreign_key_list(m.name, 'main') k WHERE m.type = 'table' ORDER BY 1, 2, k.seq"""
_BROKEN = "SELECT fkid, rowid FROM pragma_foreign_key_check(?, 'main')"

_Key = tuple[str, str, str]
"""A table, its columns, and the table that they refer to."""


@dataclass
class BrokenRows:
    """Rows whose key points nowhere: their number, and each by its rowid, which is None where there is none."""

    number: int = 0
    known: Counter[int | None] = field(default_factory=Counter[int | None])


@dataclass(frozen=True)
class BrokenKeys:
    """What is wrong with foreign keys.

    Attributes:
        misfits: keys that refer to columns which are not unique, in SQLite's words; their rows can't be checked.
    """

    rows: Mapping[_Key, BrokenRows]
    misfits: frozenset[str]

    @property
    def number(self) -> int:
        return sum(rows.number for rows in self.rows.values())


def find_broken(database: Database) -> BrokenKeys:
    """All that is broken, as this connection sees it.

    Raises:
        sqlite3.Error: the file is damaged, or the time is over.
    """
    keys: dict[str, dict[int, _Key]] = {}
    for table, number, column, parent in database.run_internal(_KEYS):
        _, columns, _ = keys.setdefault(table, {}).get(number, (table, "", parent))
        keys[table][number] = (table, f"{columns}, {column}" if columns else column, parent)
    rows: dict[_Key, BrokenRows] = {}
    misfits: set[str] = set()
    left = _KNOWN
    for table, of_table in keys.items():
        try:
            with database.interrupt.reach(database.connection):
                for number, row in database.connection.execute(_BROKEN, (table,)):
                    found = rows.setdefault(of_table[number], BrokenRows())
                    found.number += 1
                    if left > 0:
                        found.known[row] += 1
                        left -= 1
        except sqlite3.OperationalError as error:
            if "foreign key mismatch" not in str(error):
                raise
            misfits.add(str(error))
    return BrokenKeys(rows, frozenset(misfits))


def find_newly_broken(before: BrokenKeys, now: BrokenKeys) -> dict[_Key, BrokenRows]:
    """What is broken `now` and was not `before`. Where a table or column is called otherwise, that breaks nothing."""
    gone = [rows for key, rows in before.rows.items() if key not in now.rows]
    found: dict[_Key, BrokenRows] = {}
    for key, rows in now.rows.items():
        if key not in before.rows and rows in gone:
            gone.remove(rows)
            continue
        was = before.rows.get(key, BrokenRows())
        more = rows.number - was.number
        if rows.known.total() == rows.number and was.known.total() == was.number:
            new = rows.known - was.known
            more = new.total()
        else:
            new = Counter[int | None]()
        if more > 0:
            found[key] = BrokenRows(more, new)
    return found


def describe_broken_keys(broken: Mapping[_Key, BrokenRows]) -> list[str]:
    """A line for each key: of how many rows it points nowhere, and the rowids of some."""
    lines: list[str] = []
    for (table, columns, parent), rows in broken.items():
        some = [str(row) for row in islice(rows.known, _EXAMPLES) if row is not None]
        such = f": rowid {' and '.join(some)}" if len(some) == rows.number else f", such as rowid {' and '.join(some)}"
        many = "1 row refers to a missing row" if rows.number == 1 else f"{rows.number:,} rows refer to missing rows"
        lines.append(f"{table}.{columns}: {many} of {parent}{such if some else ''}")
    return lines
