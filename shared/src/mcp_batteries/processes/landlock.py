"""Confinement by Landlock, the sandbox of the Linux kernel that needs no privilege.

Landlock restricts one thread, and all that this thread starts from then on. So each process is started by a thread that
restricts itself first and ends right after: nothing else in this process is restricted, and no launcher is needed.

What Landlock does not see: asking for names and attributes (`stat`), UDP, and the mapping of a readable file as code.
For the last, somebody has to hand the dynamic loader an argument, so a confinement that allows no shell and no
interpreter keeps to its programs.
"""

from __future__ import annotations

import ctypes
import gc
import os
import stat
import struct
import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from enum import IntFlag
from typing import Any, TypeVar

from mcp_batteries.processes.confinement import Confinement

__all__ = ["OLDEST_ABI", "Landlock", "landlock_abi"]

T = TypeVar("T")

# This is the first with which a file can be renamed into another folder (Linux 5.19).
OLDEST_ABI = 2
_NETWORK_ABI = 4
_SCOPE_ABI = 6

# The same numbers on every architecture that Python is built for.
_OPENAT2 = 437
_CREATE_RULESET = 444
_ADD_RULE = 445
_RESTRICT_SELF = 446

_VERSION_FLAG = 1
_PATH_BENEATH = 1
_PR_SET_NO_NEW_PRIVS = 38
_AT_FDCWD = -100
_RESOLVE_NO_SYMLINKS = 4
_MAX_RULESETS = 32


class _Access(IntFlag):
    """Rights to files, as `linux/landlock.h` numbers them."""

    EXECUTE = 1 << 0
    WRITE_FILE = 1 << 1
    READ_FILE = 1 << 2
    READ_DIR = 1 << 3
    REMOVE_DIR = 1 << 4
    REMOVE_FILE = 1 << 5
    MAKE_CHAR = 1 << 6
    MAKE_DIR = 1 << 7
    MAKE_REG = 1 << 8
    MAKE_SOCK = 1 << 9
    MAKE_FIFO = 1 << 10
    MAKE_BLOCK = 1 << 11
    MAKE_SYM = 1 << 12
    REFER = 1 << 13
    TRUNCATE = 1 << 14
    IOCTL_DEV = 1 << 15


_SINCE_ABI = {2: _Access.REFER, 3: _Access.TRUNCATE, 5: _Access.IOCTL_DEV}
_ALL = _Access((1 << 16) - 1)
_READ = _Access.READ_FILE | _Access.READ_DIR
_EXECUTE = _READ | _Access.EXECUTE
_WRITE = _ALL & ~(_Access.EXECUTE | _Access.MAKE_CHAR | _Access.MAKE_BLOCK | _Access.IOCTL_DEV)
_OF_A_FILE = _Access.EXECUTE | _Access.WRITE_FILE | _Access.READ_FILE | _Access.TRUNCATE
_TCP_BIND_AND_CONNECT = 3
_ABSTRACT_SOCKETS_AND_SIGNALS = 3
_SIGNALS = 2

_Identity = tuple[str, int, int]


def landlock_abi() -> int:
    """Return the version of Landlock that this kernel enforces, 0 if it enforces none."""
    if sys.platform != "linux":
        return 0
    try:
        return _call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(_VERSION_FLAG))
    except OSError:
        return 0


class Landlock:
    """Starts processes that Landlock confines; every method may be called by any thread."""

    def __init__(self, abi: int) -> None:
        self._abi = abi
        self._rulesets: OrderedDict[tuple[Confinement, frozenset[_Identity]], _Ruleset] = OrderedDict()
        self._turn = threading.Lock()

    @property
    def name(self) -> str:
        """What it is called in reports."""
        network = "" if self._abi >= _NETWORK_ABI else ", files only"
        return f"Landlock {self._abi}{network}"

    def start(self, confinement: Confinement, words: Sequence[str], spawn: Callable[[Sequence[str]], T]) -> T:
        """Return what `spawn` returns, which starts the process of the command `words`.

        `spawn` runs in a thread that is confined as the process will be, so it only starts the process.

        Raises:
            OSError: The kernel does not confine the thread; nothing was started.
        """
        ruleset = self._ruleset(confinement)
        results: list[T] = []
        errors: list[BaseException] = []

        def work() -> None:
            try:
                ruleset.restrict_thread()
                results.append(spawn(words))
            except BaseException as error:  # noqa: BLE001 - raised in the thread that asked
                errors.append(error)

        with _no_garbage_collection():
            thread = threading.Thread(target=work, name="confined", daemon=True)
            thread.start()
            thread.join()
        if errors:
            raise errors[0]
        return results[0]

    def confine_thread(self, confinement: Confinement) -> None:
        """Confine the calling thread, and what it starts, for the rest of its life.

        Raises:
            OSError: The kernel does not confine it.
        """
        _Ruleset(confinement, self._abi).restrict_thread()

    def _ruleset(self, confinement: Confinement) -> _Ruleset:
        """Return the ruleset of a confinement, made again where another file or folder has one of its paths now."""
        paths = confinement.executable | confinement.readable | confinement.writable
        key = confinement, frozenset(filter(None, map(_identify, paths)))
        with self._turn:
            ruleset = self._rulesets.pop(key, None)
        if ruleset is None:
            ruleset = _Ruleset(confinement, self._abi)
            if ruleset.left_out & {path for path, *_ in key[1]}:
                return ruleset  # A path with a link in it may be a real one the next time.
        with self._turn:
            self._rulesets[key] = ruleset
            if len(self._rulesets) > _MAX_RULESETS:
                self._rulesets.popitem(last=False)
        return ruleset


