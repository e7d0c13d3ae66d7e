"""The markers are read off the code: what starts a process is found however deep it does so."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from markers import SIGNS, named
from thinning import few, some, thin
from weather import serving, test_changes, test_policy


def test_what_starts_a_process_is_found_through_helpers_and_classes() -> None:
    for work in (serving.served, test_changes.test_memory_serves_subscriptions_too):
        assert named(work) & SIGNS["process"]
    for work in (serving.client, test_policy.test_a_name_is_taken_apart):
        assert not named(work) & SIGNS["process"]


class Item:
    """Of a test what `thin` asks for."""

    nodeid = "test.py::test[x]"

    def __init__(self, *marks: pytest.Mark, **params: object) -> None:
        self.callspec = SimpleNamespace(params=params)
        self.own_markers = [*marks]
        self.module = SimpleNamespace(own_markers=list[pytest.Mark]())

    def listchain(self) -> list[Any]:
        return [self.module, self]

    def iter_markers(self, name: str) -> list[pytest.Mark]:
        return [mark for mark in (*self.own_markers, *self.module.own_markers) if mark.name == name]

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return next(iter(self.iter_markers(name)), None)

    def add_marker(self, marker: pytest.MarkDecorator) -> None:
        self.own_markers.append(marker.mark)

    @property
    def run(self) -> str:
        runs = [name for name in ("slow", "weekly") if self.iter_markers(name)]
        assert len(runs) <= 1
        return "".join(runs)


def thinned(items: Sequence[Item]) -> list[tuple[object, ...]]:
    """Return the parameters of those that are left for `pytest` itself."""
    thin(cast("list[pytest.Item]", items))
    return [tuple(item.callspec.params.values()) for item in items if not item.run]


def test_of_a_product_each_value_is_tried_with_every_change() -> None:
    mark = pytest.mark.diagonal.mark
    asked = {1: "few", 2: "some", 3: "some", 4: "many"}
    items = [Item(mark, one=one, number=number, expected=said) for one in "ab" for number, said in asked.items()]
    assert thinned(items) == [("a", 1, "few"), ("a", 3, "some"), ("b", 2, "some"), ("b", 4, "many")]
    assert {item.run for item in items} == {"", "weekly"}


def test_a_share_of_the_cases_shows_as_many_values_as_it_can() -> None:
    items = [Item(pytest.mark.share(4).mark, one=one, number=number) for one in "ab" for number in range(4)]
    assert thinned(items) == [("a", 0), ("a", 2), ("b", 1), ("b", 3)]
    assert {item.run for item in items} == {"", "slow"}
    cases = [Item(pytest.mark.share(3).mark, number=number) for number in range(9)]
    assert thinned(cases) == [(0,), (2,), (5,)]
    assert thinned([Item(pytest.mark.share(3).mark, number=1)]) == [(1,)]


def test_a_share_of_what_starts_processes_or_is_slow_leaves_cases_to_the_week() -> None:
    def runs(*marks: pytest.MarkDecorator) -> list[str]:
        items = [Item(*(mark.mark for mark in marks), number=number) for number in range(6)]
        thinned(items)
        return sorted(item.run for item in items)

    assert runs(pytest.mark.share(2), pytest.mark.process) == ["", "", "slow", "slow", "weekly", "weekly"]
    assert runs(pytest.mark.share(1, slow=4), pytest.mark.process) == ["", *["slow"] * 4, "weekly"]
    assert runs(pytest.mark.share(2), pytest.mark.slow) == ["slow"] * 2 + ["weekly"] * 4


def test_what_is_for_the_week_is_in_no_other_run() -> None:
    item = Item(pytest.mark.slow.mark, pytest.mark.weekly.mark)
    thinned([item])
    assert item.run == "weekly"


def test_what_a_module_leaves_to_the_slow_run_is_not_there_if_it_is_weekly() -> None:
    items = [Item(), Item(pytest.mark.weekly.mark)]
    for item in items:
        item.module.own_markers = [pytest.mark.slow.mark]
    thinned(items)
    assert [item.run for item in items] == ["slow", "weekly"]


def test_others_are_for_another_run() -> None:
    for mark, chosen in ((some, "weekly"), (few, "slow")):
        first, second = mark(["a", "b"], "b")
        assert second == "b"
        assert [mark.name for mark in first.marks] == [chosen]
        with pytest.raises(AssertionError):
            mark(["a"], "c")
