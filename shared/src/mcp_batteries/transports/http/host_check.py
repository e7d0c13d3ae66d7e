"""What every HTTP request passes first, a small ASGI layer outside of everything.

It answers only those who name this server (DNS rebinding), and it knows what is under way, so that a shutdown can
wait for it. What messages pass behind authentication is in `messages`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import anyio
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcp_batteries.errors import quote
from mcp_batteries.transports.http.rejections import Rejections, set_reason

__all__ = ["LOOPBACK", "Answer", "HostCheck", "split_authority"]

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
"""The names of this machine that no name server can point elsewhere, as they stand in a Host header."""

_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_]([a-z0-9._-]*[a-z0-9_])?)(?::(\d{1,5}))?")
_PROBES = ("/healthz", "/readyz", "/health")
_LOOPBACK_ORIGIN = re.compile(r"https?://(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?")


def split_authority(text: str) -> tuple[str, str] | None:
    """(host, port) of `host[:port]` (RFC 9110, section 7.2), lower case, port empty when absent; None if it is none."""
    found = _AUTHORITY.fullmatch(text.lower())
    return (found[1], found[3] or "") if found else None


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


class HostCheck:
    """Refuses requests under foreign names, answers `/healthz` and `/readyz`, and ends what is under way when told to.

    Args:
        hosts: names accepted in Host, each `name` (any port) or `name:port`.
        origins: values accepted in Origin, beside those of loopback. No Origin at all is not a browser.
        refusals: told of every answer.
    """

    def __init__(
        self, app: ASGIApp, *, hosts: Iterable[str], origins: Iterable[str], refusals: Rejections | None = None
    ) -> None:
        self._refusals = refusals or Rejections()
        self._app, self._hosts, self._origins = app, frozenset(hosts), frozenset(origins)
        self._calls: set[anyio.CancelScope] = set()
        self._streams: set[anyio.CancelScope] = set()
        self._quiet = anyio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["path"] in _PROBES and scope["method"] in ("GET", "HEAD"):
            # Probes name the address of a container, so this stands before the rules. It tells nothing.
            # One that ends takes no connections any more: that is how it is not ready.
            await PlainTextResponse("ok\n")(scope, receive, send)
            return
        # White space around a value is no part of it (RFC 9110, section 5.5); httptools leaves it there. Host has no
        # capitals, the SDK's second look at it does not know.
        headers = [(name, (value.lower() if name == b"host" else value).strip()) for name, value in scope["headers"]]
        scope = {**scope, "headers": headers}
        refusal = self._refusal(Headers(scope=scope))
        if refusal is not None:
            set_reason(scope, "origin" if refusal.status_code == 403 else "host")
            self._refusals.note(scope, refusal.status_code)
            await refusal(scope, receive, send)
            return
        answer = Answer(send)
        # A GET is a stream that waits for whatever comes: no shutdown need wait for it.
        kind = self._streams if scope["method"] == "GET" else self._calls
        with anyio.CancelScope() as cancellable:
            kind.add(cancellable)
            try:
                await self._app(scope, receive, answer)
            finally:
                kind.discard(cancellable)
                if not self._calls:
                    self._quiet.set()
        if cancellable.cancelled_caught:
            set_reason(scope, "ending")
            await answer.finish(503)
        if answer.status >= 400:
            self._refusals.note(scope, answer.status)

    async def end(self, seconds: float) -> None:
        """Give calls `seconds` to be answered, then end them and all streams."""
        with anyio.move_on_after(seconds):
            while self._calls:
                self._quiet = anyio.Event()
                await self._quiet.wait()
        for scope in [*self._calls, *self._streams]:
            scope.cancel()

    def _refusal(self, headers: Headers) -> Response | None:
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1:
            return _text(400, "A request names its host exactly once (RFC 9112, section 3.2).")
        authority = split_authority(hosts[0])
        if authority is None or not {authority[0], ":".join(authority)} & self._hosts:
            return _text(421, f"Not served under the host name {quote(hosts[0])}; --allowed-host NAME adds a name.")
        if origins and (len(origins) > 1 or not self._knows(origins[0])):
            return _text(403, f"Refused to the origin {quote(origins[0])}; --allowed-origin ORIGIN adds one.")
        return None

    def _knows(self, origin: str) -> bool:
        return origin in self._origins or _LOOPBACK_ORIGIN.fullmatch(origin) is not None


def _text(status: int, line: str) -> Response:
    return PlainTextResponse(line + "\n", status, {"x-content-type-options": "nosniff"})