class _Ruleset:
    """Rules in the kernel, held by a descriptor that is closed when nobody uses them any more.

    Attributes:
        left_out: Paths that do not exist, or have a link in them.
    """

    def __init__(self, confinement: Confinement, abi: int) -> None:
        self.left_out: set[str] = set()
        handled = _ALL
        for since, right in _SINCE_ABI.items():
            if abi < since:
                handled &= ~right
        network = 0
        scoped = 0
        if abi >= _NETWORK_ABI and not confinement.network:
            network = _TCP_BIND_AND_CONNECT
        if abi >= _SCOPE_ABI:
            # A session bus and its like may listen on an abstract socket.
            scoped = _SIGNALS if confinement.network else _ABSTRACT_SOCKETS_AND_SIGNALS
        attributes = struct.pack("=QQQ", handled, network, scoped)
        self._fd = _call(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint(0))
        weakref.finalize(self, os.close, self._fd).atexit = False
        for paths, rights in (
            (confinement.readable, _READ),
            (confinement.executable, _EXECUTE),
            (confinement.writable | {os.devnull}, _WRITE),
        ):
            for path in paths:
                self._allow(path, rights & handled)

    def _allow(self, path: str, rights: _Access) -> None:
        try:
            descriptor = _open_without_links(path)
        except OSError:
            self.left_out.add(path)
            return
        try:
            if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
                rights &= _OF_A_FILE
            rule = struct.pack("=Qi", rights, descriptor)
            _call(_ADD_RULE, ctypes.c_int(self._fd), ctypes.c_int(_PATH_BENEATH), rule, ctypes.c_uint(0))
        finally:
            os.close(descriptor)

    def restrict_thread(self) -> None:
        """Confine the calling thread for the rest of its life."""
        nothing = ctypes.c_ulong(0)
        if _libc().prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), nothing, nothing, nothing):
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_NO_NEW_PRIVS) failed")
        _call(_RESTRICT_SELF, ctypes.c_int(self._fd), ctypes.c_uint(0))


def _identify(path: str) -> _Identity | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return path, status.st_dev, status.st_ino


def _open_without_links(path: str) -> int:
    """Open a path of which no component is a symbolic link, only to name it."""
    flags = os.O_PATH | os.O_CLOEXEC  # type: ignore[attr-defined]
    open_how = struct.pack("=QQQ", flags, 0, _RESOLVE_NO_SYMLINKS)
    return _call(_OPENAT2, ctypes.c_int(_AT_FDCWD), os.fsencode(path), open_how, ctypes.c_size_t(len(open_how)))


_libraries: list[Any] = []


def _libc() -> Any:
    if not _libraries:
        _libraries.append(ctypes.CDLL(None, use_errno=True))
        _libraries[0].syscall.restype = ctypes.c_long
    return _libraries[0]


def _call(number: int, *arguments: Any) -> int:
    result: int = _libc().syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


_pauses = 0
_pauses_turn = threading.Lock()
_was_enabled = False


@contextmanager
def _no_garbage_collection() -> Generator[None]:
    """Keep the collector from running finalizers in a confined thread, where they could not remove their files."""
    global _pauses, _was_enabled
    with _pauses_turn:
        if _pauses == 0:
            _was_enabled = gc.isenabled()
            gc.disable()
        _pauses += 1
    try:
        yield
    finally:
        with _pauses_turn:
            _pauses -= 1
            if _pauses == 0 and _was_enabled:
                gc.enable()
