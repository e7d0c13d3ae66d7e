"""The wire to a server on a thread of this process: what a test gets that isn't about the process itself.

The server has its own event loop and reads and writes pipes, so everything is as in a process of its own, but for what
only the start and the end of one have: no second Python is started, which is most of what such a test takes.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Self

import anyio
import anyio.to_thread

from mcp_batteries.program import program_of
from mcp_batteries.run import loop_options
from mcp_batteries.sdk import lowlevel
from mcp_batteries.settings import load
from mcp_batteries.testing.wire import Message, StdioWire, WireClosed
from mcp_batteries.testing.wire.base import SECONDS, background
from mcp_batteries.transports.stdio.serve import Claim, serve

__all__ = ["ThreadWire", "wire_to"]

_CHUNK_BYTES = 65_536


def wire_to(
    package: str, arguments: Sequence[object], *, revision: str, capabilities: Message | None = None
) -> StdioWire:
    """Return the wire to a server of `package`: on a thread, or as a process on Windows, where pipes have no events."""
    if sys.platform != "win32":
        return ThreadWire(package, arguments, revision=revision, capabilities=capabilities)
    command = [sys.executable, "-m", package, *map(str, arguments)]
    return StdioWire(command, revision=revision, capabilities=capabilities)


class ThreadWire(StdioWire):
    """A server of `package`, started with `arguments`, on pipes to a thread.

    Leaving the block closes its input and expects the server to end.
    """

    def __init__(
        self,
        package: str,
        arguments: Sequence[object],
        *,
        revision: str,
        capabilities: Message | None = None,
    ) -> None:
        super().__init__([], revision=revision, capabilities=capabilities)
        self._package = package
        self._arguments = [*map(str, arguments)]
        self._failure: BaseException | None = None
        self._is_input_open = True

    @asynccontextmanager
    async def _run(self) -> AsyncGenerator[Self]:
        server_input, self._input = os.pipe()
        self._output, server_output = os.pipe()
        os.set_blocking(self._input, False)
        self._thread = threading.Thread(
            target=self._serve, args=(server_input, server_output), name=self._package, daemon=True
        )
        self._thread.start()
        try:
            async with background() as self._tasks:
                self._tasks.start_soon(self._read)
                yield self
                await self.close_stdin()
                await self.wait()
        finally:
            with anyio.CancelScope(shield=True):
                await self.close_stdin()
                os.close(self._output)
                await anyio.to_thread.run_sync(self._thread.join, SECONDS)
        if self._failure is not None:
            raise self._failure
        if self.garbage:
            raise AssertionError(f"not JSON-RPC on the output: {self.garbage[:3]}")

    def _serve(self, server_input: int, server_output: int) -> None:
        try:
            self._run_server(Claim(server_input, server_output))
        except BaseException as failure:
            self._failure = failure
        finally:
            os.close(server_input)
            os.close(server_output)

    def _run_server(self, claim: Claim) -> None:
        program = program_of(self._package)
        settings = load(program.settings(), self._arguments)
        server = program.build(settings)
        arguments = (lowlevel(server), server.hub.initialization_options(server), claim)
        anyio.run(serve, *arguments, backend_options=loop_options(settings))

    async def send_raw(self, data: bytes) -> None:
        remaining = memoryview(data)
        while remaining:
            if not self._is_input_open:
                raise WireClosed("the server's input is closed")
            try:
                remaining = remaining[os.write(self._input, remaining) :]
            except BlockingIOError:
                await anyio.wait_writable(self._input)
            except BrokenPipeError as exc:
                raise WireClosed("the server no longer reads") from exc

    async def close_stdin(self) -> None:
        if self._is_input_open:
            self._is_input_open = False
            with suppress(OSError):
                os.close(self._input)

    async def wait(self, seconds: float = SECONDS) -> int:
        with anyio.fail_after(seconds):
            while not self.closed:
                await self._arrival.wait()
        return 0

    async def _read(self) -> None:
        buffer = b""
        try:
            while True:
                await anyio.wait_readable(self._output)
                chunk = os.read(self._output, _CHUNK_BYTES)
                if not chunk:
                    break
                *lines, buffer = (buffer + chunk).split(b"\n")
                for line in lines:
                    self._receive_line(line)
        finally:
            if buffer:
                self._receive_line(buffer)
            self._end()
