"""Who is told what, in both eras, by the hub on a stock `MCPServer` with a scripted source."""

import asyncio
from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from mcp import MCPError
from mcp.client import Client
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.subscriptions import InMemorySubscriptionBus
from mcp.shared.subscriptions import PromptsListChanged, ResourceUpdated, ToolsListChanged
from mcp_types import (
    Implementation,
    TextContent,
)

from mcp_batteries.errors import NotFound, Problem, TooLarge
from mcp_batteries.protocol import RESOURCE_NOT_FOUND
from mcp_batteries.sdk import lowlevel
from mcp_batteries.subscriptions import hub as module
from mcp_batteries.subscriptions.digest_source import DigestGroup, DigestSource
from mcp_batteries.subscriptions.hub import Hub
from shared.hearing import MARKS, SECONDS, Inbox, Script, listener, serve
from shared.hearing import each_era as each_era

pytestmark = MARKS


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


async def test_what_a_source_refuses_is_told_and_stops_nothing_else() -> None:
    class Choosy(Script):
        async def add(self, keys: Collection[Hashable]) -> None:
            if "bad" in keys:
                raise TooLarge("There is too much in it.", "Follow less.")
            await super().add(keys)

    source = Choosy()
    server, _ = serve(source)
    async with (
        Client(server, mode="2026-07-28") as modern,
        modern.listen(resource_subscriptions=["s:a", "s:bad", "s:b"]) as events,
    ):
        assert events.honored.resource_subscriptions == ["s:a", "s:b"]
        assert source.watched == {"a", "b"}
    async with listener(server, "legacy") as client:
        with pytest.raises(MCPError, match=r"cannot be watched now: There is too much in it\. Follow less\."):
            await client.subscribe("s:bad")


class Digests(DigestSource[DigestGroup[str], str]):
    """A source of digests, of which `s:bad` can't be read."""

    def __init__(self) -> None:
        super().__init__({"all": DigestGroup()}, 3600)

    def parse(self, uri: str) -> str | None:
        return uri if uri.startswith("s:") else None

    def key_of(self, subject: str) -> Hashable:
        return subject

    def group_of(self, subject: str) -> DigestGroup[str]:
        return self.groups["all"]

    async def read_first(self, group: DigestGroup[str], subjects: Mapping[Hashable, str]) -> Mapping[Hashable, str]:
        if "s:bad" in subjects:
            raise TooLarge("There is too much in it.", "Follow less.")
        return dict.fromkeys(subjects, "")

    async def check(self, group: DigestGroup[str], *, is_woken: bool) -> float:
        return 3600

    async def check_now(self, group: DigestGroup[str]) -> None:
        pass


async def test_a_source_of_digests_watches_what_was_asked_for_beside_what_it_refuses() -> None:
    source = Digests()
    server, _ = serve(source)
    async with (
        Client(server, mode="2026-07-28") as modern,
        modern.listen(resource_subscriptions=["s:a", "s:bad", "s:b"]) as events,
    ):
        assert events.honored.resource_subscriptions == ["s:a", "s:b"]
        assert source.groups["all"].digests.keys() == source.known_subjects.keys() == {"s:a", "s:b"}


async def test_a_defect_of_a_source_is_met_once(caplog: Any) -> None:
    source = Script()
    source.error = OSError("no more")
    server, _ = serve(source)
    async with (
        Client(server, mode="2026-07-28") as modern,
        modern.listen(resource_subscriptions=["s:a", "s:b", "test://x"]) as events,
    ):
        assert events.honored.resource_subscriptions == ["test://x"]
    assert "cannot watch 2 of what was asked for" in caplog.text


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
        hub.resync()
        with anyio.fail_after(SECONDS):
            while len(client.inbox.items) < 2:
                await client.inbox.news.wait()
        assert set(client.inbox.items) == {"s:a", "test://x"}


async def test_a_session_whose_stream_opens_is_told_to_look_again() -> None:
    server, hub = serve(Script())
    async with listener(server, "legacy") as client:
        await client.subscribe("s:a")
        connection = next(iter(hub._connections))
        hub.stream_opened(f"not {connection.session_id}")
        await anyio.wait_all_tasks_blocked()
        assert client.inbox.items == []
        hub.stream_opened(connection.session_id)
        await client.inbox.take("s:a")


async def test_a_modern_client_that_only_lists_is_told_nothing() -> None:
    source = Script()
    server, hub = serve(source)
    async with Client(server, mode="2026-07-28") as client:
        await client.list_resources()
        await client.list_tools()
        assert hub.subscriptions == 0
        assert source.watched == set()


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
    part = Hub(hub.sources)
    part.join(hub)
    async with listener(server, era) as client:
        await client.subscribe("s:a", "test://x")
        assert part.subscriptions == hub.subscriptions == 2
        await part.updated("test://x")
        await client.inbox.take("test://x")
        part.resync()
        await client.inbox.take("s:a")
    assert part.followers is hub.followers


async def test_what_a_caller_is_subscribed_to_is_known(era: str) -> None:
    callers: list[str | None] = ["alice"]
    server, hub = serve(caller_key=lambda ctx: callers[0])

    @server.tool()
    def subscribed(ctx: Context[Any, Any]) -> str:
        return " ".join(hub.subscribed_uris(ctx.request_context))

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
    options = hub.initialization_options(server)
    assert options.capabilities.resources == resources
    assert options == lowlevel(server).create_initialization_options()


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
