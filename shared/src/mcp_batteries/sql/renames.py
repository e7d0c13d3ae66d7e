"""The order in which things that got other names get their old ones back."""

from __future__ import annotations

from collections.abc import Callable, Mapping

__all__ = ["renames_back"]


def renames_back(
    names: Mapping[str, str], spare: Callable[[str, int], str], as_one: Callable[[str], str] = str
) -> list[tuple[str, str]]:
    """Pairs of a name and the one to give instead, none of which is taken at that moment.

    Args:
        names: old names, and those of now; they may have been exchanged.
        spare: makes a name that nobody has, of an old one and a number.
        as_one: what names that can't both be there have in common.
    """
    left, steps = dict(names), list[tuple[str, str]]()
    while left:
        taken = {as_one(name) for name in left.values()}
        old = next((old for old in left if as_one(old) not in taken), None)
        if old is None:
            old = next(iter(left))
            now, left[old] = left[old], spare(old, len(steps))
            steps.append((now, left[old]))
        else:
            steps.append((left.pop(old), old))
    return steps
