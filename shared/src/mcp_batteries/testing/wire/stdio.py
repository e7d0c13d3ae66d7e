"""The wire to a server process on its pipes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self, cast

import anyio

from mcp_batteries.testing.wire.base import SECONDS, Message, Wire, WireClosed, background

__all__ = ["StdioWire"]


class StdioWire(Wire):
    """A server process on its pipes. Leaving the block closes stdin and expects the process to end by itself.

    Args:
        command: the program and its arguments.
        env: the whole environment; None for ours.
        cwd: the working folder.
        read_stderr: False leaves standard error unread, as careless hosts do.

    Attributes:
        garbage: lines on stdout that are not JSON objects; leaving the block fails if there are any.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        revision: str = "2025-11-25",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        capabilities: Message | None = None,
        read_stderr: bool = True,
    ) -> None:
        super().__init__(revision, capabilities)
        self._command = list(command)
        self._env = env
        self._cwd = cwd
        self._read_stderr = read_stderr
        self._stderr = bytearray()
        self.garbage: list[bytes] = []

    async def __aenter__(self) -> Self:
        self._block = self._run()
        return await self._block.__aenter__()

    async def __aexit__(self, *failure: Any) -> bool | None:
        return await self._block.__aexit__(*failure)

    @asynccontextmanager
    async def _run(self) -> AsyncGenerator[Self]:
        pipe = subprocess.PIPE
        self.process = await anyio.open_process(
            self._command, stdin=pipe, stdout=pipe, stderr=pipe, env=self._env, cwd=self._cwd
        )
        try:
            async with background() as self._tasks:
                self._tasks.start_soon(self._read)
                if self._read_stderr:
                    self._tasks.start_soon(self._collect_stderr)
                yield self
                await self.close_stdin()
                await self.wait()
        finally:
            with anyio.CancelScope(shield=True):
                if self.process.returncode is None:
                    self.process.kill()
                await self.process.aclose()
        if self.garbage:
            raise AssertionError(f"not JSON-RPC on stdout: {self.garbage[:3]}")

    @property
    def stderr(self) -> str:
        """What the process has written to standard error so far."""
        return self._stderr.decode(errors="replace")

    async def send_raw(self, data: bytes) -> None:
        """Write `data` unchanged, without a newline."""
        assert self.process.stdin is not None
        await self.process.stdin.send(data)

    async def close_stdin(self) -> None:
        assert self.process.stdin is not None
        await self.process.stdin.aclose()

    async def wait(self, seconds: float = SECONDS) -> int:
        """Wait for the exit status and read all output; negative for a signal.

        Raises:
            TimeoutError: The process still runs after `seconds`.
        """
        with anyio.fail_after(seconds):
            status = await self.process.wait()
            while not self.closed:
                await self._arrival.wait()
        return status

    async def unlisten(self, listen_id: int) -> None:
        await self.notify("notifications/cancelled", {"requestId": listen_id})
        # The cancel is handled in order, before the next request is: the stream has ended when this returns.
        await self.request("tools/list")

    async def _send(self, message: Message) -> None:
        try:
            await self.send_raw(json.dumps(message).encode() + b"\n")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as exc:
            raise WireClosed("the process no longer reads") from exc

    async def _hold(self, message: Message) -> None:
        await self._send(message)

    async def _read(self) -> None:
        assert self.process.stdout is not None
        buffer = b""
        try:
            async for chunk in self.process.stdout:
                head, newline, tail = chunk.rpartition(b"\n")
                if not newline:
                    buffer += chunk
                    continue
                for line in (buffer + head).split(b"\n"):
                    self._receive_line(line)
                buffer = tail
        finally:
            if buffer:
                self._receive_line(buffer)
            self._end()

    def _receive_line(self, line: bytes) -> None:
        try:
            message: Any = json.loads(line)
        except ValueError:
            message = None
        if isinstance(message, dict):
            self._receive(cast(Message, message))
        else:
            self.garbage.append(line)

    async def _collect_stderr(self) -> None:
        assert self.process.stderr is not None
        async for chunk in self.process.stderr:
            self._stderr += chunk
