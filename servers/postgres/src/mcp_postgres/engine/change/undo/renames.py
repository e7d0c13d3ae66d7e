"""Statements that give renamed objects their old names, using current names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from mcp_batteries.sql.language.rename_order import order_rename_undo
from mcp_postgres.engine.change.database_object import (
    DatabaseObject,
    Dependency,
    DependencyKind,
    ObjectKind,
    ObjectsByKey,
    has_kind,
)

__all__ = ["rename_statements"]

_KINDS_IN_SCHEMAS = (
    ObjectKind.RELATION,
    ObjectKind.FUNCTION,
    ObjectKind.TYPE,
    ObjectKind.STATISTICS,
    ObjectKind.COLLATION,
)
# How the parts of tables and types are renamed.
_PART_FORMS: dict[str, str] = {
    ObjectKind.COLUMN: "ALTER {kind} {parent} RENAME COLUMN {now} TO {was};",
    ObjectKind.CONSTRAINT: "ALTER {kind} {parent} RENAME CONSTRAINT {now} TO {was};",
    ObjectKind.TRIGGER: "ALTER TRIGGER {now} ON {parent} RENAME TO {was};",
    ObjectKind.POLICY: "ALTER POLICY {now} ON {parent} RENAME TO {was};",
    ObjectKind.RULE: "ALTER RULE {now} ON {parent} RENAME TO {was};",
    ObjectKind.ENUM_LABEL: "ALTER TYPE {parent} RENAME VALUE {now} TO {was};",
}
_ATTRIBUTE_FORM = "ALTER TYPE {parent} RENAME ATTRIBUTE {now} TO {was} CASCADE;"
_PARTITION_KINDS = (DependencyKind.PARTITION_PRIMARY, DependencyKind.PARTITION_SECONDARY)


def rename_statements(
    was: ObjectsByKey, now: ObjectsByKey, keys: Iterable[str], depends: Sequence[Dependency]
) -> list[str]:
    """Return the statements for objects whose names are others now, or lie in something that has another one.

    Args:
        depends: how they depend on each other now.
    """
    followers = _find_followers(depends)
    renamed = [key for key in keys if key not in followers]
    parts = [key for key in was if key in now and key not in followers and _is_renamed_part(was[key], now[key])]
    lines = _rename_parts(was, now, parts)
    owned_sequences = _find_owned_sequences(depends)
    lines += _SchemaRenames(was, now, owned_sequences).statements(
        [key for key in renamed if has_kind(key, *_KINDS_IN_SCHEMAS)]
    )
    for key in renamed:
        if has_kind(key, ObjectKind.SCHEMA):
            lines.append(f"ALTER SCHEMA {now[key].name} RENAME TO {was[key].name};")
        elif has_kind(key, ObjectKind.ROLE):
            lines.append(f"ALTER ROLE {now[key].name} RENAME TO {was[key].name};")
    return lines


def _find_followers(depends: Iterable[Dependency]) -> set[str]:
    """Return what takes its name from something else: parts of partitions, and indexes of constraints."""
    followers: set[str] = set()
    for edge in depends:
        is_of_constraint = edge.kind == DependencyKind.INTERNAL and has_kind(edge.referenced, ObjectKind.CONSTRAINT)
        if edge.kind in _PARTITION_KINDS or is_of_constraint:
            followers.add(edge.dependent)
    return followers


def _find_owned_sequences(depends: Iterable[Dependency]) -> set[str]:
    """Return the sequences of columns, which move with their tables."""
    return {
        edge.dependent
        for edge in depends
        if edge.kind in (DependencyKind.AUTO, DependencyKind.INTERNAL)
        and has_kind(edge.referenced, ObjectKind.COLUMN)
        and has_kind(edge.dependent, ObjectKind.RELATION)
    }


def _is_renamed_part(was: DatabaseObject, now: DatabaseObject) -> bool:
    return was.key[0] in _PART_FORMS and was.name != now.name and not now.is_inherited


def _rename_parts(was: ObjectsByKey, now: ObjectsByKey, keys: Sequence[str]) -> list[str]:
    """Return the statements for parts of tables and types."""
    names_by_group: dict[tuple[str, str], dict[str, str]] = {}
    for key in keys:
        names_by_group.setdefault((now[key].parent, key[0]), {})[was[key].name] = now[key].name
    lines: list[str] = []
    for (parent_key, kind), names in names_by_group.items():
        parent = now.get(parent_key)
        if parent is None:
            continue
        form = _part_form(kind, parent)
        parent_kind = _kind_of_parent(kind, parent)
        for current, old in order_rename_undo(names, lambda _, number: f"mcp_back_{number}"):
            lines.append(form.format(kind=parent_kind, parent=parent.qualified_name, now=current, was=old))
    return lines


def _part_form(kind: str, parent: DatabaseObject) -> str:
    if kind == ObjectKind.COLUMN and parent.sql_kind == "TYPE":
        return _ATTRIBUTE_FORM
    return _PART_FORMS[kind]


def _kind_of_parent(kind: str, parent: DatabaseObject) -> str:
    """Return what ALTER calls the parent: only domains are types with constraints."""
    if kind == ObjectKind.CONSTRAINT and parent.has_kind(ObjectKind.TYPE):
        return "DOMAIN"
    return parent.sql_kind


@dataclass(frozen=True)
class _RelationName:
    """A schema, and a name in it, both as SQL spells them."""

    schema: str
    name: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


class _SchemaRenames:
    """Statements for what lies in schemas, which still have their names of now.

    Attributes:
        owned_sequences: the keys of sequences that move with their tables.
    """

    def __init__(self, was: ObjectsByKey, now: ObjectsByKey, owned_sequences: Collection[str]) -> None:
        self.was = was
        self.now = now
        self.owned_sequences = owned_sequences

    def statements(self, keys: Iterable[str]) -> list[str]:
        """Return the statements; relations come last, because they may have exchanged names."""
        lines: list[str] = []
        relations: list[str] = []
        for key in keys:
            if has_kind(key, ObjectKind.RELATION):
                relations.append(key)
            else:
                lines += self._rename_alone(key)
        return lines + self._rename_relations(relations)

    def _rename_alone(self, key: str) -> list[str]:
        """Return the statements for an object whose name nothing else can have."""
        old = self.was[key]
        current = self.now[key]
        current_schema = self._current_schema(key)
        signature = current.qualified_name.removeprefix(f"{current_schema}.")[len(current.name) :]
        name = current.qualified_name
        lines: list[str] = []
        if self._is_moved(key):
            schema = self._old_schema(key)
            lines.append(f"ALTER {current.sql_kind} {name} SET SCHEMA {schema};")
            name = f"{schema}.{current.name}{signature}"
        if old.name != current.name:
            lines.append(f"ALTER {current.sql_kind} {name} RENAME TO {old.name};")
        return lines

    def _rename_relations(self, keys: Iterable[str]) -> list[str]:
        """Return the statements for relations, some of which step aside by names of ours."""
        current_names: dict[str, str] = {}
        names: dict[str, _RelationName] = {}
        relations: dict[str, DatabaseObject] = {}
        for key in keys:
            current = self.now[key]
            target = _RelationName(self._target_schema(key), self.was[key].name)
            if str(target) == current.qualified_name:
                continue
            current_names[str(target)] = current.qualified_name
            names[str(target)] = target
            names[current.qualified_name] = _RelationName(self._current_schema(key), current.name)
            relations[str(target)] = current
        spares: dict[str, DatabaseObject] = {}

        def step_aside(target: str, number: int) -> str:
            spare = _RelationName(names[current_names[target]].schema, f"mcp_back_{number}")
            spares[str(spare)] = relations[target]
            names[str(spare)] = spare
            return str(spare)

        relation_by_name = {relation.qualified_name: relation for relation in relations.values()}
        lines: list[str] = []
        for current_name, target in order_rename_undo(current_names, step_aside):
            relation = spares.get(current_name) or relation_by_name[current_name]
            lines += _rename_relation(relation.sql_kind, current_name, names[current_name], names[target])
        return lines

    def _current_schema(self, key: str) -> str:
        return self.now[self.now[key].parent].name

    def _old_schema(self, key: str) -> str:
        """Return the name that the schema in which an object was has now; of a dropped one, its old name."""
        parent = self.was[key].parent
        objects = self.now if parent in self.now else self.was
        return objects[parent].name

    def _is_moved(self, key: str) -> bool:
        """Return whether an object itself is in another schema, and not with its table."""
        current = self.now[key]
        has_other_schema = current.parent != self.was[key].parent
        return has_other_schema and current.kind != "index" and key not in self.owned_sequences

    def _target_schema(self, key: str) -> str:
        if self._is_moved(key):
            return self._old_schema(key)
        return self._current_schema(key)


def _rename_relation(sql_kind: str, spelled_name: str, current: _RelationName, target: _RelationName) -> list[str]:
    lines: list[str] = []
    if current.name != target.name:
        lines.append(f"ALTER {sql_kind} {spelled_name} RENAME TO {target.name};")
    if current.schema != target.schema:
        lines.append(f"ALTER {sql_kind} {current.schema}.{target.name} SET SCHEMA {target.schema};")
    return lines
