"""A process that is read from, stopped at once with all it started, and bounded in its memory."""

from __future__ import annotations

import os
import queue
import select
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import IO

from mcp_batteries.limits import Stop

__all__ = ["Pipe", "end", "limit_memory", "unnamed"]

_PIECE = 64 * 1024
_MOST_PIECES = 16
"""Read ahead of what is taken."""
_MOST_MEMORY = 4 * 1024**3
_TICK_SECONDS = 0.05


class Pipe:
    """Reads a pipe so that a stop is heeded meanwhile; where pipes can't be waited for, on a thread of its own."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._ahead, self._poll = (_Ahead(pipe), None) if sys.platform == "win32" else (None, select.poll())
        if self._poll:
            self._poll.register(pipe, select.POLLIN)

    def pieces(self, stop: Stop, meanwhile: Callable[[], None] | None = None) -> Generator[bytes]:
        """What is read, until the end of the pipe.

        Args:
            meanwhile: called now and then while there is nothing to read.

        Raises:
            Stopped: nobody waits for it any more.
        """
        while True:
            stop.check()
            piece = self._ahead.take() if self._ahead else self._read()
            if piece is None:
                if meanwhile:
                    meanwhile()
                continue
            if not piece:
                return
            yield piece

    def _read(self) -> bytes | None:
        assert self._poll is not None
        return os.read(self._pipe.fileno(), _PIECE) if self._poll.poll(_TICK_SECONDS * 1000) else None

    def leave(self) -> None:
        """Read no more; what writes has ended."""
        if self._ahead:
            self._ahead.leave()
        else:
            self._pipe.close()


class _Ahead:
    """Reads a pipe on a thread, some pieces ahead of what is taken."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._pieces: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._room = threading.Semaphore(_MOST_PIECES)
        self._left = False
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        piece = b"more"
        while piece and not self._left:
            piece = os.read(self._pipe.fileno(), _PIECE)
            self._pieces.put(piece)
            self._room.acquire()
        self._pipe.close()

    def take(self) -> bytes | None:
        """A piece; None where there is none yet, nothing at the end."""
        try:
            piece = self._pieces.get(timeout=_TICK_SECONDS)
        except queue.Empty:
            return None
        self._room.release()
        return piece

    def leave(self) -> None:
        self._left = True
        self._room.release()


def unnamed(folder: str) -> IO[bytes]:
    """A file without a name: in memory, where the system can, else in `folder`."""
    if sys.platform == "linux" and hasattr(os, "memfd_create"):
        with suppress(OSError):  # a filter of system calls may forbid it
            return open(os.memfd_create("mcp-git"), "r+b", buffering=0)
    return tempfile.TemporaryFile(dir=folder)


def end(process: subprocess.Popen[bytes]) -> None:
    """End git and what it started, unless it has ended."""
    if process.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def limit_memory(process: int) -> None:
    """Bound what a process may take, where the system can."""
    if sys.platform == "linux":
        import resource

        with suppress(OSError, ValueError):
            resource.prlimit(process, resource.RLIMIT_DATA, (_MOST_MEMORY, _MOST_MEMORY))
