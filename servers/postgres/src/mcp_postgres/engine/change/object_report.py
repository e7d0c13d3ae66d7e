"""Says in few lines which objects a change of the schema made, took away and altered.

A new table is one line, with what its statements do not name; many objects alike, each made by a statement that names
it, are one line with their number; and so are grants that differ in their objects only.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from mcp_batteries.sql.language.identifiers import unquote_identifier
from mcp_postgres.engine.change.database_object import (
    DatabaseObject,
    Inheritance,
    ObjectChange,
    ObjectKind,
    ObjectsByKey,
)

__all__ = ["StatementText", "describe_object_changes"]

# Objects of one kind that are counted instead of named, where the statements name them.
_MIN_COUNTED = 3
# Objects of grants alike that are named.
_MAX_NAMED_OBJECTS = 60
_CONTAINERS = ("table", "partitioned table", "foreign table", "type")
_PARTS = (ObjectKind.COLUMN, ObjectKind.CONSTRAINT, ObjectKind.ENUM_LABEL)
_PLURALS = {"policy": "policies", "index": "indexes", "statistics": "statistics"}


class StatementText(NamedTuple):
    """A statement of a change.

    Attributes:
        tag: what PostgreSQL calls it, such as `CREATE TABLE`.
    """

    tag: str
    sql: str


def describe_object_changes(
    changes: Sequence[ObjectChange], objects: ObjectsByKey, statements: Sequence[StatementText], *, is_all_said: bool
) -> list[str]:
    """Return lines for all changes.

    Args:
        objects: those that there are now.
        is_all_said: nothing but the statements themselves made objects: no event trigger.
    """
    lines, others = _describe_grants(changes)
    if is_all_said:
        new_tables, others = _describe_containers(others, statements)
        counted, others = _count_named(others, objects, statements)
        lines += [*new_tables, *counted]
    lines += [change.line for change in others]
    return sorted(lines, key=lambda line: line[2:])


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
        privileges[change.sign, target, grantee].append(privilege)
    targets: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for (sign, target, grantee), names in privileges.items():
        targets[sign, ", ".join(sorted(names)), grantee].append(target)
    lines = [
        re.sub(r"[\r\n]+", " ", f"{sign} grant of {names} on {_join_targets(alike, grantee)}")
        for (sign, names, grantee), alike in targets.items()
    ]
    return lines, others


def _join_targets(targets: Sequence[str], grantee: str) -> str:
    if len(targets) == 1:
        return f"{targets[0]} to {grantee}"
    names = list(targets[:_MAX_NAMED_OBJECTS])
    if len(targets) > len(names):
        names.append(f"… {len(targets) - len(names)} more")
    return f"{len(targets)} objects to {grantee}: {', '.join(names)}"


def _describe_containers(
    changes: Sequence[ObjectChange], statements: Sequence[StatementText]
) -> tuple[list[str], list[ObjectChange]]:
    """Return a line for each new table and type, and the changes that are neither these nor parts of them."""
    containers = {
        change.item.key: change.item for change in changes if change.sign == "+" and change.item.kind in _CONTAINERS
    }
    # What was there under another name has parts that are not new.
    old_keys = {change.item.key for change in changes if change.sign == "-"}
    parts: dict[str, list[DatabaseObject]] = {key: [] for key in containers if key not in old_keys}
    others: list[ObjectChange] = []
    for change in changes:
        if change.sign == "+" and change.item.key in parts:
            continue
        container = _find_container(change, parts, containers)
        if container is None:
            others.append(change)
        else:
            parts[container].append(change.item)
    lines = [_describe_container(containers[key], items, statements) for key, items in parts.items()]
    return lines, others


def _find_container(
    change: ObjectChange, parts: dict[str, list[DatabaseObject]], containers: ObjectsByKey
) -> str | None:
    """Return the key of the new table or type that an object is a part of; None where it stands for itself."""
    item = change.item
    if change.sign != "+":
        return None
    if item.has_kind(*_PARTS):
        return item.parent if item.parent in parts else None
    for key, names in parts.items():
        if containers[key].parent != item.parent:
            continue
        # The index of a constraint has its name, and the sequence of a column begins with the table's.
        if item.kind == "index" and any(part.name == item.name and part.kind == "constraint" for part in names):
            return key
        if item.kind == "sequence" and _is_sequence_of(item.name, containers[key].name):
            return key
    return None


def _is_sequence_of(sequence: str, table: str) -> bool:
    name = unquote_identifier(sequence)
    return name.startswith(f"{unquote_identifier(table)}_") and name.endswith("_seq")


def _describe_container(
    container: DatabaseObject, parts: Sequence[DatabaseObject], statements: Sequence[StatementText]
) -> str:
    """Return the line of a new table or type, with its own parts that no statement about it names."""
    sql = " ".join(statement.sql for statement in statements if _is_named(container.name, statement.sql))
    unnamed: dict[str, list[str]] = defaultdict(list)
    known_names: set[str] = set()
    for part in parts:
        is_known = part.name in known_names or part.inheritance is Inheritance.INHERITED
        if not is_known and not _is_named(part.name, sql):
            unnamed[part.kind].append(part.name)
        known_names.add(part.name)
    line = ObjectChange("+", container).line
    if not unnamed:
        return line
    kinds = [f"{_pluralize(kind, len(names))} {', '.join(names)}" for kind, names in unnamed.items()]
    return re.sub(r"[\r\n]+", " ", f"{line}, with {'; '.join(kinds)}")


def _count_named(
    changes: Sequence[ObjectChange], objects: ObjectsByKey, statements: Sequence[StatementText]
) -> tuple[list[str], list[ObjectChange]]:
    """Return a line for new objects of one kind that statements of their own made, and the other changes."""
    new: dict[tuple[str, str], list[ObjectChange]] = defaultdict(list)
    others: list[ObjectChange] = []
    for change in changes:
        if change.sign == "+":
            schema = objects.get(change.item.parent)
            place = ""
            if schema is not None and schema.has_kind(ObjectKind.SCHEMA):
                place = f" in {schema.name}"
            new[change.item.kind, place].append(change)
        else:
            others.append(change)
    lines: list[str] = []
    for (kind, place), alike in new.items():
        tag = "COMMENT" if kind == "comment" else f"CREATE {kind.upper()}"
        texts = [statement.sql for statement in statements if statement.tag == tag]
        if len(alike) < _MIN_COUNTED or len(texts) != len(alike) or not _are_named(alike, objects, " ".join(texts)):
            others.extend(alike)
        else:
            lines.append(f"+ {len(alike)} {_pluralize(kind, len(alike))}{place}, as {tag} says")
    return lines, others


def _are_named(changes: Sequence[ObjectChange], objects: ObjectsByKey, sql: str) -> bool:
    """Return whether SQL names all objects; of comments, what they are on."""
    for change in changes:
        item = change.item
        if item.has_kind(ObjectKind.COMMENT):
            item = objects.get(item.parent, item)
        if not _is_named(item.name, sql):
            return False
    return True


def _is_named(name: str, sql: str) -> bool:
    """Return whether SQL has a name, or the text of a label, as a word."""
    word = re.escape(unquote_identifier(name).strip("'"))
    return re.search(rf"(?<!\w){word}(?!\w)", sql, re.IGNORECASE) is not None


def _pluralize(kind: str, count: int) -> str:
    if count == 1:
        return kind
    return _PLURALS.get(kind, f"{kind}s")
