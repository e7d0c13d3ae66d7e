"""Requests in the sessions of older clients, each one task from the HTTP server to the handler and back.

The session itself, its handshake, notifications, answers of the client and the stream of changes stay the SDK's.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

import anyio
import anyio.lowlevel
from mcp.server import streamable_http_manager
from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import MCPServer
from mcp.server.runner import ServerRunner
from mcp.server.streamable_http import REQUEST_CANCELLED
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp_types.jsonrpc import (
    CONNECTION_CLOSED,
    ErrorData,
    JSONRPCMessage,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)
from mcp_types.version import is_version_at_least
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from mcp_batteries.concurrency.timeout_queue import TimeoutQueue
from mcp_batteries.sdk import SESSION_TRANSPORT, Sessions, SessionTransport, connection_of, lowlevel
from mcp_batteries.transports.dispatch import error_data
from mcp_batteries.transports.http.requests.in_flight import answering
from mcp_batteries.transports.http.requests.json_replies import STREAM_OPENED
from mcp_batteries.transports.http.requests.kept_answers import KeptAnswer, KeptAnswers, call_of
from mcp_batteries.transports.http.requests.response import (
    EVENT,
    EVENT_END,
    PING,
    PING_SECONDS,
    STREAM_HEADERS,
    Call,
    wait_for_disconnect,
)
from mcp_batteries.transports.jsonrpc import dump

__all__ = ["ReplayedBody", "Session", "answer_sessions_directly"]

# Longer calls get their stream, with its signs of life, before a client or proxy counts them as lost.
_STREAM_AFTER_SECONDS = 1.0
# After this time a session that nobody uses any more is given the time at which it ends.
_IDLE_CHECK_SECONDS = 1.0
# A stream whose client still reads ends within this time; the stream of a client that vanished never would.
_STREAM_END_SECONDS = 1.0
# From this revision on, a stream begins with an event that only has an id.
_PRIMED_SINCE = "2025-11-25"
_CANCELLED = ErrorData(code=REQUEST_CANCELLED, message="Request cancelled")
_ENDED = ErrorData(code=CONNECTION_CLOSED, message="Session terminated before the request completed")


class ReplayedBody:
    """The `receive` of a request whose body was already read and is `message`."""

    def __init__(self, message: JSONRPCMessage, receive: Receive) -> None:
        self.message = message
        self._receive = receive
        self._read = False

    async def __call__(self) -> Message:
        if self._read:
            return await self._receive()
        self._read = True
        # A message that had to be repaired, or was ambiguous, is passed on in one unambiguous form.
        return {"type": "http.request", "body": dump(self.message), "more_body": False}


class _Opening:
    """The turn in which a session's stream of notifications opens; whoever comes next waits until it is open."""

    def __init__(self, turn: anyio.Semaphore) -> None:
        self._turn = turn
        self._is_over = False

    def finish(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._turn.release()


class _NotificationStream:
    """A GET request of a session, which the SDK answers with the stream of notifications or refuses.

    Attributes:
        is_second: the SDK refused it because the session has such a stream; the client was not told.
        scope: cancels it.
        finished: set when the request is over.
    """

    def __init__(self, send: Send) -> None:
        self.is_second = False
        self.scope = anyio.CancelScope()
        self.finished = anyio.Event()
        self._send = send

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == HTTPStatus.CONFLICT:
            self.is_second = True
        if self.is_second:
            return
        await self._send(message)
        if message["type"] == "http.response.start" and message["status"] == HTTPStatus.OK:
            # Some proxies keep the head from the client until something follows it.
            await self._send({"type": "http.response.body", "body": PING, "more_body": True})


class Session(SessionTransport):
    """One session; until its handshake is done, the SDK handles everything.

    Attributes:
        answers: the answers that the sessions of its server keep.
    """

    runner: ServerRunner[Any] | None = None
    answers = KeptAnswers()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._calls: set[_SessionCall] = set()
        self._streams: set[_NotificationStream] = set()
        # The first stream must not lose a step: a question that comes right behind it is sent there, or nowhere.
        self._opening_turn = anyio.Semaphore(1, fast_acquire=True)
        self.stream_delay = TimeoutQueue(_STREAM_AFTER_SECONDS)
        self._idle = TimeoutQueue(min(_IDLE_CHECK_SECONDS, (self.idle_seconds or math.inf) / 2))
        self._has_idle_check = False
        self._idle_since = 0.0

    def __enter__(self) -> None:
        """Begin a block in which it is in use and does not time out."""
        self.in_use += 1
        if self.idle_scope is not None and self.idle_scope.deadline != math.inf:
            self.idle_scope.deadline = math.inf

    def __exit__(self, *_: object) -> None:
        self.in_use -= 1
        self._idle_since = asyncio.get_running_loop().time()
        # A timer for each request would cost as much as to read it.
        if not (self.in_use or self._has_idle_check):
            self._has_idle_check = True
            self._idle.begin(self._check_idle)

    def _check_idle(self) -> None:
        """Set the time at which the session ends, if it is still unused."""
        self._has_idle_check = False
        if not self.in_use and self.idle_scope is not None and self.idle_seconds is not None:
            self.idle_scope.deadline = self._idle_since + self.idle_seconds

    async def handle_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request that nobody answered directly.

        A session has one stream of notifications. The newest wins: a client that lost its line (a laptop that slept, a
        VPN) opens another while the connection of the first still looks alive, and it must not wait until TCP gives up.
        Streams open one after the other: the SDK looks for another long before it has its own, and of several at once
        only the last would hear anything.
        """
        if scope["method"] != "GET":
            await super().handle_request(scope, receive, send)
            return
        await self._opening_turn.acquire()
        opening = _Opening(self._opening_turn)
        scope = {**scope, STREAM_OPENED: opening.finish}
        try:
            while not await self._answer_unless_second(scope, receive, send):
                await self._end_streams()
        finally:
            opening.finish()

    async def resume(self, event_id: str, scope: Scope, receive: Receive, send: Send) -> bool:
        """Send the answer to the call on whose stream the client heard `event_id` last, once it is there.

        Return False, with nothing sent, if it is not kept.
        """
        number = call_of(event_id)
        answer = None
        if number is not None:
            answer = self.answers.get(self.mcp_session_id or "", number)
        if answer is None:
            return False
        with self, answering(scope, answer.request_id):
            answer.followers += 1
            try:
                await self._send_kept(answer, receive, send)
            finally:
                answer.followers -= 1
        return True

    async def _send_kept(self, answer: KeptAnswer, receive: Receive, send: Send) -> None:
        """Send a stream that ends with `answer`, or when the client leaves."""

        async def write(event: bytes, *, more: bool = True) -> None:
            await send({"type": "http.response.body", "body": event, "more_body": more})

        await send({"type": "http.response.start", "status": 200, "headers": [*STREAM_HEADERS, self.id_header]})
        await write(self.priming_event(answer) or PING)
        leaving = asyncio.ensure_future(wait_for_disconnect(receive))
        arriving = asyncio.ensure_future(answer.is_there.wait())
        try:
            while not (leaving.done() or arriving.done()):
                await asyncio.wait((leaving, arriving), timeout=PING_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                if not arriving.done():
                    await write(PING)
        finally:
            leaving.cancel()
            arriving.cancel()
        if answer.line:
            await write(_format_event(answer, answer.line), more=False)

    @property
    def id_header(self) -> tuple[bytes, bytes]:
        return b"mcp-session-id", (self.mcp_session_id or "").encode()

    def priming_event(self, answer: KeptAnswer) -> bytes:
        """Return the event that tells a client by which id it can ask for `answer`; empty if its revision has none."""
        if self.runner is None or not is_version_at_least(self.runner.connection.protocol_version, _PRIMED_SINCE):
            return b""
        return b"id: " + answer.next_event_id() + b"\r\ndata:" + EVENT_END

    async def _answer_unless_second(self, scope: Scope, receive: Receive, send: Send) -> bool:
        """Answer a GET request; return False, with nothing sent, if the session has a stream already."""
        stream = _NotificationStream(send)
        self._streams.add(stream)
        try:
            with stream.scope:
                await super().handle_request(scope, receive, stream.send)
        finally:
            self._streams.discard(stream)
            stream.finished.set()
        return not stream.is_second

    async def _end_streams(self) -> None:
        """End the stream that the session has; cancel it if its client does not take the end."""
        self.close_standalone_sse_stream()
        for stream in tuple(self._streams):
            with anyio.move_on_after(_STREAM_END_SECONDS):
                await stream.finished.wait()
            stream.scope.cancel()
            await stream.finished.wait()

    async def answer(
        self, request: Request, message: JSONRPCRequest, receive: Receive, send: Send, *, streams: bool
    ) -> bool:
        """Answer `message`; return False to leave it to the SDK.

        Args:
            streams: whether notices and questions can come before the result.
        """
        if (
            self.runner is None
            or self.is_terminated
            or (self.idle_scope is not None and self.idle_scope.cancel_called)
            or message.method == "initialize"
            or not self.runner.connection.initialize_accepted
        ):
            return False
        with self:
            call = _SessionCall(self, self.runner.connection, request, message, receive, send, streams=streams)
            await self._answer(self.runner, call, message)
        return True

    def cancel_call(self, request_id: RequestId) -> None:
        """Stop the call with this id."""
        for call in self._calls:
            if call.request_id == request_id:
                call.stop(_CANCELLED)

    async def terminate(self) -> None:
        # Stop the calls first, or one of them could subscribe on a connection that is gone.
        for call in self._calls:
            call.stop(_ENDED)
        await super().terminate()

    async def _answer(self, runner: ServerRunner[Any], call: _SessionCall, message: JSONRPCRequest) -> None:
        self._calls.add(call)
        result: dict[str, Any] | ErrorData | None = None
        try:
            with call.scope:
                try:
                    result = await runner.on_request(call, message.method, message.params)
                except Exception as raised:  # noqa: BLE001 - whatever it is, the client hears that its call failed
                    result = error_data(raised, message.method)
            call.end()
            self._calls.discard(call)
            await call.answer(call.stopped or result or {})
        finally:
            self._calls.discard(call)
            call.close()


class _SessionCall(Call):
    """A call that continues when its client leaves, for as long as an unused session does, and can ask the client.

    Attributes:
        stopped: what the client is told instead of a result.
    """

    def __init__(
        self,
        session: Session,
        connection: Connection,
        request: Request,
        message: JSONRPCRequest,
        receive: Receive,
        send: Send,
        *,
        streams: bool,
    ) -> None:
        self.can_send_request = streams
        headers = [session.id_header]
        metadata = session.metadata(request)
        super().__init__(
            request, message, metadata, receive, send, streams=streams, moment=session.stream_delay, headers=headers
        )
        self._session = session
        self._connection = connection
        self._asking: asyncio.Task[None] | None = None
        self._questions = 0
        self._kept_answer: KeptAnswer | None = None
        self.stopped: ErrorData | None = None

    def stop(self, error: ErrorData) -> None:
        """End the call with `error` as its answer."""
        self.stopped = error
        self.cancel_requested.set()
        self.scope.cancel()

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        if not self.can_send_request:
            raise NoBackChannelError(method)
        if self._asking is None:
            self._asking = asyncio.get_running_loop().create_task(self._forward_messages())
            await anyio.lowlevel.checkpoint()
        self._questions += 1
        try:
            return await self._session.ask(self._connection, self.request_id, method, params, opts)
        finally:
            self._questions -= 1

    def close(self) -> None:
        """Leave nothing behind, answered or not."""
        self.end()
        if self._kept_answer is not None and not self._kept_answer.line:
            self._session.answers.drop(self._kept_answer)
        if self._asking is not None:
            self._asking.cancel()

    async def run_beside(self) -> None:
        await self.ping()
        await self.ping_until_client_leaves()
        # Nobody answers its questions now. Until it ends, it has its caller's turn, and its session is in use.
        self.can_send_request = False
        if not self._questions:
            if self._session.idle_seconds is None:
                return
            await self._wait_until_abandoned(self._session.idle_seconds)
        self.stop(_CANCELLED)

    async def _wait_until_abandoned(self, seconds: float) -> None:
        """Wait until the client has not come back for its answer for so long."""
        while True:
            await asyncio.sleep(seconds)
            if self._kept_answer is None or not self._kept_answer.followers:
                return

    def open_stream(self) -> bytes:
        self._kept_answer = self._session.answers.begin(self._session.mcp_session_id or "", self.request_id)
        return self._session.priming_event(self._kept_answer)

    def format_event(self, line: bytes) -> bytes:
        if self._kept_answer is None:
            return super().format_event(line)
        return _format_event(self._kept_answer, line)

    async def end_stream(self, line: bytes) -> None:
        if self._kept_answer is not None:
            self._session.answers.keep(self._kept_answer, line)
        await super().end_stream(line)

    async def answer(self, result: dict[str, Any] | ErrorData, status: int = 200) -> None:
        self.can_send_request = False
        if self._asking is not None:
            # The client first hears that an abandoned question is withdrawn.
            try:
                await self._session.end_messages(self.request_id)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                self._asking.cancel()
            await asyncio.wait((self._asking,))
        await super().answer(result, status)

    async def _forward_messages(self) -> None:
        """Send the client what the session's dispatcher has for it, until its final response."""
        with self._session.messages(self.request_id) as messages:
            async for item in messages:
                if isinstance(item.message, JSONRPCResponse):
                    return
                await self.send_message(dump(item.message))


def _format_event(answer: KeptAnswer, line: bytes) -> bytes:
    """Return the event that carries a message on a stream that ends with `answer`."""
    return b"id: " + answer.next_event_id() + b"\r\n" + EVENT + line.strip() + EVENT_END


@contextmanager
def answer_sessions_directly(server: MCPServer[Any]) -> Generator[None]:
    """Answer the requests of the SDK's sessions of `server` here, for as long as the block lasts."""
    low = lowlevel(server)
    sessions = Sessions(server)

    async def set_runner(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method == "initialize":
            connection = connection_of(ctx.session)
            session = sessions.get(connection.session_id or "")
            if isinstance(session, Session):
                session.runner = ServerRunner(low, connection, ctx.lifespan_context)
        return await call_next(ctx)

    server.middleware.append(set_runner)
    original = getattr(streamable_http_manager, SESSION_TRANSPORT)
    session_class = type("Session", (Session,), {"answers": KeptAnswers()})
    setattr(streamable_http_manager, SESSION_TRANSPORT, session_class)
    try:
        yield
    finally:
        setattr(streamable_http_manager, SESSION_TRANSPORT, original)
