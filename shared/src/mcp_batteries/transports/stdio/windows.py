"""System functions of the stdio transport on Windows; `posix` has the same names. Standard library only."""

from __future__ import annotations

import sys

if sys.platform != "win32":
    raise ImportError("for Windows only")

import _winapi
import ctypes
import msvcrt
import os
import signal

__all__ = ["POLLABLE", "SIGNALS", "Parent", "has_reader", "make_pipe", "take", "widen"]

# Whether the event loop can wait for a pipe: it could if the host had opened it for overlapped calls, but few do.
POLLABLE = False
# These signals ask a process to end: Ctrl-C and Ctrl-Break.
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGBREAK)

_SYNCHRONIZE = 0x0010_0000
_PROCESS_BASIC_INFORMATION = 0
_PIPE_LOCAL_INFORMATION = 24
_CLOSING = 4  # FILE_PIPE_CLOSING_STATE
_ntdll = ctypes.WinDLL("ntdll")


class Parent:
    """The process that started this one.

    Another process may get its number once it has ended, so an open handle identifies it.
    """

    def __init__(self) -> None:
        # os.getppid() takes a snapshot of the process for it (3.13), or of all processes (before).
        information = (ctypes.c_void_p * 6)()
        us = ctypes.c_void_p(_winapi.GetCurrentProcess())
        _ntdll.NtQueryInformationProcess(us, _PROCESS_BASIC_INFORMATION, information, ctypes.sizeof(information), None)
        parent_id = information[5] or 0
        try:
            self._handle = _winapi.OpenProcess(_SYNCHRONIZE, False, parent_id)
        except OSError:
            self._handle = None

    def is_alive(self) -> bool:
        """Tell whether it runs; also true if the system does not let us check: then the end of input shows it."""
        return self._handle is None or _winapi.WaitForSingleObject(self._handle, 0) != _winapi.WAIT_OBJECT_0


def take(descriptor: int) -> int:
    """Return a copy of a standard descriptor that child processes do not inherit, with a non-standard number."""
    copy = os.dup(descriptor)
    msvcrt.setmode(copy, os.O_BINARY)
    return copy


def make_pipe(size: int) -> tuple[int, int]:
    """Return a pipe, (source, sink), that holds about `size` bytes; os.pipe() gives 4 KiB."""
    source, sink = _winapi.CreatePipe(None, size)
    return msvcrt.open_osfhandle(source, os.O_RDONLY), msvcrt.open_osfhandle(sink, os.O_WRONLY)


def widen(descriptor: int, size: int) -> None:
    """Do nothing: on Windows a pipe keeps the size that it was created with."""


def has_reader(descriptor: int) -> bool:
    """Tell whether the other end of the pipe `descriptor` is open; wait for a write that another thread has begun.

    An empty write would show it too, but some readers take it for the end.
    """
    state = (ctypes.c_ulong * 10)()
    io_status = (ctypes.c_void_p * 2)()
    handle = ctypes.c_void_p(msvcrt.get_osfhandle(descriptor))
    error = _ntdll.NtQueryInformationFile(handle, io_status, state, ctypes.sizeof(state), _PIPE_LOCAL_INFORMATION)
    return error != 0 or state[8] != _CLOSING
