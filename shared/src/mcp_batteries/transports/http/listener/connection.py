"""One client connection: limits on the size, time and contents of its headers, and how it is closed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from itertools import chain
from typing import Any, ClassVar, cast

from mcp_batteries.errors import Invalid
from mcp_batteries.transports.http.listener.unix_socket import peer_user

try:
    from httptools import HttpParserUpgrade, HttpRequestParser
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
except ImportError:
    raise Invalid("HTTP needs the library httptools.", "Install `mcp-batteries` with the extra `http`.") from None

__all__ = ["BODY_COMPLETE", "Connection"]

# The key in the state of a request whose body has arrived.
BODY_COMPLETE = "whole"

_MAX_HEAD = 64 * 1024
_TOO_LONG = "Headers are too long."
# Once a client that was answered early has sent nothing for so long, its connection is closed; it never stays longer.
_LINGER_SECONDS = 0.3
_MAX_LINGER_SECONDS = 10.0
# A client that was told nothing else uses a connection again for this long; the proxy of `deploy/` forgets it after 1
# s.
_REUSE_SECONDS = 1.5
_HEAD = b"HTTP/1.1 "
# Longer bodies are not copied to go with their heads.
_MAX_COALESCED_BYTES = 64 * 1024
_FRAMING = (b"content-length", b"transfer-encoding")


class _CoalescingTransport:
    """A transport that sends the head of an answer together with what is written in the same turn of the loop.

    Separate packets would cost two system calls here, and the client two turns of its own loop.

    A request that is still arriving when it has its answer is read on before the connection is closed.
    """

    def __init__(self, transport: asyncio.Transport, connection: Connection) -> None:
        self._transport = transport
        self._connection = connection
        self._loop = connection.loop
        self._head = b""
        self.is_closing = transport.is_closing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if self._head and len(data) < _MAX_COALESCED_BYTES:
            self._transport.write(self._take_head() + data)
        elif data.startswith(_HEAD):
            self.flush()
            self._head = data
            self._loop.call_soon(self.flush)
        else:
            self.flush()
            self._transport.write(data)

    def flush(self) -> None:
        if self._head:
            self._transport.write(self._take_head())

    def write_eof(self) -> None:
        self.flush()
        self._transport.write_eof()

    def close(self) -> None:
        if self._connection.is_answered_early:
            self._connection.linger()
            return
        self.flush()
        self._transport.close()

    def _take_head(self) -> bytes:
        head = self._head
        self._head = b""
        return head


class _Parser:
    """httptools' parser for a server that ignores `Upgrade`, as it may (RFC 9110, section 7.8).

    httptools takes what follows such headers for another protocol. The clients of Java ask for HTTP/2 in this way with
    every request, and send its body at once.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._begin()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._parser, name)

    def feed_data(self, data: bytes) -> None:
        """Parse `data`; it raises as httptools does, except for an upgrade."""
        while data:
            try:
                self._parser.feed_data(data)
            except HttpParserUpgrade as upgrade:
                self._resume()
                data = data[upgrade.args[0] :]
            else:
                return

    def _begin(self) -> None:
        self._parser = HttpRequestParser(self._connection)
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)  # As uvicorn does.

    def _resume(self) -> None:
        """Go on behind headers with `Upgrade`: with the body that they announce, or the next request."""
        framing = self._connection.framing
        self._begin()
        if framing:
            self._connection.is_resuming = True
            self._parser.feed_data(b"POST / HTTP/1.1\r\n%s\r\n" % framing)
            self._connection.is_resuming = False


