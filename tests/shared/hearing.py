"""Clients of both eras that hear what a hub on a stock `MCPServer` tells, and a source that follows a script."""

from collections.abc import AsyncGenerator, Callable, Collection, Hashable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import TaskStatus
from mcp.client import Client
from mcp.server.mcpserver import MCPServer
from mcp.shared.subscriptions import ResourceUpdated
from mcp_types import ResourceListChangedNotification, ResourceUpdatedNotification, ToolListChangedNotification

from mcp_batteries.errors import Refused
from mcp_batteries.subscriptions.hub import Hub

SECONDS = 10
ERAS = ["legacy", "2026-07-28"]
MARKS = [
    pytest.mark.anyio,
    # The legacy verbs of the SDK's client, on purpose.
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]


@pytest.fixture(name="era", params=ERAS)
def each_era(request: pytest.FixtureRequest) -> str:
    return request.param


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
