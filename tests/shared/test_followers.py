"""The ring of changes against a list that forgets nothing, and the followers that come and go."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Callable, Collection, Hashable
from contextlib import asynccontextmanager

import anyio
import pytest

from mcp_batteries.errors import Conflict, TooLarge, Unavailable
from mcp_batteries.subscriptions import followers as module
from mcp_batteries.subscriptions import journal as ring
from mcp_batteries.subscriptions.followers import Followers
from mcp_batteries.subscriptions.journal import Change, Journal
from mcp_batteries.subscriptions.subscribers import Subscribers
from mcp_batteries.subscriptions.topics import Follower

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("seed", range(50))
def test_the_ring_tells_what_differs_between_any_two_questions(seed: int) -> None:
    """Of files that come, change and go; each state that was asked at is compared with each later one."""
    chance, journal = random.Random(seed), Journal()
    state: dict[tuple[str, str], str] = {}
    asked: list[tuple[int, dict[tuple[str, str], str]]] = [(journal.mark(), {})]
    for step in range(120):
        place, name = chance.choice("AB"), chance.choice("xyz")
        before, after = state.get((place, name)), chance.choice([None, str(step), "same"])
        if chance.random() < 0.15:
            asked.append((journal.mark(), dict(state)))
        elif before != after:
            what = "created" if before is None else "deleted" if after is None else "changed"
            journal.add(place, Change(name, what, before, after))
            if after is None:
                del state[place, name]
            else:
                state[place, name] = after
    asked.append((journal.mark(), dict(state)))
    for number, (after_mark, earlier) in enumerate(asked):
        for until, later in asked[number:]:
            for places in ("A", "B", "AB"):
                told = {
                    (noted.topic, noted.change.name): (noted.change.kind, noted.change.before, noted.change.after)
                    for noted in journal.between(places, after_mark, until)
                }
                assert told == _difference(earlier, later, places)
                assert not journal.is_cut(places, after_mark)


def _difference(
    earlier: dict[tuple[str, str], str], later: dict[tuple[str, str], str], places: str
) -> dict[tuple[Hashable, str], tuple[str, str | None, str | None]]:
    found: dict[tuple[Hashable, str], tuple[str, str | None, str | None]] = {}
    for key in earlier.keys() | later.keys():
        before, after = earlier.get(key), later.get(key)
        if key[0] in places and before != after:
            what = "created" if before is None else "deleted" if after is None else "changed"
            found[key] = what, before, after
    return found


def test_a_busy_thing_takes_one_place_for_each_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ring, "_MAX_CHANGES", 3)
    journal = Journal()
    first = journal.mark()
    for _ in range(1000):
        journal.add("log", Change())
    [noted] = journal.between({"log"}, first, journal.mark())
    assert noted.times == 1000 and not journal.is_cut({"log"}, first)
    second = journal.mark()
    for name in "abcd":
        journal.add("folder", Change(name))
    assert journal.is_cut({"log"}, first) and not journal.is_cut({"log"}, second)
    assert journal.is_cut({"folder"}, second)


def test_texts_are_let_go_before_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ring, "_MAX_CHARACTERS", 1000)
    journal = Journal()
    first = journal.mark()
    for number in range(30):
        journal.add("folder", Change(str(number), "changed", "x" * 100, "y"))
    assert len(journal.between({"folder"}, first, journal.mark())) == 10
    assert journal.is_cut({"folder"}, first)


class Script:
    """A source that watches what it is told to, but for what begins with `bad`."""

    list_keys: Collection[Hashable] = ()

    def __init__(self) -> None:
        self.watched: set[Hashable] = set()
        self.left = anyio.Event()

    def key(self, uri: str) -> Hashable | None:
        return uri

    async def add(self, keys: Collection[Hashable]) -> None:
        if any(str(key).startswith("bad") for key in keys):
            raise OSError("cannot be watched")
        assert self.watched.isdisjoint(keys)
        self.watched.update(keys)

    def discard(self, keys: Collection[Hashable]) -> None:
        self.watched.difference_update(keys)
        if not self.watched:
            self.left.set()

    async def run(self, changed: Callable[[Collection[Hashable]], None]) -> None:
        self.changed = changed
        try:
            await anyio.sleep_forever()
        finally:
            self.watched.clear()


@asynccontextmanager
async def following() -> AsyncGenerator[tuple[Followers, Subscribers, Script]]:
    source = Script()
    subscribers = Subscribers([source], lambda uri: None)
    async with subscribers.running():
        yield Followers(subscribers), subscribers, source


async def test_who_does_not_ask_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Follower, "IDLE_SECONDS", 0.05)
    async with following() as (followers, subscribers, source):
        name, _ = await followers.begin("me", ["a"])
        source.changed(["a"])
        with anyio.fail_after(10):
            await source.left.wait()
        assert not subscribers.journal._ring
        with pytest.raises(Conflict, match="let go"):
            followers.find("me", name)


async def test_between_questions_nothing_is_done() -> None:
    async with following() as (followers, _, source):
        _, follower = await followers.begin("me", ["a"])
        for _ in range(3):
            follower.restart_idle_time()
            with anyio.fail_after(10):
                await anyio.wait_all_tasks_blocked()
        assert source.watched == {"a"}


async def test_a_name_is_good_for_its_owner_only() -> None:
    async with following() as (followers, _, _):
        name, follower = await followers.begin("me", ["a"])
        for owner, other in (("you", name), ("me", "made up")):
            with pytest.raises(Conflict):
                followers.find(owner, other)
        assert followers.find("me", name) is follower


async def test_the_one_that_asked_longest_ago_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST", 3)
    async with following() as (followers, _, _):
        names = [(await followers.begin("me", [uri]))[0] for uri in "abc"]
        followers.find("me", names[0])
        names.append((await followers.begin("me", ["d"]))[0])
        with pytest.raises(Conflict):
            followers.find("me", names[1])
        for name in (names[0], names[2], names[3]):
            followers.find("me", name)


async def test_all_or_none_is_followed() -> None:
    async with following() as (followers, subscribers, source):
        for uris, error in ((["a", "bad"], Unavailable), ([str(number) for number in range(1001)], TooLarge)):
            with pytest.raises(error):
                await followers.begin("me", uris)
            assert len(subscribers) == 0
        _, follower = await followers.begin("me", ["a"])
        with pytest.raises(Unavailable):
            await followers.extend(follower, ["b", "bad"])
        assert set(follower.uris) == {"a"} and "bad" not in source.watched


async def test_what_changes_is_noted_for_those_who_follow_it() -> None:
    async with following() as (followers, subscribers, source):
        _, one = await followers.begin("me", ["a", "b"])
        _, other = await followers.begin("you", ["b"])
        journal = subscribers.journal
        since = journal.mark()
        source.changed(["a", "c"])
        source.changed(["b"])
        source.changed(["b"])
        until = journal.mark()
        assert [noted.times for noted in journal.between(one.topics, since, until)] == [1, 2]
        assert [noted.times for noted in journal.between(other.topics, since, until)] == [2]


@pytest.mark.parametrize("asked", [False, True])
def test_a_thing_that_goes_on_under_another_name_takes_its_earlier_changes_along(asked: bool) -> None:
    """A log that was rotated: what was written since the last question is told, also if somebody else asked between."""
    journal = Journal()
    start = journal.mark()
    journal.add("t", Change("log", "changed", "old\n", "old\nA\n"))
    journal.add("t", Change("large", "changed", added="A\n"))
    if asked:
        journal.mark()
    journal.add("t", Change("log.1", "created", "old\nA\n", "old\nA\nB\n", origin="log", continues="log"))
    journal.add("t", Change("log", "changed", "", "new\n", is_anew=True))
    journal.add("t", Change("large.1", "created", added="B\n", origin="large", continues="large"))
    journal.add("t", Change("large", "changed", "", "new\n", is_anew=True))
    found = {entry.change.name: entry.change for entry in journal.between(["t"], start, journal.now)}
    assert (found["log.1"].before, found["log.1"].after) == ("old\n", "old\nA\nB\n")
    assert (found["log"].before, found["log"].after) == ("", "new\n")
    assert found["large.1"].added == "A\nB\n" and found["large"].before == ""
