"""Runs a process with limited memory, reads its output, and stops it at once with everything that it started."""

from __future__ import annotations

import errno
import os
import queue
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import IO, TypeVar

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import TooLarge
from mcp_batteries.executables import NO_WINDOW
from mcp_batteries.processes.confinement import Confinement
from mcp_batteries.processes.sandbox import find_sandbox

__all__ = [
    "Command",
    "PipeReader",
    "Process",
    "limit_memory",
    "open_unnamed_file",
    "start",
    "terminate",
]

T = TypeVar("T")

_PIECE_BYTES = 64 * 1024
# Read ahead of what is taken.
_MAX_PIECES_AHEAD = 16
_POLL_SECONDS = 0.05
_LAST_STANDARD_DESCRIPTOR = 2
# Stands for how a process ended of which that can't be learned: never for an end that is fine.
_UNKNOWN_EXIT_CODE = 255
# How Windows says that a command line is.
_WINDOWS_COMMAND_TOO_LONG = 206
# For git to remove its locks.
_TERMINATION_SECONDS = 2.0
# For a git that writes to come to its end, as one that was asked to end the moment that it made a lock leaves that.
_COMPLETION_SECONDS = 0.5
# Signals that Python ignores, and what it starts would too.
_RESET_SIGNALS = [getattr(signal, name) for name in ("SIGPIPE", "SIGXFSZ") if hasattr(signal, name)]


class PipeReader:
    """Reads a pipe so that a stop is heeded meanwhile; where pipes can't be waited for, on a thread of its own."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._threaded_reader, self._poll = (
            (_ThreadedReader(pipe), None) if sys.platform == "win32" else (None, select.poll())
        )
        if self._poll:
            self._poll.register(pipe, select.POLLIN)

    def stream(self, cancel: CancelToken, meanwhile: Callable[[], None] | None = None) -> Generator[bytes]:
        """Return what is read, until the end of the pipe.

        Args:
            meanwhile: called now and then while there is nothing to read.

        Raises:
            Stopped: nobody waits for it any more.
        """
        while True:
            cancel.check()
            piece = self._threaded_reader.take() if self._threaded_reader else self._read()
            if piece is None:
                if meanwhile:
                    meanwhile()
                continue
            if not piece:
                return
            yield piece

    def _read(self) -> bytes | None:
        assert self._poll is not None
        return os.read(self._pipe.fileno(), _PIECE_BYTES) if self._poll.poll(_POLL_SECONDS * 1000) else None

    def close(self) -> None:
        """Read no more; what writes has ended."""
        if self._threaded_reader:
            self._threaded_reader.close()
        else:
            self._pipe.close()


class _ThreadedReader:
    """Reads a pipe on a thread, some pieces ahead of what is taken."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._pieces: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._room = threading.Semaphore(_MAX_PIECES_AHEAD)
        self._is_closed = False
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        piece = b"more"
        while piece and not self._is_closed:
            piece = os.read(self._pipe.fileno(), _PIECE_BYTES)
            self._pieces.put(piece)
            self._room.acquire()
        self._pipe.close()

    def take(self) -> bytes | None:
        """Return a piece; None where there is none yet, nothing at the end."""
        try:
            piece = self._pieces.get(timeout=_POLL_SECONDS)
        except queue.Empty:
            return None
        self._room.release()
        return piece

    def close(self) -> None:
        self._is_closed = True
        self._room.release()


def open_unnamed_file(folder: str) -> IO[bytes]:
    """Open a file without a name: in memory, where the system can, else in `folder`."""
    if sys.platform == "linux" and hasattr(os, "memfd_create"):
        with suppress(OSError):  # a filter of system calls may forbid it
            return open(os.memfd_create("mcp-git"), "r+b", buffering=0)
    return tempfile.TemporaryFile(dir=folder)


class _SpawnedProcess:
    """A process of `posix_spawn`, as much of it as `Popen` has and is used here.

    Attributes:
        stdout: what it prints.
    """

    def __init__(self, pid: int, stdout: IO[bytes]) -> None:
        self.pid = pid
        self.stdout = stdout
        self.returncode: int | None = None
        self._turn = threading.Lock()

    def poll(self) -> int | None:
        if self._turn.acquire(blocking=False):
            try:
                self._look(os.WNOHANG)
            finally:
                self._turn.release()
        return self.returncode

    def wait(self) -> int:
        with self._turn:
            self._look(0)
        assert self.returncode is not None
        return self.returncode

    def _look(self, options: int) -> None:
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, options)
            except ChildProcessError:
                # Somebody else took its status, or SIGCHLD is ignored: whether it did its work, nobody knows.
                self.returncode = _UNKNOWN_EXIT_CODE
            else:
                if pid:
                    self.returncode = os.waitstatus_to_exitcode(status)


