"""The two stream objects between the SDK and a pair of descriptors.

`Server.run` takes anything that can be iterated and anything that has `send`. The SDK's own pair spends three
thread hops and several hand-overs on each call; this one reads and writes on the event loop itself, and keeps
the promises a pipe needs: an answer to every broken line, whole lines out, bounded memory.

asyncio only: its callbacks for descriptors are what makes it fast.
"""

from __future__ import annotations

import asyncio
import os
import select
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Self

import anyio
import anyio.lowlevel
import anyio.to_thread
from mcp.shared.dispatcher import as_request_id, coerce_request_id
from mcp.shared.message import SessionMessage
from mcp_types.jsonrpc import (
    CONNECTION_CLOSED,
    INVALID_REQUEST,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)

from mcp_batteries.frames import Malformed, dump, error, parse, peek_id

__all__ = ["Calls", "Reader", "Writer"]

_CHUNK = 256 * 1024
_PEEK = 4096
_SENDS_PER_YIELD = 64
_FINISH_SECONDS = 0.5
_BUSY = -32000
"""Implementation-defined server error (JSON-RPC 2.0, section 5.1): too many calls in flight."""


class Calls:
    """The requests that were handed to the server and not answered yet.

    Args:
        limit: how many there may be at once.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._methods: dict[RequestId, str] = {}
        self._questions: set[RequestId] = set()
        self._change = anyio.Event()

    def enter(self, request: JSONRPCRequest) -> None:
        """Count `request` in.

        Raises:
            Malformed: Its id is in use, or there are too many calls.
        """
        key = coerce_request_id(request.id)
        if key in self._methods:
            raise Malformed(INVALID_REQUEST, "Invalid request: this `id` is already in flight.", request.id)
        if len(self._methods) >= self._limit:
            raise Malformed(
                _BUSY, f"Too many calls in flight (the limit is {self._limit}): await some answers.", request.id
            )
        self._methods[key] = request.method

    def leave(self, request_id: RequestId | None) -> None:
        """Count a request out: answered, or cancelled by the client and thus never answered."""
        if request_id is not None and self._methods.pop(coerce_request_id(request_id), None) is not None:
            self._change.set()

    def ask(self, request_id: RequestId) -> None:
        """The server asks the client something with a request of its own."""
        self._questions.add(coerce_request_id(request_id))
        self._change.set()

    def told(self, request_id: RequestId | None) -> None:
        """The client answered a request of the server's."""
        if request_id is not None:
            self._questions.discard(coerce_request_id(request_id))

    async def drained(self) -> RequestId | None:
        """A question that the client, gone by now, will never answer; None once all calls are answered."""
        while not self._questions:
            if all(method == "subscriptions/listen" for method in self._methods.values()):
                return None
            self._change = anyio.Event()
            await self._change.wait()
        return self._questions.pop()


