"""Redis and Valkey: publish and subscribe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

__all__ = ["link"]

_SECONDS = 2


class _Link:
    def __init__(self, url: str, channel: str) -> None:
        if url.startswith("valkey://"):
            url = "redis" + url.removeprefix("valkey")
        self._url = url
        self._channel = channel
        self._client: Any = None

    async def hold(self, receive: Callable[[bytes], None], connected: Callable[[], None]) -> None:
        # Trying again is the bus's own affair, and so is noticing that nothing comes.
        client: Any = Redis.from_url(  # pyright: ignore[reportUnknownMemberType]
            self._url,
            socket_connect_timeout=_SECONDS,
            socket_timeout=None,
            socket_keepalive=True,
            retry=Retry(NoBackoff(), 0),
            client_name=self._channel,
        )
        self._client = client
        subscriber: Any = client.pubsub()
        try:
            await subscriber.subscribe(self._channel)
            async for message in subscriber.listen():
                if message["type"] == "subscribe":
                    connected()
                elif message["type"] == "message":
                    receive(message["data"])
        finally:
            self._client = None
            with anyio.move_on_after(1, shield=True):
                await subscriber.aclose()
                await client.aclose()

    async def send(self, message: bytes) -> None:
        await self._client.publish(self._channel, message)


def link(url: str, channel: str) -> _Link:
    return _Link(url, channel)
