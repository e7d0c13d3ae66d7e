"""Checks each message over HTTP before the SDK: well formed, allowed for this caller, within its limits."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from email.message import Message as EmailMessage
from functools import partial
from typing import Any, NamedTuple

import anyio
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import RequestBodyLimitMiddleware
from mcp.shared.jsonrpc_dispatcher import cancelled_request_id_from_params
from mcp_types.jsonrpc import (
    INVALID_REQUEST,
    ErrorData,
    JSONRPCError,
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
from mcp_batteries.server.calling.call_params import count_calls, normalize_call
from mcp_batteries.settings import Settings
from mcp_batteries.transports.http.callers import caller_of
from mcp_batteries.transports.http.gate.answer_forms import (
    ACCEPTS_BOTH,
    AnswerForms,
    parse_accept,
    send_as_events,
)
from mcp_batteries.transports.http.gate.fair_queue import Abandoned
from mcp_batteries.transports.http.gate.message_size import (
    TOO_MANY_VALUES,
    describe_limit,
    find_id,
    has_too_many_values,
    peek_body_id,
)
from mcp_batteries.transports.http.gate.quota import Quota
from mcp_batteries.transports.http.gate.revision import check_revision
from mcp_batteries.transports.http.headers import HeaderMap, ParsedRequest
from mcp_batteries.transports.http.listener.connection import BODY_COMPLETE
from mcp_batteries.transports.http.refusals import Refusals, set_reason, set_refused_status
from mcp_batteries.transports.http.requests.batch_replies import answer_each, split_array
from mcp_batteries.transports.http.requests.in_flight import answering, close_after_stream
from mcp_batteries.transports.http.requests.json_replies import ACCEPTS_EVENTS
from mcp_batteries.transports.http.requests.kept_answers import KEPT_SECONDS, call_of
from mcp_batteries.transports.http.requests.response import wait_for_disconnect
from mcp_batteries.transports.http.requests.sessions import ReplayedBody, Session
from mcp_batteries.transports.http.requests.stateless import StatelessRequests
from mcp_batteries.transports.jsonrpc import Malformed, dump, is_heard, parse

__all__ = ["Authorize", "BodyCheck"]

# At these statuses clients of older revisions end their whole connection (SDK for Python 1.x, SDK for Go).
_STATUSES_OF_LIMITS = (413, 429)

_JSON = "application/json"
_BOTH = ACCEPTS_BOTH.decode()
_NO_SESSION = "Missing session ID. Send `initialize` first, and the Mcp-Session-Id of its answer with every request."
_ENDED_SESSION = "Session not found: it has ended, or is another caller's. Send `initialize` without Mcp-Session-Id."
# As the SDK for TypeScript has it: hosts that look for it in the body, such as Claude Code, then open a new session.
# By any other code they would send the old id for ever.
_ENDED_SESSION_CODE = -32001
_NOT_KEPT = (
    f"The answer to this call is not kept: it is longer ago than {KEPT_SECONDS:.0f} s, or there were too many. "
    "Look whether the call had its effect, then call again."
)

# The declared charsets that are read: UTF-8, and what is a part of it.
_CHARSETS = {"utf-8", "utf8", "us-ascii", "ascii"}


class _Key(NamedTuple):
    """Identifies a request of a session."""

    caller: str
    session: str
    request_id: RequestId


@dataclass(frozen=True, slots=True)
class _Post:
    """A POST whose body was read.

    Attributes:
        receive: reports when the client leaves.
        forms: what the answer may be.
    """

    scope: Scope
    headers: Headers
    receive: Receive
    forms: AnswerForms

    def without_session(self) -> _Post:
        """Return the same request, of no session."""
        raw_headers = [item for item in self.scope["headers"] if item[0] != b"mcp-session-id"]
        return replace(self, scope={**self.scope, "headers": raw_headers}, headers=HeaderMap(raw_headers))


# Decides whether the caller may send a message that is well formed: returns the answer that refuses it, or None.
Authorize = Callable[[Scope, JSONRPCMessage], "Response | None"]


class BodyCheck(RequestBodyLimitMiddleware):
    """Answers what is not a JSON-RPC message, so that the SDK sees only messages.

    Without it, the SDK lets clients that reuse an id wait for ever, and answers other bodies with texts of its
    validation library. It takes the place of the SDK's limit for bodies.

    Args:
        max_body: longest message in bytes.
        seconds: the time within which a body must arrive.
        authorize: whether the caller may send this message; None allows everything.
        refusals: gets each refused message of an array.
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
        refusals: Refusals,
    ) -> None:
        super().__init__(app, max_body)
        self._refusals = refusals
        self._seconds = seconds
        self._json = settings.json_response
        self._authorize = authorize
        self._server = server
        self._exchanges: StatelessRequests | None = None
        self._sessions = Sessions(server)
        # Who opened each session; the one that was used last is the last.
        self._owners: dict[str, str] = {}
        self._sessions_each = settings.max_streams_each
        self._quota = Quota(
            calls=settings.rate_calls,
            size=settings.rate_bytes,
            parallel=settings.max_parallel,
            streams=settings.max_streams_each,
        )
        # The event of each request in flight is set once the request is cancelled.
        self._in_flight: dict[_Key, asyncio.Event] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        accept = b",".join(value for name, value in scope["headers"] if name == b"accept")
        forms = parse_accept(accept.decode("latin-1"))
        last_event_id = dict(scope["headers"]).get(b"last-event-id", b"").decode("latin-1")
        raw_headers = _headers_for_sdk(scope["headers"])
        scope = {**scope, "headers": raw_headers, ACCEPTS_EVENTS: forms.events}
        headers = HeaderMap(raw_headers)
        if "mcp-session-id" not in headers:
            send = _without_dead_session(send)
        try:
            if scope["method"] == "POST":
                await self._receive_messages(_Post(scope, headers, receive, forms), send)
                return
            if scope["method"] in ("GET", "DELETE"):
                self._check_session(scope, headers)
            if scope["method"] == "GET":
                await self._open_stream(scope, receive, send, forms, last_event_id)
            else:
                await self.app(scope, receive, send)
        except (Unavailable, Malformed, _BadRequest) as problem:
            await self._refuse(_Post(scope, headers, receive, forms), problem, send)

    async def _refuse(
        self,
        post: _Post,
        problem: Unavailable | Malformed | _BadRequest,
        send: Send,
        request_id: RequestId | None = None,
    ) -> None:
        """Answer a message that is refused because of `problem`.

        A limit fails one call of an older client, and must not end its connection.
        """
        refusal = _as_bad_request(post.scope, problem, request_id)
        is_limit = refusal.status in _STATUSES_OF_LIMITS and refusal.request_id is not None
        if is_limit and self._is_of_open_session(post.scope, post.headers):
            self._refusals.record(post.scope, refusal.status)
            set_refused_status(post.scope, refusal.status)
            refusal.status = 200
            if not post.forms.json:
                send = send_as_events(send)
        await refusal.response(post.scope, post.receive, send)

    async def _open_stream(
        self, scope: Scope, receive: Receive, send: Send, forms: AnswerForms, last_event_id: str
    ) -> None:
        """Answer with the stream of a session's notifications, or with the answer to one of its calls."""
        if not forms.events:
            raise _not_acceptable("This is answered by a stream of events", "text/event-stream")
        with self._quota.hold_stream(caller_of(scope)):
            session = self._sessions.of(scope, HeaderMap(scope["headers"]).get("mcp-session-id", ""))
            if isinstance(session, Session) and call_of(last_event_id) is not None:
                # An answer that is sent again takes as many bytes as the first time.
                spend = self._quota.spend(caller_of(scope))
                if await session.resume(last_event_id, scope, receive, _spending(send, spend)):
                    return
                raise _BadRequest(410, _NOT_KEPT)
            await self.app(scope, receive, send)

    async def _receive_messages(self, post: _Post, send: Send) -> None:
        """Answer the message in the body of `post`, or each of those in an array."""
        body = await self._read_body(post.scope, post.headers, post.receive)
        if body is None:
            return
        if has_too_many_values(body):
            raise _BadRequest(413, TOO_MANY_VALUES, request_id=peek_body_id(body))
        messages = split_array(post.headers, body)
        if messages is None:
            await self._answer(post, parse(body), len(body), send)
            return

        async def answer(text: bytes, member: JSONRPCMessage, send: Send) -> None:
            await self._answer(post, member, len(text), send)

        as_events = post.forms.events and not self._json
        await answer_each(
            answer, messages, send, as_events=as_events, refused=partial(self._refusals.record, post.scope)
        )

    async def _answer(self, post: _Post, message: JSONRPCMessage, size: int, send: Send) -> None:
        """Answer a message of `size` bytes, or refuse it."""
        request_id: RequestId | None = None
        if isinstance(message, JSONRPCRequest):
            request_id = message.id
        try:
            if self._authorize is not None:
                refusal = self._authorize(post.scope, message)
                if refusal is not None:
                    await refusal(post.scope, post.receive, send)
                    return
            if isinstance(message, JSONRPCRequest):
                await self._answer_request(post, message, size, send)
            else:
                await self._accept(post, message, send)
        except Abandoned:
            await Response(status_code=202)(post.scope, post.receive, send)
        except (Unavailable, Malformed, _BadRequest) as problem:
            await self._refuse(post, problem, send, request_id)

    async def _accept(self, post: _Post, message: JSONRPCMessage, send: Send) -> None:
        """Pass on a notification, or the client's answer to a question.

        Raises:
            Abandoned: Nothing handles it.
        """
        session = post.headers.get("mcp-session-id")
        self._check_session(post.scope, post.headers)
        if isinstance(message, JSONRPCNotification):
            if not is_heard(message):
                raise Abandoned
            if message.method == "notifications/cancelled" and session is not None:
                self._cancel_call(post.scope, session, message)
        if session in self._owners:
            self._mark_used(session)
        await self._pass_on(post, message, close_after_stream(send))

    async def _answer_request(self, post: _Post, request: JSONRPCRequest, size: int, send: Send) -> None:
        """Answer `request` within its caller's limits."""
        if request.method == "initialize" and "mcp-session-id" in post.headers:
            # Who begins anew, after a restart or a 404, may still send the id of what has ended.
            post = post.without_session()
            send = _without_dead_session(send)
        problem = check_revision(post.headers, request)
        if problem is not None:
            raise _BadRequest(400, problem.message, problem.code, request.id, data=problem.data)
        if request.method != "initialize":
            self._check_session(post.scope, post.headers, request.id)
        self._check_forms(post.forms, request)
        if not post.forms.json:
            send = send_as_events(send)
        session = post.headers.get("mcp-session-id")
        if session in self._owners:
            self._mark_used(session)
        elif session is None and request.method == "initialize":
            send = self._remember_owner(post.scope, send)
        caller = caller_of(post.scope)
        with self._enter(caller, session, request.id, send) as (watched, cancelled):
            if request.method == "subscriptions/listen":
                # A stream is held, not worked on.
                with self._quota.hold_stream(caller):
                    await self._pass_on(post, request, close_after_stream(watched))
                return
            if cancelled is not None:
                wait_for_cancel = cancelled.wait
            else:
                # A client of 2026-07-28 cancels a call by leaving, and has no other way.
                wait_for_cancel = partial(wait_for_disconnect, post.receive)
            calls = count_calls(normalize_call(request.params or {}))
            async with self._quota.turn(caller, size, wait_for_cancel, calls=calls) as spend:
                with answering(post.scope, request.id):
                    await self._pass_on(post, request, _spending(watched, spend))

    def _check_session(self, scope: Scope, headers: Headers, request_id: RequestId | None = None) -> None:
        """Refuse what is of a session, and names none that its sender has open."""
        if not _is_of_session(headers):
            return
        session = headers.get("mcp-session-id")
        if session is None:
            raise _BadRequest(400, _NO_SESSION, request_id=request_id)
        if self._sessions.of(scope, session) is None:
            raise _BadRequest(404, _ENDED_SESSION, _ENDED_SESSION_CODE, request_id)

    def _check_forms(self, forms: AnswerForms, request: JSONRPCRequest) -> None:
        """Refuse a request whose answer the client would not accept in the form that it must have."""
        if request.method == "subscriptions/listen":
            if not forms.events:
                raise _not_acceptable("This is answered by a stream of events", "text/event-stream", request.id)
        elif self._json and not forms.json:
            raise _not_acceptable("Answers are one JSON message here (`--json-response`)", _JSON, request.id)
        elif not (forms.json or forms.events):
            raise _not_acceptable("An answer is one JSON message or a stream of events", _BOTH, request.id)

    async def _read_body(self, scope: Scope, headers: Headers, receive: Receive) -> bytes | None:
        """Return the whole body, or None if the client left."""
        media_type = headers.get("content-type", "").partition(";")[0].strip()
        if media_type != _JSON or headers.get("content-encoding", "identity") != "identity":
            raise _BadRequest(415, "A message is application/json, in no other encoding.")
        _check_charset(headers.get("content-type", ""))
        declared = headers.get("content-length", "0")
        body = bytearray()
        if len(declared) > 15 or (declared.isdecimal() and int(declared) > self.max_body_size):
            raise await self._too_long(scope, headers, receive, body)
        if scope.get("state", {}).get(BODY_COMPLETE):
            part = await self._receive_into(body, receive)
        else:
            part = None
            with anyio.move_on_after(self._seconds):
                part = await self._receive_into(body, receive)
            if part is None:
                raise _BadRequest(408, f"The message did not arrive within {self._seconds:g} s.")
        if part["type"] == "http.disconnect":
            return None
        if len(body) > self.max_body_size:
            raise await self._too_long(scope, headers, receive, body, is_whole=not part.get("more_body", False))
        return bytes(body)

    async def _receive_into(self, body: bytearray, receive: Receive) -> Message:
        """Add to `body` what arrives, until it is whole or too long, or the client leaves; return the last part."""
        while True:
            part = await receive()
            if part["type"] == "http.disconnect":
                return part
            body += part.get("body", b"")
            if len(body) > self.max_body_size or not part.get("more_body", False):
                return part

    async def _too_long(
        self, scope: Scope, headers: Headers, receive: Receive, body: bytearray, *, is_whole: bool = False
    ) -> _BadRequest:
        """Return the refusal of a body over the limit, of which `body` has arrived; with its id in an open session."""
        request_id = None
        if self._is_of_open_session(scope, headers):
            with anyio.move_on_after(self._seconds):
                request_id = await find_id(body, receive, is_whole=is_whole)
        return _BadRequest(413, describe_limit(self.max_body_size), request_id=request_id)

    def _is_of_open_session(self, scope: Scope, headers: Headers) -> bool:
        """Tell whether a message comes from the client of an open session, to whom its id is worth the reading."""
        session = headers.get("mcp-session-id")
        return session is not None and _is_of_session(headers) and self._sessions.of(scope, session) is not None

    def _remember_owner(self, scope: Scope, send: Send) -> Send:
        """Return the `send` for a client that opens a session, which remembers the session's owner.

        A caller that opens many and closes none only loses its own, and none for a request that is refused.
        """
        caller = caller_of(scope)
        start: Message | None = None

        async def note_session(part: Message) -> None:
            nonlocal start
            if part["type"] == "http.response.start":
                start = part
                return
            opened_session = None
            failed_session = None
            if start is not None:
                session = Headers(raw=start["headers"]).get("mcp-session-id")
                if session is not None and _is_error(part.get("body", b"")):
                    failed_session = session
                    start = {**start, "headers": [item for item in start["headers"] if item[0] != b"mcp-session-id"]}
                elif session is not None:
                    opened_session = session
                    self._owners[session] = caller
                await send(start)
                start = None
            await send(part)
            if failed_session is not None:
                # The SDK keeps the session of a client whose `initialize` it has refused.
                await self._sessions.end(failed_session)
            if opened_session is not None:
                await self._end_oldest_session(caller)

        return note_session

    async def _end_oldest_session(self, caller: str) -> None:
        """End the session of `caller` that was used longest ago, if it has more than its share."""
        open_ids = self._sessions.ids
        self._owners = {session: owner for session, owner in self._owners.items() if session in open_ids}
        own = [session for session, owner in self._owners.items() if owner == caller]
        if len(own) > self._sessions_each:
            await self._sessions.end(own[0])

    def _mark_used(self, session: str) -> None:
        """Make `session` the one of its owner that was used last."""
        self._owners[session] = self._owners.pop(session)

    def _enter(self, caller: str, session: str | None, request_id: RequestId, send: Send) -> _UniqueRequestId:
        """Return a block with the `send` to answer with, and an event for the request's cancellation.

        No other request of this id in `session` is let in before the answer.
        """
        key: _Key | None = None
        if session is not None:
            key = _Key(caller, session, request_id)
        return _UniqueRequestId(self._in_flight, key, request_id, send)

    def _cancel_call(self, scope: Scope, session: str, message: JSONRPCNotification) -> None:
        """Cancel the call that `message` names.

        The SDK does not know of calls that still wait for their turn, nor of those that are answered past it.
        """
        request_id = cancelled_request_id_from_params(message.params)
        if request_id is None:
            return
        cancelled = self._in_flight.get(_Key(caller_of(scope), session, request_id))
        if cancelled is not None:
            cancelled.set()
        direct_session = self._sessions.of(scope, session)
        if isinstance(direct_session, Session):
            direct_session.cancel_call(request_id)

    async def _pass_on(self, post: _Post, message: JSONRPCMessage, send: Send) -> None:
        """Answer `message` here if possible, otherwise let the SDK do it."""
        if isinstance(message, JSONRPCRequest) and await self._answer_directly(post, message, send):
            return
        await self.app(post.scope, ReplayedBody(message, post.receive), send)

    async def _answer_directly(self, post: _Post, message: JSONRPCRequest, send: Send) -> bool:
        """Answer `message` past the SDK's streams; return False to leave it to the SDK."""
        request = ParsedRequest(post.scope, post.receive, post.headers)
        if _is_of_session(post.headers):
            session = self._sessions.of(post.scope, post.headers.get("mcp-session-id", ""))
            streams = post.forms.events and not self._json
            if not isinstance(session, Session):
                return False
            return await session.answer(request, message, post.receive, send, streams=streams)
        if self._exchanges is None:
            self._exchanges = StatelessRequests(lowlevel(self._server), self._sessions.state)
        route = self._exchanges.route(request, message)
        if route is None:
            return False
        streams = post.forms.events and not self._json
        await self._exchanges.answer(request, message, route, post.receive, send, streams=streams)
        return True


