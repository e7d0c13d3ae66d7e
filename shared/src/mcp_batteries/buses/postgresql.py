"""PostgreSQL: LISTEN and NOTIFY, over one connection of its own.

It has to reach the server itself, or a pooler in session mode: one in transaction mode loses the LISTEN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import anyio
import asyncpg

__all__ = ["link"]

_connect = cast("Any", asyncpg.connect)  # pyright: ignore[reportUnknownMemberType]

_SECONDS = 2
_CHECK_SECONDS = 10


class _Link:
    def __init__(self, url: str, channel: str) -> None:
        self._url, self._channel = url, channel
        self._connection: Any = None

    async def hold(self, receive: Callable[[bytes], None], connected: Callable[[], None]) -> None:
        lost = anyio.Event()

        def received(connection: Any, pid: int, channel: str, payload: str) -> None:
            receive(payload.encode())

        def gone(connection: Any) -> None:
            lost.set()

        connection = await _connect(
            self._url, timeout=_SECONDS, command_timeout=_SECONDS, server_settings={"application_name": self._channel}
        )
        try:
            connection.add_termination_listener(gone)
            await connection.add_listener(self._channel, received)
            self._connection = connection
            connected()
            while not lost.is_set():
                with anyio.move_on_after(_CHECK_SECONDS):
                    await lost.wait()
                if not lost.is_set():
                    await connection.execute("SELECT 1")
        finally:
            self._connection = None
            connection.terminate()

    async def send(self, message: bytes) -> None:
        await self._connection.execute("SELECT pg_notify($1, $2)", self._channel, message.decode())


def link(url: str, channel: str) -> _Link:
    return _Link(url, channel)
