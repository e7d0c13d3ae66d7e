"""One client connection: limits on the size, time and contents of its headers, and how it is closed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from itertools import chain
from typing import Any, ClassVar, cast

from mcp_batteries.errors import Invalid
from mcp_batteries.transports.http.unix_socket import peer

try:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
except ImportError:
    raise Invalid("HTTP needs the library httptools.", "Install `mcp-batteries` with the extra `http`.") from None

__all__ = ["WHOLE", "Connection"]

WHOLE = "whole"
"""In the state of a request whose body has come."""

_MAX_HEAD = 64 * 1024
_TOO_LONG = "Headers are too long."
_LINGER_SECONDS = 0.3
_REUSE_SECONDS = 1.5
"""Who has been told nothing else uses a connection again; the proxy of `deploy/` forgets it after 1 s."""
_HEAD = b"HTTP/1.1 "
_COPIED = 64 * 1024
"""Longer bodies are not copied to go with their heads."""


class _Writes:
    """A transport that sends the head of an answer together with what is written in the same turn of the loop.

    Separate packets would cost two system calls here, and the client two turns of its own loop.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head = b""
        self.is_closing = transport.is_closing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if self._head and len(data) < _COPIED:
            data = self._head + data
            self._head = b""
        elif data.startswith(_HEAD):
            self.flush()
            self._head = data
            self._loop.call_soon(self.flush)
            return
        self.flush()
        self._transport.write(data)

    def flush(self) -> None:
        if self._head:
            head = self._head
            self._head = b""
            self._transport.write(head)

    def write_eof(self) -> None:
        self.flush()
        self._transport.write_eof()

    def close(self) -> None:
        self.flush()
        self._transport.close()


class Connection(HttpToolsProtocol):
    """uvicorn's fastest protocol, with limits for headers: their length, their time, what they may say."""

    head_seconds: ClassVar[float]
    """Within which the headers of a request have to arrive."""

    when_opened: Callable[[], None]
    when_lost: Callable[[], None]

    head = 0
    part = 0
    answered = 0.0
    """When the last answer was complete, by the loop's clock."""
    in_head = False
    refused = False
    lingers = False
    refusal: bytes | None = None
    """What goes behind the answers under way, before the connection is closed."""
    running: RequestResponseCycle | None = None
    """What is being answered; `cycle` is what came last."""
    late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(cast("asyncio.Transport", _Writes(transport, self.loop)))
        if user := peer(transport.get_extra_info("socket")):
            self.client = (user, 0)
        self.when_opened()
        self.expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self.head_came()
        if self.running is not None:
            self.running.disconnected = True
            self.running.message_event.set()
        super().connection_lost(exc)
        self.when_lost()

    def on_message_begin(self) -> None:
        # The part it begins in may be the end of what went before: `on_headers_complete` looks at such heads.
        self.head = -self.part
        self.in_head = not self.refused
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        # What comes behind a body in chunks is not a header (RFC 9110, section 6.5.1): nobody has checked it.
        if self.in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self.in_head = False
        self.head_came()
        if self.refused:  # What came in one part with what was refused, and behind it.
            return
        codings = b",".join(value for name, value in self.headers if name == b"transfer-encoding")
        if codings and codings.strip().lower() != b"chunked":
            self.refuse(501, "There is no transfer coding but chunked (RFC 9112, section 6.1).")
            return
        # What came with the end of the request before is not counted; all that says something is.
        several = self.part > _MAX_HEAD or self.head != -self.part
        if several and sum(map(len, chain(*self.headers))) + 3 * len(self.headers) + len(self.url) > _MAX_HEAD:
            self.refuse(431, _TOO_LONG)
            return
        problem = self.problem()
        # Always answer probes: restarting a busy replica makes the overload worse.
        self.limit_concurrency = None if self.url == b"/healthz" else self.config.limit_concurrency
        if problem is None:
            super().on_headers_complete()
            self.running = self.running or self.cycle
        else:
            self.refuse(400, problem)

    def refuse(self, status: int, words: str) -> None:
        head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: text/plain; charset=utf-8\r\n"
        head += f"content-length: {len(words)}\r\nconnection: close\r\n\r\n"
        self.end_with(head.encode() + words.encode())

    def end_with(self, refusal: bytes) -> None:
        """Stop reading, answer with `refusal` in its turn (RFC 9112, section 9.3.2), and close."""
        if self.refused:  # The parser stumbles over the rest.
            return
        self.refused = True
        self.in_head = False
        self.head_came()
        if self.pipeline and self.cycle.more_body:
            # The rest of one whose turn has not come.
            self.pipeline.popleft()
        elif not self.is_busy or (self.running is self.cycle and self.cycle.more_body):
            # Nothing is to be answered before, or what can't be read is the rest of what is.
            self.close_with(b"" if self.is_busy and self.cycle.response_started else refusal)
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
            # What refused the rest of a request has answered it; nothing more can be written.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        try:
            if waits := self.transport.can_write_eof():
                self.transport.write_eof()
        except OSError:  # The client has gone, and the event loop has not seen it.
            waits = False
        if waits:
            self.loop.call_later(_LINGER_SECONDS, self.transport.close)
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
        self.answered = self.loop.time()
        self.running = self.pipeline[-1][0] if self.pipeline else None
        super().on_response_complete()
        if self.running is None and self.refusal is not None and not self.transport.is_closing():
            self.close_with(self.refusal)

    @property
    def expects(self) -> bool:
        """Whether a request may be on its way: the first, the rest of one, or one from a client not yet told to
        leave."""
        if self.lingers or self.transport.is_closing():
            return False
        if cast("Any", self.cycle) is None or self.in_head:
            return True
        return not self.is_busy and self.loop.time() < self.answered + _REUSE_SECONDS

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered."""
        return self.running is not None

    def send_400_response(self, msg: str) -> None:
        self.refuse(400, msg)

    def on_body(self, body: bytes) -> None:
        if not self.refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if not self.refused:
            super().on_message_complete()
            cast("dict[str, Any]", self.scope)["state"][WHOLE] = True

    def problem(self) -> str | None:
        """Why a proxy could have understood this request differently."""
        has_body = (name in (b"content-length", b"transfer-encoding") for name, _ in self.headers)
        if cast("Any", self.parser).should_upgrade() and any(has_body):
            # The parser takes the body for what comes after the upgrade, and so for another request.
            return "There is nothing to upgrade to."
        if self.url[:1] not in (b"/", b"*"):
            named = [value.lower() for name, value in self.headers if name == b"host"]
            if named != [self.url.partition(b"://")[2].partition(b"/")[0].lower()]:
                return "The target and Host differ (RFC 9112, section 3.2.2)."
        return None

    def data_received(self, data: bytes) -> None:
        if self.refused or self.lingers:
            return
        self.part = len(data)
        super().data_received(data)
        self.head += len(data)
        if self.in_head and not self.transport.is_closing():
            if self.head > _MAX_HEAD:
                self.refuse(431, _TOO_LONG)
            else:
                self.expect_head()
        elif not self.is_busy and not self.transport.is_closing():
            # Blank lines begin no request, and end the wait for one all the same.
            self.expect_head()

    def expect_head(self) -> None:
        if self.late is None:
            self.late = self.loop.call_later(self.head_seconds, self.end_with, b"")

    def head_came(self) -> None:
        if self.late is not None:
            self.late.cancel()
            self.late = None
