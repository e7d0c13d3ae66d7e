"""What is watched and told while subscriptions come and go, seen from a source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable

import anyio
import pytest
from mcp.shared.subscriptions import ResourceUpdated, ServerEvent

from mcp_batteries.subscriptions.followers import Followers
from mcp_batteries.subscriptions.journal import Change
from mcp_batteries.subscriptions.subscribers import Subscribers
from mcp_batteries.subscriptions.topics import Subscriber
from shared.test_followers import Script, following

pytestmark = pytest.mark.anyio


class Listener(Subscriber):
    """Counts what it is told, by URI."""

    def __init__(self) -> None:
        super().__init__(self._take)
        self.heard: Counter[str] = Counter()
        self._news = anyio.Event()

    async def _take(self, event: ServerEvent) -> None:
        assert isinstance(event, ResourceUpdated)
        self.heard[event.uri] += 1
        self._news.set()

    async def hears(self, uri: str, times: int) -> None:
        with anyio.fail_after(10):
            while self.heard[uri] < times:
                self._news = anyio.Event()
                await self._news.wait()


async def test_who_subscribes_again_at_once_goes_on_being_told() -> None:
    async with following() as (_, subscribers, source):
        listener = Listener()
        subscribers.start(listener)
        await subscribers.subscribe(listener, "a").wait_settled()
        subscribers.unsubscribe(listener, "a")
        await subscribers.subscribe(listener, "a").wait_settled()
        assert source.watched == {"a"}
        source.changed(["a"])
        await listener.hears("a", 1)


class Telling(Script):
    """By a URI a follower means what is below it."""

    def followed_key(self, uri: str) -> Hashable | None:
        return f"below {uri}"

    async def poll(self, keys: Collection[Hashable]) -> None:
        pass

    def take_changes(self, key: Hashable) -> Iterable[Change]:
        return (Change(),)

    def describe_change(self, change: Change) -> str:
        return ""


async def test_a_follower_may_mean_more_than_a_subscriber() -> None:
    source = Telling()
    subscribers = Subscribers([source], lambda uri: None)
    async with subscribers.running():
        await subscribers.subscribe(Listener(), "a").wait_settled()
        assert source.watched == {"a"}
        await Followers(subscribers).begin("me", ["a"])
        assert source.watched == {"a", "below a"}


async def test_changes_during_a_rest_are_one_notice() -> None:
    async with following() as (_, subscribers, source):
        listener = Listener()
        subscribers.start(listener)
        for uri in "ab":
            await subscribers.subscribe(listener, uri).wait_settled()
        for _ in range(3):
            source.changed(["a"])
        await listener.hears("a", 2)
        for number in range(1, 5):  # each but the first comes after a rest
            source.changed(["b"])
            await listener.hears("b", number)
        assert listener.heard["a"] == 2


async def test_who_serves_on_takes_over_what_is_watched() -> None:
    sources = [Script(), Script()]
    subscribers = Subscribers(sources, lambda uri: None)
    listener, begun, over = Listener(), anyio.Event(), anyio.Event()

    async def first() -> None:
        async with subscribers.running():
            begun.set()
            await over.wait()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(first)
        await begun.wait()
        async with subscribers.running():
            await subscribers.subscribe(listener, "a").wait_settled()
            earlier = sources[0].changed
            over.set()
            with anyio.fail_after(10):
                while sources[0].changed is earlier or not sources[0].watched:
                    await anyio.lowlevel.checkpoint()
            assert [source.watched for source in sources] == [{"a"}, set()]
