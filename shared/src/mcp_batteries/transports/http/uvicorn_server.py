"""uvicorn between a socket and the signals, with an end of our own.

uvicorn's own end waits for open streams, and so for ever; its parser takes headers of any length.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http import HTTPStatus
from itertools import chain
from types import FrameType
from typing import Any, cast

import anyio
import uvicorn
from starlette.types import ASGIApp
from uvicorn.server import HANDLED_SIGNALS

from mcp_batteries.errors import Invalid, Refused, Unavailable, quote
from mcp_batteries.subscriptions.file_watcher import follow_file
from mcp_batteries.transports.http.in_flight import InFlight

try:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
except ImportError:
    raise Invalid("HTTP needs the library httptools.", "Install `mcp-batteries` with the extra `http`.") from None

__all__ = ["UvicornServer", "bind"]

_log = logging.getLogger(__name__)

_MAX_HEAD = 64 * 1024
_TOO_LONG = "Headers are too long."
_BACKLOG = 1024
_FLUSH_SECONDS = 0.3
_LEAVE_SECONDS = 0.9
"""For everything after the last answer: streams, sessions, the lifespan."""


class UvicornServer(uvicorn.Server):
    """A uvicorn server that says where it listens, and is gone soon after SIGTERM or SIGINT.

    Args:
        url: said on standard error once it can be reached.
        in_flight: ends what is under way.
        on_shutdown: called first at the end.
        max_connections: beyond it requests are answered with 503.
        drain_seconds: calls in flight have to be answered at the end; 0.9 s later the process is gone.
        head_seconds: within which the headers of a request have to arrive.
        tls: certificate and key (PEM files), for https.
    """

    def __init__(
        self,
        app: ASGIApp,
        url: str,
        in_flight: InFlight,
        on_shutdown: Callable[[], None],
        *,
        max_connections: int,
        head_seconds: float,
        drain_seconds: float,
        tls: tuple[str, str] | None = None,
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                # A daemon of one application: nothing to detect, nothing to reload, nobody to believe a header of.
                interface="asgi3",
                lifespan="off",
                ws="none",
                workers=1,
                proxy_headers=False,
                server_header=False,
                # Whoever starts the process has set up logging, to standard error.
                log_config=None,
                access_log=False,
                http=_protocol(head_seconds),
                limit_concurrency=max_connections,
                # Longer than the minute that proxies and client pools keep connections: who closes first errs.
                timeout_keep_alive=65,
                ssl_certfile=tls and tls[0],
                ssl_keyfile=tls and tls[1],
            )
        )
        self.servers = []
        self.status = 0
        """128 and the number of the signal that ended it."""
        self._drain_seconds = drain_seconds
        self._in_flight, self._url, self._on_shutdown = in_flight, url, on_shutdown

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self.config.ssl is not None:
            # Whatever OpenSSL's own configuration allows (RFC 8996).
            self.config.ssl.minimum_version = ssl.TLSVersion.TLSv1_2
        await super().startup(sockets)
        sys.stderr.write(f"listening on {self._url}\n")
        sys.stderr.flush()

    async def follow_certificate(self) -> None:
        """Take the certificate anew whenever its file changes, for connections to come; until cancelled."""
        certificate, key = str(self.config.ssl_certfile), str(self.config.ssl_keyfile)

        async def changed() -> None:
            try:
                if self.config.ssl is not None:
                    self.config.ssl.load_cert_chain(certificate, key)
            except (OSError, ssl.SSLError) as problem:
                _log.error("the certificate stays as it was, the new one cannot be used: %s", problem)

        await follow_file(certificate, changed)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for listener in self.servers:
            listener.close()
        connections = self.server_state.connections
        for connection in list(connections):
            connection.shutdown()
        self._on_shutdown()
        await self._in_flight.end(self._drain_seconds)
        with anyio.move_on_after(_FLUSH_SECONDS):
            while connections:  # noqa: ASYNC110 - uvicorn has no event for the last one
                await anyio.sleep(0.01)

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        # A function: the SDK's event streams look for a uvicorn server behind the handler, to end at once with it.
        def handler(number: int, _: FrameType | None) -> None:
            self._on_signal(number)

        previous = {number: signal.signal(number, handler) for number in HANDLED_SIGNALS}
        try:
            yield
        finally:
            if not self.status:
                for number, before in previous.items():
                    signal.signal(number, before)

    def _on_signal(self, number: int) -> None:
        if self.status:
            os._exit(self.status)
        self.status = 128 + number
        self.should_exit = True
        # A thread of its own, since whatever does not end may be the event loop or a worker thread.
        last = threading.Timer(self._drain_seconds + _LEAVE_SECONDS, os._exit, [self.status])
        last.daemon = True
        last.start()


def bind(host: str, port: int, *, public: bool) -> socket.socket:
    """A listening socket on an address of `host`, IPv4 where it has both.

    Raises:
        Refused: The address can be reached from other machines, and is not to be `public`.
        Unavailable: The address cannot be listened on.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, *_, address = min(found, key=lambda item: item[0] != socket.AF_INET)
        if not public and not ipaddress.ip_address(address[0]).is_loopback:
            raise Refused(
                f"Listening on {quote(host)} would let everybody who can reach it use this server.",
                "Ask for tokens with --auth-file or --auth-issuer, listen on 127.0.0.1, or add --allow-anonymous.",
            )
        # Not `socket.create_server`: it leaves the protocol unnamed, and asyncio then leaves Nagle's delay on.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            if os.name == "posix":  # Elsewhere it means to share the port with whoever has it.
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(_BACKLOG)
        except OSError:
            listener.close()
            raise
        return listener
    except OSError as problem:
        raise Unavailable(
            f"Cannot listen on {quote(host)}, port {port}: {problem.strerror or problem}.",
            "Choose another --port or --host.",
        ) from None


