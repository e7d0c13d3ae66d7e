"""What of the suite runs with every change, and what every week: `just weekly`.

Weekly are tests that try all of something of which others try a part, and tests of tools that change seldom.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

__all__ = ["some", "thin"]


def some(values: Iterable[Any], *kept: Any) -> list[Any]:
    """Values of a parameter: `kept` are tried with every change, the others every week."""
    values = list(values)
    assert all(value in values for value in kept), kept
    return [value if value in kept else pytest.param(value, marks=pytest.mark.weekly) for value in values]


def thin(items: Sequence[pytest.Item]) -> None:
    """Of each test marked `diagonal`, leave to the week what shows no value of a parameter for the first time.

    Of two values of one parameter and four of another that makes four tests in place of eight.
    """
    products: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("diagonal"):
            products[item.nodeid.partition("[")[0]].append(item)
    for product in products.values():
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


def _values(item: pytest.Item) -> dict[str, str]:
    """The parameters of `item`, as texts; none for a test that has none."""
    callspec = getattr(item, "callspec", None)
    return {} if callspec is None else {name: repr(value) for name, value in callspec.params.items()}
