"""A hub with many subscribers, slow ones, and ones that leave."""

from typing import Any

import anyio
import anyio.lowlevel
import pytest
from mcp import MCPError
from mcp.client import Client
from mcp.shared.subscriptions import ResourceUpdated
from mcp_types import INVALID_PARAMS

from mcp_batteries.subscriptions import hub as module
from mcp_batteries.subscriptions.topics import Subscriber
from shared.hearing import MARKS, SECONDS, Script, listener, serve
from shared.hearing import each_era as each_era

pytestmark = MARKS


async def test_a_burst_is_a_handful_of_notices_and_the_last_is_the_last() -> None:
    source = Script()
    server, _ = serve(source)
    async with listener(server, "legacy") as client:
        await client.subscribe("s:a")
        for _ in range(1000):
            source.changed(["a"])
        await client.inbox.take("s:a")
        await client.inbox.take("s:a")
        # What changes now is told after now, though it was told a moment ago.
        source.changed(["a"])
        await client.inbox.take("s:a")
        assert client.inbox.items == []


async def test_a_subscriber_is_ended_in_the_middle_of_sending() -> None:
    sending = anyio.Event()

    async def send(event: Any) -> None:
        sending.set()
        await anyio.sleep_forever()

    reader = Subscriber(send)
    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reader.pump)
            reader.push(ResourceUpdated("s:a"))
            await sending.wait()
            reader.stop()


async def test_a_closed_connection_releases_everything(era: str) -> None:
    source = Script()
    server, hub = serve(source)
    async with hub.running(), listener(server, era) as stays:
        await stays.subscribe("s:kept")
        async with listener(server, era) as leaves:
            await leaves.follow_list()
            await leaves.subscribe("s:a", "s:kept")
            assert source.watched == {"a", "kept", "root"}
        await source.watches("kept")
        source.changed(["kept"])
        await stays.inbox.take("s:kept")
        assert len(hub._connections) == len(hub._subscribers._subscribers) == (era == "legacy")


async def test_when_one_block_ends_another_takes_over() -> None:
    """The SDK's SSE transport enters the lifespan once for each connection."""
    source = Script()
    server, _ = serve(source)
    ready, leave = anyio.Event(), anyio.Event()

    async def first() -> None:
        async with listener(server, "legacy") as client:
            await client.subscribe("s:a")
            ready.set()
            await leave.wait()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(first)
        await ready.wait()
        async with listener(server, "legacy") as client:
            await client.subscribe("s:b")
            leave.set()
            await source.watches("b")
            source.changed(["b"])
            await client.inbox.take("s:b")


async def test_a_reader_that_stalls_harms_nobody(era: str) -> None:
    source = Script()
    server, hub = serve(source)
    stall = anyio.Event()
    stalled: list[str] = []

    async with hub.running(), listener(server, era) as client:
        # What a stalled pipe is to the hub: a send that does not return.
        async def send(event: Any) -> None:
            stalled.append(event.uri)
            await stall.wait()

        reader = Subscriber(send)
        for number in range(50):
            hub._subscribers.subscribe(reader, f"s:{number}")
        await client.subscribe("s:0")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reader.pump)
            for _ in range(20):
                source.changed([str(number) for number in range(50)])
                await client.inbox.take("s:0")
            assert len(stalled) == 1
            assert len(reader._pending) <= 50
            stall.set()
            reader.end()
        assert set(stalled) == {f"s:{number}" for number in range(50)}
        hub._subscribers.unsubscribe_all(reader)
        await source.watches("0")


async def test_what_waits_behind_a_stall_is_not_told_to_who_unsubscribed() -> None:
    source = Script()
    server, hub = serve(source)
    stall = anyio.Event()
    sent: list[str] = []

    async def send(event: Any) -> None:
        sent.append(event.uri)
        await stall.wait()

    async with listener(server, "legacy") as client:
        await client.subscribe("s:0", "s:1", "s:2")
        reader = Subscriber(send)
        for number in range(3):
            hub._subscribers.subscribe(reader, f"s:{number}")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reader.pump)
            source.changed(["0", "1", "2"])
            await client.inbox.take("s:2")
            assert sent == ["s:0"]
            hub._subscribers.unsubscribe(reader, "s:1")
            stall.set()
            reader.end()
    assert sent == ["s:0", "s:2"]


async def test_more_changes_at_once_than_the_sdk_would_buffer() -> None:
    """A checkout below 3,000 subscribed files neither ends a stream nor loses one."""
    source = Script()
    server, _ = serve(source)
    uris = [f"s:{number}" for number in range(3000)]
    seen: list[str] = []
    async with Client(server, mode="2026-07-28") as client:
        first, second = uris[:1000], uris[1000:]
        async with (
            client.listen(resource_subscriptions=first) as some,
            client.listen(resource_subscriptions=second) as others,
        ):
            source.changed([uri.removeprefix("s:") for uri in first])
            with anyio.fail_after(SECONDS):
                async for event in some:
                    assert isinstance(event, ResourceUpdated)
                    seen.append(event.uri)
                    if len(seen) == 1000:
                        break
            assert seen == first
            assert len(others.honored.resource_subscriptions or ()) == 2000


async def test_a_thousand_subscriptions(era: str) -> None:
    source = Script()
    server, _ = serve(source)
    async with listener(server, era) as client:
        uris = [f"s:{number}" for number in range(1000)]
        await client.subscribe(*uris)
        assert len(source.watched) == 1000
        for uri in uris[::100]:
            source.changed([uri.removeprefix("s:")])
            await client.inbox.take(uri)


async def test_subscriptions_of_a_connection_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_URIS", 2)
    server, _ = serve(Script())
    async with listener(server, "legacy") as client:
        await client.subscribe("s:a", "s:b", "s:a")
        with pytest.raises(MCPError, match="Unsubscribe"):
            await client.subscribe("s:c")
    server, _ = serve(Script())
    async with (
        Client(server, mode="2026-07-28") as modern,
        modern.listen(resource_subscriptions=["s:a", "s:b", "s:c"]) as events,
    ):
        assert events.honored.resource_subscriptions == ["s:a", "s:b"]


async def test_streams_are_limited() -> None:
    server, _ = serve(Script(), max_streams=1)
    async with Client(server, mode="2026-07-28") as client:
        async with client.listen(resources_list_changed=True):
            with pytest.raises(MCPError, match="End one") as raised:
                async with client.listen(resources_list_changed=True):
                    pass
            assert raised.value.code == INVALID_PARAMS
        async with client.listen(resources_list_changed=True):
            pass


async def test_closing_tells_what_is_left_and_ends_the_streams() -> None:
    source = Script()
    server, hub = serve(source)
    async with Client(server, mode="2026-07-28") as client:
        async with (
            client.listen(resource_subscriptions=["s:a"]) as events,
            client.listen(resources_list_changed=True) as idle,
        ):
            source.changed(["a"])
            with anyio.fail_after(SECONDS):
                assert await anext(aiter(events)) == ResourceUpdated("s:a")
            source.changed(["a"])
            hub.close()
            with anyio.fail_after(SECONDS):
                assert [event async for event in events] == [ResourceUpdated("s:a")]
                assert [event async for event in idle] == []
        async with client.listen(resources_list_changed=True) as late:
            with anyio.fail_after(SECONDS):
                assert [event async for event in late] == []
