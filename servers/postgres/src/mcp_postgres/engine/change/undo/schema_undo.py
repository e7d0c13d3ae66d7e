"""The way back from a change of the schema: drops what is new, undoes renames, and creates again what is gone.

Drops use the names after the change, and everything after the renames uses the names before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from mcp_postgres.engine.change.database_object import (
    DatabaseObject,
    Dependency,
    ObjectKind,
    ObjectsByKey,
    has_kind,
)
from mcp_postgres.engine.change.objects import read_dependencies, read_objects
from mcp_postgres.engine.change.undo.definition_requests import request_dropped
from mcp_postgres.engine.change.undo.definitions import read_definitions
from mcp_postgres.engine.change.undo.drops import drop_new
from mcp_postgres.engine.change.undo.renames import rename_statements
from mcp_postgres.engine.change.undo.restores import RestorePlan
from mcp_postgres.engine.change.undo.schema_change import RankedLine, SchemaChange, without_grants
from mcp_postgres.engine.connection.session import Session

__all__ = ["describe_change", "undo_statements"]

# What of a view depends on it, and goes with it.
_KINDS_ON_VIEWS = (ObjectKind.RELATION, ObjectKind.TRIGGER, ObjectKind.RULE)


async def describe_change(session: Session, was: ObjectsByKey, now: ObjectsByKey) -> SchemaChange:
    """Look at a change while it is there."""
    change = SchemaChange(was, now)
    keys = {*change.new, *change.changed, *change.renamed}
    if keys:
        change.depends = await read_dependencies(session, without_grants(keys))
    dropped_labels = {was[key].label for key in change.dropped}
    recreated = [
        now[key]
        for key in change.new
        if now[key].label in dropped_labels and has_kind(key, ObjectKind.RELATION, ObjectKind.CONSTRAINT)
    ]
    if recreated:
        change.recreated = await read_definitions(session, map(request_dropped, recreated))
    return change


async def undo_statements(session: Session, change: SchemaChange) -> Sequence[str]:
    """Return statements that undo a change, asked for when it is not there any more."""
    if change.recreated:
        change = await _without_recreated(session, change)
    dependencies: list[Dependency] = []
    if change.dropped or change.changed:
        dependencies = await read_dependencies(session, without_grants({*change.dropped, *change.changed}))
    change, remade = await _find_remade(session, change)
    drops = drop_new(change, remade)
    restores = RestorePlan(change, remade, dependencies)
    definitions = await read_definitions(session, restores.requests())
    return [
        *drops.first,
        *drops.remarks,
        *_create_schemas(change),
        *rename_statements(change.was, change.now, change.renamed, change.depends),
        *restores.statements(definitions),
        *drops.last,
    ]


def _create_schemas(change: SchemaChange) -> list[str]:
    """Return what creates the schemas that are gone: renamed objects may return to them."""
    names = [change.was[key].name for key in change.dropped if has_kind(key, ObjectKind.SCHEMA)]
    return [f"CREATE SCHEMA {name};" for name in names]


async def _find_remade(session: Session, change: SchemaChange) -> tuple[SchemaChange, set[str]]:
    """Return views whose columns can't be taken off in their place, and what depends on them.

    And the change with what of these was no part of it.
    """
    remade = _find_widened_views(change)
    latest = remade
    while latest:
        dependents = await _read_dependents(session, latest)
        change = await _with_unseen(session, change, dependents)
        latest = {key for key in dependents if key in change.was and key in change.now} - remade
        remade |= latest
    return change, remade


def _find_widened_views(change: SchemaChange) -> set[str]:
    """Return the old views that have new columns, which have no labels of their own."""
    new_columns = [change.now[key] for key in change.new if change.now[key].label is None]
    return {column.parent for column in new_columns if column.parent in change.was}


async def _read_dependents(session: Session, keys: set[str]) -> set[str]:
    """Return what goes with these views."""
    return {
        edge.dependent
        for edge in await read_dependencies(session, keys)
        if edge.referenced in keys and has_kind(edge.dependent, *_KINDS_ON_VIEWS)
    }


async def _with_unseen(session: Session, change: SchemaChange, keys: Iterable[str]) -> SchemaChange:
    """Return the change with objects that are no part of it, and are what they were."""
    unseen = [key[1:] for key in keys if key not in change.was]
    if not unseen:
        return change
    objects = await read_objects(session, unseen)
    objects = {key: item for key, item in objects.items() if key not in change.was}
    # Who tries the way back looks at them too.
    change.was.update(objects)
    return SchemaChange(change.was, objects | change.now, change.depends, change.recreated)


async def _without_recreated(session: Session, change: SchemaChange) -> SchemaChange:
    """Return the change without what was only made anew, as with another type of a column, and is what it was."""
    dropped = [change.was[key] for key in without_grants(change.dropped)]
    definitions = await read_definitions(session, map(request_dropped, dropped))
    old_keys = _find_old_keys(change, dropped, definitions)
    if not old_keys:
        return change
    now: ObjectsByKey = {}
    for key, item in change.now.items():
        parent = old_keys.get(item.parent, item.parent)
        old_key = _old_key(key, old_keys)
        if has_kind(key, ObjectKind.COMMENT) and parent != item.parent:
            old_key = _find_comment(change.was, parent) or key
        now[old_key] = replace(item, key=old_key, parent=parent)
    depends = [
        Dependency(
            old_keys.get(edge.dependent, edge.dependent), old_keys.get(edge.referenced, edge.referenced), edge.kind
        )
        for edge in change.depends
    ]
    return SchemaChange(change.was, now, depends)


def _find_old_keys(
    change: SchemaChange, dropped: Iterable[DatabaseObject], definitions: Mapping[str, Sequence[RankedLine]]
) -> dict[str, str]:
    """Return the keys before the change of what is defined as what has its name was, by the keys after it."""
    old_key_by_label = {item.label: item.key for item in dropped}
    old_keys: dict[str, str] = {}
    for key, lines in change.recreated.items():
        item = change.now[key]
        old_key = old_key_by_label.get(item.label)
        if old_key and lines == definitions.get(old_key) and item.state == change.was[old_key].state:
            old_keys[key] = old_key
    return old_keys


def _old_key(key: str, old_keys: Mapping[str, str]) -> str:
    """Return the key that an object, or a grant on it, had before it was made anew."""
    head, slash, tail = key.partition("/")
    if has_kind(key, ObjectKind.GRANT):
        return ObjectKind.GRANT + old_keys.get(head[1:], head[1:]) + slash + tail
    return old_keys.get(key, key)


def _find_comment(objects: ObjectsByKey, parent: str) -> str | None:
    for key, item in objects.items():
        if has_kind(key, ObjectKind.COMMENT) and item.parent == parent:
            return key
    return None
