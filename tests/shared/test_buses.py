"""The bus between replicas, over a link that a test holds in its hands."""

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

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
from mcp_batteries.replicas import bus as module
from mcp_batteries.replicas import connect
from mcp_batteries.replicas.bus import RemoteBus
from simulation.world import Loop

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def short_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BEAT_SECONDS", 0.05)


class Channel:
    """Carries messages to everybody at once; breaks when told to, and loses those that `loses` says."""

    def __init__(self) -> None:
        self.loses: Callable[[bytes], bool] = lambda message: False
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
        if self.channel.loses(message):
            return
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


@asynccontextmanager
async def replicas(*links: "Link") -> AsyncGenerator[list[tuple[RemoteBus, Ear]]]:
    """Replicas over `links` that are connected, and what each hears from then on."""
    buses = [RemoteBus(link) for link in links]
    made = [(bus, Ear(bus)) for bus in buses]
    async with AsyncExitStack() as stack:
        for bus in buses:
            await stack.enter_async_context(bus.running())
        for _, ear in made:
            await ear.hears("everything")
        # Each answers a greeting: once these have come, nobody has anything to look for any more.
        with anyio.fail_after(30):
            origins = {bus._origin for bus in buses}
            while not all(bus._received.keys() >= origins - {bus._origin} for bus in buses):
                await anyio.sleep(0.01)
        await anyio.sleep(3 * module.BEAT_SECONDS)
        for _, ear in made:
            ear.heard.clear()
        yield made


async def lost(bus: RemoteBus) -> None:
    with anyio.fail_after(30):
        while bus.connected:
            await anyio.sleep(0.01)


async def test_each_event_is_heard_once_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_GATHER_SECONDS", 0)
    channel = Channel()
    events = [ResourceUpdated("test://é"), ResourcesListChanged(), ToolsListChanged(), PromptsListChanged()]
    async with replicas(channel.link(), channel.link()) as ((one, here), (_, there)):
        for event in events:
            await one.publish(event)
        await there.hears(events[-1])
        await anyio.wait_all_tasks_blocked()  # nobody is told to look again
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
    async with replicas(link, channel.link()) as ((one, here), (_, there)):
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


async def test_a_message_that_is_lost_is_noticed_even_if_it_was_the_last() -> None:
    channel = Channel()
    async with replicas(channel.link(), channel.link()) as ((one, here), (_, there)):
        channel.loses = lambda message: b"lost" in message
        await one.publish(ResourceUpdated("test://lost"))
        await there.hears("everything")
        await one.publish(ResourceUpdated("test://found"))
        await there.hears(ResourceUpdated("test://found"))
    assert there.heard == ["everything", ResourceUpdated("test://found")]
    assert "everything" not in here.heard


async def test_a_link_that_brings_nothing_back_is_lost_and_all_look_again(caplog: pytest.LogCaptureFixture) -> None:
    channel = Channel()
    async with replicas(channel.link(), channel.link()) as ((one, here), (_, there)):
        channel.loses = lambda message: True
        await lost(one)
        await one.publish(ResourceUpdated("test://lost"))
        channel.loses = lambda message: False
        await here.hears("everything")
        await there.hears("everything")
    assert "silence" in caplog.text


async def test_a_link_that_cannot_send_is_lost_and_all_look_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SEND_SECONDS", 0.1)
    channel = Channel()
    link = channel.link()
    async with replicas(link, channel.link()) as ((one, here), (_, there)):
        send = link.send

        async def hang(message: bytes) -> None:
            await anyio.sleep_forever()

        link.send = hang
        await one.publish(ResourceUpdated("test://lost"))
        await lost(one)
        link.send = send
        await here.hears("everything")
        await there.hears("everything")


async def test_a_link_that_never_connects_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CONNECT_SECONDS", 0.05)
    channel = Channel()
    link = channel.link()
    hold, tries = link.hold, 0

    async def hangs(receive: Callable[[bytes], None], connected: Callable[[], None]) -> None:
        nonlocal tries
        tries += 1
        if tries < 3:
            await anyio.sleep_forever()
        await hold(receive, connected)

    link.hold = hangs
    bus = RemoteBus(link)
    ear = Ear(bus)
    async with bus.running():
        await ear.hears("everything")
    assert tries == 3


def test_a_bus_that_is_away_is_told_of_once_and_soon_tried_twice_a_second(caplog: pytest.LogCaptureFixture) -> None:
    tries: list[float] = []

    class Nowhere:
        async def hold(self, receive: Callable[[bytes], None], connected: Callable[[], None]) -> None:
            tries.append(anyio.current_time())
            raise OSError("password")

        async def send(self, message: bytes) -> None:
            raise AssertionError

    async def wait() -> None:
        async with RemoteBus(Nowhere()).running():
            await anyio.sleep(10)

    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(wait())
    waits = [later - earlier for earlier, later in itertools.pairwise(tries)]
    assert waits == pytest.approx([0.1, 0.2, 0.4] + [0.5] * (len(waits) - 3))
    assert len(caplog.records) == 1


async def test_a_replica_greets_once_and_is_answered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BEAT_SECONDS", 3600)
    channel = Channel()
    one, two = RemoteBus(channel.link()), RemoteBus(channel.link())
    async with one.running():
        await anyio.wait_all_tasks_blocked()
        async with two.running():
            await anyio.wait_all_tasks_blocked()
            sent = [json.loads(message) for message in channel.sent]
    first, second = one._origin, two._origin
    assert [(said["from"], "hello" in said) for said in sent] == [(first, True), (second, True), (first, False)]


async def test_without_subscribers_beats_are_rare() -> None:
    channel = Channel()
    bus = RemoteBus(channel.link())
    ear = Ear(bus)
    bus.is_needed = lambda: False
    async with bus.running():
        await ear.hears("everything")
        before = len(channel.sent)
        await anyio.sleep(8 * module.BEAT_SECONDS)
        assert len(channel.sent) <= before + 1
        await bus.publish(ResourceUpdated("test://x"))
        with anyio.fail_after(30):
            while len(channel.sent) < before + 4:
                await anyio.sleep(0.01)


@pytest.mark.parametrize(
    "junk", [b"", b"{}", b"[]", b"null", b'"x"', b"\xff", b'{"v":1,"from":"x","n":1,"list":"a"}', b"{" * 9]
)
async def test_what_makes_no_sense_is_passed_over(junk: bytes, caplog: pytest.LogCaptureFixture) -> None:
    channel = Channel()
    bus = RemoteBus(channel.link())
    ear = Ear(bus)
    async with bus.running():
        await ear.hears("everything")
        ear.heard.clear()
        for receive in channel.receivers.values():
            receive(junk)
            receive(json.dumps({"v": 1, "from": "x", "n": 1, "uri": "test://good"}).encode())
        await ear.hears(ResourceUpdated("test://good"))
    assert ear.heard == [ResourceUpdated("test://good")]
    assert "no sense" in caplog.text


async def test_what_is_too_long_becomes_a_look_at_everything() -> None:
    channel = Channel()
    async with replicas(channel.link(), channel.link()) as ((one, _), (_, there)):
        await one.publish(ResourceUpdated("test://" + "x" * 9_000))
        await there.hears("everything")
    assert all(len(message) < 8_000 for message in channel.sent)


@pytest.mark.parametrize("url", ["amqp://u:secret@x", "secret", ""])
def test_a_url_of_no_bus_is_refused_without_its_words(url: str) -> None:
    with pytest.raises(Invalid) as refused:
        connect(url, "x")
    assert "secret" not in str(refused.value)
