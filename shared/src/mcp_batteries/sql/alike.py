"""Shows tables whose names differ only by a number, such as monthly archives, as one."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TypeVar

__all__ = ["folded", "spread"]

T = TypeVar("T")

_NUMBERED = re.compile(r"(.*?)([0-9]{1,15})([^0-9]*)", re.DOTALL)
_FEWEST = 3


def folded(items: Sequence[T], name: Callable[[T], str], facts: Callable[[T], Hashable]) -> list[list[T]]:
    """`items` in runs such as `part_08`, `part_09`, `part_10`, without gaps and with equal `facts`; all others alone.

    A run takes the place of its first item.
    """
    left = {name(item): item for item in items}
    place = {text: number for number, text in enumerate(left)}
    runs: list[list[T]] = []
    # The least number first, so that each run is as long as can be.
    for text in sorted(left, key=_number):
        if text not in left:
            continue
        run: list[T] = []
        for following in _counted(text):
            other = left.get(following)
            if other is None or facts(other) != facts(left[text]):
                break
            run.append(other)
        runs.append(run if len(run) >= _FEWEST else run[:1])
        for other in runs[-1]:
            del left[name(other)]
    return sorted(runs, key=lambda run: min(place[name(item)] for item in run))


def _number(name: str) -> int:
    match = _NUMBERED.fullmatch(name)
    return int(match[2]) if match else 0


def _counted(name: str) -> Iterator[str]:
    """`name`, and the names that follow when its last number counts up."""
    yield name
    if match := _NUMBERED.fullmatch(name):
        before, number, behind = match.groups()
        for following in itertools.count(int(number) + 1):
            yield f"{before}{following:0{len(number)}}{behind}"


def spread(numbers: Sequence[int]) -> str:
    """`1,200`, or from the least to the most: `0 to 1,200`."""
    least = min(numbers)
    most = max(numbers)
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"
