"""A request of 2026-07-28 over HTTP: one task from the HTTP server to the handler and back.

The SDK's way gives each a group of three tasks and a stream between them, so that the client can leave and be told of
progress. Most are answered before either happens, so here that begins with the first notice, or once a call has run
for a moment. What the SDK refuses, or answers with a stream from the start, is left to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import anyio
from mcp.server.lowlevel import Server
from mcp.server.runner import modern_error_data
from mcp.server.streamable_http import check_accept_headers
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    InboundModernRoute,
    classify_inbound_request,
    find_duplicated_routing_header,
    validate_mcp_param_headers,
    x_mcp_header_map,
)
from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import ProgressToken
from mcp_types.jsonrpc import ErrorData, JSONRPCNotification, JSONRPCRequest, RequestId
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.requests import Request
from starlette.types import Receive, Send

from mcp_batteries.transports.exchanges import Exchanges
from mcp_batteries.transports.jsonrpc import dump, dump_answer

__all__ = ["HttpExchanges"]

_MOMENT_SECONDS = 0.01
"""After which a call is worth a task that sees its client leave."""
_PING_SECONDS = 15.0
_STREAM = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"connection", b"keep-alive"),
    (b"x-accel-buffering", b"no"),
]


class HttpExchanges:
    """Answers requests that are whole, well formed and allowed.

    Args:
        state: what the server's lifespan gave.
        streams: whether notices are told on the way; otherwise there is only the result.
    """

    def __init__(self, server: Server[Any], state: Any, *, streams: bool) -> None:
        self._server, self._streams = server, streams
        self._exchanges = Exchanges(server, state)
        self._mirrored: dict[str, tuple[object, bool]] = {}
        """By tool: its schema, and whether headers repeat arguments of it."""

    def route(self, request: Request, message: JSONRPCRequest) -> InboundModernRoute | None:
        """By which `message` is answered here; None if that is the SDK's."""
        headers = request.headers
        version = headers.get("mcp-protocol-version")
        if version is None or version in HANDSHAKE_PROTOCOL_VERSIONS or message.method == "subscriptions/listen":
            return None
        has_json, has_events = check_accept_headers(request)
        if not (has_json and (has_events or not self._streams)):
            return None
        if find_duplicated_routing_header(headers.items()) is not None:
            return None
        body = {"method": message.method, "params": message.params}
        route = classify_inbound_request(body, headers=headers)
        if not isinstance(route, InboundModernRoute) or not self._headers_repeat(message, headers):
            return None
        return route

    def _headers_repeat(self, message: JSONRPCRequest, headers: Mapping[str, str]) -> bool:
        """Whether `headers` say the same as the arguments that are to be repeated in them."""
        params = message.params or {}
        name, arguments, lookup = params.get("name"), params.get("arguments"), self._server.get_tool_input_schema
        if message.method != "tools/call" or not arguments:
            return not any(header.startswith("mcp-param-") for header in headers)
        if not isinstance(name, str) or not isinstance(arguments, dict) or lookup is None:
            return False
        schema = lookup(name)
        if schema is None:
            return True
        known = self._mirrored.get(name)
        if known is None or known[0] is not schema:
            known = self._mirrored[name] = schema, bool(x_mcp_header_map(schema))
        return not known[1] or validate_mcp_param_headers(schema, cast("dict[str, Any]", arguments), headers) is None

    async def answer(
        self, request: Request, message: JSONRPCRequest, route: InboundModernRoute, receive: Receive, send: Send
    ) -> None:
        """Answer `message`, unless its client leaves: then it is stopped."""
        call = _Call(request, message, receive, send, streams=self._streams)
        with call.scope:
            try:
                result = await self._exchanges.answer(route, call, message.method, message.params)
            except Exception as raised:  # noqa: BLE001 - whatever it is, the client hears that its call failed
                result = modern_error_data(raised)
            finally:
                call.end()
            await call.reply(result)


class _Call:
    """One request and its way back to the client, as the SDK's `DispatchContext`."""

    __slots__ = (
        "_keeper",
        "_lock",
        "_receive",
        "_send",
        "_streams",
        "_timer",
        "_token",
        "_told",
        "cancel_requested",
        "closed",
        "message_metadata",
        "request_id",
        "scope",
        "transport",
    )

    can_send_request = False

    def __init__(
        self, request: Request, message: JSONRPCRequest, receive: Receive, send: Send, *, streams: bool
    ) -> None:
        self.transport = TransportContext(kind="streamable-http", can_send_request=False, headers=request.headers)
        self.request_id: RequestId = message.id
        self.message_metadata = ServerMessageMetadata(request_context=request)
        self.cancel_requested = anyio.Event()
        self.scope = anyio.CancelScope()
        self._token: ProgressToken | None = progress_token_from_params(message.params) if message.params else None
        self._receive, self._send, self._streams = receive, send, streams
        self._lock: anyio.Lock | None = None
        self._told = self.closed = False
        self._keeper: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(_MOMENT_SECONDS, self._keep)

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        if self._streams and not self.closed:
            said = JSONRPCNotification(jsonrpc="2.0", method=method, params=None if params is None else dict(params))
            if line := dump(said):
                await self._tell(_event(line))

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        if self._token is not None:
            said = {"progressToken": self._token, "progress": progress, "total": total, "message": message}
            await self.notify(
                "notifications/progress", {key: value for key, value in said.items() if value is not None}
            )

    def end(self) -> None:
        """No more notices, and nobody sees the client leave any more."""
        self.closed = True
        self._timer.cancel()
        if self._keeper is not None:
            self._keeper.cancel()

    async def reply(self, result: dict[str, Any] | ErrorData) -> None:
        """Send what ends the answer."""
        line = dump_answer(self.request_id, result)
        if self._keeper is not None:
            await asyncio.wait((self._keeper,))
        if self._lock is not None:
            async with self._lock:
                pass  # What is being told comes first.
        if self._told:
            await self._tell(_event(line), more=False)
            return
        status = ERROR_CODE_HTTP_STATUS.get(result.code, 200) if isinstance(result, ErrorData) else 200
        headers = [(b"content-length", b"%d" % len(line)), (b"content-type", b"application/json")]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": line, "more_body": False})

    async def _tell(self, event: bytes, *, more: bool = True) -> None:
        if self._lock is None:
            self._lock = anyio.Lock()
        async with self._lock:
            if not self._told:
                await self._send({"type": "http.response.start", "status": 200, "headers": _STREAM})
                self._told = True
            await self._send({"type": "http.response.body", "body": event, "more_body": more})

    def _keep(self) -> None:
        self._keeper = asyncio.get_running_loop().create_task(self._kept())

    async def _kept(self) -> None:
        # Pings keep a proxy from closing the stream, which would stop the call.
        leaving = asyncio.ensure_future(self._left())
        try:
            while not (await asyncio.wait((leaving,), timeout=_PING_SECONDS))[0]:
                if self._streams:
                    await self._tell(b": ping\r\n\r\n")
        finally:
            leaving.cancel()
        self.cancel_requested.set()
        self.scope.cancel()

    async def _left(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass


def _event(line: bytes) -> bytes:
    return b"event: message\r\ndata: " + line.strip() + b"\r\n\r\n"
