"""A server process on HTTP as a subject of tests: where it listens, what it says, how it ends."""

import re
import signal
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import PIPE
from urllib.parse import urlsplit

import anyio
import anyio.abc
import pytest

from mcp_batteries.testing.wire import HttpWire
from mcp_batteries.testing.wire.base import SECONDS

TOY = [sys.executable, str(Path(__file__).parent / "toy_http.py")]
FILES = [sys.executable, "-m", "mcp_fs", "--transport", "http", "--port", "0", str(Path(__file__).parent)]

asks_to_end = pytest.mark.skipif(
    sys.platform == "win32", reason="no process is asked to end there but by keys of a console"
)


class Subject:
    """A running server; what it writes to standard error is collected in `said`."""

    def __init__(self, process: anyio.abc.Process) -> None:
        self.process, self.said = process, ""
        self.arrival = anyio.Event()

    @property
    def url(self) -> str:
        """The endpoint; empty until it is announced."""
        found = re.search(r'listening on ((?:https?|unix)://[^\s"]+)[^\n]*\n', self.said)
        return found[1] if found else ""

    @property
    def address(self) -> tuple[str, int]:
        """(host, port) to connect to."""
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        assert parts.port is not None
        return ("127.0.0.1" if parts.hostname == "0.0.0.0" else parts.hostname), parts.port

    async def says(self, words: str, *, times: int = 1, seconds: float = 20) -> None:
        """Wait until `words` have been said so often."""
        with anyio.fail_after(seconds):
            while self.said.count(words) < times:
                await self.arrival.wait()

    def ask_to_end(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Send a signal, in a test that is marked with `asks_to_end`."""
        self.process.send_signal(number)

    def stop(self) -> int:
        """Ask it to end, or have the system end it where nobody can ask; the status it will have."""
        self.process.terminate()
        return 1 if sys.platform == "win32" else 143

    async def ends(self, seconds: float = 8) -> int:
        """Wait for the process and all it said; the exit status."""
        with anyio.fail_after(seconds):
            status = await self.process.wait()
            await self.says("\0")
        return status

    async def collect(self) -> None:
        assert self.process.stderr is not None
        async for chunk in self.process.stderr:
            self._add(chunk.decode(errors="replace").replace("\r", ""))
        self._add("\0")

    def _add(self, text: str) -> None:
        self.said += text
        self.arrival.set()
        self.arrival = anyio.Event()


@asynccontextmanager
async def running(command: Sequence[str]) -> AsyncGenerator[Subject]:
    """The server that `command` starts, once it listens; killed in the end if it is still there."""
    failure: BaseException | None = None
    async with await anyio.open_process([*command], stdin=None, stdout=None, stderr=PIPE) as process:
        subject = Subject(process)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(subject.collect)
            try:
                with anyio.fail_after(SECONDS):
                    while not subject.url:
                        assert "\0" not in subject.said, subject.said
                        await subject.arrival.wait()
                yield subject
            except Exception as exc:  # Raised again outside the group, which would wrap it.
                failure = exc
            if process.returncode is None:
                process.kill()
            tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


@asynccontextmanager
async def opened(subject: Subject, revision: str) -> AsyncGenerator[HttpWire]:
    """A client of a running server."""
    async with HttpWire(subject.url, revision=revision) as wire:
        await wire.open()
        yield wire
