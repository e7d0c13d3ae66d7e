"""Carries requests from the pipe to the server and back, each in a separate task with nothing in between.

The SDK's dispatcher keeps what need not be fast: the handshake, notifications and the server's questions to the client.
Its path for requests, with streams and task groups, would take half the time of a small call. asyncio only.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Self

import anyio
from anyio.abc import AsyncResource
from mcp.server.lowlevel import Server
from mcp.server.models import InitializationOptions
from mcp.shared.dispatcher import CallOptions, DispatchContext, OnNotify, OnRequest, Outbound
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.jsonrpc_dispatcher import (
    JSONRPCDispatcher,
    cancelled_request_id_from_params,
    progress_token_from_params,
)
from mcp.shared.message import SessionMessage
from mcp.shared.transport_context import TransportContext
from mcp_types import ProgressToken
from mcp_types.jsonrpc import (
    CONNECTION_CLOSED,
    ErrorData,
    JSONRPCNotification,
    JSONRPCRequest,
    RequestId,
)

from mcp_batteries.transports.dispatch import error_data
from mcp_batteries.transports.stdio import protocol_generations
from mcp_batteries.transports.stdio.reader import Reader
from mcp_batteries.transports.stdio.writer import Writer

__all__ = ["serve_requests"]

_FAREWELL_SECONDS = 1.0

_log = logging.getLogger(__name__)


async def serve_requests(server: Server[Any], options: InitializationOptions, reader: Reader, writer: Writer) -> None:
    """Serve `server` between `reader` and `writer`, in the era that the first request opens."""
    async with server.lifespan(server) as state:
        try:
            is_modern = protocol_generations.is_modern(await reader.first_request())
            requests = _Requests(reader, writer, TransportContext(kind="stdio", can_send_request=not is_modern))
            # What comes behind `initialize` waits for it: clients may send it before they have the answer.
            dispatcher = JSONRPCDispatcher[TransportContext](requests, writer, inline_methods=frozenset({"initialize"}))
            era = protocol_generations.serve_stateless if is_modern else protocol_generations.serve_with_handshake
            async with era(server, dispatcher, state, options) as (on_request, on_notify):
                await requests.run(dispatcher, on_request, on_notify)
        finally:
            await writer.aclose()


class _Call:
    """One request, or a notification, and its path back to the client, as the SDK's `DispatchContext`.

    Args:
        request_id: None for a notification.
    """

    __slots__ = (
        "_event",
        "_token",
        "cancelled",
        "closed",
        "message_metadata",
        "outbound",
        "request_id",
        "scope",
        "transport",
    )

    def __init__(
        self, outbound: Outbound, transport: TransportContext, request_id: RequestId | None, token: ProgressToken | None
    ) -> None:
        self.outbound = outbound
        self.transport = transport
        self.request_id = request_id
        self._token = token
        self.message_metadata = None
        self.closed = False
        self.cancelled = False
        self.scope = anyio.CancelScope()
        self._event: anyio.Event | None = None

    def cancel(self) -> None:
        """Stop it, because the client cancelled it; it gets no answer."""
        self.cancelled = True
        self.scope.cancel()
        if self._event is not None:
            self._event.set()

    @property
    def cancel_requested(self) -> anyio.Event:
        if self._event is None:
            self._event = anyio.Event()
            if self.cancelled:
                self._event.set()
        return self._event

    @property
    def can_send_request(self) -> bool:
        return self.transport.can_send_request and not self.closed

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        if not self.can_send_request:
            raise NoBackChannelError(method)
        return await self.outbound.send_raw_request(method, params, opts)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        if not self.closed:
            await self.outbound.notify(method, params, opts)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        if self._token is None:
            return
        params: dict[str, Any] = {"progressToken": self._token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        await self.notify("notifications/progress", params)


class _Requests(AsyncResource):
    """Answers requests; passes on all other messages, as the stream that the SDK's dispatcher reads."""

    def __init__(self, reader: Reader, writer: Writer, transport: TransportContext) -> None:
        self._reader = reader
        self._writer = writer
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._calls: dict[RequestId, _Call] = {}
        self._tasks: dict[_Call, asyncio.Task[None]] = {}

    async def run(self, dispatcher: JSONRPCDispatcher[TransportContext], request: OnRequest, notify: OnNotify) -> None:
        """Serve until the client leaves."""
        self._outbound = dispatcher
        self._on_request = request

        async def on_notify(
            _: DispatchContext[TransportContext], method: str, params: Mapping[str, Any] | None
        ) -> None:
            await notify(_Call(dispatcher, self._transport, None, None), method, params)

        await dispatcher.run(request, on_notify)

    async def receive(self) -> SessionMessage:
        """Return the next message that is not a request, or is `initialize`.

        Raises:
            anyio.EndOfStream: as `Reader.receive`.
        """
        while True:
            message = await self._reader.receive()
            if isinstance(message, JSONRPCRequest) and message.method != "initialize":
                self._begin(message)
                continue
            if isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
                self._cancel(message)
            return SessionMessage(message)

    def _cancel(self, message: JSONRPCNotification) -> None:
        """Stop the request that `message` names, if it runs."""
        request_id = cancelled_request_id_from_params(message.params)
        if request_id is None:
            return
        call = self._calls.get(request_id)
        if call is not None:
            call.cancel()

    async def aclose(self) -> None:
        """Stop running requests, and wait for their end."""
        await self._reader.aclose()
        for call in self._tasks:
            call.scope.cancel()
        with anyio.CancelScope(shield=True):
            while self._tasks:
                await asyncio.wait(self._tasks.values())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    def _begin(self, request: JSONRPCRequest) -> None:
        token: ProgressToken | None = None
        if request.params:
            token = progress_token_from_params(request.params)
        call = _Call(self._outbound, self._transport, request.id, token)
        self._calls[request.id] = call
        self._tasks[call] = self._loop.create_task(self._answer(request, call))

    async def _answer(self, request: JSONRPCRequest, call: _Call) -> None:
        is_answered = False
        try:
            with call.scope:
                result: dict[str, Any] | ErrorData
                try:
                    result = await self._on_request(call, request.method, request.params)
                except Exception as raised:  # noqa: BLE001 - whatever it is, the client hears that its call failed
                    result = error_data(raised, request.method)
                finally:
                    call.closed = True
                    self._forget(request, call)
                if not call.cancelled:
                    is_answered = True
                    await self._writer.answer(request.id, result)
            if not (is_answered or call.cancelled):
                # The server ends, and the client need not wait.
                with anyio.move_on_after(_FAREWELL_SECONDS, shield=True):
                    await self._writer.answer(
                        request.id, ErrorData(code=CONNECTION_CLOSED, message="Connection closed")
                    )
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            _log.debug("nobody reads the answer to %r", request.id)
        finally:
            del self._tasks[call]

    def _forget(self, request: JSONRPCRequest, call: _Call) -> None:
        # An id that was given up may be in use again.
        if self._calls.get(request.id) is call:
            del self._calls[request.id]
