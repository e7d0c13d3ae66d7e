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

from mcp_batteries.errors import reason
from mcp_batteries.limits import descriptors
from mcp_batteries.observability.logs import RateLimitFilter
from mcp_batteries.transports.http.auth.callers import network_of
from mcp_batteries.transports.http.connection import Connection
from mcp_batteries.transports.http.unix_socket import peer

__all__ = ["Acceptor", "room"]

_OWN_FILES = 192
"""Descriptors for everything else: files, databases, upstreams, and connections beyond the limit that are told so."""
_BEYOND = 32
"""Connections beyond the limit, where all others are busy: probes have to be answered."""
_SHARE = 2
"""One address has at most the limit divided by this."""
_BREATH_SECONDS = 0.1
_OPENING_SECONDS = 1.0
"""At the end, for handshakes that have begun."""
_TURNS = 5
"""Of the loop, in which one who has connected is taken."""

_log = logging.getLogger(__name__)
_log.addFilter(RateLimitFilter())


def room(wanted: int) -> int:
    """The number of connections, at most `wanted`, for which this process has descriptors; raises its soft limit."""
    there = descriptors(wanted + _BEYOND + _OWN_FILES)
    return wanted if there is None else min(wanted, max(16, there - _BEYOND - _OWN_FILES))


class _Place:
    """The place of one connection."""

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
        self._handshake_seconds = handshake_seconds if tls is not None else None
        self._proxies = [ipaddress.ip_network(text) for text in proxies]
        self._places: dict[str, dict[_Place, None]] = {}
        self._count = 0
        self._taken = 0
        listener.setblocking(False)
        self._loop = asyncio.get_running_loop()
        self._breath: asyncio.TimerHandle | None = None
        self._running: asyncio.Task[None] | None = None
        try:
            # Not `sock_accept`: one that is cancelled drops the connection that it has taken in the same turn.
            self._loop.add_reader(listener, self._accept)
        except NotImplementedError:  # Windows.
            self._running = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Accept what has already arrived, then nothing more."""
        if self._running is not None:
            # The loop reports a connection in a later turn than the one that accepts it.
            for _ in range(self._most):
                before = self._taken
                for _ in range(_TURNS):
                    await asyncio.sleep(0)
                if self._taken == before:
                    break
            self._running.cancel()
            with suppress(asyncio.CancelledError):
                await self._running
        else:
            self._loop.remove_reader(self._listener)
            if self._breath is not None:
                self._breath.cancel()
        with suppress(OSError):
            while True:
                self._take(*self._listener.accept())
        self._listener.close()
        opening = [place.opening for theirs in self._places.values() for place in theirs if place.opening is not None]
        if opening:
            await asyncio.wait(opening, timeout=_OPENING_SECONDS)

    def _accept(self) -> None:
        # One for each turn of the loop: calls come in between.
        try:
            taken = self._listener.accept()
        except (BlockingIOError, InterruptedError):
            return
        except OSError as problem:
            self._cannot(problem)
            self._loop.remove_reader(self._listener)
            self._breath = self._loop.call_later(_BREATH_SECONDS, self._loop.add_reader, self._listener, self._accept)
            return
        self._take(*taken)

    async def _run(self) -> None:
        while True:
            try:
                taken = await self._loop.sock_accept(self._listener)
            except OSError as problem:
                self._cannot(problem)
                await asyncio.sleep(_BREATH_SECONDS)
                continue
            self._take(*taken)
            await asyncio.sleep(0)

    def _cannot(self, problem: OSError) -> None:
        # Descriptors went elsewhere.
        _log.warning("a connection cannot be taken: %s", reason(problem))
        self._drop_one(None)

    def _take(self, taken: socket.socket, address: Sequence[object]) -> None:
        self._taken += 1
        owner = peer(taken) or self._owner(str(address[0]) if address else "")
        theirs = self._places.get(owner, {}) if owner else {}
        if len(theirs) >= max(1, self._most // _SHARE):
            full = not self._drop_one(owner)
        else:
            full = self._count >= self._most and not self._drop_one(None) and self._count >= self._most + _BEYOND
        if full:
            taken.close()
            return
        place = _Place(owner)
        self._places.setdefault(owner, {})[place] = None
        self._count += 1
        taken.setblocking(False)
        place.opening = asyncio.create_task(self._open(taken, place))

    async def _open(self, taken: socket.socket, place: _Place) -> None:
        def made() -> Connection:
            connection = self._make()
            connection.when_opened = lambda: setattr(place, "connection", connection)
            connection.when_lost = lambda: self._release(place)
            return connection

        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                made, taken, ssl=self._tls, ssl_handshake_timeout=self._handshake_seconds
            )
        except (OSError, ssl.SSLError, asyncio.CancelledError):
            taken.close()
            self._release(place)

    def _release(self, place: _Place) -> None:
        theirs = self._places.get(place.owner, {})
        if place in theirs:
            self._count -= 1
            del theirs[place]
            if not theirs:
                del self._places[place.owner]

    def _drop_one(self, owner: str | None) -> bool:
        """Drop the oldest idle connection of `owner`, or of the owner with most connections that has an idle one."""
        owners = (
            [owner]
            if owner is not None
            else sorted(filter(None, self._places), key=lambda who: -len(self._places[who]))
        )
        for who in owners:
            for place in self._places[who]:
                if place.is_idle():
                    _log.warning("idle connections make room for new ones: %d are open", self._count)
                    place.drop()
                    self._release(place)
                    return True
        return False

    def _owner(self, host: str) -> str:
        """The owner whose share counts; empty for proxies, which have none."""
        try:
            address = ipaddress.ip_address(host.partition("%")[0])
        except ValueError:
            return host
        return "" if any(address in network for network in self._proxies) else network_of(host)
