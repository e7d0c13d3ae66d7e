"""The ids of requests in flight: in a session, each names one request, by which its client can cancel it."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from mcp_types.jsonrpc import RequestId
from starlette.types import Message, Send

from mcp_batteries.transports.http.gate.bad_request import BadRequest

__all__ = ["RequestIds"]


class _Key(NamedTuple):
    """Identifies a request of a session."""

    caller: str
    session: str
    request_id: RequestId


class RequestIds:
    """The ids of the requests that are not answered yet, of all sessions."""

    def __init__(self) -> None:
        # The event of each request is set once the request is cancelled.
        self._in_flight: dict[_Key, asyncio.Event] = {}

    def hold(self, caller: str, session: str | None, request_id: RequestId, send: Send) -> _HeldRequestId:
        """Return a block with the `send` to answer with, and an event for the request's cancellation.

        No other request of this id in `session` is let in before the answer. Without a session the event is None, and
        the id is nobody else's concern.
        """
        key: _Key | None = None
        if session is not None:
            key = _Key(caller, session, request_id)
        return _HeldRequestId(self._in_flight, key, request_id, send)

    def cancel(self, caller: str, session: str, request_id: RequestId) -> None:
        """Set the event of this request, if it is in flight."""
        cancelled = self._in_flight.get(_Key(caller, session, request_id))
        if cancelled is not None:
            cancelled.set()


class _HeldRequestId:
    """Context manager of `RequestIds.hold`.

    A class, because a generator for each request costs twice as much.
    """

    __slots__ = ("_cancelled", "_id", "_in_flight", "_key", "_send")

    def __init__(
        self,
        in_flight: dict[_Key, asyncio.Event],
        key: _Key | None,
        request_id: RequestId,
        send: Send,
    ) -> None:
        self._in_flight = in_flight
        self._key = key
        self._id = request_id
        self._send = send
        self._cancelled = asyncio.Event()

    def __enter__(self) -> tuple[Send, asyncio.Event | None]:
        if self._key is None:
            return self._send, None
        if self._key in self._in_flight:
            raise BadRequest(400, "A request with this `id` is still in flight.", request_id=self._id)
        self._in_flight[self._key] = self._cancelled
        return self._send_and_release, self._cancelled

    def __exit__(self, *_: object) -> None:
        # After the answer, the id may already be that of the next request.
        if self._key is not None and self._in_flight.get(self._key) is self._cancelled:
            del self._in_flight[self._key]

    async def _send_and_release(self, part: Message) -> None:
        # The id is free before the client can know of the answer, or its next request could come too early.
        if part["type"] == "http.response.body" and not part.get("more_body", False):
            self.__exit__()
        await self._send(part)
