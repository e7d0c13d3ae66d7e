"""A process with the toy server of `toy_server.py`, on pipes."""

import json
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_batteries.sdk import lowlevel
from mcp_batteries.testing.wire import Message, StdioWire
from mcp_batteries.transports.stdio.serve import Claim, serve
from shared.toy_server import server
from thread_wire import ThreadWire

TOY = [sys.executable, str(Path(__file__).with_name("toy_server.py"))]
on_posix = pytest.mark.skipif(sys.platform == "win32", reason="uses signals, a shell, a terminal or select() on pipes")
WAYS = pytest.mark.parametrize("way", ["pollable=0"] if sys.platform == "win32" else ["pollable=1", "pollable=0"])
"""Pipes waited for by the event loop, and carried by threads as on Windows."""


def toy(*limits: str, revision: str = "2025-11-25", **options: Any) -> StdioWire:
    return StdioWire([*TOY, *limits], revision=revision, **options)


def toy_on_thread(*limits: str, revision: str = "2025-11-25") -> StdioWire:
    """A toy for what is not about its process: on a thread where the event loop can wait for pipes."""
    if sys.platform == "win32":
        return toy(*limits, revision=revision)
    return _ToyOnThread("toy", limits, revision=revision)


class _ToyOnThread(ThreadWire):
    def _run_server(self, claim: Claim) -> None:
        low = lowlevel(server)
        limits = {name: int(value) for name, _, value in (item.partition("=") for item in self._arguments)}
        anyio.run(partial(serve, low, low.create_initialization_options(), claim, **limits))


def text_of(result: Message) -> str:
    return result["content"][0]["text"]


HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "host", "version": "1"}}


def line(request_id: int | None, method: str, **params: Any) -> bytes:
    message: Message = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(message if request_id is None else {**message, "id": request_id}).encode() + b"\n"


def call(request_id: int, tool: str, **arguments: Any) -> bytes:
    return line(request_id, "tools/call", name=tool, arguments=arguments, _meta={"progressToken": request_id})


OPENING = line(0, "initialize", **HELLO) + line(None, "notifications/initialized")


@contextmanager
def started(command: Sequence[str], stdin: int, stdout: int) -> Generator[subprocess.Popen[bytes]]:
    """A process that is killed at the end if it still runs, so that a test which failed does not wait for it."""
    with subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def host(*limits: str) -> Generator[subprocess.Popen[bytes]]:
    """An opened toy server on plain pipes."""
    with started([*TOY, *limits], subprocess.PIPE, subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        process.stdin.write(OPENING)
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 0
        yield process
