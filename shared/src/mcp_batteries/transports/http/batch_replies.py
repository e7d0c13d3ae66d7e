"""Answers to an array of messages over HTTP: events of one stream, each sent as soon as it is ready.

(MCP 2025-03-26, Streamable HTTP, "Sending Messages to the Server".)
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine

import anyio
from mcp_types.jsonrpc import INVALID_REQUEST, JSONRPCMessage, JSONRPCRequest
from starlette.datastructures import Headers
from starlette.types import Message, Send

from mcp_batteries.transports.batches import REVISION, members
from mcp_batteries.transports.jsonrpc import Malformed, dump, error, parse

__all__ = ["answer_each", "messages_in"]

_MOST = 1_000
_ID_TWICE = "Another request of this array has this `id`."
_STREAM = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache, no-transform")]


def messages_in(headers: Headers, body: bytes) -> list[bytes] | None:
    """The messages in the array `body`; None for anything else, and for clients of other revisions.

    Raises:
        Malformed: The array is too long.
    """
    # Clients of revisions before 2025-06-18 do not name theirs.
    if "mcp-session-id" not in headers or headers.get("mcp-protocol-version", REVISION) != REVISION:
        return None
    found = members(body)
    if found is not None and len(found) > _MOST:
        raise Malformed(INVALID_REQUEST, f"Invalid request: an array holds at most {_MOST:,} messages.")
    return found


async def answer_each(
    answer: Callable[[bytes, JSONRPCMessage, Send], Coroutine[None, None, None]], messages: list[bytes], send: Send
) -> None:
    """Let `answer` answer all `messages` concurrently."""
    answers = _Answers(send)
    seen: set[str] = set()
    async with anyio.create_task_group() as tasks:
        for text in messages:
            try:
                message = parse(text)
            except Malformed as wrong:
                await answers.write(dump(error(wrong.request_id, wrong.code, wrong.message)))
                continue
            if isinstance(message, JSONRPCRequest):
                if str(message.id) in seen:
                    # Whether the other is answered by now depends on what it takes.
                    await answers.write(dump(error(message.id, INVALID_REQUEST, _ID_TWICE)))
                    continue
                seen.add(str(message.id))
            tasks.start_soon(answer, text, message, answers.of(message))
    await answers.finish()


class _Answers:
    """One stream of many answers; a plain status if there are none, or no session that could answer."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._started = False
        self._gone = b""

    def of(self, message: JSONRPCMessage) -> Send:
        """The `send` for the answer to `message`."""
        start: Message = {}
        plain = bytearray()

        async def send(part: Message) -> None:
            if part["type"] == "http.response.start":
                start.update(part)
                return
            body = part.get("body", b"")
            if Headers(raw=start["headers"]).get("content-type", "").startswith("text/event-stream"):
                await self._send_event(body)
                return
            plain.extend(body)
            if part.get("more_body", False) or not plain:
                return
            if start["status"] == 404:
                self._gone = bytes(plain)
            elif isinstance(message, JSONRPCRequest):
                await self.write(bytes(plain))

        return send

    async def write(self, line: bytes) -> None:
        """Send a whole answer."""
        await self._send_event(b"event: message\r\ndata: " + line.strip() + b"\r\n\r\n")

    async def _send_event(self, event: bytes) -> None:
        if not self._started:
            self._started = True
            await self._send({"type": "http.response.start", "status": 200, "headers": _STREAM})
        await self._send({"type": "http.response.body", "body": event, "more_body": True})

    async def finish(self) -> None:
        if not self._started:
            kind = [(b"content-type", b"application/json")] if self._gone else []
            start = {"type": "http.response.start", "status": 404 if self._gone else 202, "headers": kind}
            await self._send(start)
        await self._send({"type": "http.response.body", "body": b"" if self._started else self._gone})
