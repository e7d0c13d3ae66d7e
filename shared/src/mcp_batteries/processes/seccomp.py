"""Forbids a process to make sockets, by a filter of system calls (`seccomp`), which Linux allows every process.

Landlock forbids connections of TCP and to abstract sockets, not UDP and not the sockets that lie in folders.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys

__all__ = ["forbid_sockets"]

_PR_SET_SECCOMP = 22
_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_MODE_FILTER = 2
# Instructions of a filter, as `linux/bpf_common.h` numbers them.
_LOAD_WORD = 0x20
_JUMP_IF_EQUAL = 0x15
_JUMP_IF_AT_LEAST = 0x35
_RETURN = 0x06
# What a filter returns, as `linux/seccomp.h` numbers it.
_ALLOW = 0x7FFF0000
_FAIL = 0x00050000 | errno.EACCES
# Where the number and the architecture of a call are in the data of a filter.
_NUMBER_AT = 0
_ARCHITECTURE_AT = 4
# The kernel's number of the architecture, and that of the call `socket` in it.
_ARCHITECTURES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
# Through a ring of requests the kernel makes sockets too; the number is the same everywhere.
_IO_URING_SETUP = 425
# Calls from here on are those of programs for x32, a second set of numbers.
_X32_BIT = 0x40000000


def forbid_sockets() -> None:
    """Let every try of this process, and of what it starts, to make a socket fail; nothing on systems without seccomp.

    Raises:
        OSError: The kernel refuses the filter.
    """
    if sys.platform != "linux" or os.uname().machine not in _ARCHITECTURES:
        return
    architecture, socket_call = _ARCHITECTURES[os.uname().machine]
    instructions = [
        _instruction(_LOAD_WORD, _ARCHITECTURE_AT),
        _instruction(_JUMP_IF_EQUAL, architecture, if_true=1),
        _instruction(_RETURN, _FAIL),
        _instruction(_LOAD_WORD, _NUMBER_AT),
        _instruction(_JUMP_IF_AT_LEAST, _X32_BIT, if_true=2),
        _instruction(_JUMP_IF_EQUAL, socket_call, if_true=1),
        _instruction(_JUMP_IF_EQUAL, _IO_URING_SETUP, if_false=1),
        _instruction(_RETURN, _FAIL),
        _instruction(_RETURN, _ALLOW),
    ]
    code = ctypes.create_string_buffer(b"".join(instructions))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(instructions), ctypes.addressof(code)))
    _prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), ctypes.c_ulong(0))
    _prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), program)


def _instruction(code: int, value: int, *, if_true: int = 0, if_false: int = 0) -> bytes:
    """Return an instruction; a jump skips so many of those behind it."""
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _prctl(option: int, first: object, second: object) -> None:
    nothing = ctypes.c_ulong(0)
    if ctypes.CDLL(None, use_errno=True).prctl(option, first, second, nothing, nothing):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
