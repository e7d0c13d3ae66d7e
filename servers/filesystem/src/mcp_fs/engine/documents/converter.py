"""The other side of `worker`: starts it, answers its reads, ends it when it takes too long, and keeps its results."""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, BinaryIO, Literal, cast

from mcp_batteries.errors import Invalid, NotFound, Problem, TooLarge, Unavailable, quote
from mcp_batteries.executables import NO_WINDOW
from mcp_batteries.limits import Stop, Stopped
from mcp_fs.engine.document_kinds import FRAME, MOST_BYTES, RANGE, SECONDS

__all__ = ["Taken", "Wanted", "taken"]

Wanted = Literal["text", "bytes", "all", "page", "picture", "safety"]

_WALL_SECONDS = 10.0
"""A process that waits for its turn on a busy machine is not one that works: five times what it may work."""
_MOST_IDLE, _MOST_AT_WORK = 2, 4
_POLL_SECONDS = 0.05
# Isolated from the variables and the folder that a Python looks at, it finds what this one found.
_START = "import sys; sys.path[:] = sys.argv[1:]; from mcp_fs.engine.documents.worker import main; main()"
# What a system needs to start any program at all.
_ENVIRONMENT = ("SYSTEMROOT", "PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMP", "TEMP")
_MOST_KEPT = MOST_BYTES
_CRASHES = ("SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT")
_WINDOWS_CRASHES = {
    0xC0000005: "access violation",
    0xC000001D: "illegal instruction",
    0xC00000FD: "stack overflow",
    0xC0000374: "heap corruption",
    0xC0000409: "stack buffer overrun",
}


@dataclass(frozen=True, slots=True)
class Taken:
    """What was taken out of a file.

    Attributes:
        label: what kind of text this is; empty for bytes as they are.
        data: the text as UTF-8, or the bytes.
        cut: why the rest is missing; empty where nothing is.
        members: of a whole archive, each file with its text or bytes.
    """

    label: str
    data: bytes
    cut: str
    members: Sequence[tuple[str, bytes]] = ()


@dataclass(frozen=True, slots=True)
class _TooLong:
    """What ended its process: too much time or memory, or the crash that is named."""

    crash: str = ""


def taken(
    file: BinaryIO,
    name: str,
    path: Sequence[str],
    want: Wanted,
    shown: str,
    stop: Stop,
    *,
    page: int = 0,
    mime_type: str = "",
) -> Taken:
    """What `want` names of an open file, or of a member of it.

    Args:
        name: of the file: what it is, that tells in part.
        path: names down to the member; none for the file itself.
        shown: what the caller calls it.
        want: of a picture `picture`, a PNG or JPEG that models take, with JSON about it as the label, or `safety`,
            where the label says whether they take the file as it is.
        page: of a PDF, from 1; the label is the number of pages then, and there is no data beyond the last.
        mime_type: of a picture, by its first bytes.

    Raises:
        NotFound: there is no such member.
        Invalid: the file is damaged, locked, or none that has text, or its library crashed.
        Unavailable: the library for it is not installed.
        TooLarge: it took too long.
    """
    status = os.fstat(file.fileno())
    key = (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
        name,
        want,
        page,
        mime_type,
        *path,
    )
    if (known := _kept.get(key)) is not None:
        if isinstance(known, _TooLong):
            raise _too_long(shown, known.crash)
        return known
    request = json.dumps(
        {
            "size": status.st_size,
            "name": name,
            "want": want,
            "path": list(path),
            "page": page,
            "mime_type": mime_type,
        }
    )
    with _workers.one(stop) as worker:
        found = worker.ask(request, file, shown, stop)
    if isinstance(found, _TooLong):
        # Not tried again with every search.
        _kept.put(key, found)
        raise _too_long(shown, found.crash)
    _kept.put(key, found)
    return found


