"""Checks each message over HTTP before the SDK: well formed, allowed for this caller, within its limits."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import RequestBodyLimitMiddleware
from mcp.shared.jsonrpc_dispatcher import cancelled_request_id_from_params
from mcp_types.jsonrpc import JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, RequestId
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcp_batteries.errors import Unavailable
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
from mcp_batteries.transports.http.gate.bad_request import BadRequest
from mcp_batteries.transports.http.gate.fair_queue import Abandoned
from mcp_batteries.transports.http.gate.message_body import BodyReader
from mcp_batteries.transports.http.gate.message_size import TOO_MANY_VALUES, has_too_many_values, peek_body_id
from mcp_batteries.transports.http.gate.open_sessions import OpenSessions, is_of_session, without_dead_session
from mcp_batteries.transports.http.gate.quota import Quota
from mcp_batteries.transports.http.gate.request_ids import RequestIds
from mcp_batteries.transports.http.gate.revision import check_revision
from mcp_batteries.transports.http.headers import HeaderMap, ParsedRequest
from mcp_batteries.transports.http.refusals import Refusals, set_reason, set_refused_status
from mcp_batteries.transports.http.requests.batch_replies import answer_each, split_array
from mcp_batteries.transports.http.requests.in_flight import answering, close_after_stream
from mcp_batteries.transports.http.requests.json_replies import ACCEPTS_EVENTS
from mcp_batteries.transports.http.requests.kept_answers import KEPT_SECONDS, call_of
from mcp_batteries.transports.http.requests.response import wait_for_disconnect
from mcp_batteries.transports.http.requests.sessions import ReplayedBody, Session
from mcp_batteries.transports.http.requests.stateless import StatelessRequests
from mcp_batteries.transports.jsonrpc import Malformed, is_heard, parse

__all__ = ["Authorize", "BodyCheck"]

# At these statuses clients of older revisions end their whole connection (SDK for Python 1.x, SDK for Go).
_STATUSES_OF_LIMITS = (413, 429)

_JSON = "application/json"
_BOTH = ACCEPTS_BOTH.decode()
_NOT_KEPT = (
    f"The answer to this call is not kept: it is longer ago than {KEPT_SECONDS:.0f} s, or there were too many. "
    "Look whether the call had its effect, then call again."
)


@dataclass(frozen=True, slots=True)
class _HttpRequest:
    """A request over HTTP; what it asks for is the message in its body.

    Attributes:
        receive: once the body was read, it reports when the client leaves.
        forms: what the answer may be.
    """

    scope: Scope
    headers: Headers
    receive: Receive
    forms: AnswerForms

    def without_session(self) -> _HttpRequest:
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
        self._json = settings.json_response
        self._authorize = authorize
        self._server = server
        self._exchanges: StatelessRequests | None = None
        self._sessions = OpenSessions(server, settings.max_streams_each)
        self._bodies = BodyReader(max_body=max_body, seconds=seconds, sessions=self._sessions)
        self._request_ids = RequestIds()
        self._quota = Quota(
            calls=settings.rate_calls,
            size=settings.rate_bytes,
            parallel=settings.max_parallel,
            streams=settings.max_streams_each,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        accept = b",".join(value for name, value in scope["headers"] if name == b"accept")
        forms = parse_accept(accept.decode("latin-1"))
        last_event_id = dict(scope["headers"]).get(b"last-event-id", b"").decode("latin-1")
        raw_headers = _headers_for_sdk(scope["headers"])
        scope = {**scope, "headers": raw_headers, ACCEPTS_EVENTS: forms.events}
        http = _HttpRequest(scope, HeaderMap(raw_headers), receive, forms)
        if "mcp-session-id" not in http.headers:
            send = without_dead_session(send)
        try:
            if scope["method"] == "POST":
                await self._receive_messages(http, send)
                return
            if scope["method"] in ("GET", "DELETE"):
                self._sessions.check(scope, http.headers)
            if scope["method"] == "GET":
                await self._open_stream(http, last_event_id, send)
            else:
                await self.app(scope, receive, send)
        except (Unavailable, Malformed, BadRequest) as problem:
            await self._refuse(http, problem, send)

    async def _refuse(
        self,
        http: _HttpRequest,
        problem: Unavailable | Malformed | BadRequest,
        send: Send,
        request_id: RequestId | None = None,
    ) -> None:
        """Answer a message that is refused because of `problem`.

        A limit fails one call of an older client, and must not end its connection.
        """
        refusal = _as_bad_request(http.scope, problem, request_id)
        is_limit = refusal.status in _STATUSES_OF_LIMITS and refusal.request_id is not None
        if is_limit and self._sessions.is_from_client(http.scope, http.headers):
            self._refusals.record(http.scope, refusal.status)
            set_refused_status(http.scope, refusal.status)
            refusal.status = 200
            if not http.forms.json:
                send = send_as_events(send)
        await refusal.response(http.scope, http.receive, send)

    async def _open_stream(self, http: _HttpRequest, last_event_id: str, send: Send) -> None:
        """Answer with the stream of a session's notifications, or with the answer to one of its calls."""
        if not http.forms.events:
            raise _not_acceptable("This is answered by a stream of events", "text/event-stream")
        caller = caller_of(http.scope)
        with self._quota.hold_stream(caller):
            session = self._find_direct_session(http.scope, http.headers.get("mcp-session-id", ""))
            if session is not None and call_of(last_event_id) is not None:
                # An answer that is sent again takes as many bytes as the first time.
                spend = self._quota.spend(caller)
                if await session.resume(last_event_id, http.scope, http.receive, _spending(send, spend)):
                    return
                raise BadRequest(410, _NOT_KEPT)
            await self.app(http.scope, http.receive, send)

    async def _receive_messages(self, http: _HttpRequest, send: Send) -> None:
        """Answer the message in the body of `http`, or each of those in an array."""
        body = await self._bodies.read(http.scope, http.headers, http.receive)
        if body is None:
            return
        if has_too_many_values(body):
            raise BadRequest(413, TOO_MANY_VALUES, request_id=peek_body_id(body))
        messages = split_array(http.headers, body)
        if messages is None:
            await self._answer(http, parse(body), len(body), send)
            return

        async def answer(text: bytes, member: JSONRPCMessage, send: Send) -> None:
            await self._answer(http, member, len(text), send)

        as_events = http.forms.events and not self._json
        await answer_each(
            answer, messages, send, as_events=as_events, refused=partial(self._refusals.record, http.scope)
        )

    async def _answer(self, http: _HttpRequest, message: JSONRPCMessage, size: int, send: Send) -> None:
        """Answer a message of `size` bytes, or refuse it."""
        request_id: RequestId | None = None
        if isinstance(message, JSONRPCRequest):
            request_id = message.id
        try:
            if self._authorize is not None:
                refusal = self._authorize(http.scope, message)
                if refusal is not None:
                    await refusal(http.scope, http.receive, send)
                    return
            if isinstance(message, JSONRPCRequest):
                await self._answer_request(http, message, size, send)
            else:
                await self._accept(http, message, send)
        except Abandoned:
            await Response(status_code=202)(http.scope, http.receive, send)
        except (Unavailable, Malformed, BadRequest) as problem:
            await self._refuse(http, problem, send, request_id)

    async def _accept(self, http: _HttpRequest, message: JSONRPCMessage, send: Send) -> None:
        """Pass on a notification, or the client's answer to a question.

        Raises:
            Abandoned: Nothing handles it.
        """
        session = http.headers.get("mcp-session-id")
        self._sessions.check(http.scope, http.headers)
        if isinstance(message, JSONRPCNotification):
            if not is_heard(message):
                raise Abandoned
            if message.method == "notifications/cancelled" and session is not None:
                self._cancel_call(http.scope, session, message)
        if session is not None:
            self._sessions.mark_used(session)
        await self._pass_on(http, message, close_after_stream(send))

    async def _answer_request(self, http: _HttpRequest, request: JSONRPCRequest, size: int, send: Send) -> None:
        """Answer `request` within its caller's limits."""
        if request.method == "initialize" and "mcp-session-id" in http.headers:
            # Who begins anew, after a restart or a 404, may still send the id of what has ended.
            http = http.without_session()
            send = without_dead_session(send)
        self._check_request(http, request)
        # Each of these wraps the one before, so an answer passes them from the last to the first: its size is counted,
        # its id is free, its session has an owner, and only then it becomes an event.
        if not http.forms.json:
            send = send_as_events(send)
        send = self._follow_session(http, request, send)
        caller = caller_of(http.scope)
        session = http.headers.get("mcp-session-id")
        with self._request_ids.hold(caller, session, request.id, send) as (send_and_release, cancelled):
            if request.method == "subscriptions/listen":
                # A stream is held, not worked on.
                with self._quota.hold_stream(caller):
                    await self._pass_on(http, request, close_after_stream(send_and_release))
            else:
                await self._answer_in_turn(http, request, size, send_and_release, cancelled)

    def _check_request(self, http: _HttpRequest, request: JSONRPCRequest) -> None:
        """Refuse a request of a wrong revision or session, or whose answer the client would not accept."""
        problem = check_revision(http.headers, request)
        if problem is not None:
            raise BadRequest(400, problem.message, problem.code, request.id, data=problem.data)
        if request.method != "initialize":
            self._sessions.check(http.scope, http.headers, request.id)
        self._check_forms(http.forms, request)

    def _follow_session(self, http: _HttpRequest, request: JSONRPCRequest, send: Send) -> Send:
        """Note that the session of a request is used; return the `send` that remembers the owner of a new one."""
        session = http.headers.get("mcp-session-id")
        if session is not None:
            self._sessions.mark_used(session)
        elif request.method == "initialize":
            send = self._sessions.remember_owner(http.scope, send)
        return send

    async def _answer_in_turn(
        self, http: _HttpRequest, request: JSONRPCRequest, size: int, send: Send, cancelled: asyncio.Event | None
    ) -> None:
        """Answer `request` when it is its caller's turn, unless it is cancelled before.

        Args:
            cancelled: set when a session cancels it; None without a session.
        """
        if cancelled is not None:
            wait_for_cancel = cancelled.wait
        else:
            # A client of 2026-07-28 cancels a call by leaving, and has no other way.
            wait_for_cancel = partial(wait_for_disconnect, http.receive)
        calls = count_calls(normalize_call(request.params or {}))
        caller = caller_of(http.scope)
        async with self._quota.turn(caller, size, wait_for_cancel, calls=calls) as spend:
            with answering(http.scope, request.id):
                await self._pass_on(http, request, _spending(send, spend))

    def _check_forms(self, forms: AnswerForms, request: JSONRPCRequest) -> None:
        """Refuse a request whose answer the client would not accept in the form that it must have."""
        if request.method == "subscriptions/listen":
            if not forms.events:
                raise _not_acceptable("This is answered by a stream of events", "text/event-stream", request.id)
        elif self._json and not forms.json:
            raise _not_acceptable("Answers are one JSON message here (`--json-response`)", _JSON, request.id)
        elif not (forms.json or forms.events):
            raise _not_acceptable("An answer is one JSON message or a stream of events", _BOTH, request.id)

    def _cancel_call(self, scope: Scope, session: str, message: JSONRPCNotification) -> None:
        """Cancel the call that `message` names.

        The SDK does not know of calls that still wait for their turn, nor of those that are answered past it.
        """
        request_id = cancelled_request_id_from_params(message.params)
        if request_id is None:
            return
        self._request_ids.cancel(caller_of(scope), session, request_id)
        direct_session = self._find_direct_session(scope, session)
        if direct_session is not None:
            direct_session.cancel_call(request_id)

    async def _pass_on(self, http: _HttpRequest, message: JSONRPCMessage, send: Send) -> None:
        """Answer `message` here if possible, otherwise let the SDK do it."""
        if isinstance(message, JSONRPCRequest) and await self._answer_directly(http, message, send):
            return
        await self.app(http.scope, ReplayedBody(message, http.receive), send)

    def _find_direct_session(self, scope: Scope, session_id: str) -> Session | None:
        """Return the session of the sender that is answered past the SDK's streams, or None."""
        session = self._sessions.find(scope, session_id)
        if isinstance(session, Session):
            return session
        return None

    async def _answer_directly(self, http: _HttpRequest, message: JSONRPCRequest, send: Send) -> bool:
        """Answer `message` past the SDK's streams; return False to leave it to the SDK."""
        request = ParsedRequest(http.scope, http.receive, http.headers)
        streams = http.forms.events and not self._json
        if is_of_session(http.headers):
            session = self._find_direct_session(http.scope, http.headers.get("mcp-session-id", ""))
            if session is None:
                return False
            return await session.answer(request, message, http.receive, send, streams=streams)
        if self._exchanges is None:
            self._exchanges = StatelessRequests(lowlevel(self._server), Sessions(self._server).state)
        route = self._exchanges.route(request, message)
        if route is None:
            return False
        await self._exchanges.answer(request, message, route, http.receive, send, streams=streams)
        return True


def _not_acceptable(answer: str, media_type: str, request_id: RequestId | None = None) -> BadRequest:
    """Return the refusal of a request whose Accept header excludes the only possible `answer`."""
    return BadRequest(406, f"{answer}. Send `Accept: {media_type}`.", request_id=request_id)


def _as_bad_request(
    scope: Scope, problem: Unavailable | Malformed | BadRequest, request_id: RequestId | None
) -> BadRequest:
    """Return the refusal of a message because of `problem`; a limit's reason goes into the log of refusals."""
    match problem:
        case Unavailable():
            set_reason(scope, problem.failure)
            wait = {"retry-after": str(math.ceil(problem.retry_after or 1))}
            return BadRequest(429, str(problem), request_id=request_id, headers=wait)
        case Malformed():
            return BadRequest(400, problem.message, problem.code, problem.request_id)
        case BadRequest():
            return problem


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


def _spending(send: Send, spend: Callable[[int], None] | None) -> Send:
    """Return a `send` that spends the size of the answer, if it is limited."""
    if spend is None:
        return send

    async def send_counted(part: Message) -> None:
        spend(len(part.get("body", b"")))
        await send(part)

    return send_counted
