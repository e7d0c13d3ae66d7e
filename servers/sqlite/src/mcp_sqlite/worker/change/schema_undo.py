"""Builds the statements that undo a change of the schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from mcp_batteries.sql.language.identifiers import quote_identifier
from mcp_batteries.sql.language.rename_order import order_rename_undo
from mcp_sqlite.worker.change.objects import (
    NUMBERS,
    ObjectKey,
    RenameTrail,
    SchemaSnapshot,
    SurvivingTable,
)
from mcp_sqlite.worker.language.tokens import terminate
from mcp_sqlite.worker.schema import lookup

__all__ = ["build_undo"]

# What is made again in this order: what later kinds name is there by then.
_ORDER = ("index", "view", "trigger")
_LOST_ROWS = "-- no statement brings back rows: `copy_database`, or the operator's backup, before it is done"


@dataclass
class _Changes:
    """What happened to the objects of a schema.

    Attributes:
        added: objects that are new.
        removed: objects that are gone.
        altered: objects that have another form now, or are made again with what they belong to.
        taken_names: the names that renamed tables have now, in lower case: such a name may be there before and after,
            and be that of another table.
    """

    added: list[ObjectKey] = field(default_factory=list[ObjectKey])
    removed: list[ObjectKey] = field(default_factory=list[ObjectKey])
    altered: list[ObjectKey] = field(default_factory=list[ObjectKey])
    taken_names: set[str] = field(default_factory=set[str])

    def is_taken(self, key: ObjectKey) -> bool:
        """Return whether a renamed table has this name now."""
        return key.is_table and key.name.lower() in self.taken_names


def build_undo(before: SchemaSnapshot, after: SchemaSnapshot, trail: RenameTrail) -> list[str]:
    """Return statements that undo what the schema gained and lost.

    What no statement brings back stands there as a comment.
    """
    return _Undo(before, after, trail).build()


class _Undo:
    def __init__(self, before: SchemaSnapshot, after: SchemaSnapshot, trail: RenameTrail) -> None:
        self._before = before
        self._after = after
        self._trail = trail
        self._renamed = {name: table.name for name, table in trail.survivors.items() if table.name != name}
        self._changes = self._compare()
        self._drops = [key for key in (*self._changes.added, *self._changes.altered) if not key.is_table]
        self._changes.altered += self._find_dropped_triggers()
        self._lost_tables = self._find_lost_tables()

    def build(self) -> list[str]:
        """Return the statements in the order in which they can run."""
        return [
            *self._drop_objects(),
            *self._drop_added_tables(),
            # No other table can be altered while a trigger or view names one that is missing.
            *self._make_removed_tables(with_taken_names=False),
            *self._restore_columns(),
            *self._rename_tables(),
            *self._make_removed_tables(with_taken_names=True),
            *self._make_objects(),
            *self._describe_lost_tables(),
            *self._restore_numbers(),
            *self._describe_lost_rows(),
        ]

    def _compare(self) -> _Changes:
        changes = _Changes(taken_names={name.lower() for name in self._renamed.values()})
        for key in self._after.objects:
            if self._is_added(key, changes):
                changes.added.append(key)
        for key in self._before.objects:
            if self._is_renamed(key):
                continue
            if key not in self._after.objects or changes.is_taken(key):
                changes.removed.append(key)
            elif self._is_altered(key):
                changes.altered.append(key)
        return changes

    def _is_added(self, key: ObjectKey, changes: _Changes) -> bool:
        """Return whether an object is new, and not an earlier one by another name."""
        if changes.is_taken(key):
            return False
        return key not in self._before.objects or self._is_renamed(key)

    def _is_renamed(self, key: ObjectKey) -> bool:
        return key.is_table and key.name in self._renamed

    def _is_altered(self, key: ObjectKey) -> bool:
        """Return whether an object has another form, or belongs to another table, which has the name of its own."""
        item = self._before.objects[key]
        item_now = self._after.objects[key]
        if item != item_now:
            return True
        table = self._trail.survivors.get(item.table)
        return table is not None and table.name != item_now.table

    def _find_dropped_triggers(self) -> list[ObjectKey]:
        """Return triggers that go with a view, and are to be there again."""
        triggers: list[ObjectKey] = []
        for key, item in self._before.objects.items():
            if key.kind == "trigger" and self._is_unchanged(key) and ObjectKey("view", item.table) in self._drops:
                triggers.append(key)
        return triggers

    def _is_unchanged(self, key: ObjectKey) -> bool:
        return key not in self._changes.removed and key not in self._changes.altered

    def _find_lost_tables(self) -> list[str]:
        """Return the tables that no statement makes as they were."""
        lost = [key.name for key in self._changes.altered if key.is_table and key.name not in self._trail.survivors]
        for name, table in self._trail.survivors.items():
            if table.has_all_columns:
                continue
            item = self._before.objects[ObjectKey("table", name)]
            if item != self._after.objects[ObjectKey("table", table.name)]:
                lost.append(name)
        return lost

    def _drop_objects(self) -> list[str]:
        return [_drop(key) for key in sorted(self._drops) if not self._goes_with_table(key)]

    def _goes_with_table(self, key: ObjectKey) -> bool:
        """Return whether an object is dropped with the new table that it is about."""
        table = ObjectKey("table", self._after.objects[key].table)
        return key.kind != "view" and table in self._changes.added

    def _drop_added_tables(self) -> list[str]:
        return [_drop(key) for key in sorted(self._changes.added) if key.is_table]

    def _make_removed_tables(self, *, with_taken_names: bool) -> list[str]:
        return [
            terminate(self._before.objects[key].sql)
            for key in self._changes.removed
            if key.is_table and self._changes.is_taken(key) is with_taken_names
        ]

    def _restore_columns(self) -> list[str]:
        statements: list[str] = []
        for name, table in self._trail.survivors.items():
            if table.has_all_columns:
                columns_before = self._trail.tables_before[name].columns
                columns_now = self._trail.tables[table.name].columns
                statements += _restore_columns(columns_before, table, columns_now)
        return statements

    def _rename_tables(self) -> list[str]:
        labels = {*self._before.labels(), *self._after.labels()}
        spare_label = _find_spare_names("table mcp_back_", labels)

        def spare_name(name: str, number: int) -> str:
            return spare_label(name, number).removeprefix("table ")

        return [
            f"ALTER TABLE {quote_identifier(new)} RENAME TO {quote_identifier(old)};"
            for new, old in order_rename_undo(self._renamed, spare_name, str.lower)
        ]

    def _make_objects(self) -> list[str]:
        """Return the statements for indexes, views and triggers; comments for those about what is lost."""
        keys = [key for key in (*self._changes.removed, *self._changes.altered) if not key.is_table]
        missing = [name.lower() for name in self._lost_tables]
        statements: list[str] = []
        for key in sorted(keys, key=lambda key: _ORDER.index(key.kind)):
            sql, table = self._before.objects[key]
            if not sql:
                continue
            # A trigger can't be made on a view that is not there.
            if table.lower() in missing or (missing and lookup.find_named_tables(sql, missing)):
                missing.append(key.name.lower())
                statements.append(_comment(terminate(sql)))
            else:
                statements.append(terminate(sql))
        return statements

    def _describe_lost_tables(self) -> list[str]:
        comments: list[str] = []
        for name in self._lost_tables:
            key = ObjectKey("table", name)
            comments.append(_comment(f"{key} was: {terminate(self._before.objects[key].sql)}"))
        return comments

    def _restore_numbers(self) -> list[str]:
        statements: list[str] = []
        for name in NUMBERS:
            number = self._before.numbers.get(name, 0)
            if number != self._after.numbers.get(name, 0):
                statements.append(f"PRAGMA {name} = {number};")
        return statements

    def _describe_lost_rows(self) -> list[str]:
        survivors = self._trail.survivors
        has_lost_tables = len(survivors) < len(self._trail.tables_before)
        has_lost_columns = not all(table.has_all_columns for table in survivors.values())
        if self._trail.has_changed_rows or has_lost_tables or has_lost_columns:
            return [_LOST_ROWS]
        return []


def _drop(key: ObjectKey) -> str:
    return f"DROP {key.kind.upper()} {quote_identifier(key.name)};"


def _comment(text: str) -> str:
    # What stands behind a line break would be a statement.
    return "-- " + re.sub(r"\r\n?|\n", r"\g<0>-- ", text)


def _restore_columns(before: tuple[str, ...], table: SurvivingTable, now: tuple[str, ...]) -> list[str]:
    """Return what gives a table its columns again, under its name of now."""
    table_name = quote_identifier(table.name)
    added = [column for column in reversed(now) if column not in table.columns]
    statements = [f"ALTER TABLE {table_name} DROP COLUMN {quote_identifier(column)};" for column in added]
    pairs = zip(before, table.columns, strict=True)
    renamed = {old: new for old, new in pairs if new is not None and new != old}
    spare_name = _find_spare_names("mcp_back_", {*before, *now})
    for new, old in order_rename_undo(renamed, spare_name, str.lower):
        statements.append(f"ALTER TABLE {table_name} RENAME COLUMN {quote_identifier(new)} TO {quote_identifier(old)};")
    return statements


def _find_spare_names(prefix: str, names: Collection[str]) -> Callable[[str, int], str]:
    """Return a function that returns names that nobody has, for `renames_back`."""
    lower_names = {name.lower() for name in names}

    def spare_name(_: str, number: int) -> str:
        while f"{prefix}{number}" in lower_names:
            number += len(lower_names)
        return f"{prefix}{number}"

    return spare_name
