"""Checks each message over HTTP before the SDK: well formed, allowed for this caller, within its limits."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from email.message import Message as EmailMessage
from functools import partial
from typing import Any

import anyio
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import RequestBodyLimitMiddleware
from mcp_types import PROTOCOL_VERSION_META_KEY
from mcp_types.jsonrpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    RequestId,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcp_batteries.errors import Unavailable, quote
from mcp_batteries.sdk import Sessions, lowlevel
from mcp_batteries.server.call_tools import calls_in
from mcp_batteries.settings import Settings
from mcp_batteries.transports.http.auth.callers import caller_of
from mcp_batteries.transports.http.batch_replies import answer_each, messages_in
from mcp_batteries.transports.http.connection import WHOLE
from mcp_batteries.transports.http.exchange import HttpExchanges
from mcp_batteries.transports.http.headers import Asked, Known
from mcp_batteries.transports.http.in_flight import closing, unanswered
from mcp_batteries.transports.http.quota import Quota
from mcp_batteries.transports.http.rejections import set_reason
from mcp_batteries.transports.http.sessions import Replayed, Session
from mcp_batteries.transports.http.turns import Unwanted
from mcp_batteries.transports.jsonrpc import Malformed, dump, error, is_heard, parse

__all__ = ["Authorize", "BodyCheck"]

_MAX_VALUES = 100_000
"""Of one message: 4 MiB can hold a million lists, which cost everybody seconds to read."""

_CHARSETS = {"utf-8", "utf8", "us-ascii", "ascii"}
"""Declared charsets that are read: UTF-8, and what is a part of it."""

_Key = tuple[str, str, str]
"""Caller, session and id of a request."""

Authorize = Callable[[Scope, JSONRPCMessage], "Response | None"]
"""Whether the caller may send a message that is well formed: the answer that refuses it, or None."""


class BodyCheck(RequestBodyLimitMiddleware):
    """Answers what is not a JSON-RPC message, so that the SDK sees only messages.

    Without it, the SDK lets clients that reuse an id wait for ever, and answers other bodies with texts of its
    validation library. It takes the place of the SDK's limit for bodies.

    Args:
        max_body: longest message in bytes.
        seconds: the time within which a body must arrive.
        authorize: whether the caller may send this message; None allows everything.
    """

    def __init__(
        self,
        app: ASGIApp,
        server: MCPServer[Any],
        settings: Settings,
        *,
        max_body: int,
        seconds: float,
        authorize: Authorize | None,
    ) -> None:
        super().__init__(app, max_body)
        self._seconds = seconds
        self._json = settings.json_response
        self._authorize = authorize
        self._server = server
        self._exchanges: HttpExchanges | None = None
        self._sessions = Sessions(server)
        self._owners: dict[str, str] = {}
        self._sessions_each = settings.max_streams_each
        self._quota = Quota(
            calls=settings.rate_calls,
            size=settings.rate_bytes,
            parallel=settings.max_parallel,
            streams=settings.max_streams_each,
        )
        self._in_flight: dict[_Key, asyncio.Event] = {}
        """Set once the call is cancelled."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # The SDK answers nothing at all when asked for a history of events, which is not kept: every stream begins with
        # a notice of all that is watched. And it knows media types in small letters only.
        kept = [
            (name, value.lower() if name == b"content-type" else value)
            for name, value in scope["headers"]
            if name != b"last-event-id"
        ]
        scope = {**scope, "headers": kept}
        headers = Known(kept)
        if "mcp-session-id" not in headers:
            send = _naming_no_dead_session(send)
        try:
            if scope["method"] != "POST":
                with self._holding(scope, scope["method"] == "GET"):
                    await self.app(scope, receive, send)
                return
            body = await self._body(scope, headers, receive)
            if body is None:
                return
            if _holds_too_much(body):
                raise _Unfit(413, f"A message holds at most {_MAX_VALUES:,} values.")
            several = messages_in(headers, body)
            message = parse(body) if several is None else None
        except (Unavailable, Malformed, _Unfit) as problem:
            await _refusal(scope, problem)(scope, receive, send)
            return
        if message is not None:
            await self._answer(scope, headers, receive, send, message, len(body))
        elif several is not None:

            async def answer(text: bytes, member: JSONRPCMessage, send: Send) -> None:
                await self._answer(scope, headers, receive, send, member, len(text))

            await answer_each(answer, several, send)

    async def _answer(
        self, scope: Scope, headers: Headers, receive: Receive, send: Send, message: JSONRPCMessage, size: int
    ) -> None:
        """Answer a message of `size` bytes, or refuse it."""
        request_id = message.id if isinstance(message, JSONRPCRequest) else None
        try:
            refusal = self._authorize(scope, message) if self._authorize is not None else None
            if refusal is not None:
                await refusal(scope, receive, send)
                return
            session = headers.get("mcp-session-id")
            if session is not None and isinstance(message, JSONRPCRequest):
                _check_revision(headers, message)
            if isinstance(message, JSONRPCNotification):
                if not is_heard(message):
                    raise Unwanted
                if message.method == "notifications/cancelled" and session is not None:
                    self._cancelled(scope, session, message)
            if session in self._owners:
                self._owners[session] = self._owners.pop(session)
            elif session is None and isinstance(message, JSONRPCRequest) and message.method == "initialize":
                send = await self._opening(scope, send)
            with self._once(scope, session, request_id, send) as (watched, cancelled):
                # A stream is held, not worked on.
                works = isinstance(message, JSONRPCRequest) and message.method != "subscriptions/listen"
                if not works:
                    with self._holding(scope, isinstance(message, JSONRPCRequest)):
                        await self._pass(scope, headers, message, receive, closing(watched))
                    return
                # A client of 2026-07-28 cancels a call by leaving, and has no other way.
                gone = cancelled.wait if cancelled is not None else partial(_gone, receive)
                calls = calls_in(message.params) if isinstance(message, JSONRPCRequest) else 1
                async with self._quota.turn(caller_of(scope), size, gone, calls=calls) as spend:
                    with unanswered(scope, request_id):
                        sending = _counted(watched, spend) if spend else watched
                        await self._pass(scope, headers, message, receive, sending)
        except Unwanted:
            await Response(status_code=202)(scope, receive, send)
        except (Unavailable, Malformed, _Unfit) as problem:
            await _refusal(scope, problem, request_id)(scope, receive, send)

    def _holding(self, scope: Scope, stream: bool) -> AbstractContextManager[None]:
        return self._quota.holding(caller_of(scope)) if stream else nullcontext()

    async def _body(self, scope: Scope, headers: Headers, receive: Receive) -> bytes | None:
        """The whole body, or None if the client left."""
        kind = headers.get("content-type", "").partition(";")[0].strip()
        if kind != "application/json" or headers.get("content-encoding", "identity") != "identity":
            raise _Unfit(415, "A message is application/json, in no other encoding.")
        _check_charset(headers.get("content-type", ""))
        declared = headers.get("content-length", "0")
        if len(declared) > 15 or (declared.isdecimal() and int(declared) > self.max_body_size):
            raise self._too_long()
        if scope.get("state", {}).get(WHOLE):
            return await self._received(receive)
        with anyio.move_on_after(self._seconds):
            return await self._received(receive)
        raise _Unfit(408, f"The message did not arrive within {self._seconds:g} s.")

    async def _received(self, receive: Receive) -> bytes | None:
        body = bytearray()
        while True:
            part = await receive()
            if part["type"] == "http.disconnect":
                return None
            body += part.get("body", b"")
            if len(body) > self.max_body_size:
                raise self._too_long()
            if not part.get("more_body", False):
                return bytes(body)

    def _too_long(self) -> _Unfit:
        return _Unfit(413, f"A message has at most {self.max_body_size} bytes.")

    async def _opening(self, scope: Scope, send: Send) -> Send:
        """The `send` for a client that opens a session, which remembers the session's owner.

        A caller that opens many and closes none only loses its own.
        """
        who = caller_of(scope)
        there = self._sessions.ids
        self._owners = {session: owner for session, owner in self._owners.items() if session in there}
        theirs = [session for session, owner in self._owners.items() if owner == who]
        if len(theirs) >= self._sessions_each:
            await self._sessions.end(theirs[0])  # The one that was used longest ago.

        async def noting(part: Message) -> None:
            if part["type"] == "http.response.start":
                session = Headers(raw=part["headers"]).get("mcp-session-id")
                if session is not None:
                    self._owners[session] = who
            await send(part)

        return noting

    def _once(self, scope: Scope, session: str | None, request_id: RequestId | None, send: Send) -> _Once:
        """A block with the `send` to answer with, and an event for the request's cancellation.

        No other request of this id in `session` is let in before the answer.
        """
        key = None if session is None or request_id is None else (caller_of(scope), session, str(request_id))
        return _Once(self._in_flight, key, request_id, send)

    def _cancelled(self, scope: Scope, session: str, message: JSONRPCNotification) -> None:
        # The SDK does not know of calls that still wait for their turn, nor of those that are answered past it.
        request_id = (message.params or {}).get("requestId")
        mark = self._in_flight.get((caller_of(scope), session, str(request_id)))
        if mark is not None:
            mark.set()
        if isinstance(theirs := self._sessions.of(scope, session), Session):
            theirs.give_up(message)

    async def _pass(
        self, scope: Scope, headers: Headers, message: JSONRPCMessage, receive: Receive, send: Send
    ) -> None:
        if isinstance(message, JSONRPCRequest):
            request = Asked(scope, receive, headers)
            revision = headers.get("mcp-protocol-version")
            if revision is None or revision in HANDSHAKE_PROTOCOL_VERSIONS:
                session = self._sessions.of(scope, headers.get("mcp-session-id", ""))
                if isinstance(session, Session) and await session.answer(request, message, receive, send):
                    return
            else:
                if self._exchanges is None:
                    low = lowlevel(self._server)
                    state = self._sessions.state
                    self._exchanges = HttpExchanges(low, state, streams=not self._json)
                route = self._exchanges.route(request, message)
                if route is not None:
                    await self._exchanges.answer(request, message, route, receive, send)
                    return
        await self.app(scope, Replayed(message, receive), send)