class _UniqueRequestId:
    """Context manager of `BodyCheck._enter`.

    A class, because a generator for each request costs twice as much.
    """

    __slots__ = ("_cancelled", "_id", "_in_flight", "_key", "_send")

    def __init__(
        self,
        in_flight: dict[_Key, asyncio.Event],
        key: _Key | None,
        request_id: RequestId,
        send: Send,
    ) -> None:
        self._in_flight = in_flight
        self._key = key
        self._id = request_id
        self._send = send
        self._cancelled = asyncio.Event()

    def __enter__(self) -> tuple[Send, asyncio.Event | None]:
        if self._key is None:
            return self._send, None
        if self._key in self._in_flight:
            raise _BadRequest(400, "A request with this `id` is still in flight.", request_id=self._id)
        self._in_flight[self._key] = self._cancelled
        return self._send_and_leave, self._cancelled

    def __exit__(self, *_: object) -> None:
        if self._key is not None and self._in_flight.get(self._key) is self._cancelled:
            del self._in_flight[self._key]

    async def _send_and_leave(self, part: Message) -> None:
        # The id is free before the client can know of the answer, or its next request could come too early.
        if part["type"] == "http.response.body" and not part.get("more_body", False):
            self.__exit__()
        await self._send(part)


class _BadRequest(Exception):
    """Raised for a body that is refused; carries the answer.

    Attributes:
        status: of the answer; it may be changed.
        request_id: None if it is unknown, or there is none.
    """

    def __init__(
        self,
        status: int,
        message: str,
        code: int = INVALID_REQUEST,
        request_id: RequestId | None = None,
        headers: dict[str, str] | None = None,
        data: Any = None,
    ) -> None:
        self.status = status
        self.request_id = request_id
        self._headers = headers
        self._problem = ErrorData(code=code, message=message)
        if data is not None:
            self._problem.data = data

    @property
    def response(self) -> Response:
        body = json.loads(dump(JSONRPCError(jsonrpc="2.0", id=self.request_id, error=self._problem)))
        body.setdefault("id", None)  # JSON-RPC 2.0, section 5: null if the id is unknown.
        text = json.dumps(body, separators=(",", ":"))
        response = Response(text, self.status, self._headers, media_type="application/json")
        if self.status == 408:
            response.headers["connection"] = "close"
        return response


