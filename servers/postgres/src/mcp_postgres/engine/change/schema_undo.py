"""The way back from a change of the schema, where it is certain: drop, rename back, revoke and grant.

What a change did to what was there before, and did not rename, no statement brings back for sure. A change that does
any of that has no way back here at all: half of one would look like a whole one.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from mcp_postgres.engine.change.database_object import (
    DatabaseObject,
    Dependency,
    DependencyKind,
    GrantState,
    Inheritance,
    ObjectKind,
    ObjectsByKey,
    has_kind,
)

__all__ = ["build_undo"]

_DROP_FORMS = {
    "column": "ALTER TABLE {parent} DROP COLUMN {name};",
    "constraint": "ALTER TABLE {parent} DROP CONSTRAINT {name};",
    "trigger": "DROP TRIGGER {name} ON {parent};",
    "policy": "DROP POLICY {name} ON {parent};",
    "rule": "DROP RULE {name} ON {parent};",
    "function": "DROP ROUTINE {qualified_name};",
    "partitioned table": "DROP TABLE {qualified_name};",
    **{
        kind: f"DROP {kind.upper()} {{qualified_name}};"
        for kind in (
            "table", "foreign table", "view", "materialized view", "sequence", "index", "type", "statistics",
            "collation", "schema", "extension", "role",
        )
    },
}  # fmt: skip
_RENAME_FORMS: dict[str, str] = {
    ObjectKind.COLUMN: "ALTER {parent_kind} {parent} RENAME COLUMN {now} TO {was};",
    ObjectKind.CONSTRAINT: "ALTER {parent_kind} {parent} RENAME CONSTRAINT {now} TO {was};",
    ObjectKind.TRIGGER: "ALTER TRIGGER {now} ON {parent} RENAME TO {was};",
    ObjectKind.POLICY: "ALTER POLICY {now} ON {parent} RENAME TO {was};",
    ObjectKind.RULE: "ALTER RULE {now} ON {parent} RENAME TO {was};",
    ObjectKind.ENUM_LABEL: "ALTER TYPE {parent} RENAME VALUE {now} TO {was};",
    ObjectKind.SCHEMA: "ALTER SCHEMA {now} RENAME TO {was};",
    ObjectKind.ROLE: "ALTER ROLE {now} RENAME TO {was};",
    # Of relations of all kinds.
    ObjectKind.RELATION: "ALTER TABLE {parent}.{now} RENAME TO {was};",
    ObjectKind.TYPE: "ALTER TYPE {parent}.{now} RENAME TO {was};",
    ObjectKind.STATISTICS: "ALTER STATISTICS {parent}.{now} RENAME TO {was};",
    ObjectKind.COLLATION: "ALTER COLLATION {parent}.{now} RENAME TO {was};",
    ObjectKind.FUNCTION: "ALTER ROUTINE {parent}.{now}{signature} RENAME TO {was};",
}
# What is renamed after what lies in it: names of the others hold theirs.
_RENAMED_LAST = (ObjectKind.RELATION, ObjectKind.TYPE, ObjectKind.SCHEMA, ObjectKind.ROLE)
# What goes when the object goes that it depends on so.
_CARRYING = tuple(kind for kind in DependencyKind if kind != DependencyKind.NORMAL)


class _UncertainError(Exception):
    """No statement is certain to lead back."""


def build_undo(was: ObjectsByKey, now: ObjectsByKey, depends: Sequence[Dependency]) -> list[str] | None:
    """Return statements that undo a change, in an order in which they run; None where that is not certain.

    Args:
        was: the objects that the change is about, as they were.
        now: the same as they are.
        depends: how the new ones depend on others, and others on them.
    """
    try:
        for key, item in was.items():
            _check_kept(item, now.get(key))
        return [
            *_revoke_statements(was, now),
            *_Drops(was, now, depends).statements(),
            *_rename_statements(was, now, depends),
            *_grant_statements(was, now),
        ]
    except (_UncertainError, CycleError):
        return None


def _check_kept(was: DatabaseObject, now: DatabaseObject | None) -> None:
    """Raise `_UncertainError` if an object is gone, or has another form or place; grants come back."""
    if was.has_kind(ObjectKind.GRANT) and now is None:
        return
    if now is None or now.state != was.state or now.parent != was.parent:
        raise _UncertainError


class _Drops:
    """What drops the new objects, by their names after the change.

    Attributes:
        new: the keys of the new objects, but for grants and comments, which go along.
    """

    def __init__(self, was: ObjectsByKey, now: ObjectsByKey, depends: Sequence[Dependency]) -> None:
        self.was = was
        self.now = now
        self.depends = depends
        new = [key for key in now if key not in was and not has_kind(key, ObjectKind.GRANT, ObjectKind.COMMENT)]
        self.new = dict.fromkeys(new)
        self.carriers = {edge.dependent: edge.referenced for edge in depends if self._is_carried(edge)}

    def statements(self) -> list[str]:
        self._check_dependents()
        dependents: dict[str, list[str]] = {self._dropped_with(key): [] for key in self.new}
        for edge in self.depends:
            if edge.dependent in self.new and edge.referenced in self.new:
                dependent = self._dropped_with(edge.dependent)
                referenced = self._dropped_with(edge.referenced)
                if dependent != referenced:
                    dependents[referenced].append(dependent)
        return [self._drop(self.now[key]) for key in TopologicalSorter(dependents).static_order()]

    def _check_dependents(self) -> None:
        """Raise `_UncertainError` if something new can't go without something old, or not without a trace."""
        if any(edge.referenced in self.new and edge.dependent in self.was for edge in self.depends):
            raise _UncertainError
        for key, item in self.now.items():
            if has_kind(key, ObjectKind.COMMENT) and key not in self.was and item.parent not in self.new:
                raise _UncertainError

    def _is_carried(self, edge: Dependency) -> bool:
        return edge.kind in _CARRYING and edge.dependent in self.new and edge.referenced in self.new

    def _dropped_with(self, key: str) -> str:
        """Return the new object whose drop takes this one along; itself where that is none."""
        item = self.now[key]
        if item.parent in self.new and not has_kind(item.parent, ObjectKind.SCHEMA):
            return self._dropped_with(item.parent)
        if item.inheritance == Inheritance.MERGED:
            raise _UncertainError
        if item.inheritance == Inheritance.INHERITED:
            return self._dropped_with(self._inherited_from(item))
        if key in self.carriers:
            return self._dropped_with(self.carriers[key])
        return key

    def _inherited_from(self, item: DatabaseObject) -> str:
        """Return the new column, constraint or trigger of a parent of the table from which this comes."""
        parents = self.now[item.parent].parent_tables if item.parent in self.now else []
        for key in self.new:
            other = self.now[key]
            if has_kind(key, ObjectKind(item.key[0])) and other.name == item.name and other.parent in parents:
                return key
        raise _UncertainError

    def _drop(self, item: DatabaseObject) -> str:
        form = _DROP_FORMS.get(item.kind)
        parent = self.now.get(item.parent)
        is_of_type = parent is not None and parent.sql_kind == "TYPE"
        # Comments on what all databases share, operators and the like have keys of their own.
        if form is None or is_of_type or item.key.startswith("z"):
            raise _UncertainError
        parent_name = parent.qualified_name if parent is not None else ""
        return form.format(name=item.name, qualified_name=item.qualified_name, parent=parent_name)


