"""PostgreSQL: LISTEN and NOTIFY, over two separate connections, because one that waits cannot send.

They must reach the server itself, or a pooler in session mode: transaction mode loses the LISTEN.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio
from psycopg import AsyncConnection, sql

__all__ = ["link"]

_SECONDS = 2


class _Link:
    def __init__(self, url: str, channel: str) -> None:
        self._url = url
        self._channel = channel
        self._sending: AsyncConnection | None = None

    async def hold(self, receive: Callable[[bytes], None], connected: Callable[[], None]) -> None:
        async with self._connection() as listening, self._connection() as self._sending:
            # A beat a second is not a reason to wait for the disk.
            await self._sending.execute("SET synchronous_commit = off")
            await listening.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
            connected()
            while True:
                # Not psycopg's own wait, which takes its end for a query to be cancelled at the server.
                await anyio.wait_readable(listening.fileno())
                async for notice in listening.notifies(timeout=_SECONDS, stop_after=1):
                    receive(notice.payload.encode())

    async def send(self, message: bytes) -> None:
        if self._sending is None:
            raise ConnectionError
        await self._sending.execute("SELECT pg_notify(%s, %s)", (self._channel, message.decode()))

    @asynccontextmanager
    async def _connection(self) -> AsyncGenerator[AsyncConnection]:
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
