"""The hub between the sources that notice changes and the clients that subscribed to them.

The two eras of the protocol subscribe in two ways. `resources/subscribe` and a call of `resources/list` count for as
long as a legacy connection lives (2024-11-05 to 2025-11-25); a `subscriptions/listen` request counts for as long as it
is open (2026-07-28). Both become one `Subscriber` (module `subscribers`), which knows no eras.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio.lowlevel
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
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

from mcp_batteries.errors import NotFound, Problem, TooLarge, Unavailable, well_formed
from mcp_batteries.protocol import RESOURCE_NOT_FOUND, VS_CODE
from mcp_batteries.sdk import announce, connection_of, lowlevel
from mcp_batteries.subscriptions.followers import Followers
from mcp_batteries.subscriptions.journal import Journal
from mcp_batteries.subscriptions.subscribers import REST_SECONDS, Subscribers
from mcp_batteries.subscriptions.topics import Follower, Source, Subscriber

__all__ = ["MAX_STREAMS", "MAX_URIS", "REST_SECONDS", "Hub", "Source"]

logger = logging.getLogger(__name__)

# Subscriptions of one legacy connection, and URIs of one `subscriptions/listen`.
MAX_URIS = 10_000
# `subscriptions/listen` requests open at once, over all clients, by default: the SDK's own bound.
MAX_STREAMS = 1024
# VS Code answers its own reads from a cache for 3 s, right after a notice too.
_ECHO_SECONDS = 3.5

_LIST = ResourcesListChanged()
_TOOLS = ToolsListChanged()
_PROMPTS = PromptsListChanged()
_Context = ServerRequestContext[Any, Any]


class Hub:
    """The hub of one server; `running` must be entered while it serves.

    Args:
        sources: asked in this order for each URI. Clients may also subscribe to a URI of no source, unless it is
            `missing`; it changes when `updated` says so.
        missing: says why no resource can have this URI; None if one can.
        bus: carries what tools announce (`updated`, `ctx.notify_resource_updated`) between replicas; by default only
            within this process. What sources notice stays here: each replica watches for itself.
        max_streams: how many streams may be open at once.
        caller_key: identifies callers without a lasting connection; None for one that cannot be identified.
    """

    def __init__(
        self,
        sources: Sequence[Source] = (),
        *,
        bus: SubscriptionBus | None = None,
        max_streams: int = MAX_STREAMS,
        missing: Callable[[str], Problem | None] = lambda uri: None,
        caller_key: Callable[[_Context], str | None] = lambda ctx: None,
    ) -> None:
        self.bus: SubscriptionBus = bus or InMemorySubscriptionBus()
        self.sources = tuple(sources)
        self._subscribers = Subscribers(sources, missing)
        self.followers = Followers(self._subscribers)
        self._connections: dict[Connection, Subscriber] = {}
        # Each stream with its caller.
        self._streams: dict[Subscriber, str | None] = {}
        self._caller_key = caller_key
        self._closed = False
        self._max_streams = max_streams

    def install(self, server: MCPServer[Any]) -> None:
        """Serve subscriptions on `server`, once, after its `resources/list` handler is installed."""
        low = lowlevel(server)
        low.add_request_handler("resources/subscribe", SubscribeRequestParams, self._subscribe)
        low.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, self._unsubscribe)
        low.add_request_handler("subscriptions/listen", SubscriptionsListenRequestParams, self._listen)
        self._follow_lists(low, "resources/list", _LIST)
        self._follow_lists(low, "tools/list", _TOOLS)
        announce(server, NotificationOptions(resources_changed=True, tools_changed=True))
        self.bus.subscribe(self._subscribers.announce)

    def _follow_lists(self, low: Server[Any], method: str, event: ServerEvent) -> None:
        """Let a legacy connection that calls `method` hear `event` from then on."""
        entry = low.get_request_handler(method)
        if entry is None:
            return
        serve = entry.handler

        async def follow_and_list(ctx: _Context, params: PaginatedRequestParams) -> Any:
            # First the watch, then the list: a change in between is in one or the other.
            await self._follow_list(ctx, event)
            return await serve(ctx, params)

        low.add_request_handler(method, PaginatedRequestParams, follow_and_list)

    def initialization_options(self, server: MCPServer[Any]) -> InitializationOptions:
        """Return the answer of `server` to `initialize`, with the actual `listChanged`."""
        return lowlevel(server).create_initialization_options()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Watch and notify for as long as the block lasts.

        It may be entered several times at once: the SDK's SSE transport has a lifespan for each connection.
        """
        async with self._subscribers.running():
            yield

    def join(self, other: Hub) -> None:
        """Join with `other`, which includes this one's sources: what one announces, both do."""
        self.bus = other.bus
        self._subscribers = other._subscribers
        self.followers = other.followers

    def close(self) -> None:
        """End all `subscriptions/listen` streams, each with its last notices and its result; open no new ones."""
        self._closed = True
        self._subscribers.flush()
        for subscriber in self._streams:
            subscriber.end()

    @property
    def streams(self) -> int:
        """The number of open `subscriptions/listen` requests."""
        return len(self._streams)

    @property
    def subscriptions(self) -> int:
        """The number of topics with subscribers."""
        return len(self._subscribers)

    def subscribed_uris(self, ctx: _Context) -> list[str]:
        """Return the URIs to which the caller of a request is subscribed."""
        caller = self._caller_key(ctx)
        subscribers: list[Subscriber] = []
        if caller is not None:
            subscribers += [subscriber for subscriber, owner in self._streams.items() if owner == caller]
        connection = connection_of(ctx.session)
        if connection in self._connections:
            subscribers.append(self._connections[connection])
        uris: dict[str, None] = {}
        for subscriber in subscribers:
            uris.update(dict.fromkeys(subscriber.uris))
        return list(uris)

    @property
    def journal(self) -> Journal:
        """The changes of what is followed."""
        return self._subscribers.journal

    async def poll(self, follower: Follower) -> None:
        """Notice changes up to now of what `follower` follows, if sources can find out at once."""
        await self._subscribers.poll(follower)

    def find_absent(self, follower: Follower, uris: Sequence[str]) -> dict[str, str]:
        """Return those of `uris` at which nothing is known to exist yet, each with the reason."""
        return self._subscribers.find_absent(follower, uris)

    def find_omitted(self, follower: Follower) -> list[str]:
        """Return what is left out of what `follower` follows, in words."""
        return self._subscribers.find_omitted(follower)

    def resync(self) -> None:
        """Tell this process's subscribers that everything they watch may have changed."""
        self._subscribers.announce_everything()

    def stream_opened(self, session_id: str) -> None:
        """Tell a legacy session that everything it watches may have changed: without a stream it heard nothing."""
        for connection, subscriber in self._connections.items():
            if connection.session_id == session_id:
                subscriber.resync()

    async def updated(self, uri: str) -> None:
        """Announce that the resource at `uri` changed, if no source notices it."""
        await self.bus.publish(ResourceUpdated(uri))

    async def list_changed(self) -> None:
        """Announce that the answer to `resources/list` changed."""
        await self.bus.publish(_LIST)

    async def tools_changed(self) -> None:
        """Announce that the answer to `tools/list` changed."""
        await self.bus.publish(_TOOLS)

    async def _subscribe(self, ctx: _Context, params: SubscribeRequestParams) -> EmptyResult:
        subscriber = self._subscriber(connection_of(ctx.session))
        uri = str(params.uri)
        try:
            if uri not in subscriber.uris and len(subscriber.uris) >= MAX_URIS:
                raise TooLarge(f"This connection has {MAX_URIS:,} subscriptions, the limit.", "Unsubscribe from some.")
            topic = self._subscribers.subscribe(subscriber, uri)
            await topic.wait_settled()
            try:
                topic.raise_failure(uri)
            except Unavailable:
                self._subscribers.unsubscribe(subscriber, uri)
                raise
        except Problem as problem:
            code = RESOURCE_NOT_FOUND if isinstance(problem, NotFound) else INVALID_PARAMS
            raise MCPError(code=code, message=str(problem), data={"uri": well_formed(uri)}) from problem
        return EmptyResult()

    async def _unsubscribe(self, ctx: _Context, params: UnsubscribeRequestParams) -> EmptyResult:
        subscriber = self._connections.get(connection_of(ctx.session))
        if subscriber is not None:
            self._subscribers.unsubscribe(subscriber, str(params.uri))
        return EmptyResult()

    async def _follow_list(self, ctx: _Context, event: ServerEvent) -> None:
        """Let the connection of `ctx` hear `event`, if it is of the era in which asking for a list means that."""
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return
        for topic in self._subscribers.follow(self._subscriber(connection_of(ctx.session)), event):
            await topic.wait_settled()

    def _subscriber(self, connection: Connection) -> Subscriber:
        """Return the subscriber of a legacy connection, which ends with it."""
        if connection in self._connections:
            return self._connections[connection]

        async def send(event: ServerEvent) -> None:
            match event:
                case ResourceUpdated():
                    await connection.send_resource_updated(event.uri)
                case ToolsListChanged():
                    await connection.send_tool_list_changed()
                case _:
                    await connection.send_resource_list_changed()

        def drop() -> None:
            del self._connections[connection]
            self._subscribers.stop(subscriber)

        echo = 0.0
        client = connection.client_params
        if client is not None and client.client_info.name.startswith(VS_CODE):
            echo = _ECHO_SECONDS
        subscriber = Subscriber(send, echo=echo)
        self._connections[connection] = subscriber
        connection.exit_stack.callback(drop)
        self._subscribers.start(subscriber)
        return subscriber

    async def _listen(self, ctx: _Context, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        # The SDK's own handler buffers every event and ends a stream with 1,024 unread ones, which one `git checkout`
        # below a large subscription reaches; this one merges them, and subscribes before it acknowledges.
        if ctx.request_id is None:
            raise MCPError(code=INVALID_REQUEST, message="`subscriptions/listen` needs a request id.")
        if len(self._streams) >= self._max_streams:
            message = f"{self._max_streams:,} streams are open, the limit. End one, or name all resources in one."
            raise MCPError(code=INVALID_PARAMS, message=message)
        stream = ctx.request_id
        meta = {SUBSCRIPTION_ID_META_KEY: ctx.request_id}

        async def send(event: ServerEvent) -> None:
            await ctx.session.send_notification(event_to_notification(event, meta), related_request_id=stream)

        subscriber = Subscriber(send)
        self._streams[subscriber] = self._caller_key(ctx)
        try:
            honoured = await self._subscribe_to(subscriber, params.notifications)
            acknowledged = SubscriptionsAcknowledgedNotificationParams(notifications=honoured, _meta=meta)
            await ctx.session.send_notification(
                SubscriptionsAcknowledgedNotification(params=acknowledged), related_request_id=stream
            )
            if self._closed:
                subscriber.end()
            await subscriber.pump()
        finally:
            del self._streams[subscriber]
            self._subscribers.unsubscribe_all(subscriber)
        return SubscriptionsListenResult(_meta=meta)

    async def _subscribe_to(self, subscriber: Subscriber, requested: SubscriptionFilter) -> SubscriptionFilter:
        """Subscribe to what `requested` names; return the granted part, for the acknowledgement."""
        self._subscribe_to_lists(subscriber, requested)
        uris = list(dict.fromkeys(requested.resource_subscriptions or ()))
        await self._subscribe_to_resources(subscriber, uris[:MAX_URIS])
        return SubscriptionFilter(
            tools_list_changed=requested.tools_list_changed or None,
            prompts_list_changed=requested.prompts_list_changed or None,
            resources_list_changed=requested.resources_list_changed or None,
            resource_subscriptions=[uri for uri in uris if uri in subscriber.uris] or None,
        )

    def _subscribe_to_lists(self, subscriber: Subscriber, requested: SubscriptionFilter) -> None:
        if requested.tools_list_changed:
            self._subscribers.follow(subscriber, _TOOLS)
        if requested.prompts_list_changed:
            self._subscribers.follow(subscriber, _PROMPTS)
        if requested.resources_list_changed:
            self._subscribers.follow(subscriber, _LIST)

    async def _subscribe_to_resources(self, subscriber: Subscriber, uris: Sequence[str]) -> None:
        """Subscribe to resources, and keep those that could be watched."""
        for number, uri in enumerate(uris):
            if number % 256 == 255:
                await anyio.lowlevel.checkpoint()
            try:
                self._subscribers.subscribe(subscriber, uri)
            except Problem as problem:
                logger.info("A resource is not watched: %s", problem.fields["kind"])
        for topic in list(subscriber.topics):
            await topic.wait_settled()
        for uri, topic in list(subscriber.uris.items()):
            if topic.failure is not None:
                self._subscribers.unsubscribe(subscriber, uri)
