"""The requests that are under way, so that a shutdown can wait for them, and the probes that ask about it."""

from __future__ import annotations

import anyio
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcp_batteries.transports.http.rejections import Rejections, set_reason

__all__ = ["Answer", "InFlight", "closing"]

_PROBES = ("/healthz", "/readyz", "/health")


def closing(send: Send) -> Send:
    """`send` for what is open until the server ends: if it is a stream, its head says that the connection ends with it.

    A proxy would use the connection again in the moment in which the stream ends, and the server with it.
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
        self._send, self._started, self._finished = send, False, False
        self.status = 0
        """Of the answer, once it has begun."""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._started, self.status = True, message["status"]
        self._finished = message["type"] == "http.response.body" and not message.get("more_body", False)
        await self._send(message)

    async def finish(self, status: int) -> None:
        """Bring the answer to an end; `status` counts if it had not begun."""
        if self._finished:
            return
        with anyio.move_on_after(0.1):  # A client that does not read must not hold the shutdown.
            if not self._started:
                self.status = status
                await self._send({"type": "http.response.start", "status": status, "headers": []})
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})


class InFlight:
    """Answers `/healthz` and `/readyz`, knows the requests that are under way, and ends them when told to.

    Args:
        rejections: told of every answer.
    """

    def __init__(self, rejections: Rejections) -> None:
        self._rejections = rejections
        self._calls: set[anyio.CancelScope] = set()
        self._streams: set[anyio.CancelScope] = set()
        self._quiet = anyio.Event()
        self.ready = True
        """What `/readyz` tells; a server that is not ready still answers whoever comes."""

    def tracking(self, app: ASGIApp) -> ASGIApp:
        """`app`, whose requests are known here."""

        async def tracked(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
            elif scope["path"] in _PROBES and scope["method"] in ("GET", "HEAD"):
                # Probes name the address of a container, so this stands before the host check. It tells nothing.
                ready = self.ready or scope["path"] != "/readyz"
                answer = PlainTextResponse("ok\n") if ready else PlainTextResponse("ending\n", 503)
                await answer(scope, receive, send)
            else:
                await self._track(app, scope, receive, send)

        return tracked

    async def answered(self) -> None:
        """Wait until every call is."""
        while self._calls:
            self._quiet = anyio.Event()
            await self._quiet.wait()

    def end(self) -> None:
        """End calls and streams where they are."""
        for scope in [*self._calls, *self._streams]:
            scope.cancel()

    async def _track(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        # A GET is a stream that waits for whatever comes: no shutdown need wait for it.
        kind, answer = self._calls, Answer(send)
        if scope["method"] == "GET":
            kind, answer = self._streams, Answer(closing(send))
        with anyio.CancelScope() as cancellable:
            kind.add(cancellable)
            try:
                await app(scope, receive, answer)
            finally:
                kind.discard(cancellable)
                if not self._calls:
                    self._quiet.set()
        if cancellable.cancelled_caught:
            set_reason(scope, "ending")
            await answer.finish(503)
        if answer.status >= 400:
            self._rejections.note(scope, answer.status)
