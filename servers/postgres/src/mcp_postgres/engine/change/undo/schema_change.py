"""A change of the schema as it was seen while it was there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mcp_postgres.engine.change.database_object import Dependency, ObjectKind, ObjectsByKey, has_kind

__all__ = ["LATE_RANK", "RankedLine", "SchemaChange", "without_grants"]

# A statement, behind those of lower ranks for the same object.
RankedLine = tuple[int, str]
# The rank of what is told when everything else is there.
LATE_RANK = 9


@dataclass
class SchemaChange:
    """What was seen of a change while it was there.

    Attributes:
        was: all objects as they were.
        now: all objects as they would be.
        depends: how those that the change is about depend on each other then.
        recreated: statements for what is new under a name that something else had.
    """

    was: ObjectsByKey
    now: ObjectsByKey
    depends: Sequence[Dependency] = ()
    recreated: dict[str, list[RankedLine]] = field(default_factory=dict[str, list[RankedLine]])

    @property
    def new(self) -> list[str]:
        return [key for key in self.now if key not in self.was]

    @property
    def dropped(self) -> list[str]:
        return [key for key in self.was if key not in self.now]

    @property
    def changed(self) -> list[str]:
        return [key for key in self.was if key in self.now and self.now[key].state != self.was[key].state]

    @property
    def renamed(self) -> list[str]:
        return [key for key in self.was if key in self.now and self.now[key].label != self.was[key].label]


def without_grants(keys: Iterable[str]) -> list[str]:
    """Return the keys but for those of grants and comments, which come with what they are on."""
    return [key for key in keys if not has_kind(key, ObjectKind.GRANT, ObjectKind.COMMENT)]
