"""The input of the stdio transport: on the event loop where it can wait for pipes, otherwise with a thread."""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import suppress
from typing import Protocol

__all__ = ["Input", "open_input"]

_CHUNK = 256 * 1024


class Input(Protocol):
    """Bytes as they come, one chunk at a time: unread data stays in the pipe, which holds its writer back."""

    async def read(self) -> bytes:
        """Return the next bytes; none at the end of input, and after `stop`."""
        ...

    def stop(self) -> None:
        """Wake `read` up for the last time; call it on the event loop's thread."""
        ...


def open_input(descriptor: int, *, pollable: bool) -> Input:
    """Return the bytes of `descriptor`.

    Args:
        pollable: whether the event loop can wait for pipes. A thread reads what it can't wait for, such as a file.
    """
    if pollable:
        with suppress(OSError):
            return _LoopInput(descriptor)
    return _ThreadInput(descriptor)


class _ChunkInput:
    """One chunk, and the task that waits for it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._chunk = b""
        self._wake: asyncio.Future[None] | None = None
        self._at_end = False

    async def _next(self) -> bytes:
        if not (self._chunk or self._at_end):
            self._wake = self._loop.create_future()
            await self._wake
        chunk = self._chunk
        self._chunk = b""
        return chunk

    def _put(self, chunk: bytes) -> None:
        self._chunk = chunk
        self._at_end = self._at_end or not chunk
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


class _LoopInput(_ChunkInput):
    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._watching = False
        self._watch(True)

    async def read(self) -> bytes:
        if not self._at_end:
            self._watch(True)
        return await self._next()

    def stop(self) -> None:
        self._watch(False)
        self._put(b"")

    def _readable(self) -> None:
        if self._chunk:
            # The last chunk still waits: the server is behind, and the pipe is the better buffer.
            self._watch(False)
            return
        try:
            chunk = os.read(self._descriptor, _CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._watch(False)
        self._put(chunk)

    def _watch(self, enabled: bool) -> None:
        if enabled and not self._watching:
            self._loop.add_reader(self._descriptor, self._readable)
        elif self._watching and not enabled:
            self._loop.remove_reader(self._descriptor)
        self._watching = enabled


class _ThreadInput(_ChunkInput):
    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._requests = threading.Semaphore(0)
        self._reading = False
        threading.Thread(target=self._read_on_thread, name=f"reads from {descriptor}", daemon=True).start()

    async def read(self) -> bytes:
        if not (self._reading or self._at_end):
            self._reading = True
            self._requests.release()
        return await self._next()

    def stop(self) -> None:
        self._put(b"")

    def _read_on_thread(self) -> None:
        while self._requests.acquire():
            try:
                chunk = os.read(self._descriptor, _CHUNK)
            except OSError:
                chunk = b""
            try:
                self._loop.call_soon_threadsafe(self._receive, chunk)
            except RuntimeError:  # the loop is closed
                return
            if not chunk:
                return

    def _receive(self, chunk: bytes) -> None:
        self._reading = False
        if not self._at_end:
            self._put(chunk)
