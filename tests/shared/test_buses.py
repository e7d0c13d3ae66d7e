"""The bus between replicas, over a link that a test holds in its hands."""

import json
from collections.abc import Callable

import anyio
import pytest
from mcp.shared.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)

from mcp_batteries.errors import Invalid
from mcp_batteries.replicas import connect
from mcp_batteries.replicas.bus import RemoteBus

pytestmark = pytest.mark.anyio


class Channel:
    """Carries messages to everybody at once; breaks when told to."""

    def __init__(self) -> None:
        self.receivers: dict[object, Callable[[bytes], None]] = {}
        self.sent: list[bytes] = []
        self.up, self.down = anyio.Event(), anyio.Event()
        self.up.set()

    def link(self) -> "Link":
        return Link(self)

    def break_(self) -> None:
        self.up = anyio.Event()
        self.down.set()

    def mend(self) -> None:
        self.down = anyio.Event()
        self.up.set()


class Link:
    """One replica's way to the channel, which can also break for it alone."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.cut = anyio.Event()
        self.may_connect = True

    async def hold(self, receive: Callable[[bytes], None], connected: Callable[[], None]) -> None:
        if not (self.channel.up.is_set() and self.may_connect):
            raise OSError("password")
        self.channel.receivers[self] = receive
        connected()
        try:
            async with anyio.create_task_group() as tasks:

                async def until(event: anyio.Event) -> None:
                    await event.wait()
                    tasks.cancel_scope.cancel()

                tasks.start_soon(until, self.channel.down)
                tasks.start_soon(until, self.cut)
        finally:
            del self.channel.receivers[self]
        raise OSError("password")

    async def send(self, message: bytes) -> None:
        if self.channel.down.is_set():
            raise OSError("password")
        self.channel.sent.append(message)
        for receive in list(self.channel.receivers.values()):
            receive(message)


class Ear:
    """What the subscribers of one replica hear."""

    def __init__(self, bus: RemoteBus) -> None:
        self.heard: list[ServerEvent | str] = []
        self.arrival = anyio.Event()
        bus.subscribe(self.hear)
        bus.on_gap = lambda: self.hear("everything")

    def hear(self, event: ServerEvent | str) -> None:
        self.heard.append(event)
        self.arrival.set()
        self.arrival = anyio.Event()

    async def hears(self, event: ServerEvent | str) -> None:
        with anyio.fail_after(30):
            while event not in self.heard:
                await self.arrival.wait()


async def test_each_event_is_heard_once_everywhere() -> None:
    channel = Channel()
    one, two = RemoteBus(channel.link()), RemoteBus(channel.link())
    here, there = Ear(one), Ear(two)
    events = [ResourceUpdated("test://é"), ResourcesListChanged(), ToolsListChanged(), PromptsListChanged()]
    async with one.running(), two.running():
        with anyio.fail_after(30):
            while len(channel.receivers) < 2:
                await anyio.sleep(0)
        for event in events:
            await one.publish(event)
        await there.hears(events[-1])
    assert here.heard == there.heard == events


async def test_nothing_waits_for_a_bus_that_is_away_and_all_look_again_when_it_is_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    channel = Channel()
    one, two = RemoteBus(channel.link()), RemoteBus(channel.link())
    here, there = Ear(one), Ear(two)
    channel.break_()
    async with one.running(), two.running():
        await one.publish(ResourceUpdated("test://lost"))
        assert here.heard == [ResourceUpdated("test://lost")]
        channel.mend()
        await here.hears("everything")
        await there.hears("everything")
        channel.break_()
        channel.mend()
        for ear in (here, there):
            with anyio.fail_after(30):
                while ear.heard.count("everything") < 2:
                    await ear.arrival.wait()
        await one.publish(ResourceUpdated("test://found"))
        await there.hears(ResourceUpdated("test://found"))
    assert ResourceUpdated("test://lost") not in there.heard
    assert "password" not in caplog.text


async def test_who_was_away_alone_has_the_others_look_again_too() -> None:
    """They noticed nothing, and what was announced meanwhile never reached them."""
    channel = Channel()
    link = channel.link()
    one, two = RemoteBus(link), RemoteBus(channel.link())
    here, there = Ear(one), Ear(two)
    async with one.running(), two.running():
        with anyio.fail_after(30):
            while len(channel.receivers) < 2:
                await anyio.sleep(0)
        link.may_connect = False
        link.cut.set()
        with anyio.fail_after(30):
            while one.connected:
                await anyio.sleep(0)
        await one.publish(ResourceUpdated("test://lost"))
        link.cut, link.may_connect = anyio.Event(), True
        await here.hears("everything")
        await there.hears("everything")
    assert there.heard == ["everything"]


@pytest.mark.parametrize(
    "junk", [b"", b"{}", b"[]", b"null", b'"x"', b"\xff", b'{"v":1,"from":"x","list":"a"}', b"{" * 9]
)
async def test_what_makes_no_sense_is_passed_over(junk: bytes, caplog: pytest.LogCaptureFixture) -> None:
    channel = Channel()
    bus = RemoteBus(channel.link())
    ear = Ear(bus)
    async with bus.running():
        await anyio.wait_all_tasks_blocked()
        for receive in channel.receivers.values():
            receive(junk)
            receive(json.dumps({"v": 1, "from": "x", "uri": "test://good"}).encode())
        await ear.hears(ResourceUpdated("test://good"))
    assert ear.heard == [ResourceUpdated("test://good")]
    assert "no sense" in caplog.text


async def test_what_is_too_long_becomes_a_look_at_everything() -> None:
    channel = Channel()
    one, two = RemoteBus(channel.link()), RemoteBus(channel.link())
    there = Ear(two)
    async with one.running(), two.running():
        with anyio.fail_after(30):
            while len(channel.receivers) < 2:
                await anyio.sleep(0)
        await one.publish(ResourceUpdated("test://" + "x" * 9_000))
        await there.hears("everything")
    assert all(len(message) < 8_000 for message in channel.sent)


@pytest.mark.parametrize("url", ["amqp://u:secret@x", "secret", ""])
def test_a_url_of_no_bus_is_refused_without_its_words(url: str) -> None:
    with pytest.raises(Invalid) as refused:
        connect(url, "x")
    assert "secret" not in str(refused.value)
