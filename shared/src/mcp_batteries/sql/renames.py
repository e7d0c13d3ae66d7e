"""The order in which renamed things get their old names back."""

from __future__ import annotations

from collections.abc import Callable, Mapping

__all__ = ["renames_back"]


def renames_back(
    names: Mapping[str, str], spare: Callable[[str, int], str], as_one: Callable[[str], str] = str
) -> list[tuple[str, str]]:
    """Pairs of a name and its replacement, which is free at that moment.

    Args:
        names: old and current names; they may have been exchanged.
        spare: makes an unused name from an old one and a number.
        as_one: a key that is equal for names that cannot coexist.
    """
    left = dict(names)
    steps = list[tuple[str, str]]()
    while left:
        taken = {as_one(name) for name in left.values()}
        old = next((old for old in left if as_one(old) not in taken), None)
        if old is None:
            old = next(iter(left))
            now = left[old]
            left[old] = spare(old, len(steps))
            steps.append((now, left[old]))
        else:
            steps.append((left.pop(old), old))
    return steps
