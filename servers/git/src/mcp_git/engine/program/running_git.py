"""A git at work: started, read piece by piece, and ended at once with everything that it started."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from typing import IO

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_git.engine.program.process import (
    Command,
    PipeReader,
    Process,
    limit_memory,
    open_unnamed_file,
    start,
    terminate,
)

__all__ = ["GitSlots", "RunningGit", "start_git"]

_MAX_RUNNING = 6
_POLL_SECONDS = 0.05
# What the git of one call may take, and what those beside it may: 3 GB together, were all to take it.
_MAX_MEMORY_BYTES = 1024**3
_MAX_MEMORY_BESIDE_BYTES = 400 * 1024**2


class GitSlots:
    """Lets so many local gits run at a time, besides those that a thread runs inside of its first one.

    One of them at a time may take much memory.
    """

    def __init__(self, number: int = _MAX_RUNNING) -> None:
        self._slots = threading.BoundedSemaphore(number)
        self._large_slot = threading.Lock()
        self._of_thread = threading.local()

    @contextmanager
    def hold(self, cancel: CancelToken) -> Generator[int]:
        """Wait for a slot, unless this thread has one, and hold it for a block; return the bytes of memory it has.

        Raises:
            WorkCancelled: nobody waits for it any more.
        """
        held_bytes: int | None = getattr(self._of_thread, "memory_bytes", None)
        if held_bytes is not None:
            yield held_bytes
            return
        while not self._slots.acquire(timeout=_POLL_SECONDS):
            cancel.check()
        is_large = self._large_slot.acquire(blocking=False)
        self._of_thread.memory_bytes = _MAX_MEMORY_BYTES if is_large else _MAX_MEMORY_BESIDE_BYTES
        try:
            yield self._of_thread.memory_bytes
        finally:
            self._of_thread.memory_bytes = None
            if is_large:
                self._large_slot.release()
            self._slots.release()


class RunningGit:
    """A git at work.

    Attributes:
        stderr: what it says besides.
    """

    def __init__(self, process: Process, stderr: IO[bytes], *, writes: bool) -> None:
        assert process.stdout is not None
        self._process = process
        self._writes = writes
        self.stderr = stderr
        self._pipe = PipeReader(process.stdout)

    def stream(self, cancel: CancelToken, meanwhile: Callable[[], None] | None = None) -> Generator[bytes]:
        """Return what it prints, as `PipeReader.stream`."""
        return self._pipe.stream(cancel, meanwhile)

    def wait(self) -> int:
        """Wait for its end, and return its exit code."""
        return self._process.wait()

    def close(self) -> None:
        """End it, unless it has ended."""
        terminate(self._process, writes=self._writes)
        self._pipe.close()
        self.stderr.close()


def start_git(
    command: Command,
    stdin: bytes,
    scratch_folder: str,
    *,
    memory_bytes: int,
    writes: bool = False,
    new_session: bool = False,
) -> RunningGit:
    """Start a git.

    Args:
        stdin: what it reads.
        scratch_folder: for what it reads and says, where the system keeps no unnamed files in memory.
        memory_bytes: what it may take.
        writes: whether it writes into a repository.
        new_session: as `process.start`.
    """
    with ExitStack() as files:
        stderr = files.enter_context(open_unnamed_file(scratch_folder))
        process = _start(command, stdin, stderr, scratch_folder, new_session)
        files.pop_all()
    limit_memory(process.pid, memory_bytes)
    return RunningGit(process, stderr, writes=writes)


def _start(command: Command, stdin: bytes, stderr: IO[bytes], scratch_folder: str, new_session: bool) -> Process:
    if not stdin:
        return start(command, stdin=None, stderr=stderr, new_session=new_session)
    with open_unnamed_file(scratch_folder) as file:
        file.write(stdin)
        file.seek(0)
        return start(command, stdin=file, stderr=stderr, new_session=new_session)
