"""The one hub between a world that changes and the clients that asked to be told.

Two eras of the protocol ask in two ways: `resources/subscribe` and a call of `resources/list` stand for as long as
a legacy connection lives (2024-11-05 to 2025-11-25), a `subscriptions/listen` request for as long as it is open
(2026-07-28). Here both are a `_Reader` that leases topics. A topic is one thing that can change, known to the
`Source` that watches it by its key; the source watches from a topic's first lease to its last.

A change is told at once, then a topic rests for `REST_SECONDS`; whatever happens meanwhile is told as one change at
the end of the rest. Each reader has a task of its own that sends, and holds a notice at most once: a reader that
stalls delays nobody and needs no more memory than its subscriptions.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Hashable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

import anyio
from anyio.abc import TaskGroup
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions
from mcp.server.mcpserver import MCPServer
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import (
    SUBSCRIPTION_ID_META_KEY,
    InMemorySubscriptionBus,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    SubscriptionBus,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import event_to_notification
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    EmptyResult,
    PaginatedRequestParams,
    SubscribeRequestParams,
    SubscriptionFilter,
    SubscriptionsAcknowledgedNotification,
    SubscriptionsAcknowledgedNotificationParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    UnsubscribeRequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from mcp_batteries.errors import Problem, TooLarge, Unavailable, quote
from mcp_batteries.sdk import announce, connection_of, lowlevel

__all__ = ["MAX_STREAMS", "MAX_URIS", "REST_SECONDS", "Changes", "Source"]

logger = logging.getLogger(__name__)

REST_SECONDS = 0.05
"""Between two notices of one topic, so that a burst is a handful of notices."""

MAX_URIS = 10_000
"""Subscriptions of one legacy connection, and URIs of one `subscriptions/listen`."""

MAX_STREAMS = 1024
"""`subscriptions/listen` requests open at once, over all clients: the SDK's own bound."""

_LIST = ResourcesListChanged()
_Context = ServerRequestContext[Any, Any]


class Source(Protocol):
    """Something that notices changes, as a server's `changes.py` makes it.

    `add` and `discard` are called one at a time, and a key is not added twice without a `discard` in between.
    """

    @property
    def list_keys(self) -> Collection[Hashable]:
        """Keys whose change means that `resources/list` has another answer."""
        ...

    def key(self, uri: str) -> Hashable | None:
        """The one key for all spellings of `uri`; None if it is not this source's.

        Raises:
            Problem: It may not be watched.
        """
        ...

    async def add(self, keys: Collection[Hashable]) -> None:
        """Watch `keys`; return once no later change can go unnoticed."""
        ...

    def discard(self, keys: Collection[Hashable]) -> None:
        """Stop watching `keys`."""
        ...

    async def run(self, changed: Callable[[Collection[Hashable]], None]) -> None:
        """Call `changed` with the keys that changed, on the event loop, until cancelled; then nothing is watched."""
        ...


class _Reader:
    """Who is told: a legacy connection, or a stream of the modern era."""

    def __init__(self, send: Callable[[ServerEvent], Awaitable[None]]) -> None:
        self.send = send
        self.topics: set[_Topic] = set()
        self.uris: dict[str, _Topic] = {}
        self._ending = False
        self._scope = anyio.CancelScope()
        self._pending: dict[ServerEvent, None] = {}
        self._wake = anyio.Event()

    def push(self, event: ServerEvent) -> None:
        self._pending[event] = None
        self._wake.set()

    def forget(self, event: ServerEvent) -> None:
        self._pending.pop(event, None)

    def end(self) -> None:
        """Let `pump` return once everything is told."""
        self._ending = True
        self._wake.set()

    def stop(self) -> None:
        """End `pump` now, even in the middle of sending."""
        self._pending.clear()
        self.end()
        self._scope.cancel()

    async def pump(self) -> None:
        """Send what is pushed, each notice at most once at a time, until ended."""
        with anyio.CancelScope() as self._scope:
            while True:
                while self._pending:
                    event = next(iter(self._pending))
                    del self._pending[event]
                    await self.send(event)
                if self._ending:
                    return
                self._wake = anyio.Event()
                await self._wake.wait()


class _Topic:
    """One thing that can change, and who wants to hear which notice when it does."""

    __slots__ = ("audience", "changed_again", "failed", "key", "origin", "resting", "unsettled")

    def __init__(self, origin: _Origin | None, key: Hashable) -> None:
        self.origin, self.key = origin, key
        self.audience: dict[_Reader, tuple[ServerEvent, ...]] = {}
        self.unsettled = None if origin is None else anyio.Event()
        self.failed = False
        self.resting = False
        self.changed_again = False

    def settle(self, *, failed: bool = False) -> None:
        self.failed = failed
        if self.unsettled is not None:
            self.unsettled.set()
            self.unsettled = None

    async def settled(self) -> None:
        """Return once it is watched, cannot be, or need not be any more."""
        if self.unsettled is not None:
            await self.unsettled.wait()


