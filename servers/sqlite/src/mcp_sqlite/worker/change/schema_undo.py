"""The way back from a change of the schema, where it is certain: drop what is new, and rename back."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping

from mcp_batteries.sql.language.identifiers import quote_identifier
from mcp_sqlite.worker.change.objects import NUMBERS, ObjectKey, SchemaSnapshot, read_objects
from mcp_sqlite.worker.connection.database import Database

__all__ = ["UndoRecorder"]

_COLUMNS = """SELECT m.name, x.name FROM sqlite_master m JOIN pragma_table_xinfo(m.name) x
    WHERE m.type = 'table' AND m.rootpage > 0 ORDER BY m.name, x.cid"""
_Columns = dict[str, list[str]]


class _UncertainError(Exception):
    """No statement is certain to lead back."""


class UndoRecorder:
    """Notes the inverse of each statement of a change while they run, which undo it from the last to the first.

    What a change did to what was there before, and did not rename, no statement brings back for sure. A change that
    does any of that has no way back here at all: half of one would look like a whole one.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._schema = read_objects(database)
        self._columns: _Columns = {}
        self._new_tables: set[str] = set()
        self._inverses: list[str] = []
        self._is_certain = True

    @property
    def statements(self) -> list[str] | None:
        """Statements that undo the change; None where that is not certain."""
        return self._inverses[::-1] if self._is_certain else None

    def observe_before(self, sql: str) -> None:
        """Look at the columns before a statement that may change them."""
        if self._is_certain and "alter" in sql.lower():
            self._columns = self._read_columns()

    def observe_after(self, action: str, tables_written: Iterable[str]) -> None:
        """Note the inverse of the statement.

        Args:
            action: its first words, where it is about the schema.
        """
        if not self._is_certain:
            return
        before = self._schema
        try:
            self._check_rows(tables_written)
            if action:
                self._schema = read_objects(self._database)
                self._inverses += self._find_inverses(before, self._schema, is_alter=action.startswith("ALTER"))
        except _UncertainError:
            self._is_certain = False

    def _check_rows(self, tables_written: Iterable[str]) -> None:
        """Raise `_UncertainError` if rows changed that were there before."""
        for name in tables_written:
            if ObjectKey("table", name) in self._schema.objects and name not in self._new_tables:
                raise _UncertainError

    def _find_inverses(self, before: SchemaSnapshot, after: SchemaSnapshot, *, is_alter: bool) -> list[str]:
        added = [key for key in after.objects if key not in before.objects]
        removed = [key for key in before.objects if key not in after.objects]
        if is_alter:
            if [key.kind for key in added + removed] == ["table", "table"]:
                return [self._rename_table(added[0].name, removed[0].name)]
            if added or removed:
                raise _UncertainError
            return self._restore_columns(has_changed=before.objects != after.objects)
        if removed or any(after.objects[key] != item for key, item in before.objects.items()):
            raise _UncertainError
        self._new_tables.update(key.name for key in added if key.is_table)
        return [*map(_drop, added), *_restore_numbers(before.numbers, after.numbers)]

    def _rename_table(self, name: str, old_name: str) -> str:
        if old_name in self._new_tables:
            self._new_tables.add(name)
        return f"ALTER TABLE {quote_identifier(name)} RENAME TO {quote_identifier(old_name)};"

    def _restore_columns(self, *, has_changed: bool) -> list[str]:
        """Return what undoes the addition or the new name of a column."""
        columns = self._read_columns()
        changed = [table for table, names in columns.items() if names != self._columns.get(table)]
        if not changed and not has_changed:
            return []
        if len(changed) != 1:
            raise _UncertainError
        table = changed[0]
        alter = f"ALTER TABLE {quote_identifier(table)}"
        old_names = self._columns[table]
        names = columns[table]
        if names[:-1] == old_names:
            self._check_views(alter, names[-1])
            return [f"{alter} DROP COLUMN {quote_identifier(names[-1])};"]
        renamed = [(name, old) for name, old in zip(names, old_names, strict=False) if name != old]
        if len(names) != len(old_names) or len(renamed) != 1:
            raise _UncertainError
        name, old_name = map(quote_identifier, renamed[0])
        return [f"{alter} RENAME COLUMN {name} TO {old_name};"]

    def _check_views(self, alter: str, column: str) -> None:
        """Raise `_UncertainError` if a view names what is missing: SQLite adds columns then, and drops none."""
        self._database.run_internal("SAVEPOINT mcp_views")
        try:
            self._database.run_internal(f"{alter} RENAME COLUMN {quote_identifier(column)} TO mcp_back")
        except sqlite3.Error:
            raise _UncertainError from None
        finally:
            self._database.run_internal("ROLLBACK TO mcp_views")
            self._database.run_internal("RELEASE mcp_views")

    def _read_columns(self) -> _Columns:
        columns: _Columns = {}
        for table, column in self._database.run_internal(_COLUMNS):
            columns.setdefault(str(table), []).append(str(column))
        return columns


def _drop(key: ObjectKey) -> str:
    return f"DROP {key.kind.upper()} {quote_identifier(key.name)};"


def _restore_numbers(before: Mapping[str, int], after: Mapping[str, int]) -> list[str]:
    return [f"PRAGMA {name} = {before.get(name, 0)};" for name in NUMBERS if before.get(name, 0) != after.get(name, 0)]
