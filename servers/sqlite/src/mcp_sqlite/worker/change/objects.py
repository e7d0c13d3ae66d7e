"""The objects of a schema, and what a change did to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.schema import lookup

__all__ = [
    "NUMBERS",
    "ObjectKey",
    "SchemaObject",
    "SchemaSnapshot",
    "describe_difference",
    "read_objects",
]

# The numbers that are kept with the schema.
NUMBERS = ("user_version", "application_id")
_OBJECTS = (
    "SELECT type, name, coalesce(sql, ''), tbl_name FROM sqlite_master WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!'"
)


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
