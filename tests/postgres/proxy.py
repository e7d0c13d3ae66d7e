"""A TCP proxy that does to a connection what networks do."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import anyio
from anyio.abc import ByteStream, SocketAttribute, SocketStream


class Proxy:
    """Between a client and a server; `port` is where clients come in."""

    def __init__(self, target: int) -> None:
        self.target = target
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
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
                    server = await anyio.connect_tcp("127.0.0.1", self.target)
                    async with server, anyio.create_task_group() as tasks:
                        tasks.start_soon(self._watch, scope, tasks.cancel_scope)
                        tasks.start_soon(self._pass, client, server, tasks.cancel_scope)
                        tasks.start_soon(self._pass, server, client, tasks.cancel_scope)
            finally:
                self.open -= 1

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
async def proxied(target: int) -> AsyncGenerator[Proxy]:
    """A proxy in front of the port `target`."""
    proxy = Proxy(target)
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        proxy.port = listener.extra(SocketAttribute.local_port)
        tasks.start_soon(listener.serve, proxy.serve)
        yield proxy
        tasks.cancel_scope.cancel()
