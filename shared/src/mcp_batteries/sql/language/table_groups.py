"""Shows tables whose names differ only by a number, such as monthly archives, as one."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TypeVar

__all__ = ["format_number_ranges", "group_numbered_tables"]

T = TypeVar("T")

_NUMBERED = re.compile(r"(.*?)([0-9]{1,15})([^0-9]*)", re.DOTALL)
_MIN_RUN = 3


def group_numbered_tables(
    items: Sequence[T], name: Callable[[T], str], facts: Callable[[T], Hashable]
) -> list[list[T]]:
    """Return `items` in runs such as `part_08`, `part_09`, `part_10`, without gaps and with equal `facts`.

    All others stand alone. A run takes the place of its first item.
    """
    remaining = {name(item): item for item in items}
    positions = {text: number for number, text in enumerate(remaining)}
    runs: list[list[T]] = []
    # The least number comes first, so that each run is as long as can be.
    for text in sorted(remaining, key=_number):
        if text not in remaining:
            continue
        run: list[T] = []
        for following in _count_up(text):
            other = remaining.get(following)
            if other is None or facts(other) != facts(remaining[text]):
                break
            run.append(other)
        if len(run) < _MIN_RUN:
            run = run[:1]
        runs.append(run)
        for other in run:
            del remaining[name(other)]
    return sorted(runs, key=lambda run: min(positions[name(item)] for item in run))


def _number(name: str) -> int:
    match = _NUMBERED.fullmatch(name)
    if match is None:
        return 0
    return int(match[2])


def _count_up(name: str) -> Iterator[str]:
    """Yield `name`, and the names that follow when its last number counts up."""
    yield name
    match = _NUMBERED.fullmatch(name)
    if match is None:
        return
    prefix, number, suffix = match.groups()
    for following in itertools.count(int(number) + 1):
        yield f"{prefix}{following:0{len(number)}}{suffix}"


def format_number_ranges(numbers: Sequence[int]) -> str:
    """Return `1,200`, or from the least to the most: `0 to 1,200`."""
    least = min(numbers)
    most = max(numbers)
    if least == most:
        return f"{least:,}"
    return f"{least:,} to {most:,}"
