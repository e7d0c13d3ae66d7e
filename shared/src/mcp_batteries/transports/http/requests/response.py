"""One request over HTTP and its answer: one JSON message, or a stream once something must be sent before it.

The SDK gives each request a task group and streams, so that its client can hear of progress, and leave. Most are
answered before either happens: here that begins with the first notice, or once a call has run for a moment. asyncio
only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import anyio
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import ProgressToken
from mcp_types.jsonrpc import ErrorData, JSONRPCNotification, JSONRPCRequest, RequestId
from starlette.requests import Request
from starlette.types import Receive, Send

from mcp_batteries.concurrency.timeout_queue import TimeoutQueue
from mcp_batteries.transports.jsonrpc import dump, dump_answer

__all__ = ["EVENT", "EVENT_END", "PING", "PING_SECONDS", "STREAM_HEADERS", "Call", "wait_for_disconnect"]

# After this time a silent stream shows a sign of life, before a proxy closes it.
PING_SECONDS = 15.0
PING = b": ping\r\n\r\n"
EVENT = b"event: message\r\ndata: "
EVENT_END = b"\r\n\r\n"
STREAM_HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"connection", b"keep-alive"),
    (b"x-accel-buffering", b"no"),
]


class Call:
    """A request as the SDK's `DispatchContext`.

    Args:
        metadata: information on the HTTP request for the server's handlers.
        receive: reports when the client leaves.
        send: sends the answer.
        streams: whether notices are sent before the result; otherwise there is only the result.
        moment: the time after which `watch` begins.
        headers: headers of every answer.
    """

    can_send_request = False

    def __init__(
        self,
        request: Request,
        message: JSONRPCRequest,
        metadata: ServerMessageMetadata,
        receive: Receive,
        send: Send,
        *,
        streams: bool,
        moment: TimeoutQueue,
        headers: Sequence[tuple[bytes, bytes]] = (),
    ) -> None:
        self.transport = TransportContext(
            kind="streamable-http", can_send_request=self.can_send_request, headers=request.headers
        )
        self.request_id: RequestId = message.id
        self.message_metadata = metadata
        self._cancelled: anyio.Event | None = None
        self.scope = anyio.CancelScope()
        self._progress_token: ProgressToken | None = None
        if message.params:
            self._progress_token = progress_token_from_params(message.params)
        self._receive = receive
        self._send = send
        self._streams = streams
        self._headers = headers
        self._lock: anyio.Lock | None = None
        self._is_stream = False
        self._is_closed = False
        self._watcher: asyncio.Task[None] | None = None
        self._timer = moment.begin(self._start_watcher)

    @property
    def cancel_requested(self) -> anyio.Event:
        if self._cancelled is None:
            self._cancelled = anyio.Event()
        return self._cancelled

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        if not self._streams or self._is_closed:
            return
        members = None
        if params is not None:
            members = dict(params)
        await self.send_message(dump(JSONRPCNotification(jsonrpc="2.0", method=method, params=members)))

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        if self._progress_token is None:
            return
        params: dict[str, Any] = {"progressToken": self._progress_token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        await self.notify("notifications/progress", params)

    async def run_beside(self) -> None:
        """Run beside a longer call until it ends."""

    async def ping_until_client_leaves(self) -> None:
        """Send pings until the client leaves."""
        leaving = asyncio.ensure_future(wait_for_disconnect(self._receive))
        try:
            while not (await asyncio.wait((leaving,), timeout=PING_SECONDS))[0]:
                await self.ping()
        finally:
            leaving.cancel()

    async def ping(self) -> None:
        """Send a sign of life, which begins the stream."""
        if self._streams:
            await self._write(lambda: PING)

    async def send_message(self, line: bytes) -> None:
        """Send a message before the answer."""
        if line:
            await self._write(partial(self.format_event, line))

    def end(self) -> None:
        """Send nothing more except the answer."""
        self._is_closed = True
        self._timer.cancel()
        if self._watcher is not None:
            self._watcher.cancel()

    async def answer(self, result: dict[str, Any] | ErrorData, status: int = 200) -> None:
        """Send the final part of the answer.

        Args:
            status: used if no stream has begun.
        """
        line = dump_answer(self.request_id, result)
        if self._watcher is not None:
            await asyncio.wait((self._watcher,))
        if self._lock is not None:
            async with self._lock:
                pass  # A message that is being sent comes first.
        if self._is_stream:
            await self.end_stream(line)
            return
        headers = [
            (b"content-length", b"%d" % len(line)),
            (b"content-type", b"application/json"),
            *self._headers,
        ]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": line, "more_body": False})

    async def end_stream(self, line: bytes) -> None:
        """Send the answer as the last event of its stream."""
        await self._write(partial(self.format_event, line), more=False)

    def open_stream(self) -> bytes:
        """Return what a stream begins with."""
        return b""

    def format_event(self, line: bytes) -> bytes:
        """Return the event that carries a message."""
        return EVENT + line.strip() + EVENT_END

    async def _write(self, make_event: Callable[[], bytes], *, more: bool = True) -> None:
        if self._lock is None:
            self._lock = anyio.Lock()
        async with self._lock:
            opening = b""
            if not self._is_stream:
                headers = [*STREAM_HEADERS, *self._headers]
                await self._send({"type": "http.response.start", "status": 200, "headers": headers})
                self._is_stream = True
                opening = self.open_stream()
            await self._send({"type": "http.response.body", "body": opening + make_event(), "more_body": more})

    def _start_watcher(self) -> None:
        self._watcher = asyncio.get_running_loop().create_task(self.run_beside())


async def wait_for_disconnect(receive: Receive) -> None:
    """Wait until the client of a request whose body was read leaves."""
    while (await receive())["type"] != "http.disconnect":
        pass
