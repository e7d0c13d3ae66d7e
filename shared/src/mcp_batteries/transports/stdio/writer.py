"""The output side of the stdio transport: whole lines, in order, straight from the event loop.

`Server.run` takes anything that has `send`. The SDK's own writer spends two thread hops on each message; this
one writes from within `send`, and waits only when the pipe is full. asyncio only.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
from anyio.abc import AsyncResource
from mcp.shared.message import SessionMessage
from mcp_types.jsonrpc import ErrorData, JSONRPCError, JSONRPCRequest, JSONRPCResponse, RequestId

from mcp_batteries.transports.jsonrpc import dump, dump_answer
from mcp_batteries.transports.stdio.cached_handshake.store import AnswerStore
from mcp_batteries.transports.stdio.in_flight import Calls
from mcp_batteries.transports.stdio.outputs import open_output

if TYPE_CHECKING:
    from mcp_batteries.observability.wire_log import WireLog

__all__ = ["Writer"]

_SENDS_PER_YIELD = 64
_FINISH_SECONDS = 0.5


class Writer(AsyncResource):
    """Writes messages: one line each, never torn, in the order sent.

    Args:
        descriptor: where to.
        on_broken: called once nobody reads any more.
        first: sees every answer.
        wire: sees every line.
        pollable: as `open_output`.

    Attributes:
        hurried: whether a message that can't be written at once is dropped, because the server ends.
    """

    def __init__(
        self,
        descriptor: int,
        calls: Calls,
        on_broken: Callable[[], None],
        first: AnswerStore | None = None,
        wire: WireLog | None = None,
        *,
        pollable: bool,
    ) -> None:
        self._calls = calls
        self._on_broken = on_broken
        self._first = first
        self._wire = wire
        self._output = open_output(descriptor, self._flush, pollable=pollable)
        self._queue: deque[_Frame] = deque()
        self._burst = 0
        self._broken = False
        self.hurried = False

    async def send(self, item: SessionMessage) -> None:
        """Write one message; wait while the reader is behind.

        Raises:
            anyio.BrokenResourceError: Nobody reads any more.
        """
        message = item.message
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            await self._answer(message.id, dump(message))
            return
        if isinstance(message, JSONRPCRequest):
            self._calls.add_question(message.id)
        await self.put(dump(message))

    async def answer(self, request_id: RequestId, result: dict[str, Any] | ErrorData) -> None:
        """Write the answer to a call, as `send` does.

        Raises:
            anyio.BrokenResourceError: Nobody reads any more.
        """
        await self._answer(request_id, dump_answer(request_id, result))

    async def refuse(self, answer: JSONRPCError) -> None:
        """Write the answer to a line that never became a call, even if a call has the same id."""
        await self._write(dump(answer))

    async def put(self, data: bytes) -> None:
        """Write a line unchanged, if there is one.

        Raises:
            anyio.BrokenResourceError: Nobody reads any more.
        """
        if data:
            await self._write(data)

    def is_read(self) -> bool:
        """Tell whether the other end is open."""
        if not self._broken and not self._output.has_reader():
            self._break()
        return not self._broken

    async def aclose(self) -> None:
        with anyio.move_on_after(_FINISH_SECONDS, shield=True):
            if self._queue and self._queue[0].started:
                # Half a line must not be the last thing the client reads.
                await self._queue[0].done.wait()
            if not self._broken:
                await self._output.flush(_FINISH_SECONDS)
        self._output.call_when_ready(False)
        self._broken = True

    async def _answer(self, request_id: RequestId | None, data: bytes) -> None:
        try:
            if self._first is not None and request_id is not None:
                data = self._first.filter_answer(request_id, data)
            await self.put(self._calls.batches.add_answer(request_id, data))
        finally:
            self._calls.leave(request_id)

    async def _write(self, data: bytes) -> None:
        if self._broken or (self.hurried and self._queue):
            raise anyio.BrokenResourceError
        if self._wire is not None:
            self._wire.note("sent", data)
        written = 0
        if not self._queue:
            written = self._push(data)
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
            self._output.call_when_ready(True)
        self._queue.append(frame)
        try:
            await frame.done.wait()
        except asyncio.CancelledError:
            # The next flush finishes a line that has begun, or it would be torn.
            if not frame.started and frame in self._queue:
                self._queue.remove(frame)
                if not self._queue:
                    self._output.call_when_ready(False)
            raise
        if self._broken:
            raise anyio.BrokenResourceError

    def _flush(self) -> None:
        while self._queue:
            frame = self._queue[0]
            written = self._push(frame.unwritten)
            if self._broken:
                return
            frame.started = frame.started or written > 0
            frame.unwritten = frame.unwritten[written:]
            if frame.unwritten:
                return
            self._queue.popleft().done.set()
        self._output.call_when_ready(False)

    def _push(self, data: bytes | memoryview) -> int:
        try:
            return self._output.push(data)
        except OSError:
            self._break()
            return 0

    def _break(self) -> None:
        self._broken = True
        self._output.call_when_ready(False)
        while self._queue:
            self._queue.popleft().done.set()
        self._on_broken()


class _Frame:
    """A line, or the end of it, and its waiting sender."""

    __slots__ = ("done", "started", "unwritten")

    def __init__(self, unwritten: memoryview, *, started: bool) -> None:
        self.unwritten = unwritten
        self.started = started
        self.done = asyncio.Event()
