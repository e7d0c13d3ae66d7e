"""Says in few lines which objects a change of the schema made, took away and altered.

A new table is one line with all of its parts, and so are several new objects of one kind, and grants that differ in
their objects only. Nothing is left out for being named by a statement: the name may be that of something else.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Sequence

from mcp_postgres.engine.change.database_object import DatabaseObject, GrantState, Inheritance, ObjectChange, ObjectKind

__all__ = ["describe_object_changes"]

# New objects of one kind that share a line.
_MIN_GROUPED = 3
# Objects that one line names.
_MAX_NAMED_OBJECTS = 200
_CONTAINERS = ("table", "partitioned table", "foreign table", "type")
_PARTS = (ObjectKind.COLUMN, ObjectKind.CONSTRAINT, ObjectKind.ENUM_LABEL)
_PLURALS = {"policy": "policies", "index": "indexes", "statistics": "statistics", "rights": "rights"}


def describe_object_changes(changes: Sequence[ObjectChange]) -> list[str]:
    """Return lines for all changes."""
    grants, others = _describe_grants(changes)
    containers, others = _describe_containers(others)
    lines = [*grants, *containers, *_describe_others(others)]
    return sorted((_to_one_line(line) for line in lines), key=lambda line: line[2:])


def _describe_grants(changes: Sequence[ObjectChange]) -> tuple[list[str], list[ObjectChange]]:
    """Return a line for grants that differ in their objects only, and the changes that are no grants."""
    privileges: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    others: list[ObjectChange] = []
    for change in changes:
        if not change.item.has_kind(ObjectKind.GRANT):
            others.append(change)
            continue
        privilege, _, _, grantee, _ = json.loads(change.item.name)
        target = str(change.item.label).removeprefix(f"grant of {privilege} on ").removesuffix(f" to {grantee}")
        if change.item.state[GrantState.GRANT_OPTION] == "true":
            grantee += " with grant option"
        privileges[change.sign, target, grantee].append(privilege)
    targets: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for (sign, target, grantee), names in privileges.items():
        targets[sign, ", ".join(sorted(names)), grantee].append(target)
    lines = [
        f"{sign} grant of {names} on {_join_targets(alike, grantee)}"
        for (sign, names, grantee), alike in targets.items()
    ]
    return lines, others


def _join_targets(targets: Sequence[str], grantee: str) -> str:
    if len(targets) == 1:
        return f"{targets[0]} to {grantee}"
    return f"{len(targets)} objects to {grantee}: {_join_names(targets)}"


def _describe_containers(changes: Sequence[ObjectChange]) -> tuple[list[str], list[ObjectChange]]:
    """Return a line for each new table and type, and the changes that are neither these nor parts of them."""
    # What was there under another name has parts that are not new.
    old_keys = {change.item.key for change in changes if change.sign == "-"}
    containers: dict[str, ObjectChange] = {}
    for change in changes:
        if change.sign == "+" and change.item.kind in _CONTAINERS and change.item.key not in old_keys:
            containers[change.item.key] = change
    parts: dict[str, list[DatabaseObject]] = {key: [] for key in containers}
    others: list[ObjectChange] = []
    for change in changes:
        item = change.item
        if change.sign == "+" and item.has_kind(*_PARTS) and item.parent in parts:
            parts[item.parent].append(item)
        elif item.key not in containers:
            others.append(change)
    return [_describe_container(container, parts[key]) for key, container in containers.items()], others


def _describe_container(container: ObjectChange, parts: Sequence[DatabaseObject]) -> str:
    """Return the line of a new table or type, with its parts; those that it has from its parent are counted."""
    names: dict[str, list[str]] = defaultdict(list)
    inherited_counts: dict[str, int] = defaultdict(int)
    for part in parts:
        if part.inheritance is Inheritance.INHERITED:
            inherited_counts[part.kind] += 1
        else:
            names[part.kind].append(part.name)
    facts = [f"{_pluralize(kind, len(own))} {_join_names(own)}" for kind, own in names.items()]
    facts += [f"{number} inherited {_pluralize(kind, number)}" for kind, number in inherited_counts.items()]
    if not facts:
        return container.line
    return f"{container.line}, with {'; '.join(facts)}"


def _describe_others(changes: Sequence[ObjectChange]) -> list[str]:
    """Return a line for several new objects of one kind, and one for each other change."""
    lines: list[str] = []
    new_names: dict[str, list[str]] = defaultdict(list)
    for change in changes:
        if change.sign == "+":
            new_names[change.item.kind].append(change.item.qualified_name)
        else:
            lines.append(change.line)
    for kind, names in new_names.items():
        if len(names) < _MIN_GROUPED:
            lines.extend(f"+ {kind} {name}" for name in names)
        else:
            lines.append(f"+ {len(names)} {_pluralize(kind, len(names))}: {_join_names(names)}")
    return lines


def _join_names(names: Sequence[str]) -> str:
    shown_names = list(names[:_MAX_NAMED_OBJECTS])
    if len(names) > len(shown_names):
        shown_names.append(f"… {len(names) - len(shown_names)} more")
    return ", ".join(shown_names)


def _to_one_line(text: str) -> str:
    """Return text without the line ends that a name may hold."""
    return re.sub(r"[\r\n]+", " ", text)


def _pluralize(kind: str, count: int) -> str:
    if count == 1:
        return kind
    return _PLURALS.get(kind, f"{kind}s")
