"""uvicorn between a socket and the signals, with our own shutdown: uvicorn's waits for open streams, so for ever."""

from __future__ import annotations

import ctypes
import ipaddress
import logging
import os
import signal
import socket
import ssl
import struct
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import cast

import anyio
import uvicorn
from starlette.types import ASGIApp
from uvicorn.server import HANDLED_SIGNALS

from mcp_batteries.errors import Problem, Refused, Unavailable, describe_os_error, quote
from mcp_batteries.observability.logs import log_announcement
from mcp_batteries.sdk import small_tls_buffers
from mcp_batteries.subscriptions.file_watcher import follow_file
from mcp_batteries.transports.http.listener.acceptor import Acceptor, connection_limit
from mcp_batteries.transports.http.listener.certificate import load
from mcp_batteries.transports.http.listener.connection import Connection
from mcp_batteries.transports.http.listener.shutdown_budget import ShutdownBudget
from mcp_batteries.transports.http.listener.unix_socket import UnixListener
from mcp_batteries.transports.http.requests.in_flight import InFlight

__all__ = ["BACKLOG", "UvicornServer", "listen_on"]

_log = logging.getLogger(__name__)

# Connections that the kernel keeps until they are accepted.
BACKLOG = 1024
# A connection on which nothing comes is asked this often whether its peer is there.
_KEEPALIVE_SECONDS = 60
# A peer that confirms nothing for so long has vanished; one that only does not read for a minute has not.
_SILENT_MILLISECONDS = 120_000
_FLUSH_SECONDS = 0.3
# A balancer has this long, or half of the drain if that is less, to see that the server is not ready any more.
_LAME_DUCK_SECONDS = 2.0
_HANDSHAKE_SECONDS = 0.05
# The time for a request that crosses the end of a stream or of a connection.
_GRACE_SECONDS = 0.25
# The time, or half of the drain if that is less, for requests on connections that were accepted last, or served before.
_LATE_REQUEST_SECONDS = 2.0
_SO_ATTACH_FILTER = 26
# Classic BPF (linux/filter.h): of the TCP header's flags, drop SYN without ACK.
_DROP_SYN = (
    (0x30, 0, 0, 13),
    (0x54, 0, 0, 0x12),
    (0x15, 0, 1, 0x02),
    (0x06, 0, 0, 0),
    (0x06, 0, 0, 0xFFFFFFFF),
)
# The time for everything after the last answer: streams, sessions, the lifespan.
_CLEANUP_SECONDS = 0.9


