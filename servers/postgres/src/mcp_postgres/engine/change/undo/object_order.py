"""The order in which objects are dropped and created: what goes along with something else, and what waits for what."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from graphlib import CycleError, TopologicalSorter

from mcp_postgres.engine.change.objects import Dependency, ObjectsByKey

__all__ = ["find_owners", "sort_by_dependency"]

# How what goes and comes with something else depends on it, as `pg_depend.deptype` says.
_WITH = "aeiPS"


def find_owners(keys: Collection[str], depends: Iterable[Dependency], look: ObjectsByKey) -> dict[str, str]:
    """Return what goes with something else of `keys`, by what goes; what that goes with is followed to its end."""
    owner = {
        one: other
        for one, other, kind in depends
        if one in keys and one != other and kind in _WITH
        and not (look[one].kind == "table" and kind == "a" and other[0] == "c" and look[one].state[7] is None)
    }  # fmt: skip
    owner |= {
        key: look[key].parent
        for key in keys
        if look[key].label is None or (key[0] in "ae" and look[key].parent in keys)
    }
    owner_of: dict[str, str] = {}
    for key in owner:
        visited = {key}
        end = owner[key]
        while end in owner and end not in visited:
            visited.add(end)
            end = owner[end]
        if end != key:
            owner_of[key] = end
    return owner_of


def sort_by_dependency(keys: Sequence[str], pairs: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Return the keys, each behind those it waits for (the other of its pair).

    What waits for itself in a ring together.
    """
    group = {key: [key] for key in keys}
    at = {key: key for key in keys}
    known_pairs = {(one, other) for one, other in pairs if one in group and other in group and one != other}
    while True:
        sorter = TopologicalSorter[str]({key: set[str]() for key in sorted(group, key=_age)})
        for one, other in sorted(known_pairs):
            if at[one] != at[other]:
                sorter.add(at[one], at[other])
        try:
            return [group[key] for key in sorter.static_order()]
        except CycleError as error:
            first, *others = dict.fromkeys(error.args[1])
            for key in others:
                group[first] += group.pop(key)
            at = {key: ring for ring, members in group.items() for key in members}


def _age(key: str) -> tuple[int, str]:
    digits = key[1:].partition(".")[0]
    return (int(digits) if digits.isdigit() else 0, key)
