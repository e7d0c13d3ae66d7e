"""Redis and Valkey: publish and subscribe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

__all__ = ["link"]

_SECONDS = 2
_CHECK_SECONDS = 10
"""Between two messages: a connection that says nothing may have lost its other end."""


class _Link:
    def __init__(self, url: str, channel: str) -> None:
        if url.startswith("valkey://"):
            url = "redis" + url.removeprefix("valkey")
        self._channel = channel
        # Trying again is the bus's own affair.
        self._client: Any = Redis.from_url(  # pyright: ignore[reportUnknownMemberType]
            url,
            socket_connect_timeout=_SECONDS,
            socket_keepalive=True,
            retry=Retry(NoBackoff(), 0),
            client_name=channel,
        )

    async def hold(self, receive: Callable[[bytes], None], connected: Callable[[], None]) -> None:
        subscriber = self._client.pubsub()
        try:
            await subscriber.subscribe(self._channel)
            while True:
                message = await subscriber.get_message(timeout=_CHECK_SECONDS)
                if message is None:
                    await subscriber.ping()
                elif message["type"] == "subscribe":
                    connected()
                elif message["type"] == "message":
                    receive(message["data"])
        finally:
            await subscriber.aclose()
            await self._client.aclose()

    async def send(self, message: bytes) -> None:
        await self._client.publish(self._channel, message)


def link(url: str, channel: str) -> _Link:
    return _Link(url, channel)
