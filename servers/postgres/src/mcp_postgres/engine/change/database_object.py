"""The objects of a database with identities that survive renames, and the state of each that a change can alter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import NamedTuple

__all__ = [
    "ColumnState",
    "ConstraintState",
    "DatabaseObject",
    "Dependency",
    "DependencyKind",
    "GrantState",
    "ObjectKind",
    "ObjectsByKey",
    "RelationState",
    "RuleState",
    "StatisticsState",
    "TriggerState",
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


class RelationState(IntEnum):
    """What the parts of a relation's state are, by their places."""

    OWNER = 0
    PERSISTENCE = 1
    OPTIONS = 2
    ROW_SECURITY = 3
    FORCED_ROW_SECURITY = 4
    REPLICA_IDENTITY = 5
    PARENTS = 6
    PARTITION_BOUND = 7
    INDEX_FLAGS = 8
    SEQUENCE = 9
    VIEW_VERSION = 10
    MISSING_OWNER_RIGHTS = 11


class ColumnState(IntEnum):
    """What the parts of a column's state are, by their places."""

    TYPE = 0
    NOT_NULL = 1
    DEFAULT = 2
    IDENTITY = 3
    GENERATED = 4
    STORAGE = 5
    STATISTICS = 6
    COMPRESSION = 7
    OPTIONS = 8
    INHERITED = 9


class ConstraintState(IntEnum):
    """What the parts of a constraint's state are, by their places."""

    CHECKED = 0
    INHERITED = 1
    ENABLED_TRIGGERS = 2


class TriggerState(IntEnum):
    """What the parts of a trigger's state are, by their places."""

    ENABLED = 0
    DEFINITION = 1
    INHERITED = 2


class RuleState(IntEnum):
    """What the parts of a rule's state are, by their places."""

    ENABLED = 0
    DEFINITION = 1


class StatisticsState(IntEnum):
    """What the parts of the state of extended statistics are, by their places."""

    TARGET = 0
    OWNER = 1


class GrantState(IntEnum):
    """What the parts of a grant's state are, by their places."""

    GRANT_OPTION = 0
    GRANTOR = 1


_INHERITED_STATES: dict[str, IntEnum] = {
    ObjectKind.COLUMN: ColumnState.INHERITED,
    ObjectKind.CONSTRAINT: ConstraintState.INHERITED,
    ObjectKind.TRIGGER: TriggerState.INHERITED,
}
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
    def is_inherited(self) -> bool:
        """Whether a column, constraint or trigger comes from a parent of its table."""
        place = _INHERITED_STATES.get(self.key[0])
        return place is not None and self.state[place] == "true"

    @property
    def parent_tables(self) -> list[str]:
        """The keys of the tables that a relation inherits from, or is a partition of."""
        if not self.has_kind(ObjectKind.RELATION):
            return []
        return (self.state[RelationState.PARENTS] or "").split()

    @property
    def is_partition(self) -> bool:
        return self.has_kind(ObjectKind.RELATION) and self.state[RelationState.PARTITION_BOUND] is not None


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
