"""Answers to an array of messages over HTTP: events of one stream, each sent as soon as it is ready.

(MCP 2025-03-26, Streamable HTTP, "Sending Messages to the Server".)
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine

import anyio
from mcp_types.jsonrpc import INVALID_REQUEST, JSONRPCMessage, JSONRPCRequest, RequestId
from starlette.datastructures import Headers
from starlette.types import Message, Send

from mcp_batteries.transports.batches import REVISION, members
from mcp_batteries.transports.jsonrpc import Malformed, dump, error, parse

__all__ = ["answer_each", "split_array"]

_MAX_MESSAGES = 1_000
_ID_TWICE = "Another request of this array has this `id`."
_STREAM = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache, no-transform")]


def split_array(headers: Headers, body: bytes) -> list[bytes] | None:
    """Return the messages in the array `body`, or None for anything else and for clients of other revisions.

    Raises:
        Malformed: The array is too long.
    """
    # Clients of revisions before 2025-06-18 do not name theirs.
    if "mcp-session-id" not in headers or headers.get("mcp-protocol-version", REVISION) != REVISION:
        return None
    messages = members(body)
    if messages is not None and len(messages) > _MAX_MESSAGES:
        raise Malformed(INVALID_REQUEST, f"Invalid request: an array holds at most {_MAX_MESSAGES:,} messages.")
    return messages


async def answer_each(
    answer: Callable[[bytes, JSONRPCMessage, Send], Coroutine[None, None, None]], messages: list[bytes], send: Send
) -> None:
    """Let `answer` answer all `messages` concurrently."""
    answers = _Answers(send)
    ids: set[RequestId] = set()
    async with anyio.create_task_group() as tasks:
        for text in messages:
            try:
                message = parse(text)
            except Malformed as problem:
                await answers.write(dump(error(problem.request_id, problem.code, problem.message)))
                continue
            if isinstance(message, JSONRPCRequest):
                if message.id in ids:
                    # Whether the other is answered by now depends on what it takes.
                    await answers.write(dump(error(message.id, INVALID_REQUEST, _ID_TWICE)))
                    continue
                ids.add(message.id)
            tasks.start_soon(answer, text, message, answers.sender_for(message))
    await answers.finish()


class _Answers:
    """One stream of many answers; a plain status if there are none, or no session that could answer."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._is_started = False
        self._no_session = b""

    def sender_for(self, message: JSONRPCMessage) -> Send:
        """Return the `send` for the answer to `message`."""
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
                self._no_session = bytes(plain)
            elif isinstance(message, JSONRPCRequest):
                await self.write(bytes(plain))

        return send

    async def write(self, line: bytes) -> None:
        """Send a whole answer."""
        await self._send_event(b"event: message\r\ndata: " + line.strip() + b"\r\n\r\n")

    async def _send_event(self, event: bytes) -> None:
        if not self._is_started:
            self._is_started = True
            await self._send({"type": "http.response.start", "status": 200, "headers": _STREAM})
        await self._send({"type": "http.response.body", "body": event, "more_body": True})

    async def finish(self) -> None:
        """End the stream, or answer with a plain status if it has not begun."""
        if self._is_started:
            await self._send({"type": "http.response.body", "body": b""})
            return
        status = 202
        headers: list[tuple[bytes, bytes]] = []
        if self._no_session:
            status = 404
            headers = [(b"content-type", b"application/json")]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": self._no_session})
