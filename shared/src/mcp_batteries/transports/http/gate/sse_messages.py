"""The messages of the older SSE transport: read as over the others, and refused where their sender listens.

The SDK reads fewer of them, never answers a request whose id is `1.0`, and refuses the others by a status alone: its
client for Python only logs that, so that the call waits for ever.
"""

from __future__ import annotations

from typing import Any

import anyio
from mcp.server.auth.middleware.bearer_auth import RequireAuthMiddleware
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.jsonrpc import INVALID_REQUEST, JSONRPCMessage, JSONRPCRequest, RequestId
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcp_batteries.transports.http.gate.message_size import (
    TOO_MANY_VALUES,
    describe_limit,
    find_id,
    has_too_many_values,
    peek_body_id,
)
from mcp_batteries.transports.http.refusals import Refusals, set_refused_status
from mcp_batteries.transports.http.requests.sessions import ReplayedBody
from mcp_batteries.transports.jsonrpc import Malformed, parse

__all__ = ["SseMessages", "answer_refused", "find_endpoint"]

# Only the SDK knows the stream on which the sender of a request waits. So one that is refused is passed on without its
# contents, and its scope holds the refusal, which is its answer.
_REFUSAL = "mcp_batteries.refusal"


class _OverLimit(Malformed):
    """Raised when a message is too long, or takes too long.

    Args:
        status: the status of the refusal.
    """

    def __init__(self, status: int, message: str, request_id: RequestId | None) -> None:
        super().__init__(INVALID_REQUEST, message, request_id)
        self.status = status


class SseMessages:
    """Passes on the message in each POST in the form that the SDK reads.

    Args:
        max_body: longest message in bytes.
        seconds: the time within which a body must arrive.
        refusals: gets each message that is refused on its sender's stream.
    """

    def __init__(self, app: ASGIApp, *, max_body: int, seconds: float, refusals: Refusals) -> None:
        self._app = app
        self._max_body = max_body
        self._seconds = seconds
        self._refusals = refusals

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        try:
            message = await self._read(receive)
        except Malformed as problem:
            status = problem.status if isinstance(problem, _OverLimit) else 400
            if status == 408:
                send = _close_connection(send)
            if problem.request_id is None:
                await PlainTextResponse(problem.message, status)(scope, receive, send)
                return
            self._refusals.record(scope, status)
            set_refused_status(scope, status)
            scope = {**scope, _REFUSAL: problem}
            message = JSONRPCRequest(jsonrpc="2.0", id=problem.request_id, method="ping")
        if message is not None:
            headers = [(name, value) for name, value in scope["headers"] if name != b"content-length"]
            await self._app({**scope, "headers": headers}, ReplayedBody(message, receive), send)

    async def _read(self, receive: Receive) -> JSONRPCMessage | None:
        """Return the message in the body, or None if the client left.

        Raises:
            Malformed: it is none, too long or too late.
        """
        body = bytearray()
        try:
            with anyio.fail_after(self._seconds):
                if not await self._receive(receive, body):
                    return None
        except TimeoutError:
            text = f"The message did not arrive within {self._seconds:g} s."
            raise _OverLimit(408, text, peek_body_id(bytes(body))) from None
        received = bytes(body)
        if has_too_many_values(received):
            raise _OverLimit(413, TOO_MANY_VALUES, peek_body_id(received))
        return parse(received)

    async def _receive(self, receive: Receive, body: bytearray) -> bool:
        """Receive the whole body; return whether it came before the client left.

        Raises:
            Malformed: it is too long.
        """
        is_whole = False
        while not is_whole:
            part = await receive()
            if part["type"] == "http.disconnect":
                return False
            body += part.get("body", b"")
            is_whole = not part.get("more_body", False)
            if len(body) > self._max_body:
                request_id = await find_id(body, receive, is_whole=is_whole)
                raise _OverLimit(413, describe_limit(self._max_body), request_id)
        return True


def _close_connection(send: Send) -> Send:
    """Return the `send` for a response after which the connection ends, since more of the request may come."""

    async def send_and_close(part: Message) -> None:
        if part["type"] == "http.response.start":
            part = {**part, "headers": [*part.get("headers", ()), (b"connection", b"close")]}
        await send(part)

    return send_and_close


def find_endpoint(application: Starlette, path: str) -> Mount | RequireAuthMiddleware:
    """Return what has the SDK's endpoint for messages as its `app`, behind the SDK's own check of tokens.

    Args:
        path: of the endpoint, without a slash at its end.
    """
    mount = next(route for route in application.routes if isinstance(route, Mount) and route.path == path)
    if isinstance(mount.app, RequireAuthMiddleware):
        return mount.app
    return mount


async def answer_refused(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Answer a request that `SseMessages` has refused; a middleware."""
    request: Any = ctx.request
    if request is not None and _REFUSAL in request.scope:
        refusal: Malformed = request.scope[_REFUSAL]
        raise MCPError(refusal.code, refusal.message)
    return await call_next(ctx)