def _is_of_session(headers: Headers) -> bool:
    """Tell whether a message with these headers is of a revision that has sessions."""
    revision = headers.get("mcp-protocol-version")
    return revision is None or revision in HANDSHAKE_PROTOCOL_VERSIONS


def _not_acceptable(answer: str, media_type: str, request_id: RequestId | None = None) -> _BadRequest:
    """Return the refusal of a request whose Accept header excludes the only possible `answer`."""
    return _BadRequest(406, f"{answer}. Send `Accept: {media_type}`.", request_id=request_id)


def _headers_for_sdk(raw_headers: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return the headers of a request as the SDK can read them.

    It knows media types in small letters only, and clients that accept both forms of an answer. And it answers nothing
    at all when asked for a history of events, which is not kept: every stream begins with a notice of all that is
    watched.
    """
    headers: list[tuple[bytes, bytes]] = [(b"accept", ACCEPTS_BOTH)]
    for name, value in raw_headers:
        if name == b"content-type":
            headers.append((name, value.lower()))
        elif name not in (b"accept", b"last-event-id"):
            headers.append((name, value))
    return headers


def _as_bad_request(
    scope: Scope, problem: Unavailable | Malformed | _BadRequest, request_id: RequestId | None
) -> _BadRequest:
    """Return the refusal of a message because of `problem`."""
    match problem:
        case Unavailable():
            set_reason(scope, problem.failure)
            wait = {"retry-after": str(math.ceil(problem.retry_after or 1))}
            return _BadRequest(429, str(problem), request_id=request_id, headers=wait)
        case Malformed():
            return _BadRequest(400, problem.message, problem.code, problem.request_id)
        case _BadRequest():
            return problem


def _check_charset(content_type: str) -> None:
    """Refuse a body whose header declares a charset that UTF-8 does not contain (RFC 8259, section 8.1)."""
    if ";" not in content_type:
        return
    header = EmailMessage()
    header["content-type"] = content_type
    charset = header.get_param("charset")
    if charset is None or str(charset).lower() in _CHARSETS:
        return
    raise _BadRequest(
        415, f"A message is UTF-8, not {quote(str(charset))}. Encode it as UTF-8, and declare no charset."
    )


def _without_dead_session(send: Send) -> Send:
    """Return the `send` for a request without a session.

    When the SDK refuses such a request, its answer names a session that it has dropped; this `send` leaves it out.
    """

    async def send_without_session(part: Message) -> None:
        if part["type"] == "http.response.start" and part["status"] >= 400:
            part = {**part, "headers": [item for item in part["headers"] if item[0].lower() != b"mcp-session-id"]}
        await send(part)

    return send_without_session


def _is_error(body: bytes) -> bool:
    """Tell whether a message is an error."""
    try:
        message: Any = json.loads(body)
    except ValueError:
        return False
    return isinstance(message, dict) and "error" in message


def _spending(send: Send, spend: Callable[[int], None] | None) -> Send:
    """Return a `send` that spends the size of the answer, if it is limited."""
    if spend is None:
        return send

    async def send_counted(part: Message) -> None:
        spend(len(part.get("body", b"")))
        await send(part)

    return send_counted
