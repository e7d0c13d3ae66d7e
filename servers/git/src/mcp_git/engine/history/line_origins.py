"""Finds the commits with which changed lines came, where that is certain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

__all__ = ["choose_origins"]


def choose_origins(lines: Counter[str], patches: Mapping[str, Counter[str]]) -> list[str]:
    """Return the one commit that has all lines, or else all commits with lines that no other one has.

    Args:
        lines: the changed lines, each with how often it is there.
        patches: by their hashes what commits changed, newest first.

    Returns:
        The hashes, newest first; nothing if a line may have come with several commits.
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
    """Return the commits that have a line so often, back to the one that undid it.

    There is none if that one has the line too, as it may only have moved it.
    """
    opposite = f"{'-' if line.startswith('+') else '+'}{line[1:]}"
    holders: set[str] = set()
    for oid, patch in patches.items():
        if opposite in patch:
            return set() if line in patch else holders
        if patch[line] >= number:
            holders.add(oid)
    return holders