class _Once:
    """The block of `BodyCheck._once`, as a class: a generator for each request costs twice as much."""

    __slots__ = ("_id", "_in_flight", "_key", "_mark", "_send")

    def __init__(
        self,
        in_flight: dict[_Key, asyncio.Event],
        key: _Key | None,
        request_id: RequestId | None,
        send: Send,
    ) -> None:
        self._in_flight = in_flight
        self._key = key
        self._id = request_id
        self._send = send
        self._mark = asyncio.Event()

    def __enter__(self) -> tuple[Send, asyncio.Event | None]:
        if self._key is None:
            return self._send, None
        if self._key in self._in_flight:
            raise _Unfit(400, "A request with this `id` is still in flight.", request_id=self._id)
        self._in_flight[self._key] = self._mark
        return self._watched, self._mark

    def __exit__(self, *_: object) -> None:
        if self._key is not None and self._in_flight.get(self._key) is self._mark:
            del self._in_flight[self._key]

    async def _watched(self, part: Message) -> None:
        # Before the client can know of it, or its next request could come too early.
        if part["type"] == "http.response.body" and not part.get("more_body", False):
            self.__exit__()
        await self._send(part)


class _Unfit(Exception):
    """Raised for a body that is refused; carries the answer."""

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


def _refusal(scope: Scope, problem: Unavailable | Malformed | _Unfit, request_id: RequestId | None = None) -> Response:
    match problem:
        case Unavailable():
            set_reason(scope, problem.what)
            wait = {"retry-after": str(math.ceil(problem.retry_after or 1))}
            return _Unfit(429, str(problem), request_id=request_id, headers=wait).response
        case Malformed():
            return _Unfit(400, problem.message, problem.code, problem.request_id).response
        case _Unfit():
            return problem.response


