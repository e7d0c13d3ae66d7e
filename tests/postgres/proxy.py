"""A TCP proxy that does to a connection what networks do, or that takes TLS for a PostgreSQL built without it."""

import ssl
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import anyio
from anyio.abc import ByteStream, SocketAttribute, SocketStream
from anyio.streams.tls import TLSStream

_ASKS_FOR_TLS = struct.pack("!ii", 8, 80877103)


class Proxy:
    """Between a client and a server; `port` is where clients come in.

    Args:
        tls: speaks it with the clients, as PostgreSQL does: they ask for it first.
    """

    def __init__(self, target: int, tls: ssl.SSLContext | None = None) -> None:
        self.target, self._tls = target, tls
        self.port = 0
        self.open = 0
        """Connections that pass now."""
        self._flow = anyio.Event()
        self._flow.set()
        self._cut = anyio.CancelScope()
        self._away = False

    def stall(self) -> None:
        """From now on nothing passes, and nobody is told."""
        self._flow = anyio.Event()

    def resume(self) -> None:
        self._flow.set()

    def cut(self, *, away: bool = False) -> None:
        """Break every connection; with `away` refuse new ones until `back`."""
        self._away = away
        self._cut.cancel()
        self._cut = anyio.CancelScope()

    def back(self) -> None:
        self._away = False

    async def serve(self, client: SocketStream) -> None:
        async with client:
            if self._away:
                return
            self.open += 1
            try:
                scope = self._cut
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, OSError):
                    inner = await self._wrapped(client)
                    server = await anyio.connect_tcp("127.0.0.1", self.target)
                    async with server, anyio.create_task_group() as tasks:
                        tasks.start_soon(self._watch, scope, tasks.cancel_scope)
                        tasks.start_soon(self._pass, inner, server, tasks.cancel_scope)
                        tasks.start_soon(self._pass, server, inner, tasks.cancel_scope)
            finally:
                self.open -= 1

    async def _wrapped(self, client: SocketStream) -> ByteStream:
        if self._tls is None:
            return client
        while await client.receive(8) != _ASKS_FOR_TLS:
            await client.send(b"N")
        await client.send(b"S")
        return await TLSStream.wrap(client, server_side=True, ssl_context=self._tls, standard_compatible=False)

    async def _watch(self, scope: anyio.CancelScope, tasks: anyio.CancelScope) -> None:
        while not scope.cancel_called:
            await anyio.sleep(0.01)
        tasks.cancel()

    async def _pass(self, source: ByteStream, sink: ByteStream, tasks: anyio.CancelScope) -> None:
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            while True:
                data = await source.receive()
                await self._flow.wait()
                await sink.send(data)
        tasks.cancel()


@asynccontextmanager
async def proxied(target: int, tls: ssl.SSLContext | None = None) -> AsyncGenerator[Proxy]:
    """A proxy in front of the port `target`."""
    proxy = Proxy(target, tls)
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        proxy.port = listener.extra(SocketAttribute.local_port)
        tasks.start_soon(listener.serve, proxy.serve)
        yield proxy
        tasks.cancel_scope.cancel()
