"""Accepts connections: as many as there are descriptors for, and at most a share for each address.

A connection is free for the client and needs no token. So idle ones make room for new ones: the oldest first, of the
address that holds most. Connections with a running call stay.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress

from mcp_batteries.descriptors import raise_descriptor_limit
from mcp_batteries.errors import describe_os_error
from mcp_batteries.observability.logs import RateLimitFilter
from mcp_batteries.transports.http.callers import network_of
from mcp_batteries.transports.http.listener.connection import Connection
from mcp_batteries.transports.http.listener.unix_socket import peer_user

__all__ = ["Acceptor", "connection_limit"]

# Descriptors for everything else: files, databases, upstreams, and the connections beyond the limit that are refused.
_OTHER_DESCRIPTORS = 192
# Connections beyond the limit are taken where all others are busy, because probes have to be answered.
_SPARE_CONNECTIONS = 32
# One address has at most the limit divided by this.
_SHARE = 2
_PAUSE_SECONDS = 0.1
# The time at the end for handshakes that have begun.
_OPENING_SECONDS = 1.0
# The turns of the event loop in which a client that has connected is accepted.
_ACCEPT_TURNS = 5

_log = logging.getLogger(__name__)
_log.addFilter(RateLimitFilter())


def connection_limit(desired: int) -> int:
    """Return the number of connections, at most `desired`, for which this process has descriptors.

    It raises the process's soft limit.
    """
    available = raise_descriptor_limit(desired + _SPARE_CONNECTIONS + _OTHER_DESCRIPTORS)
    if available is None:
        return desired
    return min(desired, max(16, available - _SPARE_CONNECTIONS - _OTHER_DESCRIPTORS))


class _Client:
    """One accepted connection, from its handshake to its end.

    Attributes:
        owner: whose share it counts for; empty for a proxy.
        connection: its protocol, once the handshake is done.
        opening: the task of the handshake.
    """

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.connection: Connection | None = None
        self.opening: asyncio.Task[None] | None = None

    def is_idle(self) -> bool:
        return self.connection is None or not self.connection.is_busy

    def drop(self) -> None:
        if self.connection is not None:
            self.connection.transport.abort()
        elif self.opening is not None:
            self.opening.cancel()


class Acceptor:
    """Accepts connections from `listener`.

    Args:
        make: a protocol for each.
        most: at once.
        tls: for https, whose handshake has `handshake_seconds`.
        proxies: addresses and networks without a share, because many clients connect through them and they limit those
            themselves.
    """

    def __init__(
        self,
        listener: socket.socket,
        make: Callable[[], Connection],
        *,
        most: int,
        tls: ssl.SSLContext | None,
        handshake_seconds: float,
        proxies: Sequence[str],
    ) -> None:
        self._listener = listener
        self._make = make
        self._most = most
        self._tls = tls
        self._handshake_seconds: float | None = None
        if tls is not None:
            self._handshake_seconds = handshake_seconds
        self._proxies = [ipaddress.ip_network(text) for text in proxies]
        self._places: dict[str, dict[_Client, None]] = {}
        self._count = 0
        self._accepted = 0
        listener.setblocking(False)
        self._loop = asyncio.get_running_loop()
        self._pause: asyncio.TimerHandle | None = None
        self._running: asyncio.Task[None] | None = None
        try:
            # Not `sock_accept`: one that is cancelled drops the connection that it has taken in the same turn.
            self._loop.add_reader(listener, self._accept)
        except NotImplementedError:  # Windows.
            self._running = asyncio.create_task(self._accept_in_task())

    async def close(self) -> None:
        """Accept what has already arrived, then nothing more."""
        if self._running is not None:
            await self._end_task(self._running)
        else:
            self._loop.remove_reader(self._listener)
            if self._pause is not None:
                self._pause.cancel()
        with suppress(OSError):
            while True:
                self._admit(*self._listener.accept())
        self._listener.close()
        opening: list[asyncio.Task[None]] = []
        for places in self._places.values():
            opening += [place.opening for place in places if place.opening is not None]
        if opening:
            await asyncio.wait(opening, timeout=_OPENING_SECONDS)

    async def _end_task(self, running: asyncio.Task[None]) -> None:
        """Let `running` accept the connections that have arrived, then end it."""
        # The loop reports a connection in a later turn than the one that accepts it.
        for _ in range(self._most):
            before = self._accepted
            for _ in range(_ACCEPT_TURNS):
                await asyncio.sleep(0)
            if self._accepted == before:
                break
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running

    def _accept(self) -> None:
        """Accept one connection in each turn of the loop, so that calls come in between."""
        try:
            connected, address = self._listener.accept()
        except (BlockingIOError, InterruptedError):
            return
        except OSError as problem:
            self._make_room_after(problem)
            self._loop.remove_reader(self._listener)
            self._pause = self._loop.call_later(_PAUSE_SECONDS, self._loop.add_reader, self._listener, self._accept)
            return
        self._admit(connected, address)

    async def _accept_in_task(self) -> None:
        """Accept connections where the loop can't wait for a listener."""
        while True:
            try:
                connected, address = await self._loop.sock_accept(self._listener)
            except OSError as problem:
                self._make_room_after(problem)
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            self._admit(connected, address)
            await asyncio.sleep(0)

    def _make_room_after(self, problem: OSError) -> None:
        """Drop an idle connection, because something else has taken the descriptors."""
        _log.warning("a connection cannot be taken: %s", describe_os_error(problem))
        self._drop_one(None)

    def _admit(self, connected: socket.socket, address: Sequence[object]) -> None:
        """Open the connection `connected`, or close it if its owner or this process has too many."""
        self._accepted += 1
        owner = peer_user(connected)
        if not owner:
            owner = self._find_owner(str(address[0]) if address else "")
        if not self._find_room(owner):
            connected.close()
            return
        place = _Client(owner)
        self._places.setdefault(owner, {})[place] = None
        self._count += 1
        connected.setblocking(False)
        place.opening = asyncio.create_task(self._complete_handshake(connected, place))

    def _find_room(self, owner: str) -> bool:
        """Tell whether `owner` may have one more connection, after dropping an idle one if that is necessary."""
        if owner and len(self._places.get(owner, ())) >= max(1, self._most // _SHARE):
            return self._drop_one(owner)
        if self._count < self._most:
            return True
        return self._drop_one(None) or self._count < self._most + _SPARE_CONNECTIONS

    async def _complete_handshake(self, connected: socket.socket, place: _Client) -> None:
        """Complete the handshake of `connected`."""

        def build() -> Connection:
            connection = self._make()
            connection.when_opened = lambda: setattr(place, "connection", connection)
            connection.when_lost = lambda: self._release(place)
            return connection

        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                build, connected, ssl=self._tls, ssl_handshake_timeout=self._handshake_seconds
            )
        except (OSError, ssl.SSLError, asyncio.CancelledError):
            connected.close()
            self._release(place)

    def _release(self, place: _Client) -> None:
        places = self._places.get(place.owner, {})
        if place in places:
            self._count -= 1
            del places[place]
            if not places:
                del self._places[place.owner]

    def _drop_one(self, owner: str | None) -> bool:
        """Drop the oldest idle connection of `owner`, or of the owner with most connections that has an idle one."""
        if owner is None:
            owners = sorted(filter(None, self._places), key=lambda name: -len(self._places[name]))
        else:
            owners = [owner]
        for name in owners:
            for place in self._places[name]:
                if place.is_idle():
                    _log.warning("idle connections make room for new ones: %d are open", self._count)
                    place.drop()
                    self._release(place)
                    return True
        return False

    def _find_owner(self, host: str) -> str:
        """Return the owner whose share counts, or nothing for a proxy, which has no share."""
        try:
            address = ipaddress.ip_address(host.partition("%")[0])
        except ValueError:
            return host
        if any(address in network for network in self._proxies):
            return ""
        return network_of(host)