class _Worker:
    """One process; one request at a time.

    Attributes:
        answered: whether the last request was answered to its end, so that another can follow.
    """

    def __init__(self) -> None:
        self.answered, self._was_late = True, False
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", _START, *filter(os.path.isabs, sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=os.path.abspath(os.sep),
            env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
            creationflags=NO_WINDOW,
        )

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def _kill(self) -> None:
        self._was_late = True
        self._process.kill()

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            try:
                cast("IO[bytes]", pipe).close()
            except OSError:
                continue  # what was not sent yet can't be any more

    def ask(self, request: str, file: BinaryIO, shown: str, stop: Stop) -> Taken | _TooLong:
        self.answered = False
        overdue = threading.Timer(_WALL_SECONDS, self._kill)
        overdue.daemon = True
        overdue.start()
        try:
            self._send(request.encode() + b"\n")
            return self._answer(file, shown, stop)
        except (EOFError, OSError) as error:
            self._process.kill()
            code = self._process.wait()
            if crash := _crash(code):
                return _TooLong(crash)
            if code > 0 and not self._was_late:
                raise Unavailable(
                    f"{quote(shown)} can't be read: the process that extracts text could not be used.",
                    "The operator can look whether this user may start processes, and how many.",
                ) from error
            return _TooLong()
        finally:
            overdue.cancel()

    def _answer(self, file: BinaryIO, shown: str, stop: Stop) -> Taken:
        label, cut, data = "", "", bytearray()
        problem: Problem | None = None
        members: list[tuple[str, bytearray]] = []
        received = 0
        while True:
            if stop.is_set():
                raise Stopped
            letter, payload = self._frame()
            received += len(payload) if letter in b"TBM" else 0
            if received > 2 * MOST_BYTES:
                raise EOFError  # it does not keep to what it may send
            match letter:
                case b"R":
                    offset, size = RANGE.unpack(payload)
                    file.seek(offset)
                    piece = file.read(min(size, MOST_BYTES))
                    self._send(len(piece).to_bytes(4, "big") + piece)
                case b"K":
                    label = payload.decode()
                case b"M":
                    data = bytearray()
                    members.append((payload.decode("utf-8", "replace"), data))
                case b"T" | b"B":
                    data += payload
                case b"X":
                    cut = payload.decode()
                case b"E":
                    kind, what = json.loads(payload)
                    problem = _problem(kind, what, shown)
                case b"D":
                    break
                case _:
                    raise EOFError
        self.answered = True
        if problem is not None:
            raise problem
        if cut and not received:
            raise TooLarge(f"{quote(shown)} unpacks to more than {MOST_BYTES:,} bytes.", "Name a member of it.")
        return Taken(label, bytes(data), cut, [(name, bytes(content)) for name, content in members])

    def _frame(self) -> tuple[bytes, bytes]:
        letter, length = FRAME.unpack(self._read(FRAME.size))
        return letter, self._read(length)

    def _read(self, size: int) -> bytes:
        data = cast("IO[bytes]", self._process.stdout).read(size)
        if len(data) < size:
            raise EOFError
        return data

    def _send(self, data: bytes) -> None:
        pipe = cast("IO[bytes]", self._process.stdin)
        pipe.write(data)
        pipe.flush()


def _crash(code: int) -> str:
    """The name of the crash that a process ended by; empty when it ended otherwise."""
    if code >= 0:
        return _WINDOWS_CRASHES.get(code, "")
    return next((name for name in _CRASHES if getattr(signal, name, None) == -code), "")


def _too_long(shown: str, crash: str) -> Problem:
    if crash:
        return Invalid(
            f"{quote(shown)} can't be read: the process that extracts its text crashed ({crash}), which happens with "
            "damaged files, and with those that take too much memory.",
            "`read_media` gives its bytes.",
        )
    return TooLarge(
        f"{quote(shown)} can't be read: extracting its text takes more than {SECONDS:g} s or too much memory.",
        "Name a member of it as `FILE!/MEMBER`, or leave it out.",
    )


def _problem(kind: str, what: str, shown: str) -> Problem:
    if kind == "missing":
        return NotFound(f"{quote(shown)} {what}.", "Read the archive itself, by `read_text`, to see what is in it.")
    if kind == "not installed":
        return Unavailable(
            f"{quote(shown)} is {what}, and mcp-fs is installed without the library that reads its text.",
            "The operator can install mcp-fs[documents].",
        )
    return Invalid(f"{quote(shown)} {what}.", "`read_media` gives its bytes.")


class _Workers:
    """Processes that wait for the next request: the first takes as long as Python takes to start."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._places = threading.BoundedSemaphore(_MOST_AT_WORK)
        atexit.register(self.end)

    @contextmanager
    def one(self, stop: Stop) -> Generator[_Worker]:
        """A process for one request; one that has not answered it to its end is ended."""
        while not self._places.acquire(timeout=_POLL_SECONDS):
            stop.check()
        try:
            worker = self._take()
            try:
                yield worker
            finally:
                if worker.answered:
                    self._give_back(worker)
                else:
                    worker.end()
        finally:
            self._places.release()

    def _take(self) -> _Worker:
        with self._lock:
            waiting = self._idle.pop() if self._idle else None
        if waiting is not None:
            if waiting.is_alive:
                return waiting
            waiting.end()
        try:
            return _Worker()
        except OSError as error:
            raise Unavailable(f"No process could be started to extract text: {error.strerror}.") from None

    def _give_back(self, worker: _Worker) -> None:
        with self._lock:
            if len(self._idle) < _MOST_IDLE:
                self._idle.append(worker)
                return
        worker.end()

    def end(self) -> None:
        """End those that wait; the next request starts another."""
        with self._lock:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.end()


class _Kept:
    """What was taken out lately, as long as the files are what they were."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: OrderedDict[tuple[object, ...], Taken | _TooLong] = OrderedDict()
        self._size = 0

    def get(self, key: tuple[object, ...]) -> Taken | _TooLong | None:
        with self._lock:
            if (found := self._found.get(key)) is not None:
                self._found.move_to_end(key)
            return found

    def put(self, key: tuple[object, ...], found: Taken | _TooLong) -> None:
        with self._lock:
            if key in self._found:
                return
            self._found[key] = found
            self._size += _weight(found)
            while self._size > _MOST_KEPT and len(self._found) > 1:
                self._size -= _weight(self._found.popitem(last=False)[1])


def _weight(found: Taken | _TooLong) -> int:
    if isinstance(found, _TooLong):
        return 1000
    return 1000 + len(found.data) + sum(len(data) for _, data in found.members)


_workers, _kept = _Workers(), _Kept()