def _check_charset(content_type: str) -> None:
    """Refuse a body whose header declares a charset that UTF-8 does not contain (RFC 8259, section 8.1)."""
    if ";" not in content_type:
        return
    header = EmailMessage()
    header["content-type"] = content_type
    charset = header.get_param("charset")
    if charset is None or str(charset).lower() in _CHARSETS:
        return
    raise _Unfit(415, f"A message is UTF-8, not {quote(str(charset))}. Encode it as UTF-8, and declare no charset.")


def _check_revision(headers: Headers, message: JSONRPCRequest) -> None:
    """Refuse a request of a session in a revision without sessions.

    The SDK would treat it as one of 2026-07-28, and demand what no client with a session has.
    """
    revision = headers.get("mcp-protocol-version")
    meta = (message.params or {}).get("_meta")
    if revision is None or revision in HANDSHAKE_PROTOCOL_VERSIONS:
        return
    if isinstance(meta, dict) and PROTOCOL_VERSION_META_KEY in meta:
        return
    why = f"and {quote(revision)} has no sessions here" if revision else "but MCP-Protocol-Version is empty"
    text = (
        f"A session keeps the revision that `initialize` agreed on, {why}. "
        "Send the `protocolVersion` of that answer as MCP-Protocol-Version."
    )
    raise _Unfit(400, text, INVALID_PARAMS, message.id)


def _holds_too_much(body: bytes) -> bool:
    """Whether `body` contains more values than `_MAX_VALUES`; it need not be JSON."""

    def values(text: bytes) -> int:
        return text.count(b",") + text.count(b"[") + text.count(b"{")

    if values(body) <= _MAX_VALUES:
        return False
    # Without what strings say, such as the lines of a file to write.
    quotes = body.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
    return values(b"".join(quotes[::2])) > _MAX_VALUES


def _naming_no_dead_session(send: Send) -> Send:
    """`send` for a request without a session: when the SDK refuses it, its answer names a session that it has
    dropped."""

    async def sending(part: Message) -> None:
        if part["type"] == "http.response.start" and part["status"] >= 400:
            part = {**part, "headers": [item for item in part["headers"] if item[0].lower() != b"mcp-session-id"]}
        await send(part)

    return sending


def _counted(send: Send, spend: Callable[[int], None]) -> Send:
    async def counted(part: Message) -> None:
        spend(len(part.get("body", b"")))
        await send(part)

    return counted


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
