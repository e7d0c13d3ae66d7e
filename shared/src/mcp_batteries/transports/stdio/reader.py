"""The input side of the stdio transport: every line is passed to the server, answered here, or blank.

The SDK's own reader needs a thread hop for each line and drops what it cannot parse; this one reads on the event loop.
asyncio only.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

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
from mcp_batteries.transports.stdio.cached_handshake.store import AnswerStore
from mcp_batteries.transports.stdio.in_flight import BUSY, Calls
from mcp_batteries.transports.stdio.inputs import open_input
from mcp_batteries.transports.stdio.writer import Writer

if TYPE_CHECKING:
    from mcp_batteries.observability.wire_log import WireLog

__all__ = ["Reader"]

# Of a line that is too long, this many bytes of each end are kept: its id may stand there.
_PEEK_BYTES = 4096
_MAX_LEAD = 8


class _LongLine(NamedTuple):
    """The ends of a line that is too long."""

    head: bytes
    tail: bytes


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

    Attributes:
        is_ended: set when no further message will be handed on.
    """

    def __init__(
        self,
        descriptor: int,
        writer: Writer,
        calls: Calls,
        first: AnswerStore | None = None,
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
        self._lines: deque[bytes | _LongLine] = deque()
        self._lead: deque[JSONRPCMessage] = deque()
        self._parts: list[bytes] = []
        self._size = 0
        self._stopping = False
        self._drain_until: float | None = None
        self._draining: anyio.CancelScope | None = None
        self.is_ended = anyio.Event()
        if first is not None:
            self._split(first.consumed_input())

    def stop(self) -> None:
        """Pass on no further message and drain nothing; call it on the event loop's thread."""
        self._stopping = True
        self._input.stop()
        if self._draining is not None:
            # Only now may a write find out that nobody will read the awaited answers.
            self._draining.cancel()

    async def first_request(self) -> JSONRPCRequest | None:
        """Return the first request, or None if none comes.

        `receive` still returns it, with a few of the messages before it.
        """
        lead: list[JSONRPCMessage] = []
        with suppress(anyio.EndOfStream):
            while True:
                message = await self.receive()
                if isinstance(message, JSONRPCRequest):
                    self._lead.extend((*lead, message))
                    return message
                if len(lead) < _MAX_LEAD:
                    lead.append(message)
        return None

    async def receive(self) -> JSONRPCMessage:
        """Return the next message.

        Raises:
            anyio.EndOfStream: The input ended and its calls are answered, or `stop` was called.
        """
        if self._lead:
            return self._lead.popleft()
        while not self._stopping:
            if self._lines:
                message = await self._accept_line(self._lines.popleft())
                if message is not None:
                    return message
                continue
            chunk = await self._input.read()
            if chunk:
                self._split(chunk)
            elif self._size:
                self._split(b"\n")
            else:
                question = await self._drain()
                if question is None:
                    break
                return error(question, CONNECTION_CLOSED, "The client has left.")
        await self.aclose()
        raise anyio.EndOfStream

    async def aclose(self) -> None:
        self.stop()
        self.is_ended.set()

    async def _accept_line(self, line: bytes | _LongLine) -> JSONRPCMessage | None:
        """Return the message in `line` if it is for the server; mistakes are answered here."""
        try:
            if isinstance(line, _LongLine):
                raise Malformed(
                    INVALID_REQUEST,
                    f"Invalid request: a line over {self._max_line} bytes.",
                    peek_id(line.head, line.tail),
                )
            if not line or line.isspace():
                return None
            array = self._calls.batches.split(line, self._calls.holds)
            if array is not None:
                self._lines.extendleft(reversed(array.messages))
                await self._writer.put(array.answer)
                return None
            message = parse(line)
            if self._first is not None:
                self._first.record_request(line, message)
            return await self._register(message)
        except Malformed as problem:
            await self._refuse(problem)
        except anyio.BrokenResourceError:
            self._stopping = True
        return None

    async def _register(self, message: JSONRPCMessage) -> JSONRPCMessage | None:
        """Count `message` among the calls in flight, and return it if it is for the server.

        Raises:
            Malformed: It is a request that can't be served.
        """
        if isinstance(message, JSONRPCRequest):
            self._calls.enter(message)
            if message.method == "initialize":
                self._calls.batches.negotiate(message)
        elif isinstance(message, JSONRPCNotification):
            if not is_heard(message):
                return None
            if message.method == "notifications/cancelled":
                request_id = (message.params or {}).get("requestId")
                self._calls.leave(as_request_id(request_id))
                await self._writer.put(self._calls.batches.cancel(request_id))
        else:
            self._calls.settle_question(message.id)
        return message

    async def _refuse(self, problem: Malformed) -> None:
        """Answer a line that is not a message, or not one that can be served."""
        answer = error(problem.request_id, problem.code, problem.message)
        try:
            if problem.code == BUSY:
                await self._writer.put(self._calls.batches.add_answer(answer.id, dump(answer)))
            else:
                await self._writer.refuse(answer)
        except anyio.BrokenResourceError:
            self._stopping = True

    async def _drain(self) -> RequestId | None:
        """Wait for the calls in flight; return a question to answer in the client's place, if one comes up."""
        if self._drain_until is None:
            self._drain_until = self._loop.time() + self._drain_seconds
        if not self._stopping and self._writer.is_read():
            with anyio.CancelScope(deadline=self._drain_until) as self._draining:
                return await self._calls.wait_drained()
        return None

    def _split(self, chunk: bytes) -> None:
        """Add the lines in `chunk`; keep the one that it does not end."""
        first, *others = chunk.split(b"\n")
        self._parts.append(first)
        self._size += len(first)
        for line in others:
            self._lines.append(self._take_line())
            self._parts = [line]
            self._size = len(line)
        if self._size > self._max_line:
            received = b"".join(self._parts)
            self._parts = [received[:_PEEK_BYTES], received[-_PEEK_BYTES:]]

    def _take_line(self) -> bytes | _LongLine:
        """Return the line that has just ended."""
        line = b"".join(self._parts)
        if self._wire is not None:
            self._wire.note("received", line)
        if self._size <= self._max_line:
            return line
        return _LongLine(line[:_PEEK_BYTES], line[-_PEEK_BYTES:])