class Writer:
    """Messages out: one line each, never torn, in the order sent.

    Args:
        descriptor: where to; should be non-blocking, or a slow reader stops the event loop.
        on_broken: called once when nobody reads any more.
    """

    def __init__(self, descriptor: int, calls: Calls, on_broken: Callable[[], None]) -> None:
        self._descriptor, self._calls, self._on_broken = descriptor, calls, on_broken
        self._loop = asyncio.get_running_loop()
        self._queue: deque[_Frame] = deque()
        self._burst = 0
        self._broken = False
        self.hurried = False
        """True: a message that can't be written at once is dropped. For the way out."""

    async def send(self, item: SessionMessage) -> None:
        """Write one message; wait while the reader is behind.

        Raises:
            anyio.BrokenResourceError: Nobody reads any more.
        """
        message = item.message
        if isinstance(message, JSONRPCRequest):
            self._calls.ask(message.id)
        try:
            await self._write(dump(message))
        finally:
            if isinstance(message, JSONRPCResponse | JSONRPCError):
                self._calls.leave(message.id)

    async def refuse(self, answer: JSONRPCError) -> None:
        """Write the answer to a line that never became a call, whatever call may have the same id."""
        await self._write(dump(answer))

    def is_read(self) -> bool:
        """False once the other end is closed."""
        if not self._broken and hasattr(select, "poll"):
            poll = select.poll()
            poll.register(self._descriptor, 0)
            if any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0)):
                self._break()
        return not self._broken

    async def aclose(self) -> None:
        if self._queue and self._queue[0].started:
            # Half a line must not be the last thing the client reads.
            with anyio.move_on_after(_FINISH_SECONDS, shield=True):
                await self._queue[0].done.wait()
        if self._queue:
            self._loop.remove_writer(self._descriptor)
        self._broken = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def _write(self, data: bytes) -> None:
        if self._broken or (self.hurried and self._queue):
            raise anyio.BrokenResourceError
        written = 0 if self._queue else self._push(data)
        if self._broken:
            raise anyio.BrokenResourceError
        if written < len(data):
            await self._wait(_Frame(memoryview(data)[written:], started=written > 0))
        self._burst += 1
        if self._burst >= _SENDS_PER_YIELD:
            # A handler that sends in a tight loop must let the others, and its own cancellation, in.
            self._burst = 0
            await anyio.lowlevel.checkpoint()

    async def _wait(self, frame: _Frame) -> None:
        if not self._queue:
            self._loop.add_writer(self._descriptor, self._flush)
        self._queue.append(frame)
        try:
            await frame.done.wait()
        except asyncio.CancelledError:
            # What has begun is finished by the next flush, or the line would be torn.
            if not frame.started and frame in self._queue:
                self._queue.remove(frame)
                if not self._queue:
                    self._loop.remove_writer(self._descriptor)
            raise
        if self._broken:
            raise anyio.BrokenResourceError

    def _flush(self) -> None:
        while self._queue:
            frame = self._queue[0]
            written = self._push(frame.rest)
            if self._broken:
                return
            frame.started = frame.started or written > 0
            frame.rest = frame.rest[written:]
            if frame.rest:
                return
            self._queue.popleft().done.set()
        self._loop.remove_writer(self._descriptor)

    def _push(self, data: bytes | memoryview) -> int:
        try:
            return os.write(self._descriptor, data)
        except BlockingIOError:
            return 0
        except OSError:
            self._break()
            return 0

    def _break(self) -> None:
        self._broken = True
        if self._queue:
            self._loop.remove_writer(self._descriptor)
        while self._queue:
            self._queue.popleft().done.set()
        self._on_broken()


class _Frame:
    """A line, or what is left of it, and its sender waiting."""

    __slots__ = ("done", "rest", "started")

    def __init__(self, rest: memoryview, *, started: bool) -> None:
        self.rest, self.started, self.done = rest, started, asyncio.Event()


