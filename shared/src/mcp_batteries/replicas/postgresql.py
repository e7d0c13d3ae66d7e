"""PostgreSQL: LISTEN and NOTIFY, over two connections of its own: one that waits cannot send.

They have to reach the server itself, or a pooler in session mode: one in transaction mode loses the LISTEN.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio
from psycopg import AsyncConnection, sql

__all__ = ["link"]

_SECONDS = 2
_CHECK_SECONDS = 10
"""Between two messages: a connection that says nothing may have lost its other end."""


class _Link:
    def __init__(self, url: str, channel: str) -> None:
        self._url, self._channel = url, channel
        self._sending: AsyncConnection | None = None
        self._holding: anyio.CancelScope | None = None

    async def hold(self, receive: Callable[[bytes], None], connected: Callable[[], None]) -> None:
        async with self._connection() as listening, self._connection() as self._sending:
            with anyio.fail_after(_SECONDS):
                await listening.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
            connected()
            with anyio.CancelScope() as self._holding:
                await self._listen(listening, receive)

    async def send(self, message: bytes) -> None:
        try:
            if self._sending is None:
                raise ConnectionError
            await self._sending.execute("SELECT pg_notify(%s, %s)", (self._channel, message.decode()))
        except BaseException:
            if self._holding is not None:
                self._holding.cancel()  # One without the other is no use.
            raise

    async def _listen(self, connection: AsyncConnection, receive: Callable[[bytes], None]) -> None:
        while True:
            with anyio.move_on_after(_CHECK_SECONDS) as silence:
                # Not psycopg's own wait, which takes its end for a query to be cancelled at the server.
                await anyio.wait_readable(connection.fileno())
            if silence.cancelled_caught:
                with anyio.fail_after(_SECONDS):
                    await connection.execute("SELECT 1")
            async for notice in connection.notifies(timeout=_SECONDS, stop_after=1):
                receive(notice.payload.encode())

    @asynccontextmanager
    async def _connection(self) -> AsyncGenerator[AsyncConnection]:
        with anyio.fail_after(2 * _SECONDS):
            connection = await AsyncConnection.connect(
                self._url, autocommit=True, connect_timeout=_SECONDS, application_name=self._channel
            )
        try:
            yield connection
        finally:
            self._sending = None
            await connection.close()


def link(url: str, channel: str) -> _Link:
    return _Link(url, channel)
