"""Who is told what, in both eras, by the hub on a stock `MCPServer` with a scripted source."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Hashable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import TaskStatus
from mcp import MCPError
from mcp.client import Client
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.subscriptions import InMemorySubscriptionBus
from mcp.shared.subscriptions import PromptsListChanged, ResourceUpdated, ToolsListChanged
from mcp_types import (
    INVALID_PARAMS,
    Implementation,
    ResourceListChangedNotification,
    ResourceUpdatedNotification,
    TextContent,
    ToolListChangedNotification,
)

from mcp_batteries.errors import NotFound, Problem, Refused
from mcp_batteries.protocol import RESOURCE_NOT_FOUND
from mcp_batteries.sdk import lowlevel
from mcp_batteries.subscriptions import hub as module
from mcp_batteries.subscriptions.hub import Hub
from mcp_batteries.subscriptions.topics import Subscriber

pytestmark = [
    pytest.mark.anyio,
    # The legacy verbs of the SDK's client, on purpose.
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

SECONDS = 10
ERAS = ["legacy", "2026-07-28"]


class Script:
    """A source that does as it is told. `s:` URIs are its own; case does not matter in them; `s:no...` is refused.

    It tells of nothing that it does not watch, as every real source does.
    """

    list_keys: Collection[Hashable] = ("root",)

    def __init__(self) -> None:
        self.watched: set[Hashable] = set()
        self._changed: Callable[[Collection[Hashable]], None]
        self.armed = anyio.Event()
        self.armed.set()
        self.asked = anyio.Event()
        self.error: Exception | None = None
        self.news = anyio.Event()

    def key(self, uri: str) -> Hashable | None:
        if not uri.startswith("s:"):
            return None
        if uri.startswith("s:no"):
            raise Refused("`s:no` is outside what is served.", "Ask for `s:yes`.")
        return uri.removeprefix("s:").lower()

    async def add(self, keys: Collection[Hashable]) -> None:
        assert self.watched.isdisjoint(keys)
        self.asked.set()
        await self.armed.wait()
        if self.error:
            raise self.error
        self.watched.update(keys)
        self._tell()

    def discard(self, keys: Collection[Hashable]) -> None:
        self.watched.difference_update(keys)
        self._tell()

    async def run(self, changed: Callable[[Collection[Hashable]], None]) -> None:
        self._changed = changed
        try:
            await anyio.sleep_forever()
        finally:
            self.watched.clear()
            self._tell()

    def changed(self, keys: Collection[Hashable]) -> None:
        self._changed([key for key in keys if key in self.watched])

    async def watches(self, *keys: Hashable) -> None:
        """Wait until exactly `keys` are watched."""
        with anyio.fail_after(SECONDS):
            while self.watched != set(keys):
                await self.news.wait()

    def _tell(self) -> None:
        self.news.set()
        self.news = anyio.Event()


class Inbox:
    """What a client was notified of, in order; list changes as `None`."""

    def __init__(self) -> None:
        self.items: list[str | None] = []
        self.news = anyio.Event()

    def put(self, item: str | None) -> None:
        self.items.append(item)
        self.news.set()
        self.news = anyio.Event()

    async def message(self, message: Any) -> None:
        match message:
            case ResourceUpdatedNotification():
                self.put(str(message.params.uri))
            case ResourceListChangedNotification():
                self.put(None)
            case ToolListChangedNotification():
                self.put("tools")
            case _:
                pass

    async def take(self, item: str | None) -> None:
        """Wait for `item`, and drop what came until then."""
        with anyio.fail_after(SECONDS):
            while item not in self.items:
                await self.news.wait()
        del self.items[: self.items.index(item) + 1]


class Listener:
    """One client, whichever way its era subscribes."""

    def __init__(self, client: Client, inbox: Inbox, era: str, tasks: anyio.abc.TaskGroup) -> None:
        self.client, self.inbox, self.era, self.tasks = client, inbox, era, tasks
        self.scopes: dict[str | None, anyio.CancelScope] = {}

    async def subscribe(self, *uris: str) -> None:
        for uri in uris:
            if self.era == "legacy":
                await self.client.subscribe_resource(uri)
            else:
                await self.tasks.start(self.listen, uri)

    async def unsubscribe(self, uri: str) -> None:
        if self.era == "legacy":
            await self.client.unsubscribe_resource(uri)
        else:
            self.scopes.pop(uri).cancel()

    async def follow_list(self) -> None:
        if self.era == "legacy":
            await self.client.list_resources()
        else:
            await self.tasks.start(self.listen, None)

    async def listen(self, uri: str | None, *, task_status: TaskStatus[None]) -> None:
        with anyio.CancelScope() as self.scopes[uri]:
            asked: dict[str, Any] = (
                {"resources_list_changed": True} if uri is None else {"resource_subscriptions": [uri]}
            )
            async with self.client.listen(**asked) as events:
                task_status.started()
                async for event in events:
                    self.inbox.put(event.uri if isinstance(event, ResourceUpdated) else None)


def serve(*sources: Any, **options: Any) -> tuple[MCPServer[Any], Hub]:
    hub = Hub(sources, **options)

    @asynccontextmanager
    async def lifespan(_: MCPServer[Any]) -> AsyncGenerator[None]:
        async with hub.running():
            yield

    server: MCPServer[Any] = MCPServer("stock", lifespan=lifespan, subscriptions=hub.bus)
    hub.install(server)
    return server, hub


@asynccontextmanager
async def listener(server: MCPServer[Any], era: str) -> AsyncGenerator[Listener]:
    inbox = Inbox()
    handler = inbox.message if era == "legacy" else None
    async with Client(server, mode=era, message_handler=handler) as client, anyio.create_task_group() as tasks:
        yield Listener(client, inbox, era, tasks)
        tasks.cancel_scope.cancel()


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    return request.param


async def test_a_change_reaches_who_asked_and_nobody_else(era: str) -> None:
    source = Script()
    server, _ = serve(source)
    async with listener(server, era) as client:
        await client.subscribe("s:a", "s:b")
        assert source.watched == {"a", "b"}
        source.changed(["unknown", "a"])
        await client.inbox.take("s:a")
        source.changed(["b"])
        await client.inbox.take("s:b")
        assert client.inbox.items == []


async def test_every_spelling_is_told_as_it_was_asked_for(era: str) -> None:
    source = Script()
    server, _ = serve(source)
    async with listener(server, era) as client:
        await client.subscribe("s:a", "s:A")
        assert source.watched == {"a"}
        source.changed(["a"])
        with anyio.fail_after(SECONDS):
            while len(client.inbox.items) < 2:
                await client.inbox.news.wait()
        assert sorted(map(str, client.inbox.items)) == ["s:A", "s:a"]
        await client.unsubscribe("s:A")
        await client.subscribe("s:b")
        assert source.watched == {"a", "b"}


async def test_silence_after_unsubscribe(era: str) -> None:
    source = Script()
    server, _ = serve(source)
    async with listener(server, era) as client:
        await client.subscribe("s:a", "s:control")
        await client.unsubscribe("s:a")
        await source.watches("control")
        source.changed(["a"])
        source.changed(["control"])
        await client.inbox.take("s:control")
        assert client.inbox.items == []
        await client.subscribe("s:a")
        source.changed(["a"])
        await client.inbox.take("s:a")


@pytest.mark.parametrize("of", ["s:a", None])
async def test_the_answer_waits_until_the_watch_is_live(of: str | None, era: str) -> None:
    source = Script()
    source.armed = anyio.Event()
    server, _ = serve(source)
    async with listener(server, era) as client, anyio.create_task_group() as tasks:
        answered = anyio.Event()

        async def subscribe() -> None:
            await (client.follow_list() if of is None else client.subscribe(of))
            answered.set()

        tasks.start_soon(subscribe)
        with anyio.fail_after(SECONDS):
            await source.asked.wait()
        await client.client.send_ping() if era == "legacy" else await client.client.list_tools()
        assert not answered.is_set()
        source.armed.set()
        with anyio.fail_after(SECONDS):
            await answered.wait()


async def test_who_gives_up_waiting_leaves_nothing_and_takes_nothing_from_others(era: str) -> None:
    source = Script()
    source.armed = anyio.Event()
    server, _ = serve(source)
    async with listener(server, era) as client, anyio.create_task_group() as tasks:

        async def impatient() -> None:
            if era == "legacy":
                with anyio.CancelScope() as client.scopes["s:gone"]:
                    await client.subscribe("s:gone")
            else:
                await client.listen("s:gone", task_status=anyio.TASK_STATUS_IGNORED)

        tasks.start_soon(client.subscribe, "s:a")
        tasks.start_soon(impatient)
        with anyio.fail_after(SECONDS):
            await source.asked.wait()
        await client.client.list_tools()
        client.scopes["s:gone"].cancel()
        if era == "legacy":
            await client.unsubscribe("s:gone")
        await client.client.list_tools()
        source.armed.set()
        await source.watches("a")


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


async def test_refused_is_said_to_legacy_clients_with_the_reason() -> None:
    server, _ = serve(Script())
    async with listener(server, "legacy") as client:
        with pytest.raises(MCPError) as caught:
            await client.subscribe("s:no/secret")
        assert caught.value.error.code == -32602
        assert caught.value.error.message == "`s:no` is outside what is served. Ask for `s:yes`."


def no_x(uri: str) -> Problem | None:
    return NotFound(f"There is no `{uri}`.", "List resources.") if uri.startswith("x:") else None


async def test_what_cannot_be_there_cannot_be_subscribed_to() -> None:
    server, _ = serve(Script(), missing=no_x)
    async with listener(server, "legacy") as client:
        with pytest.raises(MCPError, match="There is no `x:a`") as caught:
            await client.subscribe("x:a")
        assert caught.value.error.code == RESOURCE_NOT_FOUND
        assert caught.value.error.data == {"uri": "x:a"}
        await client.subscribe("y:a")
    async with (
        Client(server, mode="2026-07-28") as modern,
        modern.listen(resource_subscriptions=["x:a", "y:a"]) as events,
    ):
        assert events.honored.resource_subscriptions == ["y:a"]


async def test_refused_is_left_out_of_the_acknowledgement() -> None:
    source = Script()
    server, _ = serve(source)
    async with Client(server, mode="2026-07-28") as client:
        async with client.listen(resource_subscriptions=["s:a", "s:no/secret", "x:unknown"]) as events:
            assert events.honored.resource_subscriptions == ["s:a", "x:unknown"]
            assert source.watched == {"a"}
        async with client.listen(resource_subscriptions=["s:no"]) as events:
            assert events.honored.resource_subscriptions is None


async def test_what_cannot_be_watched_is_not_promised(caplog: Any) -> None:
    source = Script()
    source.error = OSError("no more")
    server, _ = serve(source)
    async with listener(server, "legacy") as client:
        with pytest.raises(MCPError, match="`s:a` cannot be watched now"):
            await client.subscribe("s:a")
        source.error = None
        await client.subscribe("s:a")
        assert source.watched == {"a"}
    source.error = OSError("no more")
    async with (
        Client(server, mode="2026-07-28") as modern,
        modern.listen(resource_subscriptions=["s:b", "test://x"]) as events,
    ):
        assert events.honored.resource_subscriptions == ["test://x"]
    assert "cannot watch 1 of what was asked for" in caplog.text


async def test_a_failing_source_ends_nothing_else(caplog: Any) -> None:
    class Broken(Script):
        list_keys = ()

        def key(self, uri: str) -> Hashable | None:
            return None

        async def run(self, changed: Callable[[Collection[Hashable]], None]) -> None:
            raise OSError("broken")

    source = Script()
    server, _ = serve(Broken(), source)
    async with listener(server, "legacy") as client:
        await client.subscribe("s:a")
        source.changed(["a"])
        await client.inbox.take("s:a")
    assert "A source of changes failed" in caplog.text


async def test_a_uri_nobody_watches_may_be_subscribed_to_and_announced(era: str) -> None:
    server, hub = serve(Script())
    async with listener(server, era) as client:
        await client.subscribe("test://watched-resource")
        await hub.updated("test://watched-resource")
        await client.inbox.take("test://watched-resource")


async def test_a_tools_announcement_reaches_every_spelling(era: str) -> None:
    server, hub = serve(Script())
    async with listener(server, era) as client:
        await client.subscribe("s:A")
        await hub.updated("s:no")
        await hub.updated("s:a")
        await client.inbox.take("s:A")


async def test_list_changes_reach_who_asked_for_them(era: str) -> None:
    source = Script()
    server, hub = serve(source)
    async with listener(server, era) as client:
        assert source.watched == set()
        await client.follow_list()
        assert source.watched == {"root"}
        source.changed(["root"])
        await client.inbox.take(None)
        await hub.list_changed()
        await client.inbox.take(None)
        await client.subscribe("s:root")
        await client.unsubscribe("s:root")
        source.changed(["root"])
        await client.inbox.take(None)
        assert client.inbox.items == []


async def test_who_did_not_ask_for_lists_hears_nothing_of_them(era: str) -> None:
    source = Script()
    server, hub = serve(source)
    async with listener(server, era) as client:
        await client.subscribe("s:root")
        await hub.list_changed()
        source.changed(["root"])
        await client.inbox.take("s:root")
        assert client.inbox.items == []


async def test_a_legacy_client_that_listed_tools_hears_that_they_changed() -> None:
    server, hub = serve(Script())
    async with listener(server, "legacy") as lists, listener(server, "legacy") as does_not:
        await lists.client.list_tools()
        await does_not.follow_list()
        await hub.tools_changed()
        await hub.list_changed()
        await lists.inbox.take("tools")
        await does_not.inbox.take(None)
        assert lists.inbox.items == does_not.inbox.items == []


async def test_who_may_have_missed_something_is_told_to_look_again(era: str) -> None:
    server, hub = serve(Script())
    async with listener(server, era) as client:
        await client.subscribe("s:a", "test://x")
        assert hub.subscriptions == 2
        assert hub.streams == (0 if era == "legacy" else 2)
        hub.look_again()
        with anyio.fail_after(SECONDS):
            while len(client.inbox.items) < 2:
                await client.inbox.news.wait()
        assert set(client.inbox.items) == {"s:a", "test://x"}


async def test_a_modern_client_that_only_lists_is_told_nothing() -> None:
    source = Script()
    server, hub = serve(source)
    async with Client(server, mode="2026-07-28") as client:
        await client.list_resources()
        await client.list_tools()
        assert hub.subscriptions == 0
        assert source.watched == set()


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


async def test_announcements_travel_over_the_bus_that_is_given(era: str) -> None:
    bus = InMemorySubscriptionBus()
    server, hub = serve(bus=bus)
    async with listener(server, era) as client:
        await client.subscribe("test://x")
        await bus.publish(ResourceUpdated("test://x"))
        await client.inbox.take("test://x")
    assert hub.bus is bus


async def test_hubs_that_were_joined_are_one(era: str) -> None:
    source = Script()
    server, hub = serve(source)
    part = Hub([source])
    part.join(hub)
    async with listener(server, era) as client:
        await client.subscribe("s:a", "test://x")
        assert part.subscriptions == hub.subscriptions == 2
        await part.updated("test://x")
        await client.inbox.take("test://x")
        part.look_again()
        await client.inbox.take("s:a")
    assert part.followers is hub.followers


async def test_what_a_caller_is_subscribed_to_is_known(era: str) -> None:
    callers: list[str | None] = ["alice"]
    server, hub = serve(whose=lambda ctx: callers[0])

    @server.tool()
    def subscribed(ctx: Context[Any, Any]) -> str:
        return " ".join(hub.subscribed(ctx.request_context))

    async def told(client: Client) -> str:
        [block] = (await client.call_tool("subscribed", {})).content
        assert isinstance(block, TextContent)
        return block.text

    async with listener(server, era) as client, listener(server, era) as other:
        await client.subscribe("test://a", "test://b", "test://a")
        assert await told(client.client) == "test://a test://b"
        # Without a connection that lasts, a caller is known by name alone, and nobody in particular has none.
        assert await told(other.client) == ("" if era == "legacy" else "test://a test://b")
        for callers[0] in ("bob", None):
            assert await told(client.client) == ("test://a test://b" if era == "legacy" else "")
    callers[0] = None
    async with listener(server, era) as client, listener(server, era) as other:
        await client.subscribe("test://a")
        assert await told(other.client) == ""


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_capabilities_say_so(mode: str) -> None:
    server, hub = serve()
    async with Client(server, mode=mode) as client:
        resources = client.server_capabilities.resources
        assert resources
        assert resources.subscribe
        assert resources.list_changed
        assert client.server_capabilities.tools
        assert client.server_capabilities.tools.list_changed
    options = hub.options(server)
    assert options.capabilities.resources == resources
    assert options == lowlevel(server).create_initialization_options()


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
        assert len(hub._connections) == (era == "legacy")


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


async def test_other_lists_are_told_to_who_asked_for_them() -> None:
    server, hub = serve()
    async with (
        Client(server, mode="2026-07-28") as client,
        client.listen(tools_list_changed=True, prompts_list_changed=True) as events,
    ):
        assert events.honored.resources_list_changed is None
        async with client.listen(resources_list_changed=True) as others:
            assert (others.honored.tools_list_changed, others.honored.prompts_list_changed) == (None, None)
        await hub.list_changed()
        for event in (ToolsListChanged(), PromptsListChanged()):
            await hub.bus.publish(event)
            with anyio.fail_after(SECONDS):
                assert await anext(aiter(events)) == event


class Clock:
    """The event loop's time, which this moves on at will: whoever waits for a moment wakes when it is skipped."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        loop, self._skipped = asyncio.get_running_loop(), 0.0
        time = loop.time
        monkeypatch.setattr(loop, "time", lambda: time() + self._skipped)

    async def skip(self, seconds: float) -> None:
        """Move on, and give all that this wakes its turns: everything here happens in this one event loop."""
        self._skipped += seconds
        for _ in range(100):
            await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("name", ["Visual Studio Code - Insiders", "VSCodium", "code-server"])
