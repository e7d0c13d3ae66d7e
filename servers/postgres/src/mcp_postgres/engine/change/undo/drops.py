"""Statements that drop what a change created, in the names after it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from mcp_postgres.engine.change.database_object import DatabaseObject, DependencyKind, ObjectKind, has_kind
from mcp_postgres.engine.change.undo.grants import revoke_statements
from mcp_postgres.engine.change.undo.object_order import find_owners, sort_by_dependency
from mcp_postgres.engine.change.undo.schema_change import SchemaChange, without_grants
from mcp_postgres.engine.change.undo.sql_comments import remark

__all__ = ["DropStatements", "drop_new", "is_inherited_constraint"]

_PLAIN_KINDS = (
    "table", "foreign table", "view", "materialized view", "sequence", "index", "type", "statistics", "collation",
    "schema", "extension", "role", "operator", "cast",
)  # fmt: skip
_FORMS = {
    "column": "ALTER TABLE {parent} DROP COLUMN {name};",
    "attribute": "ALTER TYPE {parent} DROP ATTRIBUTE {name} CASCADE;",
    "constraint": "ALTER TABLE {parent} DROP CONSTRAINT {name};",
    "domain constraint": "ALTER DOMAIN {parent} DROP CONSTRAINT {name};",
    "trigger": "DROP TRIGGER {name} ON {parent};",
    "policy": "DROP POLICY {name} ON {parent};",
    "rule": "DROP RULE {name} ON {parent};",
    "function": "DROP ROUTINE {qualified_name};",
    "partitioned table": "DROP TABLE {qualified_name};",
    **{kind: f"DROP {kind.upper()} {{qualified_name}};" for kind in _PLAIN_KINDS},
}


@dataclass
class DropStatements:
    """Statements that drop what is new.

    Attributes:
        first: those that can run before anything is restored.
        remarks: what no statement drops.
        last: those that can run only behind everything else.
    """

    first: list[str] = field(default_factory=list[str])
    remarks: list[str] = field(default_factory=list[str])
    last: list[str] = field(default_factory=list[str])


def drop_new(change: SchemaChange, remade: Collection[str]) -> DropStatements:
    """Return what drops what is new.

    Args:
        change: what was seen of the change.
        remade: old objects that are dropped too, to be created again.
    """
    return _DropPlan(change, remade).statements()


def is_inherited_constraint(
    constraint: DatabaseObject, objects: dict[str, DatabaseObject], keys: Iterable[str]
) -> bool:
    """Return whether a constraint is inherited from another one of `keys`."""
    table = objects.get(constraint.parent)
    if table is None or not constraint.is_inherited:
        return False
    return any(
        has_kind(key, ObjectKind.CONSTRAINT)
        and objects[key].name == constraint.name
        and objects[key].parent in table.parent_tables
        for key in keys
    )


class _DropPlan:
    """What is new, and what of it goes along with something else.

    Attributes:
        new: the keys of what is new.
        owner_of: what is dropped with something else, and with what.
        dropped: what has a statement of its own.
    """

    def __init__(self, change: SchemaChange, remade: Collection[str]) -> None:
        self.change = change
        self.remade = remade
        self.new = {*change.new}
        self.owner_of = self._find_owners()
        self.dropped = [key for key in without_grants(change.new) if key not in self.owner_of]
        self.dropped += remade

    def statements(self) -> DropStatements:
        statements = DropStatements()
        for key in self.change.changed:
            statements.first += self._detach_from_parents(key)
        self._drop_comments(statements)
        statements.first += revoke_statements(self._find_new_grants())
        last_keys = self._find_last()
        pairs = [(self._owner(edge.referenced), self._owner(edge.dependent)) for edge in self.change.depends]
        for keys in sort_by_dependency(self.dropped, pairs):
            is_last = any(key in last_keys for key in keys)
            target = statements.last if is_last else statements.first
            target += self._drop_together(keys)
        return statements

    def _find_owners(self) -> dict[str, str]:
        changed = {*self.change.changed}
        edges = [
            edge
            for edge in self.change.depends
            if edge.referenced in self.new or (edge.referenced in changed and edge.kind == DependencyKind.INTERNAL)
        ]
        return find_owners(self.new, edges, self.change.now)

    def _owner(self, key: str) -> str:
        return self.owner_of.get(key, key)

    def _find_last(self) -> set[str]:
        """Return what old objects need until they are what they were, and what that needs."""
        now = self.change.now
        # A new schema is left first by what was moved into it.
        moved = {key for key in self.change.renamed if now[key].parent in self.new}
        waiting = {*self.change.changed, *moved}.difference(self.remade)
        dropped = {*self.dropped}
        last = {
            self._owner(edge.referenced)
            for edge in self.change.depends
            if edge.referenced in self.new and edge.dependent in waiting
        }
        last &= dropped
        while True:
            more = {self._owner(edge.referenced) for edge in self.change.depends if self._owner(edge.dependent) in last}
            more = (more & dropped) - last
            if not more:
                return last
            last |= more

    def _is_dropped_with_parent(self, item: DatabaseObject) -> bool:
        return item.parent in self.new or item.parent in self.remade

    def _find_new_grants(self) -> list[DatabaseObject]:
        now = self.change.now
        grants = [now[key] for key in self.change.new if has_kind(key, ObjectKind.GRANT)]
        return [grant for grant in grants if not self._is_dropped_with_parent(grant)]

    def _drop_comments(self, statements: DropStatements) -> None:
        now = self.change.now
        for key in self.change.new:
            comment = now[key]
            if not comment.has_kind(ObjectKind.COMMENT) or self._is_dropped_with_parent(comment):
                continue
            commented = now.get(comment.parent)
            if commented is None or not commented.label:
                statements.remarks.append(remark(f"not undone: {comment.label}, new"))
            else:
                statements.first.append(f"COMMENT ON {commented.sql_kind} {commented.qualified_name} IS NULL;")

    def _detach_from_parents(self, key: str) -> list[str]:
        """Return what takes a table from those that are new among its parents."""
        table = self.change.now[key]
        old_parents = self.change.was[key].parent_tables
        lines: list[str] = []
        for parent_key in table.parent_tables:
            if parent_key in old_parents:
                continue
            parent = self.change.now[parent_key].qualified_name
            if table.is_partition:
                lines.append(f"ALTER TABLE {parent} DETACH PARTITION {table.qualified_name};")
            else:
                lines.append(f"ALTER TABLE {table.qualified_name} NO INHERIT {parent};")
        return lines

    def _drop_together(self, keys: Sequence[str]) -> list[str]:
        """Return what drops objects that need each other: tables by one statement."""
        items = [self.change.now[key] for key in keys]
        lines = [self._drop(item) for item in items]
        if len(keys) > 1 and all(line.startswith("DROP TABLE ") for line in lines):
            return [f"DROP TABLE {', '.join(item.qualified_name for item in items)};"]
        return [line for line in lines if line]

    def _drop(self, item: DatabaseObject) -> str:
        """Return what drops an object; nothing for what goes by itself."""
        if item.label is None or self._is_inherited(item):
            return ""
        form = _FORMS.get(self._kind(item))
        if form is None:
            return remark(f"not undone: {item.label}, new")
        parent = self.change.now.get(item.parent)
        parent_name = parent.qualified_name if parent is not None else ""
        return form.format(name=item.name, qualified_name=item.qualified_name, parent=parent_name)

    def _is_inherited(self, item: DatabaseObject) -> bool:
        if item.has_kind(ObjectKind.COLUMN):
            return item.is_inherited
        return item.has_kind(ObjectKind.CONSTRAINT) and is_inherited_constraint(item, self.change.now, self.new)

    def _kind(self, item: DatabaseObject) -> str:
        """Return the kind of an object as `_FORMS` calls it."""
        parent = self.change.now.get(item.parent)
        if item.kind == "column" and parent is not None and parent.kind == "type":
            return "attribute"
        if item.kind == "constraint" and has_kind(item.parent, ObjectKind.TYPE):
            return "domain constraint"
        return item.kind
