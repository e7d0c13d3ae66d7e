"""System functions of the stdio transport on POSIX; `windows` has the same names. Standard library only."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys

if sys.platform == "win32":
    raise ImportError("for POSIX only")

import fcntl

__all__ = ["POLLABLE", "SIGNALS", "Parent", "has_reader", "make_pipe", "take", "widen"]

# Whether the event loop can wait for a pipe.
POLLABLE = True
# These signals ask a process to end.
SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Parent:
    """The process that started this one."""

    def __init__(self) -> None:
        self._number = os.getppid()

    def is_alive(self) -> bool:
        # A death signal from the kernel would come with the end of the thread that started us, not the process.
        return os.getppid() == self._number


def take(descriptor: int) -> int:
    """Return a copy of a standard descriptor that child processes do not inherit, with a non-standard number."""
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)


def make_pipe(size: int) -> tuple[int, int]:
    """Return a pipe, (source, sink), that holds about `size` bytes where the system allows it."""
    source, sink = os.pipe()
    widen(sink, size)
    return source, sink


def widen(descriptor: int, size: int) -> None:
    """Make the pipe `descriptor` hold `size` bytes, if the system allows it; do nothing if it is not a pipe."""
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, size)


def has_reader(descriptor: int) -> bool:
    """Tell whether the other end of the pipe `descriptor` is open."""
    if not hasattr(select, "poll"):
        return True
    poll = select.poll()
    poll.register(descriptor, 0)
    return not any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
