"""The requests in progress, so that a shutdown can wait for them, and the probes that report it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

import anyio
from mcp_types.jsonrpc import ErrorData, RequestId
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcp_batteries.errors import Unavailable
from mcp_batteries.transports.http.rejections import Rejections, set_reason
from mcp_batteries.transports.jsonrpc import dump_answer

__all__ = ["Answer", "InFlight", "closing", "unanswered"]

_PROBES = ("/healthz", "/readyz", "/health")
_UNANSWERED = "unanswered"
_CUT = Unavailable(
    "The server ended before this call was done. What it was to change may be changed.",
    "Look whether it is, then call again.",
)
_CUT_CODE = -32000


class unanswered:
    """A block that answers the request with this id; if the server ends it, the client learns what happened to it."""

    __slots__ = ("_id", "_waiting")

    def __init__(self, scope: Scope, request_id: RequestId | None) -> None:
        self._id = request_id
        self._waiting: dict[RequestId | None, None] = scope.setdefault("state", {}).setdefault(_UNANSWERED, {})

    def __enter__(self) -> None:
        self._waiting[self._id] = None

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or not issubclass(kind, asyncio.CancelledError):
            self._waiting.pop(self._id, None)


def closing(send: Send) -> Send:
    """`send` for a response that may stay open until the server ends: a stream's head says that it ends the connection.

    Otherwise a proxy would reuse the connection at the moment when the stream and the server end.
    """

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = dict(message["headers"])
            if headers.get(b"content-type", b"").startswith(b"text/event-stream"):
                kept = [item for item in message["headers"] if item[0] != b"connection"]
                message = {**message, "headers": [*kept, (b"connection", b"close")]}
        await send(message)

    return sent


class Answer:
    """The `send` of a request whose answer may be cut short."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._started = False
        self._finished = False
        self._headers: Sequence[tuple[bytes, bytes]] = ()
        self.status = 0
        """Of the answer, once it has begun."""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._started = True
            self.status = message["status"]
            self._headers = message["headers"]
        self._finished = message["type"] == "http.response.body" and not message.get("more_body", False)
        await self._send(message)

    async def finish(self, status: int, cut: Collection[RequestId] = ()) -> None:
        """End the answer.

        Args:
            status: used if it had not begun and answers no call.
            cut: the calls that it answers. They may have had their effect, so no proxy may send them again, as it would
                after a status of 500 or more.
        """
        if self._finished:
            return
        with anyio.move_on_after(0.1):  # A client that does not read must not hold the shutdown.
            errors = [dump_answer(each, ErrorData(code=_CUT_CODE, message=str(_CUT), data=_CUT.fields)) for each in cut]
            streams = dict(self._headers).get(b"content-type", b"").startswith(b"text/event-stream")
            if not self._started:
                self.status = 200 if cut else status
                streams = len(errors) > 1
                kind = b"text/event-stream" if streams else b"application/json"
                headers = [(b"content-type", kind)] if cut else [(b"retry-after", b"1")]
                await self._send({"type": "http.response.start", "status": self.status, "headers": headers})
                if cut and not streams:
                    await self._send({"type": "http.response.body", "body": errors.pop(), "more_body": True})
            for error in errors if streams else ():
                event = b"event: message\r\ndata: " + error.strip() + b"\r\n\r\n"
                await self._send({"type": "http.response.body", "body": event, "more_body": True})
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})


class InFlight:
    """Answers `/healthz` and `/readyz`, tracks the requests in progress, and ends them on demand.

    Args:
        rejections: gets every answer.
    """

    def __init__(self, rejections: Rejections) -> None:
        self._rejections = rejections
        self._calls: set[anyio.CancelScope] = set()
        self._streams: set[anyio.CancelScope] = set()
        self.ready = True
        """What `/readyz` tells; a server that is not ready still answers whoever comes."""

    def tracking(self, app: ASGIApp) -> ASGIApp:
        """Wraps `app` and tracks its requests."""

        async def tracked(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
            elif scope["path"] in _PROBES and scope["method"] in ("GET", "HEAD"):
                # Probes name the address of a container, so this comes before the host check. It reveals nothing.
                ready = self.ready or scope["path"] != "/readyz"
                answer = PlainTextResponse("ok\n") if ready else PlainTextResponse("ending\n", 503)
                await answer(scope, receive, send)
            else:
                await self._track(app, scope, receive, send)

        return tracked

    def is_quiet(self) -> bool:
        """Whether all calls are answered."""
        return not self._calls

    def end(self) -> None:
        """End calls and streams immediately."""
        for scope in [*self._calls, *self._streams]:
            scope.cancel()

    async def _track(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        # A GET is a stream that waits for whatever comes: no shutdown need wait for it.
        kind = self._calls
        answer = Answer(send)
        if scope["method"] == "GET":
            kind = self._streams
            answer = Answer(closing(send))
        with anyio.CancelScope() as cancellable:
            kind.add(cancellable)
            try:
                await app(scope, receive, answer)
            finally:
                kind.discard(cancellable)
        if cancellable.cancelled_caught:
            set_reason(scope, "ending")
            cut = scope.get("state", {}).get(_UNANSWERED, ())
            await answer.finish(503, cut)
            if cut:
                self._rejections.note(scope, 503)
        if answer.status >= 400:
            self._rejections.note(scope, answer.status)
