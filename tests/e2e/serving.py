"""A server as a process, reached over stdio or HTTP in a given revision."""

import re
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from subprocess import PIPE

import anyio

from mcp_batteries.testing.wire import HttpWire, StdioWire, Wire
from mcp_batteries.testing.wire.base import SECONDS
from thread_wire import wire_to

TRANSPORTS = ("stdio", "http")


@asynccontextmanager
async def listening(package: str, *arguments: str) -> AsyncGenerator[tuple[anyio.abc.Process, str]]:
    """The server over HTTP on a free port: its process and URL, ended with SIGTERM if still alive."""
    command = [sys.executable, "-m", package, "--transport", "http", "--port", "0", *arguments]
    async with await anyio.open_process(command, stdin=None, stdout=None, stderr=PIPE) as process:
        assert process.stderr is not None
        said = b""
        with anyio.fail_after(SECONDS):
            while not (found := re.search(rb"listening on (https?://\S+)\r?\n", said)):
                said += await process.stderr.receive()
        try:
            yield process, found[1].decode()
        finally:
            if process.returncode is None:
                process.terminate()
                with anyio.fail_after(SECONDS):
                    await process.wait()


@asynccontextmanager
async def connected(transport: str, revision: str, package: str, arguments: Sequence[str]) -> AsyncGenerator[Wire]:
    """An opened wire to a fresh server: over stdio on a thread, over HTTP as a process."""
    if transport == "http":
        async with connected_process(transport, revision, package, arguments) as wire:
            yield wire
        return
    async with wire_to(package, arguments, revision=revision) as wire:
        await wire.open()
        yield wire


@asynccontextmanager
async def connected_process(
    transport: str, revision: str, package: str, arguments: Sequence[str]
) -> AsyncGenerator[Wire]:
    """An opened wire to a fresh process."""
    if transport == "stdio":
        async with StdioWire([sys.executable, "-m", package, *arguments], revision=revision) as wire:
            await wire.open()
            yield wire
    else:
        async with listening(package, *arguments) as (_, url), HttpWire(url, revision=revision) as wire:
            await wire.open()
            yield wire
