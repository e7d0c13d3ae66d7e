"""NATS: one subject."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
from nats.aio.client import Client

__all__ = ["link"]

_SECONDS = 2


class _Link:
    def __init__(self, url: str, subject: str) -> None:
        self._url = url
        self._subject = subject
        self._client: Any = None

    async def hold(self, receive: Callable[[bytes], None], connected: Callable[[], None]) -> None:
        lost = anyio.Event()

        async def on_message(message: Any) -> None:
            receive(message.data)

        async def on_loss(*_: Any) -> None:
            lost.set()

        # Not `nats.connect`: a caller that stops waiting for it cannot close what it has opened.
        client: Any = Client()
        try:
            # Trying again is the bus's own affair, and so is noticing that nothing comes.
            await client.connect(
                self._url,
                name=self._subject,
                connect_timeout=_SECONDS,
                allow_reconnect=False,
                error_cb=on_loss,
                disconnected_cb=on_loss,
                closed_cb=on_loss,
            )
            await client.subscribe(self._subject, cb=on_message)
            await client.flush(_SECONDS)
            self._client = client
            connected()
            await lost.wait()
        finally:
            self._client = None
            with anyio.move_on_after(1, shield=True):
                await client.close()

    async def send(self, message: bytes) -> None:
        await self._client.publish(self._subject, message)
        await self._client.flush(_SECONDS)


def link(url: str, subject: str) -> _Link:
    return _Link(url, subject)
