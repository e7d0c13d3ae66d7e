"""Which definition of an object is asked for: all of what is gone, and the parts of the state that changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcp_postgres.engine.change.database_object import (
    ColumnState,
    DatabaseObject,
    ObjectKind,
    RelationState,
    RuleState,
    StatisticsState,
    TriggerState,
)

__all__ = ["DefinitionRequest", "changed_parts", "request_changed", "request_dropped"]

# What CREATE gives a relation where it says nothing else.
_PLAIN_RELATION = {
    RelationState.OPTIONS: "",
    RelationState.ROW_SECURITY: "false",
    RelationState.FORCED_ROW_SECURITY: "false",
    RelationState.REPLICA_IDENTITY: "d",
}
# An enabled trigger or rule, which CREATE makes.
_ENABLED = "O"


@dataclass(frozen=True)
class DefinitionRequest:
    """What is to be made again, or made what it was.

    Attributes:
        parts: those of its state that are others now; of what is gone, those that no CREATE says.
        options: names of those that it has now and had not.
        parents: the keys of those that it has now.
        flags: of an index as it is now; of a column `d` if it has a default now, and `i` if it is an identity.
    """

    key: str
    is_gone: bool
    parts: Sequence[int]
    options: str = ""
    parents: str = ""
    flags: str = ""

    def row(self) -> dict[str, object]:
        """Return the request as a row for the query that answers it."""
        oid, _, sub = self.key[1:].partition(".")
        return {**vars(self), "kind": self.key[0], "oid": int(oid), "sub": int(sub or 0)}


def request_dropped(item: DatabaseObject) -> DefinitionRequest:
    """Return the request for all that makes an object again."""
    return DefinitionRequest(item.key, is_gone=True, parts=_parts_beyond_create(item), flags="false false true")


def _parts_beyond_create(item: DatabaseObject) -> list[int]:
    """Return the parts of the state that no CREATE says."""
    state = item.state
    match item.key[0]:
        case ObjectKind.RELATION:
            return _relation_parts_beyond_create(state)
        case ObjectKind.COLUMN:
            optional = (ColumnState.STATISTICS, ColumnState.COMPRESSION, ColumnState.OPTIONS)
            return [ColumnState.STORAGE, *(part for part in optional if state[part])]
        case ObjectKind.TRIGGER if state[TriggerState.ENABLED] == _ENABLED:
            return []
        case ObjectKind.RULE if state[RuleState.ENABLED] == _ENABLED:
            return []
        case ObjectKind.STATISTICS if not state[StatisticsState.TARGET]:
            return []
        case ObjectKind.TRIGGER | ObjectKind.RULE | ObjectKind.STATISTICS:
            return [0]
        case _:
            return [1]


def _relation_parts_beyond_create(state: Sequence[str | None]) -> list[int]:
    parts: list[int] = [RelationState.OWNER]
    parts += [part for part, plain in _PLAIN_RELATION.items() if state[part] != plain]
    if RelationState.OPTIONS in parts and not state[RelationState.OPTIONS]:
        parts.remove(RelationState.OPTIONS)
    return [*parts, RelationState.INDEX_FLAGS, RelationState.SEQUENCE]


def request_changed(was: DatabaseObject, now: DatabaseObject) -> DefinitionRequest:
    """Return the request for what makes an object what it was."""
    parts = changed_parts(was, now)
    match was.key[0]:
        case ObjectKind.RELATION:
            return DefinitionRequest(
                was.key,
                is_gone=False,
                parts=parts,
                options=_new_options(now.state[RelationState.OPTIONS], was.state[RelationState.OPTIONS]),
                parents=now.state[RelationState.PARENTS] or "",
                flags=now.state[RelationState.INDEX_FLAGS] or "",
            )
        case ObjectKind.COLUMN:
            return DefinitionRequest(
                was.key,
                is_gone=False,
                parts=parts,
                options=_new_options(now.state[ColumnState.OPTIONS], was.state[ColumnState.OPTIONS]),
                flags=_column_flags(now),
            )
        case _:
            return DefinitionRequest(was.key, is_gone=False, parts=parts)


def _column_flags(column: DatabaseObject) -> str:
    has_default = bool(column.state[ColumnState.DEFAULT]) and column.state[ColumnState.GENERATED] == ""
    default_flag = "d" if has_default else "-"
    identity_flag = "i" if column.state[ColumnState.IDENTITY] else ""
    return f"{default_flag} {identity_flag}"


def changed_parts(was: DatabaseObject, now: DatabaseObject) -> list[int]:
    """Return the parts of the state that are others."""
    return [part for part, value in enumerate(was.state) if now.state[part] != value]


def _new_options(now: str | None, was: str | None) -> str:
    """Return the names of options that were not there."""
    return ", ".join(sorted(_option_names(now) - _option_names(was)))


def _option_names(options: str | None) -> set[str]:
    return {item.partition("=")[0] for item in (options or "").split(", ") if item}
