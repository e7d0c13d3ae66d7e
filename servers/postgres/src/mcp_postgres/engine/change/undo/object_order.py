"""The order in which objects are dropped and created: what goes along with something else, and what waits for what."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from graphlib import CycleError, TopologicalSorter

from mcp_postgres.engine.change.database_object import (
    DatabaseObject,
    Dependency,
    DependencyKind,
    ObjectKind,
    ObjectsByKey,
    has_kind,
)

__all__ = ["find_owners", "sort_by_dependency"]

# How what is dropped and created with something else depends on it.
_OWNED_KINDS = (
    DependencyKind.AUTO,
    DependencyKind.EXTENSION,
    DependencyKind.INTERNAL,
    DependencyKind.PARTITION_PRIMARY,
    DependencyKind.PARTITION_SECONDARY,
)


def find_owners(keys: Collection[str], depends: Iterable[Dependency], objects: ObjectsByKey) -> dict[str, str]:
    """Return what goes with something else of `keys`, by what goes; what that goes with is followed to its end."""
    owners = _find_direct_owners(keys, depends, objects)
    last_owners = {key: _follow(key, owners) for key in owners}
    return {key: owner for key, owner in last_owners.items() if owner != key}


def _find_direct_owners(keys: Collection[str], depends: Iterable[Dependency], objects: ObjectsByKey) -> dict[str, str]:
    owners: dict[str, str] = {}
    for edge in depends:
        if edge.dependent in keys and _goes_along(edge, objects[edge.dependent]):
            owners[edge.dependent] = edge.referenced
    for key in keys:
        if _is_part_of_parent(objects[key], keys):
            owners[key] = objects[key].parent
    return owners


def _goes_along(edge: Dependency, dependent: DatabaseObject) -> bool:
    """Return whether an object goes and comes with what it depends on."""
    if edge.dependent == edge.referenced or edge.kind not in _OWNED_KINDS:
        return False
    is_child_table = (
        dependent.kind == "table"
        and edge.kind == DependencyKind.AUTO
        and has_kind(edge.referenced, ObjectKind.RELATION)
        and not dependent.is_partition
    )
    return not is_child_table


def _is_part_of_parent(item: DatabaseObject, keys: Collection[str]) -> bool:
    if item.label is None:
        return True
    return item.has_kind(ObjectKind.COLUMN, ObjectKind.ENUM_LABEL) and item.parent in keys


def _follow(key: str, owners: dict[str, str]) -> str:
    """Return the last of the owners that begin with that of `key`."""
    visited = {key}
    end = owners[key]
    while end in owners and end not in visited:
        visited.add(end)
        end = owners[end]
    return end


def sort_by_dependency(keys: Sequence[str], pairs: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Return the keys, each behind those it waits for (the other of its pair).

    What waits for itself in a ring together.
    """
    rings = {key: [key] for key in keys}
    own_pairs = sorted({(waiting, awaited) for waiting, awaited in pairs if waiting in rings and awaited in rings})
    while True:
        try:
            return [rings[key] for key in _sort_rings(rings, own_pairs)]
        except CycleError as error:
            first, *others = dict.fromkeys(error.args[1])
            for key in others:
                rings[first] += rings.pop(key)


def _sort_rings(rings: dict[str, list[str]], pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Return the keys of rings, each behind those that one of its members waits for.

    Raises:
        CycleError: some wait for each other.
    """
    ring_of = _ring_of_each(rings)
    sorter = TopologicalSorter[str]({key: set[str]() for key in sorted(rings, key=_age)})
    for waiting, awaited in pairs:
        if ring_of[waiting] != ring_of[awaited]:
            sorter.add(ring_of[waiting], ring_of[awaited])
    return list(sorter.static_order())


def _ring_of_each(rings: dict[str, list[str]]) -> dict[str, str]:
    ring_of: dict[str, str] = {}
    for ring, members in rings.items():
        for key in members:
            ring_of[key] = ring
    return ring_of


def _age(key: str) -> tuple[int, str]:
    """Return what sorts keys by the numbers of their objects, which grow with time."""
    digits = key[1:].partition(".")[0]
    number = int(digits) if digits.isdigit() else 0
    return (number, key)