class Connection(HttpToolsProtocol):
    """uvicorn's fastest protocol, with limits for headers: their length, their time, what they may say.

    Attributes:
        head_seconds: the time within which the headers of a request have to arrive.
        when_opened: called once the connection is open.
        when_lost: called once it is closed.
        head_size: the bytes of the request's headers so far; below 0 in the chunk in which they begin.
        chunk_size: the length of the chunk that is being parsed.
        answered_at: when the last answer was complete, by the loop's clock.
        in_head: whether the headers of a request are arriving.
        is_resuming: whether the parser reads once more how long the body is; see `_Parser`.
        is_refused: whether nothing more is read.
        lingers: whether the connection is being closed in two steps.
        received_at: when the last data of a connection that lingers arrived, by the loop's clock.
        refusal: what is sent after the answers in progress, before the connection is closed.
        running: the request that is being answered; `cycle` is the one that came last.
        head_timer: ends the connection when the headers come too late.
    """

    head_seconds: ClassVar[float]
    when_opened: Callable[[], None]
    when_lost: Callable[[], None]

    head_size = 0
    chunk_size = 0
    answered_at = 0.0
    in_head = False
    is_resuming = False
    is_refused = False
    lingers = False
    received_at = 0.0
    refusal: bytes | None = None
    running: RequestResponseCycle | None = None
    head_timer: asyncio.TimerHandle | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.parser = cast("HttpRequestParser", _Parser(self))

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(cast("asyncio.Transport", _CoalescingTransport(transport, self)))
        if user := peer_user(transport.get_extra_info("socket")):
            self.client = (user, 0)
        self.when_opened()
        self.start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self.stop_head_timer()
        if self.running is not None:
            self.running.disconnected = True
            self.running.message_event.set()
        super().connection_lost(exc)
        self.when_lost()

    @property
    def framing(self) -> bytes:
        """The headers that say how long the body of the current request is; empty if it has none."""
        return b"".join(b"%s: %s\r\n" % item for item in self.headers if item[0] in _FRAMING)

    def on_message_begin(self) -> None:
        if self.is_resuming:
            return
        # The chunk in which it begins may be the end of the previous request: `on_headers_complete` checks such heads.
        self.head_size = -self.chunk_size
        self.in_head = not self.is_refused
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        # What comes behind a body in chunks is not a header (RFC 9110, section 6.5.1): nobody has checked it.
        if self.in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self.is_resuming:
            return
        self.in_head = False
        self.stop_head_timer()
        if self.is_refused:  # These headers came in one chunk with what was refused, and behind it.
            return
        codings = b",".join(value for name, value in self.headers if name == b"transfer-encoding")
        if codings and codings.strip().lower() != b"chunked":
            self.refuse(501, "There is no transfer coding but chunked (RFC 9112, section 6.1).")
            return
        if self.has_long_head():
            self.refuse(431, _TOO_LONG)
            return
        ambiguity = self.find_ambiguity()
        # Always answer probes: restarting a busy replica makes the overload worse.
        self.limit_concurrency = self.config.limit_concurrency
        if self.url == b"/healthz":
            self.limit_concurrency = None
        if ambiguity is not None:
            self.refuse(400, ambiguity)
            return
        super().on_headers_complete()
        self.running = self.running or self.cycle

    def has_long_head(self) -> bool:
        """Tell whether headers that arrived with something else in one chunk are too long.

        What came with the end of the previous request is not counted as it arrives, but everything that it says is.
        """
        if self.chunk_size <= _MAX_HEAD and self.head_size == -self.chunk_size:
            return False
        separators = 3 * len(self.headers)
        return sum(map(len, chain(*self.headers))) + separators + len(self.url) > _MAX_HEAD

    def refuse(self, status: int, message: str) -> None:
        """Answer with `status` and `message`, and close."""
        head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: text/plain; charset=utf-8\r\n"
        head += f"content-length: {len(message)}\r\nconnection: close\r\n\r\n"
        self.end_with(head.encode() + message.encode())

    def end_with(self, refusal: bytes) -> None:
        """Stop reading, answer with `refusal` in its turn (RFC 9112, section 9.3.2), and close."""
        if self.is_refused:  # The parser stumbles over the remaining data.
            return
        self.is_refused = True
        self.in_head = False
        self.stop_head_timer()
        if self.pipeline and self.cycle.more_body:
            # This is the end of a request whose turn has not come.
            self.pipeline.popleft()
        elif not self.is_busy:
            self.close_with(refusal)
            return
        elif self.running is self.cycle and self.cycle.more_body:
            # What can't be read is the end of the request that is being answered.
            if self.cycle.response_started:
                refusal = b""
            self.close_with(refusal)
            return
        self.refusal = refusal
        if not refusal:
            self.close_after_next_answer()

    def close_with(self, refusal: bytes) -> None:
        if refusal:
            self.transport.write(refusal)
            self.linger()
        else:
            self.transport.close()

    def linger(self) -> None:
        """Close in two steps: otherwise data still arriving would make the kernel discard the answer."""
        if self.transport.is_closing() or self.lingers:
            return
        self.lingers = True
        if self.is_busy:
            # What refused the end of a request has answered it; nothing more can be written.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.flow.resume_reading()
        try:
            if self.transport.can_write_eof():
                self.transport.write_eof()
            elif not self.is_receiving:
                # Over TLS nothing but the close tells a client that rests to send no more.
                self.transport.close()
                return
        except OSError:  # The client has gone, and the event loop has not seen it.
            self.transport.close()
            return
        self.received_at = self.loop.time()
        self.await_silence(self.received_at + _MAX_LINGER_SECONDS)

    def await_silence(self, deadline: float) -> None:
        """Close once the client has been silent for long enough, and at `deadline` at the latest."""
        now = self.loop.time()
        end = min(self.received_at + _LINGER_SECONDS, deadline)
        if now < end:
            self.loop.call_later(end - now, self.await_silence, deadline)
        else:
            self.transport.close()

    def close_after_next_answer(self) -> None:
        """Mark the current answer as the last one; if it has already begun, mark the next one."""
        if self.is_busy and not self.cycle.response_started:
            self.cycle.keep_alive = False

    def shutdown(self) -> None:
        if self.is_busy:
            self.cycle.keep_alive = False
        else:
            self.linger()

    def on_response_complete(self) -> None:
        self.answered_at = self.loop.time()
        self.running = None
        if self.pipeline:
            self.running, _ = self.pipeline[-1]
        if self.lingers:
            return
        super().on_response_complete()
        if self.running is None and self.refusal is not None and not self.transport.is_closing():
            self.close_with(self.refusal)

    @property
    def may_receive_request(self) -> bool:
        """Whether a request may be arriving.

        That is the first one, the end of one, or one from a client that was not told to leave.
        """
        if self.lingers or self.transport.is_closing():
            return False
        if cast("Any", self.cycle) is None or self.in_head:
            return True
        return not self.is_busy and self.loop.time() < self.answered_at + _REUSE_SECONDS

    @property
    def is_receiving(self) -> bool:
        """Whether more of a request is expected, answered or not."""
        return self.is_refused or (cast("Any", self.cycle) is not None and self.cycle.more_body)

    @property
    def is_answered_early(self) -> bool:
        """Whether the last request has its answer while its body still arrives, and nothing closes the connection."""
        if self.is_refused or self.lingers or not self.is_receiving:
            return False
        return self.cycle.response_complete

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered."""
        return self.running is not None

    def send_400_response(self, msg: str) -> None:
        self.refuse(400, msg)

    def on_body(self, body: bytes) -> None:
        if not self.is_refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if self.is_refused or (cast("Any", self.parser).should_upgrade() and self.framing):
            return  # The second is only httptools' end of a request with `Upgrade`, whose body comes now.
        super().on_message_complete()
        cast("dict[str, Any]", self.scope)["state"][BODY_COMPLETE] = True

    def find_ambiguity(self) -> str | None:
        """Return why a proxy could have understood this request differently; None if it could not."""
        if self.url[:1] not in (b"/", b"*"):
            hosts = [value.lower() for name, value in self.headers if name == b"host"]
            if hosts != [self.url.partition(b"://")[2].partition(b"/")[0].lower()]:
                return "The target and Host differ (RFC 9112, section 3.2.2)."
        return None

    def data_received(self, data: bytes) -> None:
        if self.lingers:
            self.received_at = self.loop.time()
            return
        if self.is_refused:
            return
        self.chunk_size = len(data)
        super().data_received(data)
        self.head_size += len(data)
        if self.in_head and not self.transport.is_closing():
            if self.head_size > _MAX_HEAD:
                self.refuse(431, _TOO_LONG)
            else:
                self.start_head_timer()
        elif not self.is_busy and not self.transport.is_closing():
            # Blank lines begin no request, and end the wait for one all the same.
            self.start_head_timer()

    def start_head_timer(self) -> None:
        if self.head_timer is None:
            self.head_timer = self.loop.call_later(self.head_seconds, self.end_with, b"")

    def stop_head_timer(self) -> None:
        if self.head_timer is not None:
            self.head_timer.cancel()
            self.head_timer = None
