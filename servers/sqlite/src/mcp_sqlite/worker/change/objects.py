"""The objects of a schema, what a change did to them, and what became of its tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.language.tokens import BLANK
from mcp_sqlite.worker.schema import lookup

__all__ = [
    "NUMBERS",
    "ObjectKey",
    "RenameTrail",
    "SchemaObject",
    "SchemaSnapshot",
    "SurvivingTable",
    "TableShape",
    "describe_difference",
    "read_objects",
]

# The numbers that are kept with the schema.
NUMBERS = ("user_version", "application_id")
_CREATE = re.compile(BLANK + r"CREATE\b", re.IGNORECASE)
_TABLES = "SELECT name, sql, rootpage FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"
_OBJECTS = (
    "SELECT type, name, coalesce(sql, ''), tbl_name FROM sqlite_master WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!'"
)
_COLUMNS = "SELECT name FROM pragma_table_xinfo(?) ORDER BY cid"


class ObjectKey(NamedTuple):
    """What an object is and is called."""

    kind: str
    name: str

    @property
    def is_table(self) -> bool:
        return self.kind == "table"

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class SchemaObject(NamedTuple):
    """An object of the schema.

    Attributes:
        table: the one that it is about.
    """

    sql: str
    table: str


@dataclass(frozen=True)
class SchemaSnapshot:
    """Every object of a schema, and the numbers that are kept with it and are not 0."""

    objects: Mapping[ObjectKey, SchemaObject]
    numbers: Mapping[str, int]

    def labels(self) -> dict[str, str]:
        """Return all of it as text, with what each is like."""
        labels = {str(key): item.sql for key, item in self.objects.items()}
        for name, number in self.numbers.items():
            labels[f"{name} = {number}"] = ""
        return labels


class TableShape(NamedTuple):
    """A table.

    Attributes:
        columns: their names; of a virtual table none.
    """

    sql: str
    columns: tuple[str, ...]


class SurvivingTable(NamedTuple):
    """What became of a table that is still there.

    Attributes:
        columns: the names that those it had have now; None for one that was dropped.
    """

    name: str
    columns: tuple[str | None, ...]

    @property
    def has_all_columns(self) -> bool:
        return None not in self.columns


class RenameTrail:
    """What becomes of the tables while statements run one by one.

    What begins where another began, or has its name and columns, may be made anew: only statement by statement it is
    known which is which.

    Attributes:
        tables_before: the tables that were there.
        survivors: what became of them.
        has_changed_rows: whether rows of theirs are others now.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._tables = _read_shapes(database, {})
        self._are_outdated = False
        self._is_create = False
        self._tables_before_statement = self._tables
        self.tables_before = self._tables
        self.survivors = {name: SurvivingTable(name, table.columns) for name, table in self._tables.items()}
        self.has_changed_rows = False

    @property
    def tables(self) -> Mapping[str, TableShape]:
        """The tables as they are now."""
        if self._are_outdated:
            self._tables = _read_shapes(self._database, self._tables)
            self._are_outdated = False
        return self._tables

    def observe_before(self, sql: str) -> None:
        """Look at the tables before a statement."""
        self._is_create = _CREATE.match(sql) is not None
        if not self._is_create:
            self._tables_before_statement = self.tables

    def observe_after(self, action: str, tables_written: Iterable[str]) -> None:
        """Look at the tables after the statement.

        Args:
            action: its first words, where it is about the schema.
        """
        names = {table.name for table in self.survivors.values()}
        if any(name in names for name in tables_written):
            self.has_changed_rows = True
        if self._is_create:
            # To read many tables takes long, and what is new changes no other.
            self._are_outdated = True
        elif action:
            self._tables = _read_shapes(self._database, self._tables_before_statement)
            self._follow(is_alter=action.startswith("ALTER"))

    def _follow(self, *, is_alter: bool) -> None:
        """Note what became of the tables by the last statement."""
        before = self._tables_before_statement
        removed = before.keys() - self._tables.keys()
        added = self._tables.keys() - before.keys()
        renamed: dict[str, str] = {}
        if is_alter and len(removed) == len(added) == 1:
            renamed = dict(zip(removed, added, strict=True))
        survivors: dict[str, SurvivingTable] = {}
        for original_name, table in self.survivors.items():
            name = renamed.get(table.name, table.name)
            if name in self._tables:
                columns = _match_columns(before[table.name].columns, self._tables[name].columns)
                columns_now = tuple(None if column is None else columns.get(column) for column in table.columns)
                survivors[original_name] = SurvivingTable(name, columns_now)
        self.survivors = survivors


def _match_columns(before: tuple[str, ...], now: tuple[str, ...]) -> dict[str, str]:
    """Return the present names of columns: in their order if none came or went, else those of the same name."""
    if len(before) == len(now):
        return dict(zip(before, now, strict=True))
    return dict(zip(now, now, strict=True))


def _read_shapes(database: Database, known: Mapping[str, TableShape]) -> Mapping[str, TableShape]:
    """Return the tables but those that virtual ones keep for themselves; those that are as `known` are not read."""
    shadow_tables = lookup.find_shadow_tables(database)
    shapes: dict[str, TableShape] = {}
    for name, sql, root_page in database.run_internal(_TABLES):
        if str(name).lower() in shadow_tables:
            continue
        shape = known.get(str(name))
        if shape is None or shape.sql != sql:
            columns = database.run_internal(_COLUMNS, [name]) if root_page else []
            shape = TableShape(str(sql), tuple(str(column) for (column,) in columns))
        shapes[str(name)] = shape
    return shapes


def read_objects(database: Database) -> SchemaSnapshot:
    """Return every object, but what virtual tables keep for themselves, and the numbers that are kept with them."""
    shadow_tables = lookup.find_shadow_tables(database)
    objects: dict[ObjectKey, SchemaObject] = {}
    for kind, name, sql, table in database.run_internal(_OBJECTS):
        if kind != "table" or str(name).lower() not in shadow_tables:
            objects[ObjectKey(str(kind), str(name))] = SchemaObject(str(sql), str(table))
    numbers = {name: database.read_internal(f"PRAGMA {name}") for name in NUMBERS}
    return SchemaSnapshot(objects, {name: number for name, number in numbers.items() if number})


def describe_difference(before: SchemaSnapshot, after: SchemaSnapshot) -> list[str]:
    """Return the objects that came (+), went (-) and have another form (~)."""
    labels_before = before.labels()
    labels_after = after.labels()
    signs: dict[str, str] = {}
    for label in labels_after.keys() - labels_before.keys():
        signs[label] = "+"
    for label in labels_before.keys() - labels_after.keys():
        signs[label] = "-"
    for label in labels_after.keys() & labels_before.keys():
        if labels_after[label] != labels_before[label]:
            signs[label] = "~"
    return [f"{signs[label]} {label}" for label in sorted(signs)]
