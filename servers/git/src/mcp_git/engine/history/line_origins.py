"""Chooses among commits those with which changed lines came, where that is certain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

__all__ = ["choose_origins"]


def choose_origins(lines: Counter[str], patches: Mapping[str, Counter[str]]) -> list[str]:
    """Return the one commit that has all the lines, or those of which each alone has some; nothing if more could be it.

    Args:
        patches: newest first.
    """
    holders_of_lines = [_list_holders(line, number, patches) for line, number in lines.items()]
    common = set[str].intersection(*holders_of_lines)
    if len(common) == 1:
        return list(common)
    if any(len(holders) != 1 for holders in holders_of_lines):
        return []
    chosen = set[str].union(*holders_of_lines)
    return [oid for oid in patches if oid in chosen]


def _list_holders(line: str, number: int, patches: Mapping[str, Counter[str]]) -> set[str]:
    """Return the commits that have a line so often, since it was undone; none if one of them may only have moved it."""
    opposite = f"{'-' if line.startswith('+') else '+'}{line[1:]}"
    holders: set[str] = set()
    for oid, patch in patches.items():
        if opposite in patch:
            return set() if line in patch else holders
        if patch[line] >= number:
            holders.add(oid)
    return holders