class UvicornServer(uvicorn.Server):
    """A uvicorn server that says where it listens, and exits soon after SIGTERM or SIGINT.

    Args:
        url: written to standard error once it is reachable.
        in_flight: ends requests in progress.
        on_shutdown: called first at shutdown.
        max_connections: beyond it, idle ones are closed, or if there are none, requests are answered with 503.
        drain_seconds: the time at shutdown to answer calls in flight; the process exits 0.9 s later. Time that the
            machine did not give it counts for a third.
        head_seconds: the time within which a request's headers must arrive.
        tls: certificate and key (PEM files), for https.
        proxies: addresses and networks through which many clients connect.

    Attributes:
        status: 128 and the number of the signal that ended it.
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
        proxies: Sequence[str] = (),
    ) -> None:
        most = connection_limit(max_connections)
        super().__init__(
            uvicorn.Config(
                app,
                # A daemon of one application: nothing to detect, nothing to reload, no trusted headers.
                interface="asgi3",
                lifespan="off",
                ws="none",
                workers=1,
                proxy_headers=False,
                server_header=False,
                # Whoever starts the process has set up logging, to standard error.
                log_config=None,
                access_log=False,
                http=type("Connection", (Connection,), {"head_seconds": head_seconds}),
                # Idle connections make room before: beyond it all are busy.
                limit_concurrency=most + 1,
                # Longer than the minute that proxies and client pools keep connections: who closes first errs.
                timeout_keep_alive=65,
                ssl_certfile=tls and tls[0],
                ssl_keyfile=tls and tls[1],
            )
        )
        self.servers = []
        self.status = 0
        self._drain_seconds = drain_seconds
        self._head_seconds = head_seconds
        self._budget = ShutdownBudget(drain_seconds + _CLEANUP_SECONDS, _CLEANUP_SECONDS)
        self._max_connections = most
        self._proxies = proxies
        self._acceptors: list[Acceptor] = []
        self._in_flight = in_flight
        self._url = url
        self._on_shutdown = on_shutdown

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self.config.ssl is not None:
            # Whatever OpenSSL's own configuration allows (RFC 8996).
            self.config.ssl.minimum_version = ssl.TLSVersion.TLSv1_2
            small_tls_buffers()
        await super().startup([])

        def make() -> Connection:
            kind = cast("type[Connection]", self.config.http_protocol_class)
            return kind(self.config, self.server_state, self.lifespan.state)

        self._acceptors = [
            Acceptor(
                listener,
                make,
                most=self._max_connections,
                tls=self.config.ssl,
                handshake_seconds=self._head_seconds,
                proxies=self._proxies,
            )
            for listener in sockets or []
        ]
        log_announcement(f"listening on {self._url}")

    async def follow_certificate(self) -> None:
        """Reload certificate and key for future connections whenever one of the files changes; until cancelled."""
        certificate = str(self.config.ssl_certfile)
        key = str(self.config.ssl_keyfile)

        async def changed() -> None:
            try:
                if self.config.ssl is not None:
                    load(self.config.ssl, certificate, key)
            except Problem as problem:
                _log.error("the certificate stays as it was, the new one cannot be used: %s", problem)

        # Some programs write the key last.
        async with anyio.create_task_group() as tasks:
            for file in {certificate, key}:
                tasks.start_soon(follow_file, file, changed)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Lose no call that was sent: answer callers that still come, and send them elsewhere for the next call."""
        self._budget.start()
        wait = self._budget.wait_until
        half = self._drain_seconds / 2
        is_hurried = self.status == 128 + signal.SIGINT  # A person waits.
        self._announce_end()
        if not is_hurried:
            await wait(self._all_are_closed, min(half, _LAME_DUCK_SECONDS))
        for listener in sockets or []:
            _drop_new_connections(listener)
        if not is_hurried:
            await anyio.sleep(_HANDSHAKE_SECONDS)
        for acceptor in self._acceptors:
            await acceptor.close()
        # Streams end here and not before, so that their clients find another replica.
        self._on_shutdown()
        if is_hurried:
            await wait(self._in_flight.is_quiet, self._remaining_seconds())
        else:
            await wait(self._all_are_closed, min(half, _GRACE_SECONDS))
            # Twice, because a client that gets the end of an answer that began before was not told to leave.
            for _ in range(2):
                await wait(self._no_request_can_arrive, min(half, _LATE_REQUEST_SECONDS, self._remaining_seconds()))
                await wait(self._in_flight.is_quiet, self._remaining_seconds())
        self._in_flight.end()
        connections = self.server_state.connections
        for connection in list(connections):
            connection.shutdown()
        await wait(self._all_are_closed, _FLUSH_SECONDS)

    def _announce_end(self) -> None:
        """Tell balancers and clients that this server ends: it is not ready, and each answer closes its connection."""
        self._in_flight.ready = False
        self.server_state.default_headers = [*self.server_state.default_headers, (b"connection", b"close")]
        for connection in list(self.server_state.connections):
            cast("Connection", connection).close_after_next_answer()

    def _remaining_seconds(self) -> float:
        """Return the seconds that remain of the drain."""
        return self._drain_seconds - self._budget.spent

    def _all_are_closed(self) -> bool:
        """Tell whether every connection is closed."""
        return not self.server_state.connections

    def _no_request_can_arrive(self) -> bool:
        """Tell whether no request can still arrive."""
        return not any(cast("Connection", item).may_receive_request for item in self.server_state.connections)

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def handler(number: int, _: FrameType | None) -> None:
            # Not a bound method: the SDK's event streams look for a uvicorn server behind the handler, and end with it.
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
        self._budget.exit_with(self.status)


def listen_on(host: str, port: int, *, public: bool) -> socket.socket:
    """Return a listening socket on an address of `host`, IPv4 where it has both.

    Raises:
        Refused: The address can be reached from other machines, and `public` is false.
        Unavailable: The address cannot be listened on.
    """
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, *_, address = min(addresses, key=lambda item: item[0] != socket.AF_INET)
        if not public and not ipaddress.ip_address(address[0]).is_loopback:
            raise Refused(
                f"Listening on {quote(host)} would let everybody who can reach it use this server.",
                "Ask for tokens with --auth-file or --auth-issuer, listen on 127.0.0.1, or add --allow-anonymous.",
            )
        # Not `socket.create_server`: it leaves the protocol unnamed, and asyncio then leaves Nagle's delay on.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            if os.name == "posix":  # Elsewhere this option shares the port with another process that has it.
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            _find_silent_peers(listener)
            listener.bind(address)
            listener.listen(BACKLOG)
        except OSError:
            listener.close()
            raise
        return listener
    except OSError as problem:
        raise Unavailable(
            f"Cannot listen on {quote(host)}, port {port}: {describe_os_error(problem)}.",
            "Choose another --port or --host.",
        ) from None


def _find_silent_peers(listener: socket.socket) -> None:
    """Let the kernel end connections whose peer vanished, which each connection takes from its listener.

    Without it a stream to a client that sleeps would stay open for as long as TCP likes: for ever if nothing is sent.
    """
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if sys.platform == "linux":
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE_SECONDS)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _KEEPALIVE_SECONDS // 3)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _SILENT_MILLISECONDS)


def _drop_new_connections(listener: socket.socket) -> None:
    """Let the kernel drop new connections but complete half-open ones.

    A Unix socket has no half-open ones: its file is removed, so that nobody finds it any more.

    Closing a listening socket resets connections that were not accepted yet, and loses what was sent on them. A client
    whose packet is dropped tries again within a second, and is refused then without having sent anything.
    """
    if isinstance(listener, UnixListener):
        listener.remove()
        return
    if sys.platform != "linux":
        return
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in _DROP_SYN)
    program = ctypes.create_string_buffer(code)
    with suppress(OSError):  # Some sandboxes have no filters.
        listener.setsockopt(
            socket.SOL_SOCKET,
            _SO_ATTACH_FILTER,
            struct.pack("HP", len(_DROP_SYN), ctypes.addressof(program)),
        )
