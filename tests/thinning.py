"""Which of three runs a test belongs to: `pytest`, `pytest -m slow` and `pytest -m weekly`.

`pytest` touches every promise in five minutes. Marked `slow` is what it leaves out of them: further cases of what it
tries, tests of size, storms, and programs that must be installed first. Both run with every change. Marked `weekly`
are tests that try all of something of which others try a part, and tests of tools that change seldom.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

__all__ = ["few", "some", "thin"]

_GOLDEN_RATIO = (5**0.5 - 1) / 2


def some(values: Iterable[Any], *kept: Any) -> list[Any]:
    """Return the values of a parameter: `kept` are tried with every change, the others every week."""
    return _mark_others(values, kept, pytest.mark.weekly)


def few(values: Iterable[Any], *kept: Any) -> list[Any]:
    """Return the values of a parameter: `kept` are tried by `pytest`, the others by `pytest -m slow`."""
    return _mark_others(values, kept, pytest.mark.slow)


def _mark_others(values: Iterable[Any], kept: Sequence[Any], mark: pytest.MarkDecorator) -> list[Any]:
    values = list(values)
    assert all(value in values for value in kept), kept
    return [value if value in kept else pytest.param(value, marks=mark) for value in values]


def thin(items: Sequence[pytest.Item]) -> None:
    """Mark what of tests with many parameters is left to a later run; a test is in one run only."""
    for product in _by_function(items, "diagonal"):
        _thin_product(product)
    for cases in _by_function(items, "share"):
        _thin_cases(cases)
    slow = [item for item in items if item.get_closest_marker("slow") and not item.get_closest_marker("weekly")]
    for item in items:
        # What a module marks, its tests of the week would have too.
        for node in item.listchain():
            node.own_markers[:] = [mark for mark in node.own_markers if mark.name != "slow"]
    for item in slow:
        item.add_marker(pytest.mark.slow)


def _by_function(items: Sequence[pytest.Item], marker: str) -> Iterable[list[pytest.Item]]:
    """Return the tests with this marker, those of one function together."""
    functions: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker(marker):
            functions[item.nodeid.partition("[")[0]].append(item)
    return functions.values()


def _thin_product(product: Sequence[pytest.Item]) -> None:
    """Leave to the week what shows no value of a parameter for the first time.

    Of two values of one parameter and four of another that makes four tests in place of eight.
    """
    values = [_values(item) for item in product]
    axes: dict[str, list[str]] = {}
    for name in sorted(values[0], key=lambda name: -len({each[name] for each in values})):
        # What another parameter decides, such as the answer that is expected, is no choice.
        if all(len({(each[axis], each[name]) for each in values}) > len(axes[axis]) for axis in axes):
            axes[name] = list(dict.fromkeys(each[name] for each in values))
    longest = max(map(len, axes.values()), default=0)
    shown = [{axis: known[at % len(known)] for axis, known in axes.items()} for at in range(longest)]
    for item, own in zip(product, values, strict=True):
        if axes and {axis: own[axis] for axis in axes} not in shown:
            item.add_marker(pytest.mark.weekly)


def _thin_cases(cases: Sequence[pytest.Item]) -> None:
    """Keep as many cases as `share` says, and leave the others to the slow tests or to the week."""
    cases = [item for item in cases if not item.get_closest_marker("weekly")]
    if not cases:
        return
    kept, slow = _share_of(cases)
    for place, number in enumerate(_most_telling_first([_values(item) for item in cases])):
        if place >= kept + slow:
            cases[number].add_marker(pytest.mark.weekly)
        elif place >= kept:
            cases[number].add_marker(pytest.mark.slow)


def _most_telling_first(values: Sequence[dict[str, str]]) -> Iterable[int]:
    """Return the numbers of cases: first those that show several values of parameters for the first time, then one."""
    numbers = _spread(len(values))
    placed: dict[int, None] = {}
    seen: set[tuple[str, str]] = set()
    for needed in range(max(map(len, values), default=0), -1, -1):
        for number in numbers:
            if number not in placed and len(values[number].items() - seen) >= needed:
                placed[number] = None
                seen |= values[number].items()
    return placed


def _spread(count: int) -> list[int]:
    """Return the numbers below `count` so that those at the beginning are apart from one another."""
    return sorted(range(count), key=lambda number: number * _GOLDEN_RATIO % 1)


def _share_of(cases: Sequence[pytest.Item]) -> tuple[int, float]:
    """Return the counts of the mark `share`: how many cases stay, and how many are slow.

    Unless the mark says, all others are slow, or as many again where each starts a process. A test that is slow itself
    has its share there, and leaves the others to the week.
    """
    mark = cases[0].get_closest_marker("share")
    assert mark is not None
    kept = mark.args[0]
    if all(item.get_closest_marker("slow") for item in cases):
        return kept, 0
    if "slow" in mark.kwargs:
        return kept, mark.kwargs["slow"]
    if cases[0].get_closest_marker("process"):
        return kept, kept
    return kept, math.inf


def _values(item: pytest.Item) -> dict[str, str]:
    """Return the parameters of `item`, as texts; none for a test that has none."""
    callspec = getattr(item, "callspec", None)
    return {} if callspec is None else {name: repr(value) for name, value in callspec.params.items()}
