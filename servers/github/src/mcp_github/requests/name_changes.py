"""Lists of names that a caller may give as a whole, or as `+name` and `-name`: labels, assignees, reviewers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from mcp_batteries.errors import Invalid
from mcp_github.client.api import Api

__all__ = ["NameDifference", "compare_names", "has_signs", "resolve_names"]


class NameDifference(NamedTuple):
    """Names that come, and names that go."""

    added: Sequence[str]
    removed: Sequence[str]


def has_signs(names: Sequence[str] | None) -> bool:
    """Return whether one of `names` has a sign that adds or removes it."""
    return any(name[:1] in ("+", "-") for name in names or ())


def compare_names(current: Sequence[str], changes: Sequence[str]) -> NameDifference:
    """Return which names `changes` add to `current` and which they take away; case does not count.

    Raises:
        Invalid: some have a sign and others have none.
    """
    after = _merge_names(current, changes)
    keys_before = {name.lower() for name in current}
    keys_after = {name.lower() for name in after}
    added = [name for name in after if name.lower() not in keys_before]
    removed = [name for name in current if name.lower() not in keys_after]
    return NameDifference(added, removed)


def _merge_names(current: Sequence[str], changes: Sequence[str]) -> Sequence[str]:
    """Return `current` after `changes`: `+name` adds, `-name` removes, plain names replace everything.

    Raises:
        Invalid: some have a sign and others have none.
    """
    if not has_signs(changes):
        return changes
    added: list[str] = []
    removed: set[str] = set()
    for change in changes:
        sign = change[:1]
        name = change[1:]
        if sign not in ("+", "-"):
            raise Invalid(
                "Names with and without a sign are mixed.", "Write +name and -name, or all the names there are to be."
            )
        if sign == "-":
            removed.add(name.lower())
        else:
            added.append(name)
    remaining = [name for name in current if name.lower() not in removed]
    present = {name.lower() for name in remaining}
    return remaining + [name for name in added if name.lower() not in present]


async def resolve_names(
    api: Api, names: Sequence[str] | None, resolve: Callable[[Api, str], Awaitable[str]]
) -> list[str] | None:
    """Return what `resolve` makes of each of `names` without its sign, each with the sign it had."""
    if names is None:
        return None
    resolved: list[str] = []
    for name in names:
        sign = ""
        if name.startswith(("+", "-")):
            sign = name[0]
        resolved.append(sign + await resolve(api, name.removeprefix(sign)))
    return resolved
