"""The objects of a database with identities that survive renames, and the state of each that a change can alter."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import NamedTuple

__all__ = [
    "DatabaseObject",
    "Dependency",
    "DependencyKind",
    "GrantState",
    "Inheritance",
    "ObjectChange",
    "ObjectKind",
    "ObjectsByKey",
    "has_kind",
]


class ObjectKind(StrEnum):
    """The first letter of an object's key, which says in which catalog its number is unique."""

    RELATION = "c"
    COLUMN = "a"
    CONSTRAINT = "k"
    FUNCTION = "f"
    TRIGGER = "t"
    POLICY = "p"
    RULE = "r"
    STATISTICS = "s"
    SCHEMA = "n"
    TYPE = "y"
    ENUM_LABEL = "e"
    COLLATION = "l"
    EXTENSION = "x"
    COMMENT = "d"
    ROLE = "o"
    MEMBERSHIP = "m"
    GRANT = "g"


class GrantState(IntEnum):
    """What the parts of a grant's state are, by their places."""

    GRANT_OPTION = 0
    GRANTOR = 1


class Inheritance(StrEnum):
    """Whether a column, constraint or trigger comes from a parent of its table.

    Attributes:
        MERGED: it does, and would stay if that went.
    """

    OWN = "own"
    MERGED = "merged"
    INHERITED = "inherited"


# Which part of its state says whether an object is inherited, and which names the parents of a relation.
_INHERITANCE_PLACES: dict[str, int] = {ObjectKind.COLUMN: 9, ObjectKind.CONSTRAINT: 1, ObjectKind.TRIGGER: 2}
_PARENT_TABLES_PLACE = 6
# Objects that are recognized by their state alone: they have no number that stays with them.
_KINDS_WITHOUT_IDENTITY = (ObjectKind.COLUMN, ObjectKind.COMMENT, ObjectKind.GRANT, ObjectKind.MEMBERSHIP)
_TWO_WORD_KINDS = ("partitioned table", "foreign table", "materialized view")


def has_kind(key: str, *kinds: ObjectKind) -> bool:
    """Return whether the key is that of an object of one of these kinds."""
    return key[:1] in kinds


@dataclass(frozen=True)
class DatabaseObject:
    """One object of a database.

    Attributes:
        key: the letter of its kind, and its number, which stay while it is renamed.
        parent: the key of what its name is in; empty where it stands alone.
        name: its own, as SQL spells it; of a grant, what it is made of.
        label: its kind and full name; None for what is shown as a part of something else only.
        state: what of it can be another after a change, part by part, but for names.
    """

    key: str
    parent: str
    name: str
    label: str | None
    state: tuple[str | None, ...]

    def has_kind(self, *kinds: ObjectKind) -> bool:
        """Return whether it is of one of these kinds."""
        return has_kind(self.key, *kinds)

    @property
    def identity(self) -> object:
        """What tells it from another of the same name."""
        if self.has_kind(*_KINDS_WITHOUT_IDENTITY):
            return self.state
        return (self.key, self.state)

    @property
    def kind(self) -> str:
        """What people call its kind."""
        return _split_label(self.label or "")[0]

    @property
    def sql_kind(self) -> str:
        """What statements call its kind."""
        if self.has_kind(ObjectKind.FUNCTION):
            return "ROUTINE"
        return self.kind.removeprefix("partitioned ").upper()

    @property
    def qualified_name(self) -> str:
        """Its full name as SQL spells it, with what it is on."""
        return _split_label(self.label or "")[1]

    @property
    def inheritance(self) -> Inheritance | None:
        """Whether a column, constraint or trigger comes from a parent of its table; None for what else there is."""
        place = _INHERITANCE_PLACES.get(self.key[0])
        if place is None:
            return None
        return Inheritance(self.state[place] or "")

    @property
    def parent_tables(self) -> list[str]:
        """The keys of the tables that a relation inherits from, or is a partition of."""
        if not self.has_kind(ObjectKind.RELATION):
            return []
        return (self.state[_PARENT_TABLES_PLACE] or "").split()


class ObjectChange(NamedTuple):
    """That an object came (+), went (-) or has another form (~)."""

    sign: str
    item: DatabaseObject

    @property
    def line(self) -> str:
        # A name may hold line ends.
        return re.sub(r"[\r\n]+", " ", f"{self.sign} {self.item.label}")


# Objects by keys that stay while they are renamed.
ObjectsByKey = dict[str, DatabaseObject]


class DependencyKind(StrEnum):
    """How one object depends on another, as `pg_depend.deptype` says."""

    NORMAL = "n"
    AUTO = "a"
    INTERNAL = "i"
    EXTENSION = "e"
    PARTITION_PRIMARY = "P"
    PARTITION_SECONDARY = "S"


class Dependency(NamedTuple):
    """That one object depends on another.

    Attributes:
        dependent: the key of the object that depends.
        referenced: the key of the object that it depends on.
        kind: a `DependencyKind`.
    """

    dependent: str
    referenced: str
    kind: str


def _split_label(label: str) -> Sequence[str]:
    """Return the kind in a label, and the name behind it."""
    for kind in _TWO_WORD_KINDS:
        if label.startswith(kind + " "):
            return kind, label[len(kind) + 1 :]
    kind = label.partition(" ")[0]
    return kind, label[len(kind) + 1 :]
