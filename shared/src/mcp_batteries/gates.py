"""What every HTTP request passes on its way to the SDK: two small ASGI layers.

`FrontGate` stands outside of everything: it answers only those who name this server (DNS rebinding), and it
knows what is under way, so that a shutdown can wait for it. `MessageGate` stands behind authentication, next to
the SDK: it lets through one well-formed JSON-RPC message at a time.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial

import anyio
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.transport_security import RequestBodyLimitMiddleware
from mcp_types.jsonrpc import INVALID_REQUEST, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, RequestId
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcp_batteries.audit import identity
from mcp_batteries.errors import Unavailable, quote
from mcp_batteries.frames import Malformed, dump, error, parse
from mcp_batteries.quota import Quota, Unwanted
from mcp_batteries.refusals import Refusals, because
from mcp_batteries.sdk import Sessions

__all__ = ["LOOPBACK", "Answer", "Asked", "FrontGate", "MessageGate", "split_authority"]

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
"""The names of this machine that no name server can point elsewhere, as they stand in a Host header."""

_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_]([a-z0-9._-]*[a-z0-9_])?)(?::(\d{1,5}))?")
_MAX_VALUES = 100_000
"""Of one message: 4 MiB can hold a million lists, which cost everybody seconds to read."""
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


class FrontGate:
    """Refuses requests under foreign names, answers `/healthz` and `/readyz`, and ends what is under way when told to.

    Args:
        hosts: names accepted in Host, each `name` (any port) or `name:port`.
        origins: values accepted in Origin, beside those of loopback. No Origin at all is not a browser.
        refusals: told of every answer.
    """

    def __init__(
        self, app: ASGIApp, *, hosts: Iterable[str], origins: Iterable[str], refusals: Refusals | None = None
    ) -> None:
        self._refusals = refusals or Refusals()
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
            because(scope, "origin" if refusal.status_code == 403 else "host")
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
            because(scope, "ending")
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


Asked = Callable[[Scope, JSONRPCMessage], "Response | None"]
"""Looks at a message that is well formed; the answer that refuses it, or None."""


class MessageGate(RequestBodyLimitMiddleware):
    """Answers what is no JSON-RPC message, so that the SDK sees only such that are.

    Left alone, the SDK lets clients wait for ever that ask twice under one id, and quotes its validation library
    at those who send what is no message. This stands where the SDK has its limit for bodies, and is one.

    Args:
        max_body: longest message in bytes.
        seconds: within which a body has to arrive.
        json_response: True if the SDK answers with plain JSON. It does not look then whether the client left.
        asked: whether the caller may send this message.
        quota: how much of it, and when.
        sessions: those of older clients.
        sessions_each: how many of them one caller may have; one more ends the one that was used longest ago.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        max_body: int,
        seconds: float,
        json_response: bool = False,
        asked: Asked = lambda scope, message: None,
        quota: Quota | None = None,
        sessions: Sessions | None = None,
        sessions_each: int = 256,
    ) -> None:
        super().__init__(app, max_body)
        self._sessions, self._each, self._owners = sessions, sessions_each, dict[str, str]()
        self._quota = quota
        self._seconds, self._json, self._asked = seconds, json_response, asked
        self._in_flight: dict[tuple[str, str, str], anyio.Event] = {}
        """By caller, session and id; set once the call is cancelled."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # The SDK answers nothing at all when asked for a history of events, which is not kept, and knows media
        # types in small letters only.
        kept = [item for item in scope["headers"] if item[0] != b"last-event-id"]
        kept = [(name, value.lower() if name == b"content-type" else value) for name, value in kept]
        scope, headers = {**scope, "headers": kept}, Headers(raw=kept)
        request_id = None
        try:
            if scope["method"] != "POST":
                with self._holding(scope, scope["method"] == "GET"):
                    await self.app(scope, receive, send)
                return
            body = await self._body(headers, receive)
            if body is None:
                return
            if _holds_too_much(body):
                raise _Unfit(413, f"A message holds at most {_MAX_VALUES:,} values.")
            message = parse(body)
            refusal = self._asked(scope, message)
            if refusal is not None:
                await refusal(scope, receive, send)
                return
            request_id = message.id if isinstance(message, JSONRPCRequest) else None
            session = headers.get("mcp-session-id")
            if isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
                self._cancelled(scope, session, message)
            if session in self._owners:
                self._owners[session] = self._owners.pop(session)
            elif session is None and isinstance(message, JSONRPCRequest) and message.method == "initialize":
                send = await self._opening(scope, send)
            with self._once(scope, session, request_id, send) as (watched, cancelled):
                # A stream is held, not worked on.
                works = isinstance(message, JSONRPCRequest) and message.method != "subscriptions/listen"
                if self._quota is None or not works:
                    with self._holding(scope, isinstance(message, JSONRPCRequest)):
                        await self._pass(scope, message, receive, watched)
                    return
                # A client of 2026-07-28 cancels a call by leaving, and has no other way.
                over = cancelled.wait if cancelled is not None else partial(_gone, receive)
                async with self._quota.turn(caller_of(scope), len(body), over) as spend:
                    await self._pass(scope, message, receive, _counted(watched, spend))
        except Unwanted:
            await Response(status_code=202)(scope, receive, send)
        except Unavailable as problem:
            because(scope, problem.what)
            wait = {"retry-after": str(math.ceil(problem.retry_after or 1))}
            await _Unfit(429, str(problem), request_id=request_id, headers=wait).response(scope, receive, send)
        except Malformed as unfit:
            await _Unfit(400, unfit.message, unfit.code, unfit.request_id).response(scope, receive, send)
        except _Unfit as unfit:
            await unfit.response(scope, receive, send)

    def _holding(self, scope: Scope, stream: bool) -> AbstractContextManager[None]:
        return self._quota.holding(caller_of(scope)) if self._quota is not None and stream else nullcontext()

    async def _body(self, headers: Headers, receive: Receive) -> bytes | None:
        """The whole body, or None if the client left."""
        kind = headers.get("content-type", "").partition(";")[0].strip()
        if kind != "application/json" or headers.get("content-encoding", "identity") != "identity":
            raise _Unfit(415, "A message is application/json, in no other encoding.")
        declared = headers.get("content-length", "0")
        if len(declared) > 15 or (declared.isdecimal() and int(declared) > self.max_body_size):
            raise self._too_long()
        body = bytearray()
        with anyio.move_on_after(self._seconds):
            while True:
                part = await receive()
                if part["type"] == "http.disconnect":
                    return None
                body += part.get("body", b"")
                if len(body) > self.max_body_size:
                    raise self._too_long()
                if not part.get("more_body", False):
                    return bytes(body)
        raise _Unfit(408, f"The message did not arrive within {self._seconds:g} s.")

    def _too_long(self) -> _Unfit:
        return _Unfit(413, f"A message has at most {self.max_body_size} bytes.")

    async def _opening(self, scope: Scope, send: Send) -> Send:
        """The `send` that answers who opens a session, and remembers whose it is.

        Who opens many and closes none takes the place of nobody else.
        """
        who = caller_of(scope)
        if self._sessions is not None:
            there = self._sessions.ids
            self._owners = {session: owner for session, owner in self._owners.items() if session in there}
            theirs = [session for session, owner in self._owners.items() if owner == who]
            if len(theirs) >= self._each:
                await self._sessions.end(theirs[0])

        async def noting(part: Message) -> None:
            if part["type"] == "http.response.start":
                session = Headers(raw=part["headers"]).get("mcp-session-id")
                if session is not None:
                    self._owners[session] = who
            await send(part)

        return noting

    @contextmanager
    def _once(
        self, scope: Scope, session: str | None, request_id: RequestId | None, send: Send
    ) -> Generator[tuple[Send, anyio.Event | None]]:
        """The `send` to answer with, and what is set when the request is cancelled.

        No other request of this id in `session` is let in before the answer.
        """
        if session is None or request_id is None:
            yield send, None
            return
        key, mark = (caller_of(scope), session, str(request_id)), anyio.Event()
        if key in self._in_flight:
            raise _Unfit(400, "A request with this `id` is still in flight.", request_id=request_id)
        self._in_flight[key] = mark

        def release() -> None:
            if self._in_flight.get(key) is mark:
                del self._in_flight[key]

        async def watched(part: Message) -> None:
            # Before the client can know of it, or its next request could come too early.
            if part["type"] == "http.response.body" and not part.get("more_body", False):
                release()
            await send(part)

        try:
            yield watched, mark
        finally:
            release()

    def _cancelled(self, scope: Scope, session: str | None, message: JSONRPCNotification) -> None:
        # The SDK does not know of calls that still wait for their turn.
        request_id = (message.params or {}).get("requestId")
        mark = self._in_flight.get((caller_of(scope), session or "", str(request_id)))
        if mark is not None:
            mark.set()

    async def _pass(self, scope: Scope, message: JSONRPCMessage, receive: Receive, send: Send) -> None:
        # What had to be repaired, or could be read in two ways, goes on in one.
        body, first = dump(message), True

        async def replay() -> Message:
            nonlocal first
            if not first:
                return await receive()
            first = False
            return {"type": "http.request", "body": body, "more_body": False}

        version = Headers(scope=scope).get("mcp-protocol-version", HANDSHAKE_PROTOCOL_VERSIONS[0])
        if not self._json or version in HANDSHAKE_PROTOCOL_VERSIONS:
            await self.app(scope, replay, send)
            return
        # Since 2026-07-28 to close the connection is to cancel the call (Streamable HTTP, "Cancellation").
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_cancel_when_gone, receive, tasks.cancel_scope)
            await self.app(scope, replay, send)
            tasks.cancel_scope.cancel()


class _Unfit(Exception):
    """Raised for a body that is not passed on; carries the answer."""

    def __init__(
        self,
        status: int,
        message: str,
        code: int = INVALID_REQUEST,
        request_id: RequestId | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        body = json.loads(dump(error(request_id, code, message)))
        body.setdefault("id", None)  # JSON-RPC 2.0, section 5: null if the id could not be told.
        self.response = Response(json.dumps(body), status, headers, media_type="application/json")
        if status == 408:
            self.response.headers["connection"] = "close"


def caller_of(scope: Scope) -> str:
    """Whose limits count: the owner of the token, or the address where none is asked for."""
    user = scope.get("user")
    if isinstance(user, AuthenticatedUser):
        return f"token {identity(user.access_token)}"
    return f"address {scope['client'][0] if scope.get('client') else ''}"


def _holds_too_much(body: bytes) -> bool:
    """Whether `body` holds more values than `_MAX_VALUES`; it need not be JSON."""

    def values(text: bytes) -> int:
        return text.count(b",") + text.count(b"[") + text.count(b"{")

    if values(body) <= _MAX_VALUES:
        return False
    # Without what strings say, such as the lines of a file to write.
    quotes = body.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
    return values(b"".join(quotes[::2])) > _MAX_VALUES


def _counted(send: Send, spend: Callable[[int], None]) -> Send:
    async def counted(part: Message) -> None:
        spend(len(part.get("body", b"")))
        await send(part)

    return counted


async def _cancel_when_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    await _gone(receive)
    scope.cancel()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _text(status: int, line: str) -> Response:
    return PlainTextResponse(line + "\n", status, {"x-content-type-options": "nosniff"})