def _rename_statements(was: ObjectsByKey, now: ObjectsByKey, depends: Sequence[Dependency]) -> list[str]:
    """Return the statements for what has another name, in the names after the change."""
    followers = _find_followers(depends)
    groups: dict[tuple[str, ...], dict[str, str]] = {}
    for key, item in was.items():
        current = now.get(key)
        if current is None or current.name == item.name or item.has_kind(ObjectKind.GRANT):
            continue
        if key in followers or current.inheritance not in (None, Inheritance.OWN):
            continue
        if current.parent and current.parent not in now:
            raise _UncertainError
        groups.setdefault(_rename_group(current, now), {})[item.name] = current.name
    _check_type_names(groups)
    lines: list[str] = []
    for group in sorted(groups, key=lambda group: _rename_rank(group[0])):
        lines += _rename_group_back(group, groups[group], now)
    return lines


def _find_followers(depends: Iterable[Dependency]) -> set[str]:
    """Return what takes its name from something else: indexes of constraints, and parts of partitions."""
    followers: set[str] = set()
    for edge in depends:
        is_of_constraint = edge.kind == DependencyKind.INTERNAL and has_kind(edge.referenced, ObjectKind.CONSTRAINT)
        if is_of_constraint or edge.kind in (DependencyKind.PARTITION_PRIMARY, DependencyKind.PARTITION_SECONDARY):
            followers.add(edge.dependent)
    return followers


def _rename_group(item: DatabaseObject, now: ObjectsByKey) -> tuple[str, ...]:
    """Return what is the same for objects whose names must differ: kind, parent and, of a function, arguments."""
    kind = item.key[0]
    if item.has_kind(ObjectKind.RELATION) and item.sql_kind == "TYPE":
        kind = ObjectKind.TYPE
    signature = ""
    if item.has_kind(ObjectKind.FUNCTION):
        signature = item.qualified_name.removeprefix(f"{now[item.parent].name}.{item.name}")
    return kind, item.parent, signature