Process = _SpawnedProcess | subprocess.Popen[bytes]


@dataclass(frozen=True, slots=True)
class Command:
    """What is run.

    Attributes:
        program: an absolute path, as is `folder`, in which it works.
        environment: all of it.
        confinement: what it may do; None where the system confines nothing.
    """

    program: str
    arguments: Sequence[str]
    working_folder: str
    environment: Mapping[str, str]
    confinement: Confinement | None = None


def start(command: Command, *, stdin: IO[bytes] | None, stderr: IO[bytes], new_session: bool) -> Process:
    """Start git in a process group of its own.

    Args:
        stdin: what it reads, nothing by default.
        stderr: a file for what it says besides.
        new_session: in a session of its own, which has no terminal where somebody could be asked. Takes longer.

    Raises:
        TooLarge: the words are more than the system hands to a program.
    """

    def popen(words: Sequence[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            words,
            cwd=command.working_folder,
            env=command.environment,
            stdin=stdin or subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            bufsize=0,
            start_new_session=new_session,
            process_group=None if new_session else 0,
            creationflags=NO_WINDOW,
        )

    try:
        if sys.platform != "win32" and not new_session:
            # The same by the system's own call, in half the time.
            if spawned := _spawn(command, stdin.fileno() if stdin else None, stderr.fileno()):
                return spawned
        return _start_confined(command, [command.program, *command.arguments], popen)
    except OSError as error:
        if error.errno != errno.E2BIG and getattr(error, "winerror", 0) != _WINDOWS_COMMAND_TOO_LONG:
            raise
        raise TooLarge(
            "The system hands no arguments as long as these to git.", "Give shorter or fewer ones."
        ) from None


def _spawn(command: Command, stdin: int | None, stderr: int) -> _SpawnedProcess | None:
    """Start a process by `posix_spawn`; return None where standard descriptors were closed."""
    assert sys.platform != "win32"
    _close_on_exec()
    read_end, write_end = os.pipe()
    try:
        if min(read_end, write_end, stderr, write_end if stdin is None else stdin) <= _LAST_STANDARD_DESCRIPTOR:
            return None
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0) if stdin is None else (os.POSIX_SPAWN_DUP2, stdin, 0),
            (os.POSIX_SPAWN_DUP2, write_end, 1),
            (os.POSIX_SPAWN_DUP2, stderr, 2),
        ]

        def spawn(words: Sequence[str]) -> int:
            assert sys.platform != "win32"
            return os.posix_spawn(
                words[0], list(words), command.environment, file_actions=actions, setpgroup=0, setsigdef=_RESET_SIGNALS
            )

        pid = _start_confined(command, [command.program, "-C", command.working_folder, *command.arguments], spawn)
        stdout = open(read_end, "rb", buffering=0)  # noqa: SIM115 - `PipeReader` closes it
        read_end = -1
        return _SpawnedProcess(pid, stdout)
    finally:
        os.close(write_end)
        if read_end >= 0:
            os.close(read_end)


def _start_confined(command: Command, words: Sequence[str], spawn: Callable[[Sequence[str]], T]) -> T:
    """Start `words` by `spawn`, confined as the command is to be."""
    if command.confinement is None:
        return spawn(words)
    return find_sandbox().start(command.confinement, words, spawn)


@cache
def _close_on_exec() -> None:
    """Hand on no descriptor that came from whoever started this process; what Python opens is never handed on."""
    with suppress(OSError):
        for name in os.listdir("/dev/fd"):
            if int(name) > _LAST_STANDARD_DESCRIPTOR:
                with suppress(OSError):  # the one of the list is closed by now
                    os.set_inheritable(int(name), False)


def terminate(process: Process, *, writes: bool = False) -> None:
    """End git and what it started, unless it has ended; asked first, as one that is killed leaves its locks behind.

    Args:
        writes: whether it gets some time to end by itself.
    """
    if process.poll() is not None or (writes and _has_ended_within(process, _COMPLETION_SECONDS)):
        return
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGTERM)
            _has_ended_within(process, _TERMINATION_SECONDS)
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _has_ended_within(process: Process, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < until:
        time.sleep(0.001)
    return process.returncode is not None


def limit_memory(process: int, max_bytes: int) -> None:
    """Bound what a process may take, where the system can."""
    if sys.platform == "linux":
        import resource

        with suppress(OSError, ValueError):
            resource.prlimit(process, resource.RLIMIT_DATA, (max_bytes, max_bytes))