class Reader:
    """Messages in: every line is handed on, answered here, or blank.

    Args:
        descriptor: where from. What can't be waited for (a regular file) is read on a thread.
        writer: takes the answers to lines that are no messages. Reading waits for it, so a client that
            sends and never reads is held back instead of filling the memory.
        max_line: the longest line in bytes; longer ones are skipped and answered.
        drain_seconds: how long calls may go on after the end of input.
    """

    def __init__(self, descriptor: int, writer: Writer, calls: Calls, *, max_line: int, drain_seconds: float) -> None:
        self._descriptor, self._writer, self._calls = descriptor, writer, calls
        self._max_line, self._drain_seconds = max_line, drain_seconds
        self._loop = asyncio.get_running_loop()
        self._chunk = b""
        self._wake: asyncio.Future[None] | None = None
        self._watching = False
        self._pollable = True
        self._at_end = False
        self._lines: deque[bytes | tuple[bytes, bytes]] = deque()
        self._parts: list[bytes] = []
        self._size = 0
        self._stopping = False
        self._drain_until: float | None = None
        self.ended = anyio.Event()
        """Set when no further message will be handed on."""

    def stop(self) -> None:
        """Hand on no further message, drain nothing. From the event loop's thread."""
        self._stopping = True
        self._rouse()

    async def receive(self) -> SessionMessage:
        """The next message.

        Raises:
            anyio.EndOfStream: The input ended and its calls are answered, or `stop` was called.
        """
        while not self._stopping:
            if self._lines:
                message = await self._admit(self._lines.popleft())
                if message is not None:
                    return SessionMessage(message)
            elif chunk := await self._read():
                self._split(chunk)
            elif self._size:
                self._split(b"\n")
            elif (question := await self._drain()) is not None:
                return SessionMessage(error(question, CONNECTION_CLOSED, "The client has left."))
            else:
                break
        await self.aclose()
        raise anyio.EndOfStream

    async def aclose(self) -> None:
        self._watch(False)
        self._stopping = True
        self.ended.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def _admit(self, line: bytes | tuple[bytes, bytes]) -> JSONRPCMessage | None:
        """The message in `line` if the server is to have it; what is wrong with it is answered here."""
        try:
            if isinstance(line, tuple):
                raise Malformed(
                    INVALID_REQUEST, f"Invalid request: a line over {self._max_line} bytes.", peek_id(*line)
                )
            if not line or line.isspace():
                return None
            message = parse(line)
            if isinstance(message, JSONRPCRequest):
                self._calls.enter(message)
            elif isinstance(message, JSONRPCNotification):
                if message.method == "notifications/cancelled":
                    self._calls.leave(as_request_id((message.params or {}).get("requestId")))
            else:
                self._calls.told(message.id)
            return message
        except Malformed as wrong:
            answer = error(wrong.request_id, wrong.code, wrong.message)
        try:
            await self._writer.refuse(answer)
        except anyio.BrokenResourceError:
            self._stopping = True
        return None

    async def _drain(self) -> RequestId | None:
        """See the calls in flight through; a question to answer in the client's place, if one comes up."""
        if self._drain_until is None:
            self._drain_until = self._loop.time() + self._drain_seconds
        if not self._stopping and self._writer.is_read():
            with anyio.CancelScope(deadline=self._drain_until):
                return await self._calls.drained()
        return None

    def _split(self, chunk: bytes) -> None:
        first, *others = chunk.split(b"\n")
        self._parts.append(first)
        self._size += len(first)
        for line in others:
            self._lines.append(self._line())
            self._parts, self._size = [line], len(line)
        if self._size > self._max_line:
            # Of a line that will be skipped only the ends are kept: its id may stand there.
            held = b"".join(self._parts)
            self._parts = [held[:_PEEK], held[-_PEEK:]]

    def _line(self) -> bytes | tuple[bytes, bytes]:
        line = b"".join(self._parts)
        return line if self._size <= self._max_line else (line[:_PEEK], line[-_PEEK:])

    async def _read(self) -> bytes:
        """The next bytes; empty at the end of input, or when stopped."""
        if self._pollable and not self._at_end:
            try:
                self._watch(True)
            except OSError:
                self._pollable = False
        if not self._pollable:
            return await anyio.to_thread.run_sync(os.read, self._descriptor, _CHUNK, abandon_on_cancel=True)
        if not (self._chunk or self._at_end or self._stopping):
            self._wake = self._loop.create_future()
            await self._wake
        chunk, self._chunk = self._chunk, b""
        return chunk

    def _readable(self) -> None:
        if self._chunk:
            # Not taken yet: the server is behind, and the pipe is the better buffer.
            self._watch(False)
            return
        try:
            self._chunk = os.read(self._descriptor, _CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            pass
        if not self._chunk:
            self._at_end = True
            self._watch(False)
        self._rouse()

    def _watch(self, wanted: bool) -> None:
        if wanted and not self._watching:
            self._loop.add_reader(self._descriptor, self._readable)
        elif self._watching and not wanted:
            self._loop.remove_reader(self._descriptor)
        self._watching = wanted

    def _rouse(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)
