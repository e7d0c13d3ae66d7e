"""Private names of other packages that we cannot do without, each with its reason.

Everything else in this repository uses public names. `tests/shared/private_names.py` says what breaks without each, and
its test fails on the day one of them moves; `docs/upstream` proposes how they could go.
Others are imported where they are used, because this module takes long to import or they do:
`watchfiles._rust_notify.RustNotify` in `subscriptions.kernel_watch`, `set_current_async_library` and `threadlocals` of
anyio in `threads`, and the class behind `SSE_RESPONSE` in `transports.http.requests.json_replies`.
"""

from __future__ import annotations

import json
from asyncio.sslproto import SSLProtocol
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import anyio
from mcp.server._otel import OpenTelemetryMiddleware
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, authorization_context
from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver import server as _module
from mcp.server.mcpserver.tools import Tool
from mcp.server.models import InitializationOptions
from mcp.server.session import ServerSession
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.shared.message import SessionMessage
from mcp_types.jsonrpc import JSONRPCResponse
from opentelemetry import trace

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.server.streamable_http import EventMessage
    from mcp.shared.dispatcher import CallOptions
    from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
    from mcp.shared.message import ServerMessageMetadata
    from mcp.shared.transport_context import TransportContext
    from mcp_types.jsonrpc import RequestId
    from starlette.requests import Request
    from starlette.types import Scope

__all__ = [
    "SESSION_TRANSPORT",
    "SSE_RESPONSE",
    "SessionTransport",
    "Sessions",
    "add_to_initialize",
    "announce",
    "connection_of",
    "lowlevel",
    "skip_unrecorded_spans",
    "small_tls_buffers",
    "tool_table",
    "without_logging_setup",
]


# The name in `mcp.server.streamable_http` of the class that answers with a stream of events. The sessions of older
# clients open such a stream for every request and offer no hook to answer with plain JSON.
SSE_RESPONSE = "EventSourceResponse"


def lowlevel(server: MCPServer[Any]) -> Server[Any]:
    """Return the low-level server inside `server`.

    `MCPServer` has no public hook for list paging, `resources/subscribe` or a transport of one's own; the SDK's
    migration guide names this attribute as the way.
    """
    return server._lowlevel_server  # pyright: ignore[reportPrivateUsage]


class Sessions:
    """The sessions of Streamable HTTP of `server`; its manager neither tells of them nor can be asked to end one."""

    def __init__(self, server: MCPServer[Any]) -> None:
        self._server = server

    @property
    def state(self) -> Any:
        """The result of the lifespan of `server`, which all sessions share."""
        manager = lowlevel(self._server)._session_manager  # pyright: ignore[reportPrivateUsage]
        if manager is None:
            return None
        return manager._lifespan_state  # pyright: ignore[reportPrivateUsage]

    def get(self, key: str) -> StreamableHTTPServerTransport | None:
        """Return the session with this id, if it is open."""
        return self._transports.get(key)

    def of(self, scope: Scope, key: str) -> StreamableHTTPServerTransport | None:
        """Return the same, if the sender of the request `scope` opened it: for others it does not exist."""
        manager = lowlevel(self._server)._session_manager  # pyright: ignore[reportPrivateUsage]
        if manager is None:
            return None
        sender = None
        user = scope.get("user")
        if isinstance(user, AuthenticatedUser):
            sender = authorization_context(user)
        if sender != manager._session_owners.get(key):  # pyright: ignore[reportPrivateUsage]
            return None
        return manager._server_instances.get(key)  # pyright: ignore[reportPrivateUsage]

    @property
    def ids(self) -> Collection[str]:
        """The ids of open sessions."""
        return self._transports.keys()

    async def end(self, *ids: str) -> None:
        """End these sessions as their clients' DELETE would, or all of them.

        By itself, the manager waits a second for each call in flight, to write an answer into a stream that it no
        longer reads.
        """
        transports = self._transports
        for transport in [transports[key] for key in ids or list(transports) if key in transports]:
            await transport.terminate()

    @property
    def _transports(self) -> dict[str, StreamableHTTPServerTransport]:
        manager = lowlevel(self._server)._session_manager  # pyright: ignore[reportPrivateUsage]
        if manager is None:
            return {}
        return manager._server_instances  # pyright: ignore[reportPrivateUsage]


def connection_of(session: ServerSession) -> Connection:
    """Return the connection behind `session`, a proxy made anew for each request.

    A legacy client's subscription outlives the request: notices go to the connection, and it ends with the connection's
    exit stack. Neither can be reached through the proxy's public names.
    """
    return session._connection  # pyright: ignore[reportPrivateUsage]


# The name in `mcp.server.streamable_http_manager` of the class that serves each session of older clients.
SESSION_TRANSPORT = "StreamableHTTPServerTransport"

# The messages that may wait to be sent to the client of one request.
_MAX_MESSAGES = 16


