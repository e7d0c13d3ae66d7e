"""Requests of 2026-07-28 over HTTP, each one task from the HTTP server to the handler and back.

Requests that the SDK refuses, or answers with a stream from the start, are left to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from mcp.server.lowlevel import Server
from mcp.server.runner import modern_error_data
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    InboundModernRoute,
    classify_inbound_request,
    find_duplicated_routing_header,
    validate_mcp_param_headers,
    x_mcp_header_map,
)
from mcp.shared.message import ServerMessageMetadata
from mcp_types.jsonrpc import ErrorData, JSONRPCRequest
from starlette.requests import Request
from starlette.types import Receive, Send

from mcp_batteries.concurrency.timeout_queue import TimeoutQueue
from mcp_batteries.transports.dispatch import StatelessDispatcher
from mcp_batteries.transports.http.requests.response import Call

__all__ = ["StatelessRequests"]

# After this time a call is worth a task that notices when its client leaves.
_MOMENT_SECONDS = 0.01


class _ToolSchema(NamedTuple):
    """The schema of a tool's arguments, and whether headers repeat some of them."""

    schema: Mapping[str, Any]
    has_headers: bool


class StatelessRequests:
    """Answers requests that are whole, well formed and allowed.

    Args:
        state: the result of the server's lifespan.
    """

    def __init__(self, server: Server[Any], state: Any) -> None:
        self._server = server
        self._exchanges = StatelessDispatcher(server, state)
        self._moment = TimeoutQueue(_MOMENT_SECONDS)
        self._schemas: dict[str, _ToolSchema] = {}

    def route(self, request: Request, message: JSONRPCRequest) -> InboundModernRoute | None:
        """Return the route by which `message`, of a revision without a handshake, is answered here.

        None leaves it to the SDK.
        """
        headers = request.headers
        if message.method == "subscriptions/listen" or find_duplicated_routing_header(headers.items()) is not None:
            return None
        route = classify_inbound_request({"method": message.method, "params": message.params}, headers=headers)
        if not isinstance(route, InboundModernRoute) or not self._headers_repeat(message, headers):
            return None
        return route

    async def answer(
        self,
        request: Request,
        message: JSONRPCRequest,
        route: InboundModernRoute,
        receive: Receive,
        send: Send,
        *,
        streams: bool,
    ) -> None:
        """Answer `message`, and stop if its client leaves.

        Args:
            streams: whether notices are sent before the result; otherwise there is only the result.
        """
        call = _StatelessCall(request, message, receive, send, streams=streams, moment=self._moment)
        with call.scope:
            try:
                result = await self._exchanges.answer(route, call, message.method, message.params)
            except Exception as raised:  # noqa: BLE001 - whatever it is, the client hears that its call failed
                result = modern_error_data(raised)
            finally:
                call.end()
            status = 200
            if isinstance(result, ErrorData):
                status = ERROR_CODE_HTTP_STATUS.get(result.code, 200)
            await call.answer(result, status)

    def _headers_repeat(self, message: JSONRPCRequest, headers: Mapping[str, str]) -> bool:
        """Tell whether `headers` match the arguments that they must repeat."""
        params = message.params or {}
        name = params.get("name")
        arguments = params.get("arguments")
        find_schema = self._server.get_tool_input_schema
        if message.method != "tools/call" or not arguments:
            return not any(header.startswith("mcp-param-") for header in headers)
        if not isinstance(name, str) or not isinstance(arguments, dict) or find_schema is None:
            return False
        schema = find_schema(name)
        if schema is None:
            return True
        tool = self._schemas.get(name)
        if tool is None or tool.schema is not schema:
            tool = _ToolSchema(schema, bool(x_mcp_header_map(schema)))
            self._schemas[name] = tool
        if not tool.has_headers:
            return True
        return validate_mcp_param_headers(schema, cast("dict[str, Any]", arguments), headers) is None


class _StatelessCall(Call):
    """A call whose client cancels it by leaving."""

    def __init__(
        self,
        request: Request,
        message: JSONRPCRequest,
        receive: Receive,
        send: Send,
        *,
        streams: bool,
        moment: TimeoutQueue,
    ) -> None:
        metadata = ServerMessageMetadata(request_context=request)
        super().__init__(request, message, metadata, receive, send, streams=streams, moment=moment)

    async def run_beside(self) -> None:
        await self.ping_until_client_leaves()
        self.cancel_requested.set()
        self.scope.cancel()
