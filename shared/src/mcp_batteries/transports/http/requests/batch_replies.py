"""Answers to an array of messages over HTTP: events of one stream, each sent as soon as it is ready, or one array.

(MCP 2025-03-26, Streamable HTTP, "Sending Messages to the Server".)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine

import anyio
from mcp_types.jsonrpc import INVALID_REQUEST, JSONRPCMessage, JSONRPCRequest, RequestId
from starlette.datastructures import Headers
from starlette.types import Message, Send

from mcp_batteries.transports.batches import REVISION, check_member, members
from mcp_batteries.transports.jsonrpc import Malformed, dump, error, parse

__all__ = ["answer_each", "split_array"]

_MAX_MESSAGES = 1_000
_ID_TWICE = "Another request of this array has this `id`."
_JSON = (b"content-type", b"application/json")
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
    answer: Callable[[bytes, JSONRPCMessage, Send], Coroutine[None, None, None]],
    messages: list[bytes],
    send: Send,
    *,
    as_events: bool,
    refused: Callable[[int], None],
) -> None:
    """Let `answer` answer all `messages` concurrently.

    Args:
        as_events: whether the answer is a stream; otherwise it is one array.
        refused: called with the status of each message that is refused: the status of the whole does not show it.
    """
    answers = _EventAnswers(send, refused) if as_events else _ArrayAnswers(send, refused)
    ids: set[RequestId] = set()
    async with anyio.create_task_group() as tasks:
        for text in messages:
            try:
                message = parse(text)
                check_member(message)
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


class _Answers(ABC):
    """Many answers as one; a plain status if there are none, or no session that could answer."""

    def __init__(self, send: Send, refused: Callable[[int], None]) -> None:
        self._send = send
        self._refused = refused
        self._no_session = b""

    def sender_for(self, message: JSONRPCMessage) -> Send:
        """Return the `send` for the answer to `message`."""
        start: Message = {}
        plain = bytearray()

        async def send(part: Message) -> None:
            if part["type"] == "http.response.start":
                start.update(part)
                if part["status"] >= 400 and part["status"] != 404:
                    self._refused(part["status"])
                return
            body = part.get("body", b"")
            if Headers(raw=start["headers"]).get("content-type", "").startswith("text/event-stream"):
                await self.send_event(body)
                return
            plain.extend(body)
            if part.get("more_body", False) or not plain:
                return
            if start["status"] == 404:
                self._no_session = bytes(plain)
            elif isinstance(message, JSONRPCRequest):
                await self.write(bytes(plain))

        return send

    async def finish(self) -> None:
        """End the answer."""
        status = 202
        headers: list[tuple[bytes, bytes]] = []
        if self._no_session:
            status = 404
            headers = [_JSON]
        await self._send_all(status, headers, self._no_session)

    async def _send_all(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})

    @abstractmethod
    async def write(self, line: bytes) -> None:
        """Add a whole answer."""

    @abstractmethod
    async def send_event(self, event: bytes) -> None:
        """Add events of a stream."""


class _EventAnswers(_Answers):
    """One stream, to which each answer is sent at once."""

    _is_started = False

    async def write(self, line: bytes) -> None:
        await self.send_event(b"event: message\r\ndata: " + line.strip() + b"\r\n\r\n")

    async def send_event(self, event: bytes) -> None:
        if not self._is_started:
            self._is_started = True
            await self._send({"type": "http.response.start", "status": 200, "headers": _STREAM})
        await self._send({"type": "http.response.body", "body": event, "more_body": True})

    async def finish(self) -> None:
        if self._is_started:
            await self._send({"type": "http.response.body", "body": b""})
            return
        await super().finish()


class _ArrayAnswers(_Answers):
    """One array, sent once the last answer is there."""

    def __init__(self, send: Send, refused: Callable[[int], None]) -> None:
        super().__init__(send, refused)
        self._lines: list[bytes] = []

    async def write(self, line: bytes) -> None:
        self._lines.append(line.strip())

    async def send_event(self, event: bytes) -> None:
        raise RuntimeError("a client without streams was sent an event")

    async def finish(self) -> None:
        if self._lines:
            await self._send_all(200, [_JSON], b"[" + b",".join(self._lines) + b"]")
            return
        await super().finish()
