"""A worker's process, and the frames that go to it and come from it."""

from __future__ import annotations

import asyncio
import json
import struct
import subprocess
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

import anyio

from mcp_batteries.errors import Conflict, Invalid, NotFound, Problem, Refused, TooLarge, Unavailable
from mcp_batteries.executables import NO_WINDOW
from mcp_sqlite.engine.workers.launcher import FolderIdentity, WorkerLauncher, identify_folders

__all__ = ["DatabaseLocked", "ProcessExited", "Worker", "WorkerDied", "raise_for_error", "to_problem"]

_LENGTH = struct.Struct(">I")
_to_json = json.JSONEncoder(separators=(",", ":")).encode
_START_SECONDS = 20.0


class ProcessExited(Exception):
    """Raised when the process at the other end of the pipes has ended."""


class WorkerDied(Unavailable):
    """Raised when a worker ends before it has answered."""


class DatabaseLocked(Unavailable):
    """Raised when somebody else has locked the database; nothing was done."""


_PROBLEMS: dict[str, type[Problem]] = {
    "conflict": Conflict,
    "invalid": Invalid,
    "locked": DatabaseLocked,
    "not_found": NotFound,
    "refused": Refused,
    "stopped": Unavailable,
    "too_large": TooLarge,
    "unavailable": Unavailable,
}


class Worker(asyncio.SubprocessProtocol, asyncio.Protocol):
    """A process, and the frames it has sent.

    Its frames are read in the event loop's own callback: a stream between would cost as much as all the work.

    Attributes:
        folders: the folders of databases that it can reach.
    """

    _transport: asyncio.SubprocessTransport
    _requests: asyncio.WriteTransport

    def __init__(self, folders: frozenset[FolderIdentity]) -> None:
        self.folders = folders
        self._loop = asyncio.get_running_loop()
        self._data = bytearray()
        self._frames: deque[bytes] = deque()
        self._at_end = False
        self._wake: asyncio.Future[None] | None = None
        self._exited = asyncio.Event()

    @classmethod
    async def start(cls, launcher: WorkerLauncher) -> Worker:
        """Start a process, and return it when it is ready.

        Raises:
            WorkerDied: it does not start.
        """
        # Identified first: of a folder that is replaced in between, the worker is taken for one that can't reach it.
        folders = identify_folders(launcher.databases)
        transport, worker = await asyncio.get_running_loop().subprocess_exec(
            lambda: cls(folders),
            *launcher.command(),
            stderr=subprocess.DEVNULL,
            env=launcher.environment(),
            creationflags=NO_WINDOW,
        )
        worker._transport = transport
        worker._requests = cast("asyncio.WriteTransport", transport.get_pipe_transport(0))
        answers = cast("asyncio.ReadTransport", transport.get_pipe_transport(1))
        answers.set_protocol(worker)  # the one between the pipe and `pipe_data_received` takes a turn of the loop
        try:
            ready = await worker.receive(_START_SECONDS)
            if ready is None:
                raise ProcessExited
            raise_for_error(ready)
            return worker
        except ProcessExited:
            await worker.kill()
            raise WorkerDied(
                "SQLite's process did not start.",
                "Try again; if that ends alike, the operator can see with `--check` what is in its way.",
            ) from None
        except BaseException:
            await worker.kill()
            raise

    @property
    def is_alive(self) -> bool:
        """Whether the process still runs."""
        return self._transport.get_returncode() is None

    def send(self, request: Mapping[str, Any]) -> None:
        """Send a request; do nothing where the process has ended."""
        body = _to_json(request).encode()
        self._requests.write(_LENGTH.pack(len(body)) + body)

    async def receive(self, seconds: float) -> dict[str, Any] | None:
        """Return the next frame; None if none comes within `seconds`.

        Raises:
            ProcessExited: the process has ended.
        """
        if not self._frames:
            if self._at_end:
                raise ProcessExited
            self._wake = self._loop.create_future()
            timer = self._loop.call_later(seconds, self._rouse)
            try:
                await self._wake
            finally:
                timer.cancel()
                self._wake = None
            if not self._frames:
                if self._at_end:
                    raise ProcessExited
                return None
        return json.loads(self._frames.popleft())

    async def kill(self) -> None:
        """End the process, and wait for its end."""
        with anyio.CancelScope(shield=True):
            if self.is_alive:
                with suppress(ProcessLookupError):
                    self._transport.kill()
            for number in (0, 1):
                pipe = self._transport.get_pipe_transport(number)
                if pipe is not None:
                    pipe.close()
            await self._exited.wait()
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        self._data += data
        while len(self._data) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(self._data)[0]
            if len(self._data) < end:
                return
            self._frames.append(bytes(self._data[_LENGTH.size : end]))
            del self._data[:end]
            self._rouse()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._at_end = True
        self._rouse()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1:
            self.connection_lost(exc)

    def process_exited(self) -> None:
        self._exited.set()

    def _rouse(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


def raise_for_error(frame: dict[str, Any]) -> dict[str, Any]:
    """Return `frame`, unless the worker says in it why it refuses.

    Raises:
        Problem: it refuses.
    """
    error = frame.get("error")
    if error:
        raise to_problem(error)
    return frame


def to_problem(error: Sequence[str]) -> Problem:
    """Return the problem that a worker sent as kind, message and fix."""
    kind, message, fix = error
    return _PROBLEMS[kind](message, fix)
