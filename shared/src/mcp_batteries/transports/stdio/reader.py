"""The input side of the stdio transport: every line is passed to the server, answered here, or blank.

The SDK's own reader needs a thread hop for each line and drops what it cannot parse; this one reads on the event loop.
asyncio only.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio
from mcp.shared.dispatcher import as_request_id
from mcp_types.jsonrpc import (
    CONNECTION_CLOSED,
    INVALID_REQUEST,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    RequestId,
)

from mcp_batteries.transports.jsonrpc import Malformed, dump, error, is_heard, parse, peek_id
from mcp_batteries.transports.stdio.first_answers import FirstAnswers
from mcp_batteries.transports.stdio.in_flight import BUSY, Calls
from mcp_batteries.transports.stdio.inputs import open_input
from mcp_batteries.transports.stdio.writer import Writer

if TYPE_CHECKING:
    from mcp_batteries.observability.wire_log import WireLog

__all__ = ["Reader"]

_PEEK = 4096
_MOST_LEAD = 8


class Reader:
    """Reads messages: every line is passed on, answered here, or blank.

    Args:
        descriptor: the source.
        writer: writes the answers to lines that are not messages. Reading waits for it, so a client that sends and
            never reads is held back instead of filling the memory.
        first: has read the beginning, and sees every message.
        wire: sees every line.
        max_line: the longest line in bytes; longer ones are skipped and answered.
        drain_seconds: how long calls may continue after the end of input.
        pollable: as `open_input`.
    """

    def __init__(
        self,
        descriptor: int,
        writer: Writer,
        calls: Calls,
        first: FirstAnswers | None = None,
        wire: WireLog | None = None,
        *,
        max_line: int,
        drain_seconds: float,
        pollable: bool,
    ) -> None:
        self._input = open_input(descriptor, pollable=pollable)
        self._writer = writer
        self._calls = calls
        self._first = first
        self._wire = wire
        self._max_line = max_line
        self._drain_seconds = drain_seconds
        self._loop = asyncio.get_running_loop()
        self._lines: deque[bytes | tuple[bytes, bytes]] = deque()
        self._lead: deque[JSONRPCMessage] = deque()
        self._parts: list[bytes] = []
        self._size = 0
        self._stopping = False
        self._drain_until: float | None = None
        self._draining: anyio.CancelScope | None = None
        self.ended = anyio.Event()
        """Set when no further message will be handed on."""
        if first is not None:
            self._split(first.head())

    def stop(self) -> None:
        """Pass on no further message and drain nothing; call it on the event loop's thread."""
        self._stopping = True
        self._input.stop()
        if self._draining is not None:
            # Only now may a write find out that nobody will read the awaited answers.
            self._draining.cancel()

    async def opening(self) -> JSONRPCRequest | None:
        """The first request, which `receive` still returns, with a few of the messages before it; None if none
        comes."""
        lead: list[JSONRPCMessage] = []
        with suppress(anyio.EndOfStream):
            while not isinstance(message := await self.receive(), JSONRPCRequest):
                if len(lead) < _MOST_LEAD:
                    lead.append(message)
            self._lead.extend((*lead, message))
            return message
        return None

    async def receive(self) -> JSONRPCMessage:
        """The next message.

        Raises:
            anyio.EndOfStream: The input ended and its calls are answered, or `stop` was called.
        """
        if self._lead:
            return self._lead.popleft()
        while not self._stopping:
            if self._lines:
                message = await self._admit(self._lines.popleft())
                if message is not None:
                    return message
            elif chunk := await self._input.read():
                self._split(chunk)
            elif self._size:
                self._split(b"\n")
            elif (question := await self._drain()) is not None:
                return error(question, CONNECTION_CLOSED, "The client has left.")
            else:
                break
        await self.aclose()
        raise anyio.EndOfStream

    async def aclose(self) -> None:
        self.stop()
        self.ended.set()

    async def _admit(self, line: bytes | tuple[bytes, bytes]) -> JSONRPCMessage | None:
        """The message in `line` if it is for the server; mistakes are answered here."""
        try:
            if isinstance(line, tuple):
                raise Malformed(
                    INVALID_REQUEST, f"Invalid request: a line over {self._max_line} bytes.", peek_id(*line)
                )
            if not line or line.isspace():
                return None
            if (batch := self._calls.batches.split(line, self._calls.holds)) is not None:
                self._lines.extendleft(reversed(batch[0]))
                await self._writer.put(batch[1])
                return None
            message = parse(line)
            if self._first is not None:
                self._first.asked(line, message)
            if isinstance(message, JSONRPCRequest):
                self._calls.enter(message)
                if message.method == "initialize":
                    self._calls.batches.negotiate(message)
            elif isinstance(message, JSONRPCNotification):
                if not is_heard(message):
                    return None
                if message.method == "notifications/cancelled":
                    given_up = (message.params or {}).get("requestId")
                    self._calls.leave(as_request_id(given_up))
                    await self._writer.put(self._calls.batches.cancel(given_up))
            else:
                self._calls.told(message.id)
            return message
        except Malformed as wrong:
            answer = error(wrong.request_id, wrong.code, wrong.message)
        except anyio.BrokenResourceError:
            self._stopping = True
            return None
        try:
            if answer.error.code == BUSY:
                await self._writer.put(self._calls.batches.add_answer(answer.id, dump(answer)))
            else:
                await self._writer.refuse(answer)
        except anyio.BrokenResourceError:
            self._stopping = True
        return None

    async def _drain(self) -> RequestId | None:
        """Wait for the calls in flight; returns a question to answer in the client's place, if one comes up."""
        if self._drain_until is None:
            self._drain_until = self._loop.time() + self._drain_seconds
        if not self._stopping and self._writer.is_read():
            with anyio.CancelScope(deadline=self._drain_until) as self._draining:
                return await self._calls.drained()
        return None

    def _split(self, chunk: bytes) -> None:
        first, *others = chunk.split(b"\n")
        self._parts.append(first)
        self._size += len(first)
        for line in others:
            self._lines.append(self._line())
            self._parts = [line]
            self._size = len(line)
        if self._size > self._max_line:
            # Of a line that will be skipped only the ends are kept: its id may stand there.
            held = b"".join(self._parts)
            self._parts = [held[:_PEEK], held[-_PEEK:]]

    def _line(self) -> bytes | tuple[bytes, bytes]:
        line = b"".join(self._parts)
        if self._wire is not None:
            self._wire.note("received", line)
        return line if self._size <= self._max_line else (line[:_PEEK], line[-_PEEK:])