def _protocol(seconds: float) -> type[asyncio.Protocol]:
    """uvicorn's fastest parser, with limits for headers: their length, their time, what they may say."""

    class LimitedProtocol(HttpToolsProtocol):
        head = part = 0
        in_head = refused = False
        late: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
            super().connection_made(transport)
            self.expect_head()

        def connection_lost(self, exc: Exception | None) -> None:
            self.head_came()
            super().connection_lost(exc)

        def on_message_begin(self) -> None:
            # The part it begins in may be the end of what went before; `problem` looks at such heads.
            self.head, self.in_head = -self.part, True
            self.expect_head()
            super().on_message_begin()

        def on_header(self, name: bytes, value: bytes) -> None:
            # What comes behind a body in chunks is no header (RFC 9110, section 6.5.1): nobody has checked it.
            if self.in_head:
                super().on_header(name, value)

        def on_headers_complete(self) -> None:
            self.in_head = False
            self.head_came()
            codings = b",".join(value for name, value in self.headers if name == b"transfer-encoding")
            if codings and codings.strip().lower() != b"chunked":
                self.refuse(501, "There is no transfer coding but chunked (RFC 9112, section 6.1).")
                return
            problem = self.problem()
            # Always answer probes: restarting a busy replica makes the overload worse.
            self.limit_concurrency = None if self.url == b"/healthz" else self.config.limit_concurrency
            if problem is None:
                super().on_headers_complete()
            else:
                self.refuse(400, problem)

        def refuse(self, status: int, words: str) -> None:
            self.refused = True
            head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: text/plain; charset=utf-8\r\n"
            head += f"content-length: {len(words)}\r\nconnection: close\r\n\r\n"
            self.transport.write(head.encode() + words.encode())
            self.transport.close()

        def send_400_response(self, msg: str) -> None:
            if not self.refused:  # The parser stumbles over the rest of what has been answered.
                self.refuse(400, msg)

        def on_body(self, body: bytes) -> None:
            if not self.refused:
                super().on_body(body)

        def on_message_complete(self) -> None:
            if not self.refused:
                super().on_message_complete()

        def problem(self) -> str | None:
            """Why this is too much, or could be taken for another request than it was taken for on its way."""
            if self.part > _MAX_HEAD and sum(map(len, chain(*self.headers)), len(self.url)) > _MAX_HEAD:
                return _TOO_LONG
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
            self.part = len(data)
            super().data_received(data)
            self.head += len(data)
            if self.in_head and self.head > _MAX_HEAD and not self.transport.is_closing():
                self.send_400_response(_TOO_LONG)

        def expect_head(self) -> None:
            if self.late is None:
                self.late = self.loop.call_later(seconds, self.transport.close)

        def head_came(self) -> None:
            if self.late is not None:
                self.late.cancel()
                self.late = None

    return LimitedProtocol
