"""The markers are read off the code: what starts a process is found however deep it does so."""

from types import SimpleNamespace
from typing import cast

import pytest

from markers import SIGNS, named
from thinning import some, thin
from weather import serving, test_changes, test_policy


def test_what_starts_a_process_is_found_through_helpers_and_classes() -> None:
    for work in (serving.served, test_changes.test_memory_serves_subscriptions_too):
        assert named(work) & SIGNS["process"]
    for work in (serving.client, test_policy.test_a_name_is_taken_apart):
        assert not named(work) & SIGNS["process"]


class Item:
    """Of a test what `thin` asks for."""

    nodeid = "test.py::test[x]"

    def __init__(self, **params: object) -> None:
        self.callspec = SimpleNamespace(params=params)
        self.is_weekly = False

    def get_closest_marker(self, name: str) -> bool:
        return name == "diagonal"

    def add_marker(self, marker: pytest.MarkDecorator) -> None:
        self.is_weekly = marker.name == "weekly"


def test_of_a_product_each_value_is_tried_with_every_change() -> None:
    asked = {1: "few", 2: "some", 3: "some", 4: "many"}
    items = [Item(one=one, number=number, expected=said) for one in "ab" for number, said in asked.items()]
    thin(cast("list[pytest.Item]", items))
    left = [(item.callspec.params["one"], item.callspec.params["number"]) for item in items if not item.is_weekly]
    assert left == [("a", 1), ("a", 3), ("b", 2), ("b", 4)]


def test_of_some_the_others_are_for_the_week() -> None:
    first, second = some(["a", "b"], "b")
    assert second == "b"
    assert [mark.name for mark in first.marks] == ["weekly"]
    with pytest.raises(AssertionError):
        some(["a"], "c")