def _check_type_names(groups: Mapping[tuple[str, ...], Mapping[str, str]]) -> None:
    """Raise `_UncertainError` if types and relations have exchanged names, which each other's types have too."""
    for (kind, parent, _), names in groups.items():
        relations = groups.get((ObjectKind.RELATION, parent, ""), {})
        if kind == ObjectKind.TYPE and ({*names} & {*relations.values()} or {*names.values()} & {*relations}):
            raise _UncertainError


def _rename_rank(kind: str) -> int:
    if kind in _RENAMED_LAST:
        return 1 + _RENAMED_LAST.index(ObjectKind(kind))
    return 0


def _rename_group_back(group: tuple[str, ...], names: Mapping[str, str], now: ObjectsByKey) -> list[str]:
    kind, parent_key, signature = group
    parent = now.get(parent_key)
    parent_kind = ""
    if parent is not None:
        parent_kind = "DOMAIN" if kind == ObjectKind.CONSTRAINT and has_kind(parent.key, ObjectKind.TYPE) else "TABLE"
        if parent.sql_kind == "TYPE" and kind == ObjectKind.COLUMN:
            raise _UncertainError
    form = _RENAME_FORMS.get(kind)
    if form is None:
        raise _UncertainError
    parent_name = parent.qualified_name if parent is not None else ""
    current_names = {item.name for item in now.values()}
    return [
        form.format(parent=parent_name, parent_kind=parent_kind, now=current, was=target, signature=signature)
        for current, target in _order_renames(names, current_names)
    ]


def _order_renames(names: Mapping[str, str], used: Collection[str]) -> list[tuple[str, str]]:
    """Return pairs of a name and its replacement, which is free at that moment.

    Args:
        names: old and current names; they may have been exchanged.
        used: names that no thing can have meanwhile.
    """
    remaining = dict(names)
    steps: list[tuple[str, str]] = []
    while remaining:
        old = next((old for old in remaining if old not in remaining.values()), None)
        if old is not None:
            steps.append((remaining.pop(old), old))
            continue
        # All old names are in use, so one of the things steps aside.
        old = next(iter(remaining))
        spare = f"mcp_back_{len(steps)}"
        if spare in used:
            raise _UncertainError
        steps.append((remaining[old], spare))
        remaining[old] = spare
    return steps


def _revoke_statements(was: ObjectsByKey, now: ObjectsByKey) -> list[str]:
    """Return what revokes the new grants on old objects, by their names after the change."""
    return _grant_changes(_new_grants(was, now), "REVOKE", "FROM", "")


def _grant_statements(was: ObjectsByKey, now: ObjectsByKey) -> list[str]:
    """Return what grants again what is gone, by the names before the change."""
    grants = [item for key, item in was.items() if has_kind(key, ObjectKind.GRANT) and key not in now]
    # To revoke a right on a table revokes it on each of its columns.
    revoked = {_grant_identity(item) for item in _new_grants(was, now) if has_kind(item.parent, ObjectKind.RELATION)}
    for key, item in was.items():
        if has_kind(key, ObjectKind.GRANT) and key in now and _grant_identity(item) in revoked:
            grants.append(item)
    return _grant_changes(grants, "GRANT", "TO", " WITH GRANT OPTION")


def _new_grants(was: ObjectsByKey, now: ObjectsByKey) -> list[DatabaseObject]:
    """Return the new grants on what is not new, or is yet to come."""
    return [
        item
        for key, item in now.items()
        if has_kind(key, ObjectKind.GRANT) and key not in was and (item.parent in was or item.parent not in now)
    ]


def _grant_identity(grant: DatabaseObject) -> tuple[str, ...]:
    """Return the number of the table, the right, and its holder."""
    _, right, *holder = grant.key.split("/")
    return grant.parent.partition(".")[0][1:], right, *holder


def _grant_changes(grants: Iterable[DatabaseObject], verb: str, preposition: str, option_clause: str) -> list[str]:
    """Return statements for grants: one for all rights of one role on one object."""
    rights_by_ending: dict[tuple[str, str], list[str]] = {}
    for grant in grants:
        right, column, target, grantee, prefix = json.loads(grant.name)
        # Nobody but who granted it can revoke it.
        if grant.state[GrantState.GRANTOR]:
            raise _UncertainError
        if column:
            right = f"{right} ({column})"
        ending = f"ON {target} {preposition} {grantee}"
        if grant.state[GrantState.GRANT_OPTION] == "true":
            ending += option_clause
        rights_by_ending.setdefault((prefix or "", ending), []).append(right)
    return [f"{prefix}{verb} {', '.join(rights)} {ending};" for (prefix, ending), rights in rights_by_ending.items()]