class _Origin:
    """A source, with the keys it watches now and those for which that may have to change."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.watched: set[Hashable] = set()
        self.dirty: dict[Hashable, None] = {}
        self.wake = anyio.Event()

    def touch(self, key: Hashable) -> None:
        self.dirty[key] = None
        self.wake.set()


class Changes:
    """The hub of one server; `running` must be entered while it serves.

    Args:
        sources: asked in this order whose a URI is. A URI that is nobody's may be subscribed to all the same; it
            changes when `updated` says so.
        bus: carries what tools announce (`updated`, `ctx.notify_resource_updated`) between replicas; by default it
            ends in this process. What sources notice stays here: each replica watches for itself.
    """

    def __init__(self, sources: Sequence[Source] = (), *, bus: SubscriptionBus | None = None) -> None:
        self.bus: SubscriptionBus = bus or InMemorySubscriptionBus()
        self._origins = [_Origin(source) for source in sources]
        self._topics: dict[tuple[_Origin | None, Hashable], _Topic] = {}
        self._connections: dict[Connection, _Reader] = {}
        self._streams: set[_Reader] = set()
        self._resting: deque[tuple[float, _Topic]] = deque()
        self._rest_wake = anyio.Event()
        self._turn = anyio.Lock()
        self._tasks: TaskGroup | None = None
        self._blocks = 0
        self._closed = False

    def install(self, server: MCPServer[Any]) -> None:
        """Serve subscriptions on `server`, after its `resources/list` handler stands."""
        low = lowlevel(server)
        low.add_request_handler("resources/subscribe", SubscribeRequestParams, self._subscribe)
        low.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, self._unsubscribe)
        low.add_request_handler("subscriptions/listen", SubscriptionsListenRequestParams, self._listen)
        if lists := low.get_request_handler("resources/list"):
            serve = lists.handler

            async def listed(ctx: _Context, params: PaginatedRequestParams) -> Any:
                await self._follow_list(ctx)
                return await serve(ctx, params)

            low.add_request_handler("resources/list", PaginatedRequestParams, listed)
        announce(server, NotificationOptions(resources_changed=True))

    def options(self, server: MCPServer[Any]) -> InitializationOptions:
        """What `server` answers to `initialize`, with `listChanged` as it is."""
        return lowlevel(server).create_initialization_options()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Watch and tell, for as long as the block lasts.

        Entered several times (the SDK's SSE transport has a lifespan for each connection), one block does the work
        and the next takes over when it ends.
        """
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._run)
            self._blocks += 1
            try:
                yield
            finally:
                self._blocks -= 1
                tasks.cancel_scope.cancel()

    def close(self) -> None:
        """End all `subscriptions/listen` streams, each with its last notices and its result; open no new ones."""
        self._closed = True
        for _, topic in self._resting:
            if topic.changed_again:
                topic.changed_again = False
                self._tell(topic)
        for reader in self._streams:
            reader.end()

    async def updated(self, uri: str) -> None:
        """Announce that the resource at `uri` changed, for what no source notices."""
        await self.bus.publish(ResourceUpdated(uri))

    async def list_changed(self) -> None:
        """Announce that `resources/list` has another answer."""
        await self.bus.publish(_LIST)

    # Requests

    async def _subscribe(self, ctx: _Context, params: SubscribeRequestParams) -> EmptyResult:
        reader = self._reader(connection_of(ctx.session))
        uri = str(params.uri)
        try:
            if uri not in reader.uris and len(reader.uris) >= MAX_URIS:
                raise TooLarge(f"This connection has {MAX_URIS:,} subscriptions, the limit.", "Unsubscribe from some.")
            topic = self._lease_uri(reader, uri)
            await topic.settled()
            if topic.failed:
                self._release_uri(reader, uri)
                raise Unavailable(f"{quote(uri)} cannot be watched now.", "Read it again when you need it.")
        except Problem as problem:
            raise MCPError(code=INVALID_PARAMS, message=str(problem)) from problem
        return EmptyResult()

    async def _unsubscribe(self, ctx: _Context, params: UnsubscribeRequestParams) -> EmptyResult:
        if reader := self._connections.get(connection_of(ctx.session)):
            self._release_uri(reader, str(params.uri))
        return EmptyResult()

    async def _follow_list(self, ctx: _Context) -> None:
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return
        reader = self._reader(connection_of(ctx.session))
        for topic in self._lease_list(reader):
            await topic.settled()

    async def _listen(self, ctx: _Context, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        # The SDK's own handler buffers every event and ends a stream with 1,024 unread ones, which one `git checkout`
        # below a large subscription reaches; this one merges them, and leases before it acknowledges.
        if ctx.request_id is None:
            raise MCPError(code=INVALID_REQUEST, message="`subscriptions/listen` needs a request id.")
        if len(self._streams) >= MAX_STREAMS:
            raise MCPError(code=INTERNAL_ERROR, message=f"{MAX_STREAMS:,} streams are open, the limit.")
        stream, meta = ctx.request_id, {SUBSCRIPTION_ID_META_KEY: ctx.request_id}

        async def send(event: ServerEvent) -> None:
            await ctx.session.send_notification(event_to_notification(event, meta), related_request_id=stream)

        reader = _Reader(send)
        self._streams.add(reader)
        try:
            honoured = await self._lease_filter(reader, params.notifications)
            acknowledged = SubscriptionsAcknowledgedNotificationParams(notifications=honoured, _meta=meta)
            await ctx.session.send_notification(
                SubscriptionsAcknowledgedNotification(params=acknowledged), related_request_id=stream
            )
            if self._closed:
                reader.end()
            await reader.pump()
        finally:
            self._streams.discard(reader)
            self._release_all(reader)
        return SubscriptionsListenResult(_meta=meta)

    async def _lease_filter(self, reader: _Reader, asked: SubscriptionFilter) -> SubscriptionFilter:
        """Lease what `asked` names; the part of it that was granted, for the acknowledgement."""
        for wanted, event in (
            (asked.tools_list_changed, ToolsListChanged()),
            (asked.prompts_list_changed, PromptsListChanged()),
        ):
            if wanted:
                self._lease(reader, None, event, event)
        topics: Iterable[_Topic] = self._lease_list(reader) if asked.resources_list_changed else ()
        uris = list(dict.fromkeys(asked.resource_subscriptions or ()))
        for number, uri in enumerate(uris[:MAX_URIS]):
            if number % 256 == 255:
                await anyio.lowlevel.checkpoint()
            try:
                self._lease_uri(reader, uri)
            except Problem as problem:
                logger.info("Not watched: %s", problem)
        for topic in (*topics, *reader.uris.values()):
            await topic.settled()
        for uri in [uri for uri, topic in reader.uris.items() if topic.failed]:
            self._release_uri(reader, uri)
        return SubscriptionFilter(
            tools_list_changed=asked.tools_list_changed or None,
            prompts_list_changed=asked.prompts_list_changed or None,
            resources_list_changed=asked.resources_list_changed or None,
            resource_subscriptions=[uri for uri in uris if uri in reader.uris] or None,
        )

    def _reader(self, connection: Connection) -> _Reader:
        if connection in self._connections:
            return self._connections[connection]

        async def send(event: ServerEvent) -> None:
            if isinstance(event, ResourceUpdated):
                await connection.send_resource_updated(event.uri)
            else:
                await connection.send_resource_list_changed()

        reader = self._connections[connection] = _Reader(send)

        def drop() -> None:
            del self._connections[connection]
            reader.stop()
            self._release_all(reader)

        connection.exit_stack.callback(drop)
        if self._tasks is not None:
            self._tasks.start_soon(self._pump, reader)
        return reader

    # Leases

    def _lease_uri(self, reader: _Reader, uri: str) -> _Topic:
        if uri not in reader.uris:
            reader.uris[uri] = self._lease(reader, *self._place(uri), ResourceUpdated(uri))
        return reader.uris[uri]

    def _lease_list(self, reader: _Reader) -> list[_Topic]:
        self._lease(reader, None, _LIST, _LIST)
        return [self._lease(reader, origin, key, None) for origin in self._origins for key in origin.source.list_keys]

    def _place(self, uri: str) -> tuple[_Origin | None, Hashable]:
        for origin in self._origins:
            if (key := origin.source.key(uri)) is not None:
                return origin, key
        return None, uri

    def _lease(self, reader: _Reader, origin: _Origin | None, key: Hashable, event: ServerEvent | None) -> _Topic:
        """Let `reader` hear `event` when `key` changes; without an event, only keep the key watched."""
        if not self._blocks:
            raise RuntimeError("`Changes.running` must be entered for as long as the server serves")
        topic = self._topics.get((origin, key))
        if topic is None:
            topic = self._topics[origin, key] = _Topic(origin, key)
            if origin is not None:
                origin.touch(key)
        events = topic.audience.setdefault(reader, ())
        reader.topics.add(topic)
        if event is not None and event not in events:
            topic.audience[reader] = (*events, event)
        return topic

    def _release_uri(self, reader: _Reader, uri: str) -> None:
        topic = reader.uris.pop(uri, None)
        if topic is None:
            return
        event = ResourceUpdated(uri)
        reader.forget(event)
        left = topic.audience[reader] = tuple(other for other in topic.audience[reader] if other != event)
        is_listed = topic.origin is not None and topic.key in topic.origin.source.list_keys
        if not left and not is_listed:
            self._release(reader, topic)

    def _release_all(self, reader: _Reader) -> None:
        for topic in list(reader.topics):
            self._release(reader, topic)
        reader.uris.clear()

    def _release(self, reader: _Reader, topic: _Topic) -> None:
        reader.topics.discard(topic)
        del topic.audience[reader]
        if not topic.audience:
            del self._topics[topic.origin, topic.key]
            topic.settle()
            if topic.origin is not None:
                topic.origin.touch(topic.key)

    # Work

    async def _run(self) -> None:
        async with self._turn:
            unsubscribe = self.bus.subscribe(self._hear)
            try:
                async with anyio.create_task_group() as tasks:
                    self._tasks = tasks
                    tasks.start_soon(self._wake_rested)
                    for reader in self._connections.values():
                        tasks.start_soon(self._pump, reader)
                    for origin in self._origins:
                        tasks.start_soon(self._watch, origin)
                        tasks.start_soon(self._settle, origin)
            finally:
                self._tasks = None
                unsubscribe()
                for origin in self._origins:
                    origin.watched.clear()
                    origin.dirty.update(dict.fromkeys(key for at, key in self._topics if at is origin))
                    origin.wake.set()

    async def _watch(self, origin: _Origin) -> None:
        def changed(keys: Collection[Hashable]) -> None:
            for key in keys:
                if (topic := self._topics.get((origin, key))) is not None:
                    self._changed(topic)
                if key in origin.source.list_keys and (topic := self._topics.get((None, _LIST))) is not None:
                    self._changed(topic)

        try:
            await origin.source.run(changed)
        except Exception:
            # One source that fails is no reason to stop serving what the others watch.
            logger.exception("A source of changes failed; what it watched is not announced any more.")

    async def _settle(self, origin: _Origin) -> None:
        """Keep the source watching what is leased, in batches, whatever came and went meanwhile."""
        while True:
            await origin.wake.wait()
            origin.wake = anyio.Event()
            dirty, origin.dirty = origin.dirty, {}
            unleased = [key for key in dirty if (origin, key) not in self._topics and key in origin.watched]
            leased = [key for key in dirty if (origin, key) in self._topics and key not in origin.watched]
            failed = False
            if unleased:
                origin.watched.difference_update(unleased)
                origin.source.discard(unleased)
            if leased:
                origin.watched.update(leased)
                try:
                    await origin.source.add(leased)
                except Exception:
                    logger.exception("A source of changes cannot watch %d of what was asked for.", len(leased))
                    failed = True
                    origin.watched.difference_update(leased)
                    origin.source.discard(leased)
            for key in dirty:
                if (topic := self._topics.get((origin, key))) is not None:
                    topic.settle(failed=failed and key not in origin.watched)

    async def _pump(self, reader: _Reader) -> None:
        try:
            await reader.pump()
        except Exception:
            # Its connection is the one that suffers, and learns of it by itself.
            logger.exception("A connection takes no notices any more.")

    def _hear(self, event: ServerEvent) -> None:
        place: tuple[_Origin | None, Hashable] = (None, event)
        if isinstance(event, ResourceUpdated):
            try:
                place = self._place(event.uri)
            except Problem:
                return
        if (topic := self._topics.get(place)) is not None:
            self._changed(topic)

    def _changed(self, topic: _Topic) -> None:
        if topic.resting:
            topic.changed_again = True
            return
        self._tell(topic)
        topic.resting = True
        self._resting.append((anyio.current_time() + REST_SECONDS, topic))
        self._rest_wake.set()

    def _tell(self, topic: _Topic) -> None:
        for reader, events in topic.audience.items():
            for event in events:
                reader.push(event)

    async def _wake_rested(self) -> None:
        while True:
            while not self._resting:
                self._rest_wake = anyio.Event()
                await self._rest_wake.wait()
            await anyio.sleep_until(self._resting[0][0])
            _, topic = self._resting.popleft()
            topic.resting = False
            if topic.changed_again:
                topic.changed_again = False
                self._changed(topic)
