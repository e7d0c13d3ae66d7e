"""Each name of the SDK and of uvicorn that is not public and that we use, with what breaks on the day it goes."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["PRIVATE_NAMES", "PrivateName"]


class PrivateName(NamedTuple):
    """One name.

    Attributes:
        owner: the module, class or function that has it, in full.
        name: the name of a member, or of a parameter if `owner` is a function.
        breaks: what no longer works without it.
        page: the proposal in `docs/upstream` by which it could go.
    """

    owner: str
    name: str
    breaks: str
    page: str


_SERVER = "mcp.server.mcpserver.MCPServer"
_MANAGER = "mcp.server.streamable_http_manager.StreamableHTTPSessionManager"
_TRANSPORT = "mcp.server.streamable_http.StreamableHTTPServerTransport"
_PROTOCOL = "uvicorn.protocols.http.httptools_impl.HttpToolsProtocol"
_CYCLE = "uvicorn.protocols.http.httptools_impl.RequestResponseCycle"
_UVICORN = "uvicorn.server.Server"

PRIVATE_NAMES = (
    PrivateName(_SERVER, "_lowlevel_server", "paged lists, subscriptions and our stdio transport", "lowlevel-server"),
    PrivateName(_SERVER, "_tool_manager", "tools of our own kind, and their schemas", "lowlevel-server"),
    PrivateName(
        "mcp.server.mcpserver.tools.tool_manager.ToolManager", "_tools", "the table of tools by name", "lowlevel-server"
    ),
    PrivateName("mcp.server.lowlevel.Server", "_session_manager", "ending sessions at shutdown", "sessions"),
    PrivateName(_MANAGER, "_server_instances", "finding the session that a request names", "sessions"),
    PrivateName(_MANAGER, "_session_owners", "hiding a session from callers who did not open it", "sessions"),
    PrivateName(_MANAGER, "_lifespan_state", "answering requests of 2026-07-28 in one task", "sessions"),
    PrivateName(_TRANSPORT, "_requests_in_flight", "a session that is in use does not time out", "sessions"),
    PrivateName(_TRANSPORT, "_idle_timeout", "an abandoned call ends with its unused session", "sessions"),
    PrivateName(
        "mcp.server.streamable_http_manager",
        "StreamableHTTPServerTransport",
        "requests of sessions in one task, and the newest stream of notifications",
        "answers-without-a-stream",
    ),
    PrivateName(
        "mcp.server.streamable_http",
        "EventSourceResponse",
        "plain JSON as the answer to `initialize`",
        "answers-without-a-stream",
    ),
    PrivateName(_TRANSPORT, "_message_metadata", "what handlers know of a request", "answers-without-a-stream"),
    PrivateName(_TRANSPORT, "_request_streams", "questions to the client within a call", "answers-without-a-stream"),
    PrivateName(_TRANSPORT, "_write_stream", "a question is taken back before the answer", "answers-without-a-stream"),
    PrivateName(
        "mcp.shared.jsonrpc_dispatcher.JSONRPCDispatcher.send_raw_request",
        "_related_request_id",
        "a question on the stream of its call",
        "answers-without-a-stream",
    ),
    PrivateName("mcp.server.session.ServerSession", "_connection", "notices beyond a request", "connections"),
    PrivateName(
        "mcp.server.lowlevel.Server",
        "create_initialization_options",
        "`listChanged`, instructions and icons in the handshake",
        "handshake-options",
    ),
    PrivateName("mcp.server._otel", "OpenTelemetryMiddleware", "no spans that nobody receives", "spans"),
    PrivateName(
        "mcp.server.mcpserver.server", "configure_logging", "a start without the SDK's log handler", "logging-setup"
    ),
    *(
        PrivateName(_PROTOCOL, name, breaks, "uvicorn-limits")
        for name, breaks in {
            "client": "the user at the other end of a Unix socket as the caller",
            "config": "the limit of connections",
            "connection_lost": "a call hears that its client left",
            "connection_made": "heads of answers leave with their bodies",
            "cycle": "whether a request is being answered",
            "data_received": "the limits on the size and time of headers",
            "flow": "the rest of a refused message is read",
            "headers": "refusing what a proxy would read otherwise",
            "limit_concurrency": "probes are answered when all else is full",
            "loop": "the timers of a connection",
            "on_body": "nothing behind a refusal is read",
            "on_header": "trailers are no headers",
            "on_headers_complete": "refusals before a request is run",
            "on_message_begin": "the size of each request's headers",
            "on_message_complete": "bodies that arrived whole are not timed",
            "on_response_complete": "refusals in their turn",
            "parser": "bodies behind headers with Upgrade are read",
            "pipeline": "refusals in their turn",
            "scope": "bodies that arrived whole are not timed",
            "send_400_response": "what is no HTTP is refused in its turn",
            "shutdown": "connections end without losing what was sent",
            "transport": "answers before a connection closes",
            "url": "probes and absolute targets",
        }.items()
    ),
    *(
        PrivateName(_CYCLE, name, breaks, "uvicorn-limits")
        for name, breaks in {
            "disconnected": "a call hears that its client left",
            "keep_alive": "the last answer closes its connection",
            "message_event": "a call hears that its client left",
            "more_body": "refusals in their turn",
            "response_complete": "the rest of a refused message is read",
            "response_started": "no two answers to one request",
        }.items()
    ),
    *(
        PrivateName(_UVICORN, name, breaks, "uvicorn-shutdown")
        for name, breaks in {
            "capture_signals": "the exit status, and a second signal that ends at once",
            "config": "the certificate that is replaced, and the protocol",
            "lifespan": "the state of requests",
            "server_state": "which connections are open",
            "servers": "no listener beside ours",
            "should_exit": "a signal ends the server",
            "shutdown": "no call that was sent is lost",
            "startup": "connections are accepted by ours",
        }.items()
    ),
)
