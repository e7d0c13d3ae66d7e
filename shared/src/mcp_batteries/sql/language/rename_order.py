"""The order in which renamed things get their old names back."""

from __future__ import annotations

from collections.abc import Callable, Mapping

__all__ = ["order_rename_undo"]


def order_rename_undo(
    names: Mapping[str, str], spare: Callable[[str, int], str], as_one: Callable[[str], str] = str
) -> list[tuple[str, str]]:
    """Return pairs of a name and its replacement, which is free at that moment.

    Args:
        names: old and current names; they may have been exchanged.
        spare: makes an unused name from an old one and a number.
        as_one: a key that is equal for names that cannot coexist.
    """
    remaining = dict(names)
    steps: list[tuple[str, str]] = []
    while remaining:
        used = {as_one(name) for name in remaining.values()}
        old = next((old for old in remaining if as_one(old) not in used), None)
        if old is not None:
            steps.append((remaining.pop(old), old))
            continue
        # All old names are in use, so one of the things steps aside.
        old = next(iter(remaining))
        current = remaining[old]
        remaining[old] = spare(old, len(steps))
        steps.append((current, remaining[old]))
    return steps