class SessionTransport(StreamableHTTPServerTransport):
    """One session of Streamable HTTP, which can be used without the SDK's streams.

    The SDK has no public way from a session's request to its handler, nor to mark a session as in use.
    """

    @property
    def in_use(self) -> int:
        """How many requests are in progress; while there are any, `idle_scope` has no deadline."""
        return self._requests_in_flight

    @in_use.setter
    def in_use(self, count: int) -> None:
        self._requests_in_flight = count

    @property
    def idle_seconds(self) -> float | None:
        """The idle time after which it ends."""
        return self._idle_timeout

    def metadata(self, request: Request) -> ServerMessageMetadata:
        """Return the metadata of `request` for handlers."""
        return self._message_metadata(request)

    @contextmanager
    def messages(self, request_id: RequestId) -> Generator[MemoryObjectReceiveStream[EventMessage]]:
        """Receive what the session's dispatcher sends to the client of this request.

        The final response is not a message.
        """
        sender, receiver = cast(
            "tuple[MemoryObjectSendStream[EventMessage], MemoryObjectReceiveStream[EventMessage]]",
            anyio.create_memory_object_stream(_MAX_MESSAGES),
        )
        key = self._stream_key(request_id)
        self._request_streams[key] = (sender, receiver)
        try:
            yield receiver
        finally:
            self._request_streams.pop(key, None)
            sender.close()
            receiver.close()

    @staticmethod
    def _stream_key(request_id: RequestId) -> str:
        """Return the name of the stream of a request: the SDK's own, the text of the id, is one for 6 and "6"."""
        return json.dumps(request_id)

    async def end_messages(self, request_id: RequestId) -> None:
        """End `messages` of this request, after what is already queued for them.

        Raises:
            anyio.ClosedResourceError: The session is over.
        """
        if self._write_stream is not None:
            await self._write_stream.send(
                SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=self._stream_key(request_id), result={}))
            )

    async def ask(
        self,
        connection: Connection,
        request_id: RequestId,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None,
    ) -> dict[str, Any]:
        """Ask the client `method` where `messages` of this request are sent; return its answer."""
        dispatcher = cast("JSONRPCDispatcher[TransportContext]", connection.outbound)
        return await dispatcher.send_raw_request(method, params, opts, _related_request_id=self._stream_key(request_id))


def tool_table(server: MCPServer[Any]) -> dict[str, Tool]:
    """Return the tools that `tools/call` finds, by name; change the table in place.

    `add_tool` takes a function and makes the SDK's own kind of tool of it; ours is a subclass.
    """
    return server._tool_manager._tools  # pyright: ignore[reportPrivateUsage]


def announce(server: MCPServer[Any], notifications: NotificationOptions) -> None:
    """Make every legacy handshake of `server` declare `notifications`.

    `MCPServer` never passes these options on, and the HTTP transport asks the low-level server for its defaults.
    """
    low = lowlevel(server)
    create = low.create_initialization_options

    def create_with_notifications(
        notification_options: NotificationOptions | None = None, *args: Any, **kwargs: Any
    ) -> InitializationOptions:
        return create(notification_options or notifications, *args, **kwargs)

    low.create_initialization_options = create_with_notifications  # pyright: ignore[reportAttributeAccessIssue]


def skip_unrecorded_spans(server: MCPServer[Any]) -> None:
    """Let `server` open spans only while a provider receives them.

    Without one the SDK's middleware, which cannot be turned off, wastes a tenth of a small call.
    """
    chain = lowlevel(server).middleware
    for index, middleware in enumerate(chain):
        if isinstance(middleware, OpenTelemetryMiddleware):
            chain[index] = _open_recorded_spans(middleware)


def _open_recorded_spans(open_span: OpenTelemetryMiddleware) -> ServerMiddleware[Any]:
    """Return middleware that opens a span only while a provider receives it."""

    async def open_recorded_span(ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
        if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
            return await call_next(ctx)
        return await open_span(ctx, call_next)

    return open_recorded_span


def add_to_initialize(server: MCPServer[Any], options: Mapping[str, Any]) -> None:
    """Make every legacy handshake of `server` say more about it, by the names of `InitializationOptions`.

    If the constructor got it, the SDK would repeat it in every answer of the modern era.
    """
    low = lowlevel(server)
    create = low.create_initialization_options

    def create_with_options(*args: Any, **kwargs: Any) -> InitializationOptions:
        return create(*args, **kwargs).model_copy(update=options)

    low.create_initialization_options = create_with_options  # pyright: ignore[reportAttributeAccessIssue]


def small_tls_buffers() -> None:
    """Make asyncio keep only two TLS records for each connection from now on.

    By default it keeps 256 KiB from the first byte of a handshake, and strangers can open as many as there are
    descriptors.
    """
    SSLProtocol.max_size = 32 * 1024


def _nothing(level: str) -> None:
    pass


@contextmanager
def without_logging_setup() -> Generator[None]:
    """Construct an `MCPServer` inside this block without its logging set-up.

    The constructor imports rich (50 ms of every start) for a root handler that we replace anyway.
    """
    module: Any = _module
    configure = module.configure_logging
    module.configure_logging = _nothing
    try:
        yield
    finally:
        module.configure_logging = configure
