"""Statements that create again what a change dropped, and make what it changed what it was; in the names before it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mcp_postgres.engine.change.database_object import (
    ColumnState,
    DatabaseObject,
    Dependency,
    DependencyKind,
    ObjectKind,
    RelationState,
    has_kind,
)
from mcp_postgres.engine.change.undo.definition_requests import (
    DefinitionRequest,
    changed_parts,
    request_changed,
    request_dropped,
)
from mcp_postgres.engine.change.undo.drops import is_inherited_constraint
from mcp_postgres.engine.change.undo.grants import grant_identity, grant_option_statement, grant_statements
from mcp_postgres.engine.change.undo.object_order import find_owners, sort_by_dependency
from mcp_postgres.engine.change.undo.schema_change import LATE_RANK, RankedLine, SchemaChange, without_grants
from mcp_postgres.engine.change.undo.sql_comments import remark

__all__ = ["RestorePlan"]

_WAITS_FOR_VALUES = "when the values are back: "
# The rank of a definition that is not part of CREATE TABLE, from which those of its columns are told too.
_FIRST_RANK_BEYOND_CREATE = 4
# Parts of the state for which there are statements.
_RESTORABLE_PARTS: dict[str, tuple[int, ...]] = {
    ObjectKind.RELATION: (0, 1, 2, 3, 4, 5, 6, 8, 9, 10),
    ObjectKind.COLUMN: (0, 1, 2, 3, 5, 6, 7, 8, 9),
    ObjectKind.CONSTRAINT: (0, 2),
    ObjectKind.FUNCTION: (0, 1),
    ObjectKind.TRIGGER: (0, 1),
    ObjectKind.POLICY: (0,),
    ObjectKind.RULE: (0, 1),
    ObjectKind.STATISTICS: (0, 1),
    ObjectKind.TYPE: (0, 1, 2),
    ObjectKind.SCHEMA: (0,),
}
# Kinds that PUBLIC has a right on unless it is revoked, and what that right is.
_PUBLIC_RIGHTS: dict[str, str] = {ObjectKind.FUNCTION: "EXECUTE", ObjectKind.TYPE: "USAGE"}
_PUBLIC_TARGETS: dict[str, str] = {ObjectKind.FUNCTION: "EXECUTE ON ROUTINE", ObjectKind.TYPE: "USAGE ON TYPE"}
_EXTENSION_OR_PARTITION = (
    DependencyKind.EXTENSION,
    DependencyKind.PARTITION_PRIMARY,
    DependencyKind.PARTITION_SECONDARY,
)


@dataclass
class _Restores:
    """Statements in the order in which they can run.

    Attributes:
        lines: those that restore objects.
        late: those that need all of the objects, and remarks.
    """

    lines: list[str] = field(default_factory=list[str])
    late: list[str] = field(default_factory=list[str])

    def add(self, statements: Iterable[RankedLine]) -> None:
        for rank, line in statements:
            if rank < LATE_RANK:
                self.lines.append(line)
            else:
                self.late.append(line)


class RestorePlan:
    """What is restored, what of it comes with something else, and what can't be before its values are back.

    Args:
        change: what was seen of the change.
        remade: old objects that were dropped to be created again.
        dependencies: how what is gone or changed depends on each other, where the change is not there any more.

    Attributes:
        dropped: the keys of what is created again.
        changed: the keys of what is there, but in another form.
        keys: both, without grants and comments.
        owner_of: what is created with something else, and with what.
        pairs: what waits for what, by their owners.
        waiting: constraints, and what needs them, that hold only when lost values are back.
    """

    def __init__(self, change: SchemaChange, remade: Collection[str], dependencies: Sequence[Dependency]) -> None:
        self.change = change
        self.remade = remade
        self.dependencies = dependencies
        self.dropped = {*change.dropped, *remade}
        self.changed = {*change.changed}.difference(remade)
        self.keys = without_grants((*self.dropped, *self.changed))
        self.owner_of = self._find_owners()
        self.pairs = self._pair_owners()
        self.waiting = self._find_waiting()

    def requests(self) -> list[DefinitionRequest]:
        """Return the requests for the definitions of what is restored."""
        was = self.change.was
        now = self.change.now
        numbered = [key for key in self.keys if _has_number(key)]
        requests = [request_dropped(was[key]) for key in numbered if key in self.dropped]
        requests += [request_changed(was[key], now[key]) for key in numbered if key in self.changed]
        return [request for request in requests if not self._comes_by_inheritance(request.key)]

    def statements(self, definitions: Mapping[str, Sequence[RankedLine]]) -> list[str]:
        """Return the statements by these definitions."""
        restores = _Restores()
        own_keys = [key for key in self.keys if key not in self.owner_of]
        for keys in sort_by_dependency(own_keys, self.pairs):
            for key in keys:
                self._restore_object(key, definitions, restores)
        self._restore_grants_and_comments(restores)
        return restores.lines + restores.late

    def _find_owners(self) -> dict[str, str]:
        was = self.change.was
        edges = [edge for edge in self.dependencies if self._is_owning(edge)]
        owner_of = find_owners(self.dropped, edges, was)
        for key in self.dropped:
            if has_kind(key, ObjectKind.COLUMN) and was[key].parent in self.dropped:
                owner_of[key] = was[key].parent
        return owner_of

    def _is_owning(self, edge: Dependency) -> bool:
        if edge.kind == DependencyKind.INTERNAL:
            return self._is_restored(edge.referenced)
        return edge.kind in _EXTENSION_OR_PARTITION

    def _is_restored(self, key: str) -> bool:
        return key in self.dropped or key in self.changed

    def _owner(self, key: str) -> str:
        return self.owner_of.get(key, key)

    def _pair_owners(self) -> list[tuple[str, str]]:
        """Return what waits for what: a sequence does not wait for the column that owns it."""
        was = self.change.was
        pairs: list[tuple[str, str]] = []
        for edge in self.dependencies:
            is_sequence = edge.dependent in was and was[edge.dependent].kind == "sequence"
            if edge.kind != DependencyKind.AUTO or not is_sequence:
                pairs.append((self._owner(edge.dependent), self._owner(edge.referenced)))
        return pairs

    def _find_waiting(self) -> set[str]:
        lost_tables = self._find_tables_with_lost_values()
        waiting: set[str] = set()
        for dependent, referenced in self.pairs:
            if not has_kind(dependent, ObjectKind.CONSTRAINT) or not self._is_restored(dependent):
                continue
            if self._table_of(referenced) in lost_tables:
                waiting.add(dependent)
        return waiting | {dependent for dependent, referenced in self.pairs if referenced in waiting}

    def _find_tables_with_lost_values(self) -> set[str]:
        """Return tables that come back empty, and those with a column that does."""
        was = self.change.was
        tables: set[str] = set()
        for key in self.dropped:
            if was[key].kind == "table":
                tables.add(key)
            elif has_kind(key, ObjectKind.COLUMN) and was[key].parent not in self.dropped:
                tables.add(was[key].parent)
        return tables

    def _table_of(self, key: str) -> str:
        """Return the key of the table, if it is that of a column of one."""
        return self._owner(key).partition(".")[0].replace(ObjectKind.COLUMN, ObjectKind.RELATION)

    def _comes_by_inheritance(self, key: str) -> bool:
        """Return whether a dropped constraint comes back with its table, or with that of a parent."""
        if key not in self.dropped or not has_kind(key, ObjectKind.CONSTRAINT):
            return False
        constraint = self.change.was[key]
        if constraint.is_inherited and constraint.parent in self.dropped:
            return True
        return is_inherited_constraint(constraint, self.change.was, self.dropped)

    def _restore_object(self, key: str, definitions: Mapping[str, Sequence[RankedLine]], restores: _Restores) -> None:
        """Add the statements for an object, and for its columns what CREATE does not say."""
        statements = [*definitions.get(key, ())]
        if has_kind(key, ObjectKind.SCHEMA):
            # Schemas are there already.
            statements = [(rank, line) for rank, line in statements if rank > 1]
        statements += self._column_statements(key, definitions)
        if key in self.waiting:
            restores.late += [remark(_WAITS_FOR_VALUES + line) for _, line in statements]
            return
        restores.add(statements)
        restores.late += self._remark_on_rest(key, has_definition=key in definitions)

    def _column_statements(self, table: str, definitions: Mapping[str, Sequence[RankedLine]]) -> list[RankedLine]:
        statements: list[RankedLine] = []
        for key, owner in self.owner_of.items():
            if owner != table or not has_kind(key, ObjectKind.COLUMN):
                continue
            for rank, line in definitions.get(key, ()):
                if rank >= _FIRST_RANK_BEYOND_CREATE:
                    statements.append((rank, line))
        return statements

    def _restore_grants_and_comments(self, restores: _Restores) -> None:
        revoked = self._find_revoked_by_new_grants()
        grants: list[DatabaseObject] = []
        for key, item in self.change.was.items():
            is_back = key in self.dropped or item.parent in self.remade
            match item.key[0]:
                # What takes a right on a table takes it on each of its columns.
                case ObjectKind.GRANT if is_back or (_is_column_grant(key) and grant_identity(item) in revoked):
                    grants.append(item)
                case ObjectKind.GRANT if key in self.changed:
                    restores.lines.append(grant_option_statement(item))
                case ObjectKind.COMMENT if is_back or key in self.changed:
                    restores.late.append(self._restore_comment(item))
                case ObjectKind.FUNCTION | ObjectKind.TYPE if self._lost_public_right(key):
                    restores.lines.append(_revoke_from_public(item))
                case _:
                    pass
        restores.lines += grant_statements(grants)

    def _find_revoked_by_new_grants(self) -> set[tuple[str, ...]]:
        """Return what goes when the new grants on tables are revoked."""
        new_grants = [self.change.now[key] for key in self.change.new if _is_table_grant(key)]
        return {grant_identity(grant) for grant in new_grants}

    def _lost_public_right(self, key: str) -> bool:
        """Return whether PUBLIC had no right on an object, which gives it one when it is created."""
        return key in self.dropped and f"{ObjectKind.GRANT}{key}/{_PUBLIC_RIGHTS[key[0]]}/0" not in self.change.was

    def _restore_comment(self, comment: DatabaseObject) -> str:
        line = self._comment_statement(comment)
        if comment.parent in self.waiting:
            return remark(_WAITS_FOR_VALUES + line)
        return line

    def _comment_statement(self, comment: DatabaseObject) -> str:
        commented = self.change.was.get(comment.parent)
        if commented is None or not commented.label:
            fate = "changed" if comment.key in self.change.now else "dropped"
            return remark(f"not undone: {comment.label}, {fate}")
        text = (comment.state[0] or "").replace("'", "''")
        return f"COMMENT ON {commented.sql_kind} {commented.qualified_name} IS '{text}';"

    def _remark_on_rest(self, key: str, *, has_definition: bool) -> list[str]:
        """Return a remark for what no statement brings back."""
        item = self.change.was[key]
        if item.label is None:
            return []
        if key in self.change.now and key not in self.remade:
            if self._is_change_undone(key, has_definition=has_definition):
                return []
            return [remark(f"not undone: {item.label}, changed")]
        comes_along = item.has_kind(ObjectKind.COLUMN, ObjectKind.CONSTRAINT) and item.is_inherited
        if has_definition or comes_along:
            return []
        return [remark(f"not undone: {item.label}, dropped")]

    def _is_change_undone(self, key: str, *, has_definition: bool) -> bool:
        """Return whether statements bring back all parts that changed, or others' do."""
        item = self.change.was[key]
        parts = {*changed_parts(item, self.change.now[key])}
        if has_definition and parts.issubset(_RESTORABLE_PARTS.get(key[0], ())):
            return True
        match key[0]:
            case ObjectKind.RELATION if item.kind.endswith("table"):
                return parts <= {RelationState.PARENTS, RelationState.PARTITION_BOUND}
            case ObjectKind.RELATION:
                return parts <= {RelationState.PERSISTENCE}
            case ObjectKind.COLUMN if item.is_inherited:
                return ColumnState.INHERITED not in parts or self.change.was[item.parent].is_partition
            case _:
                return False


def _has_number(key: str) -> bool:
    return key[1:].replace(".", "").isdigit()


def _is_column_grant(key: str) -> bool:
    return key.startswith(ObjectKind.GRANT + ObjectKind.COLUMN)


def _is_table_grant(key: str) -> bool:
    return key.startswith(ObjectKind.GRANT + ObjectKind.RELATION)


def _revoke_from_public(item: DatabaseObject) -> str:
    return f"REVOKE {_PUBLIC_TARGETS[item.key[0]]} {item.qualified_name} FROM PUBLIC;"
