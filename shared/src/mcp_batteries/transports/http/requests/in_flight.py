"""The requests in progress, so that a shutdown can wait for them, and the probes that report it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

import anyio
from mcp_types.jsonrpc import ErrorData, RequestId
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcp_batteries.errors import Unavailable
from mcp_batteries.transports.http.refusals import Refusals, set_reason
from mcp_batteries.transports.jsonrpc import dump_answer

__all__ = ["InFlight", "InterruptibleSend", "answering", "close_after_stream"]

_PROBES = ("/healthz", "/readyz", "/health")
_UNANSWERED = "unanswered"
# The answer to a call that the server's end interrupts.
_CUT = Unavailable(
    "The server ended before this call was done. What it was to change may be changed.",
    "Look whether it is, then call again.",
)
_CUT_CODE = -32000


class answering:
    """A block that answers the request with this id.

    If the server ends it, the client learns what happened to the request.
    """

    __slots__ = ("_id", "_waiting")

    def __init__(self, scope: Scope, request_id: RequestId | None) -> None:
        self._id = request_id
        self._waiting: dict[RequestId | None, None] = scope.setdefault("state", {}).setdefault(_UNANSWERED, {})

    def __enter__(self) -> None:
        self._waiting[self._id] = None

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or not issubclass(kind, asyncio.CancelledError):
            self._waiting.pop(self._id, None)


def close_after_stream(send: Send) -> Send:
    """Return a `send` for a response that may stay open until the server ends.

    The head of a stream then says that it ends the connection. Otherwise a proxy would reuse the connection at the
    moment when the stream and the server end.
    """

    async def send_closing(message: Message) -> None:
        if message["type"] == "http.response.start" and _is_event_stream(message["headers"]):
            headers = [item for item in message["headers"] if item[0] != b"connection"]
            message = {**message, "headers": [*headers, (b"connection", b"close")]}
        await send(message)

    return send_closing


def _is_event_stream(headers: Sequence[tuple[bytes, bytes]]) -> bool:
    return dict(headers).get(b"content-type", b"").startswith(b"text/event-stream")


class InterruptibleSend:
    """The `send` of a request whose answer may be cut short.

    Attributes:
        status: the status of the answer once it has begun; 0 before.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._is_started = False
        self._is_finished = False
        self._headers: Sequence[tuple[bytes, bytes]] = ()
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._is_started = True
            self.status = message["status"]
            self._headers = message["headers"]
        self._is_finished = message["type"] == "http.response.body" and not message.get("more_body", False)
        await self._send(message)

    async def finish(self, status: int, cut: Collection[RequestId] = ()) -> None:
        """End the answer.

        Args:
            status: used if it had not begun and answers no call.
            cut: the calls that it answers. They may have had their effect, so no proxy may send them again, as it would
                after a status of 500 or more.
        """
        if self._is_finished:
            return
        with anyio.move_on_after(0.1):  # A client that does not read must not hold the shutdown.
            if self._is_started:
                if _is_event_stream(self._headers):
                    await self._send_events(cut)
            elif not cut:
                await self._start(status, (b"retry-after", b"1"))
            elif len(cut) == 1:
                await self._start(200, (b"content-type", b"application/json"))
                await self._send_body(_interruption_answer(*cut), more=True)
            else:
                await self._start(200, (b"content-type", b"text/event-stream"))
                await self._send_events(cut)
            await self._send_body(b"", more=False)

    async def _start(self, status: int, header: tuple[bytes, bytes]) -> None:
        self.status = status
        await self._send({"type": "http.response.start", "status": status, "headers": [header]})

    async def _send_events(self, cut: Collection[RequestId]) -> None:
        for request_id in cut:
            event = b"event: message\r\ndata: " + _interruption_answer(request_id).strip() + b"\r\n\r\n"
            await self._send_body(event, more=True)

    async def _send_body(self, body: bytes, *, more: bool) -> None:
        await self._send({"type": "http.response.body", "body": body, "more_body": more})


def _interruption_answer(request_id: RequestId) -> bytes:
    """Return the answer to a call that the server's end interrupted."""
    return dump_answer(request_id, ErrorData(code=_CUT_CODE, message=str(_CUT), data=_CUT.fields))


class InFlight:
    """Answers `/healthz` and `/readyz`, tracks the requests in progress, and ends them on demand.

    Args:
        refusals: gets every answer.

    Attributes:
        ready: what `/readyz` says; a server that is not ready still answers every request that arrives.
    """

    def __init__(self, refusals: Refusals) -> None:
        self._rejections = refusals
        self._calls: set[anyio.CancelScope] = set()
        self._streams: set[anyio.CancelScope] = set()
        self.ready = True

    def track_requests(self, app: ASGIApp) -> ASGIApp:
        """Wrap `app` to track its requests."""

        async def track(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
            elif scope["path"] in _PROBES and scope["method"] in ("GET", "HEAD"):
                # Probes name the address of a container, so this comes before the host check. It reveals nothing.
                await self._answer_probe(scope, receive, send)
            else:
                await self._track(app, scope, receive, send)

        return track

    def is_quiet(self) -> bool:
        """Tell whether all calls are answered."""
        return not self._calls

    def end(self) -> None:
        """End calls and streams immediately."""
        for scope in [*self._calls, *self._streams]:
            scope.cancel()

    async def _answer_probe(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.ready or scope["path"] != "/readyz":
            response = PlainTextResponse("ok\n")
        else:
            response = PlainTextResponse("ending\n", 503)
        await response(scope, receive, send)

    async def _track(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        # A GET is a stream that waits for whatever comes: no shutdown need wait for it.
        if scope["method"] == "GET":
            running = self._streams
            answer = InterruptibleSend(close_after_stream(send))
        else:
            running = self._calls
            answer = InterruptibleSend(send)
        with anyio.CancelScope() as cancellable:
            running.add(cancellable)
            try:
                await app(scope, receive, answer)
            finally:
                running.discard(cancellable)
        if cancellable.cancelled_caught:
            set_reason(scope, "ending")
            cut = scope.get("state", {}).get(_UNANSWERED, ())
            await answer.finish(503, cut)
            if cut:
                self._rejections.record(scope, 503)
        if answer.status >= 400:
            self._rejections.record(scope, answer.status)
