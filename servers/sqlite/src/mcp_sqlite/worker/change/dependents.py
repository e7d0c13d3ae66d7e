"""What a change of the schema does to that which depends on it, and which nobody would notice before it is used."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mcp_batteries.sql.language.identifiers import quote_identifier, unquote_identifier
from mcp_sqlite.worker.change import foreign_keys
from mcp_sqlite.worker.change.objects import ObjectKey, SchemaSnapshot
from mcp_sqlite.worker.change.sequences import describe_lost_numbers, read_sequences
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.language.failure import Failure
from mcp_sqlite.worker.language.tokens import BLANK
from mcp_sqlite.worker.schema import lookup

__all__ = ["DependentState", "Finding"]

_NAME = r'(?:"(?:[^"]|"")*"|\[[^]]*\]|`[^`]*`|\w+)'
_RENAME = re.compile(
    BLANK + rf"ALTER\s+TABLE\s+(?:\w+\s*\.\s*)?(?P<old>{_NAME})\s+RENAME\s+TO\s+(?P<new>{_NAME})[\s;]*", re.IGNORECASE
)
_TABLES_WITH_TRIGGERS = "SELECT DISTINCT tbl_name FROM main.sqlite_master WHERE type = 'trigger'"
_VIEWS = "SELECT name FROM main.sqlite_master WHERE type = 'view'"
# How long views and triggers are compiled, before a change and behind it.
_COMPILE_SECONDS = 0.5
_LOST_NUMBERS = (
    "AUTOINCREMENT gives new rows the numbers of some that are gone (a row with the greatest number, inserted and "
    "deleted in the same call, keeps it):"
)


class Finding(NamedTuple):
    """Something remarkable: a heading, and lines below it."""

    title: str
    lines: Sequence[str]


class _Rename(NamedTuple):
    old: str
    new: str


@dataclass(frozen=True)
class DependentState:
    """How keys, views, triggers and numbers are at one moment.

    Attributes:
        sequences: the greatest number of each table with AUTOINCREMENT.
        parentless_keys: foreign keys to tables that are not there.
        failures: by a statement that SQLite can't compile, why; None where there was no time to compile all.
    """

    sequences: Mapping[str, int]
    parentless_keys: frozenset[foreign_keys.ForeignKey]
    failures: Mapping[str, str] | None

    @classmethod
    def read(cls, database: Database) -> DependentState:
        """Return the state now."""
        return cls(
            sequences=read_sequences(database),
            parentless_keys=frozenset(foreign_keys.find_parentless_keys(database)),
            failures=_compile_dependents(database),
        )

    def compare(
        self, after: DependentState, objects: tuple[SchemaSnapshot, SchemaSnapshot], statements: Sequence[str]
    ) -> list[Finding]:
        """Return what `statements` did to dependents; `objects` are the schema before and after.

        Raises:
            Failure: foreign keys followed a table that was renamed, and then dropped.
        """
        renames = _list_renames(statements)
        keys = sorted(after.parentless_keys - self.parentless_keys)
        _refuse_lost_parents(keys, renames)
        failures: list[str] = []
        if self.failures is not None and after.failures is not None:
            failures = [f"{sql}: {reason}" for sql, reason in after.failures.items() if sql not in self.failures]
        findings = [Finding(*item) for item in _find_followers(*objects, renames).items()]
        findings += [
            Finding(
                "Foreign keys to tables that are not there:",
                [f"{key.table}.{key.columns} -> {key.parent}" for key in keys],
            ),
            Finding("Statements that fail now:", failures),
            Finding(_LOST_NUMBERS, describe_lost_numbers(self.sequences, after.sequences)),
        ]
        return [finding for finding in findings if finding.lines]


def _compile_dependents(database: Database) -> dict[str, str] | None:
    """Return statements that read views or start triggers and can't be compiled, with SQLite's reasons.

    None if there was no time for all of them.
    """
    failures: dict[str, str] = {}
    try:
        with database.interrupt.shorten(_COMPILE_SECONDS):
            for statement in _list_uses(database):
                # SQLite looks at the time only while it runs a statement, not while it compiles one.
                database.interrupt.check()
                try:
                    database.run_internal(f"EXPLAIN {statement}")
                except sqlite3.OperationalError as error:
                    database.interrupt.check()
                    # A view takes only the changes for which it has a trigger.
                    if not str(error).startswith("cannot modify "):
                        failures[statement] = str(error)
    except sqlite3.OperationalError:
        database.interrupt.check()
        return None
    return failures


def _list_uses(database: Database) -> list[str]:
    """Return statements that have SQLite compile each view, and each trigger of a table."""
    uses = [f"SELECT * FROM {quote_identifier(view)}" for (view,) in database.run_internal(_VIEWS)]
    for (table,) in database.run_internal(_TABLES_WITH_TRIGGERS):
        name = quote_identifier(table)
        uses += [f"INSERT INTO {name} DEFAULT VALUES", f"DELETE FROM {name}"]
        columns = [quote_identifier(str(column)) for column in _list_writable_columns(database, table)]
        if columns:
            uses.append(f"UPDATE {name} SET {', '.join(f'{column} = {column}' for column in columns)}")
    return uses


def _list_writable_columns(database: Database, table: str) -> list[str]:
    try:
        return [column.name for column in lookup.list_columns(database, table) if not column.hidden]
    except sqlite3.OperationalError:
        database.interrupt.check()
        return []


def _list_renames(statements: Sequence[str]) -> list[_Rename]:
    matches = filter(None, map(_RENAME.fullmatch, statements))
    return [_Rename(_unquote(match["old"]), _unquote(match["new"])) for match in matches]


def _unquote(name: str) -> str:
    if name.startswith(("[", "`")):
        return name[1:-1]
    return unquote_identifier(name)


def _refuse_lost_parents(keys: Sequence[foreign_keys.ForeignKey], renames: Sequence[_Rename]) -> None:
    old_names = {rename.new.lower(): rename.old for rename in renames}
    for key in keys:
        old_name = old_names.get(key.parent.lower())
        if old_name is not None:
            raise Failure(
                "conflict",
                f"The foreign key `{key.table}.{key.columns}` follows the renamed table to `{key.parent}`, which is "
                "dropped.",
                "Make the new table by another name, copy the rows, drop the old table, and rename the new one to "
                f"`{old_name}`. Nothing was changed.",
            )


def _find_followers(before: SchemaSnapshot, after: SchemaSnapshot, renames: Sequence[_Rename]) -> dict[str, list[str]]:
    """Return what refers to a table by its new name, although there is another one of the old name now."""
    tables = {key.name.lower() for key in after.objects if key.is_table}
    followers: dict[str, list[str]] = {}
    for old, new in renames:
        if old.lower() not in tables or new.lower() not in tables:
            continue
        lines = [str(key) for key in after.objects if _follows(key, before, after, new)]
        followers[f"These refer to `{new}` now, not to the new `{old}`:"] = lines
    return followers


def _follows(key: ObjectKey, before: SchemaSnapshot, after: SchemaSnapshot, new_name: str) -> bool:
    """Return whether an object that refers to `new_name` did not before."""
    if key not in before.objects or key.name.lower() == new_name.lower():
        return False
    names_before = lookup.find_named_tables(before.objects[key].sql, [new_name])
    return not names_before and bool(lookup.find_named_tables(after.objects[key].sql, [new_name]))
