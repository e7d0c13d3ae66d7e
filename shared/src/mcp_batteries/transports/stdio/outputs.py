"""The output of the stdio transport: from the event loop where pipes need not block, otherwise with a thread."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from typing import Protocol

from mcp_batteries.transports.stdio.sink import Sink

if sys.platform == "win32":
    from mcp_batteries.transports.stdio import windows as system
else:
    from mcp_batteries.transports.stdio import posix as system

__all__ = ["Output", "open_output"]

_BACKLOG_BYTES = 64 * 1024
# Bytes that a pipe holds, and those that it is to hold once a message is larger.
_USUAL_PIPE_BYTES = 64 * 1024
_WIDE_PIPE_BYTES = 1024 * 1024


class Output(Protocol):
    """Writes bytes without waiting."""

    def push(self, data: bytes | memoryview) -> int:
        """Accept as much of `data` as possible now; return the number of bytes.

        Raises:
            OSError: Nobody reads any more.
        """
        ...

    def call_when_ready(self, enabled: bool) -> None:
        """Set whether to call back when `push` can accept more."""
        ...

    def has_reader(self) -> bool:
        """Tell whether the other end is open."""
        ...

    async def flush(self, seconds: float) -> None:
        """Wait until accepted bytes are written, for at most `seconds`."""
        ...


def open_output(descriptor: int, on_ready: Callable[[], None], *, pollable: bool) -> Output:
    """Open the output to `descriptor`.

    Args:
        on_ready: called on the event loop, as `Output.call_when_ready` says.
        pollable: whether the event loop can wait for pipes; the descriptor should be non-blocking then, or a slow
            reader stops the loop.
    """
    if pollable:
        return _LoopOutput(descriptor, on_ready)
    return _ThreadOutput(descriptor, on_ready)


class _LoopOutput:
    def __init__(self, descriptor: int, on_ready: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._on_ready = on_ready
        self._loop = asyncio.get_running_loop()
        self._waiting = False
        self._wide = False

    def push(self, data: bytes | memoryview) -> int:
        written = self._write(data)
        if written < len(data) and len(data) > _USUAL_PIPE_BYTES and not self._wide:
            # In pieces of that size, a large answer would cost a turn of this loop and of the reader's for each.
            self._wide = True
            system.widen(self._descriptor, _WIDE_PIPE_BYTES)
            written += self._write(memoryview(data)[written:])
        return written

    def _write(self, data: bytes | memoryview) -> int:
        try:
            return os.write(self._descriptor, data)
        except BlockingIOError:
            return 0

    def call_when_ready(self, enabled: bool) -> None:
        if enabled and not self._waiting:
            self._loop.add_writer(self._descriptor, self._on_ready)
        elif self._waiting and not enabled:
            self._loop.remove_writer(self._descriptor)
        self._waiting = enabled

    def has_reader(self) -> bool:
        return system.has_reader(self._descriptor)

    async def flush(self, seconds: float) -> None:
        """Do nothing: accepted bytes are already in the pipe."""


class _ThreadOutput:
    def __init__(self, descriptor: int, on_ready: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._on_ready = on_ready
        self._loop = asyncio.get_running_loop()
        self._waiting = False
        self._sink = Sink(descriptor, _BACKLOG_BYTES, self._progressed)

    def push(self, data: bytes | memoryview) -> int:
        return self._sink.offer(data)

    def call_when_ready(self, enabled: bool) -> None:
        self._waiting = enabled
        if enabled and not self._sink.pending:
            self._loop.call_soon(self._ready)

    def has_reader(self) -> bool:
        # A pipe that is being written to can't be asked on Windows; that write will fail.
        return not self._sink.broken and (self._sink.pending > 0 or system.has_reader(self._descriptor))

    async def flush(self, seconds: float) -> None:
        await asyncio.to_thread(self._sink.flush, seconds)

    def _progressed(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._ready)
        except RuntimeError:  # the loop is closed
            return

    def _ready(self) -> None:
        if self._waiting:
            self._on_ready()
