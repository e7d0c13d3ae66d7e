"""What a request means in each era: part of one connection after a handshake, or self-contained with an envelope."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.connection import Connection, NotifyOnlyOutbound
from mcp.server.lowlevel import Server
from mcp.server.models import InitializationOptions
from mcp.server.runner import ServerRunner, aclose_shielded
from mcp.shared.dispatcher import DispatchContext, OnNotify, OnRequest, Outbound
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import InboundLadderRejection, classify_inbound_request
from mcp.shared.transport_context import TransportContext
from mcp_types import PROTOCOL_VERSION_META_KEY, UnsupportedProtocolVersionErrorData
from mcp_types.jsonrpc import INVALID_REQUEST, UNSUPPORTED_PROTOCOL_VERSION, JSONRPCRequest
from mcp_types.version import LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS

from mcp_batteries.transports.dispatch import StatelessDispatcher

__all__ = ["Handlers", "is_modern", "serve_stateless", "serve_with_handshake"]

Handlers = tuple[OnRequest, OnNotify]
_Context = DispatchContext[TransportContext]
_Params = Mapping[str, Any] | None


def is_modern(opening: JSONRPCRequest | None) -> bool:
    """Tell whether the first request of a connection opens the era without a handshake, which then applies to all
    others."""
    return opening is not None and opening.method != "initialize" and _has_envelope(opening.params)


@asynccontextmanager
async def serve_with_handshake(
    server: Server[Any], outbound: Outbound, state: Any, options: InitializationOptions
) -> AsyncGenerator[Handlers]:
    """Serve one connection with a handshake."""
    connection = Connection.for_loop(outbound)
    runner = ServerRunner(server, connection, state, init_options=options)
    answer = runner.on_request

    async def on_request(context: _Context, method: str, params: _Params) -> dict[str, Any]:
        if params and "_meta" in params and method != "initialize" and _has_envelope(params):
            raise MCPError(
                INVALID_REQUEST,
                "this connection serves the handshake protocol era; "
                "requests carrying the 2026-07-28 envelope are not accepted on it",
            )
        return await answer(context, method, params)

    try:
        yield on_request, runner.on_notify
    finally:
        await aclose_shielded(connection)


@asynccontextmanager
async def serve_stateless(
    server: Server[Any], outbound: Outbound, state: Any, options: InitializationOptions
) -> AsyncGenerator[Handlers]:
    """Serve requests of 2026-07-28, each with an envelope that names the client and the revision."""
    notices = NotifyOnlyOutbound(outbound)
    exchanges = StatelessDispatcher(server, state, notices)

    async def on_request(context: _Context, method: str, params: _Params) -> dict[str, Any]:
        if method == "initialize":
            raise MCPError(
                UNSUPPORTED_PROTOCOL_VERSION,
                "connection is serving the 2026-07-28 protocol; the initialize handshake is not accepted",
                _version_error_data(params),
            )
        route = classify_inbound_request({"method": method, "params": params})
        if isinstance(route, InboundLadderRejection):
            raise MCPError(route.code, route.message, route.data)
        return await exchanges.answer(route, context, method, params)

    async def on_notify(context: _Context, method: str, params: _Params) -> None:
        # A notification has no envelope.
        connection = Connection.from_envelope(LATEST_MODERN_VERSION, None, None, outbound=notices)
        try:
            await ServerRunner(server, connection, state).on_notify(context, method, params)
        finally:
            await aclose_shielded(connection)

    yield on_request, on_notify


def _has_envelope(params: _Params) -> bool:
    meta = (params or {}).get("_meta")
    return isinstance(meta, Mapping) and PROTOCOL_VERSION_META_KEY in meta


def _version_error_data(params: _Params) -> dict[str, Any]:
    """Return the revisions that are served, beside the one that `params` request."""
    supported = list(MODERN_PROTOCOL_VERSIONS)
    requested = (params or {}).get("protocolVersion")
    if not isinstance(requested, str):
        return {"supported": supported}
    return UnsupportedProtocolVersionErrorData(supported=supported, requested=requested).model_dump(mode="json")