async def test_vs_code_is_told_again_when_its_cache_is_over(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers reads from a cache for 3 s, so that the last of several quick changes would never show."""
    source = Script()
    server, _ = serve(source)
    inbox = Inbox()
    info = Implementation(name=name, version="1")
    async with Client(server, mode="legacy", client_info=info, message_handler=inbox.message) as client:
        await client.list_resources()
        await client.subscribe_resource("s:a")
        await client.subscribe_resource("s:silenced")
        clock = Clock(monkeypatch)
        source.changed(["a", "silenced", "root"])
        await inbox.take("s:a")
        await inbox.take("s:silenced")
        await inbox.take(None)
        await client.unsubscribe_resource("s:silenced")
        await clock.skip(module.REST_SECONDS)
        source.changed(["a"])
        await inbox.take("s:a")
        await clock.skip(3)
        assert inbox.items == [], "its cache would still answer"
        await clock.skip(1)
        with anyio.fail_after(SECONDS):
            while not inbox.items:
                await inbox.news.wait()
        assert inbox.items == ["s:a"]
        inbox.items.clear()
        await clock.skip(600)
        assert inbox.items == [], "once is enough"


async def test_one_busy_file_does_not_put_off_that_vs_code_is_told_of_another_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = Script()
    server, _ = serve(source)
    inbox = Inbox()
    info = Implementation(name="Visual Studio Code", version="1")
    async with Client(server, mode="legacy", client_info=info, message_handler=inbox.message) as client:
        await client.subscribe_resource("s:busy")
        await client.subscribe_resource("s:other")
        clock = Clock(monkeypatch)
        for key in ("busy", "other", "busy"):
            source.changed([key])
            await inbox.take(f"s:{key}")
            await clock.skip(1)
        await clock.skip(1.6)
        assert inbox.items == ["s:other"]
        inbox.items.clear()
        await clock.skip(1)
        assert inbox.items == ["s:busy"]


async def test_no_other_client_is_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Script()
    server, _ = serve(source)
    inbox = Inbox()
    async with Client(server, mode="legacy", message_handler=inbox.message) as client:
        await client.subscribe_resource("s:a")
        clock = Clock(monkeypatch)
        source.changed(["a"])
        await inbox.take("s:a")
        await clock.skip(600)
        assert inbox.items == []


async def test_after_running_nothing_is_taken_that_nobody_would_watch() -> None:
    hub = Hub([Script()])
    async with hub.running():
        pass
    server: MCPServer[Any] = MCPServer("stock")
    hub.install(server)
    async with Client(server, mode="legacy", raise_exceptions=False) as client:
        with pytest.raises(MCPError):
            await client.subscribe_resource("s:a")


async def test_without_running_it_says_so() -> None:
    server: MCPServer[Any] = MCPServer("stock")
    Hub([Script()]).install(server)
    async with Client(server, mode="legacy", raise_exceptions=False) as client:
        with pytest.raises(MCPError):
            await client.subscribe_resource("s:a")
