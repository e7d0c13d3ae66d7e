"""The other side of `worker`: starts it, answers its reads, ends it when it takes too long, and keeps its results."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import threading
from collections import OrderedDict
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, field
from typing import IO, BinaryIO, Literal, cast

from mcp_batteries.concurrency.cancellation import CancelToken, WorkCancelled
from mcp_batteries.errors import Invalid, NotFound, Problem, TooLarge, Unavailable, quote
from mcp_batteries.executables import NO_WINDOW
from mcp_batteries.processes.crashes import crash_name
from mcp_batteries.processes.python_child import FONT_FOLDERS, child_environment, python_command
from mcp_fs.engine.document_kinds import FRAME, MAX_OUTPUT_BYTES, RANGE, is_document
from mcp_fs.engine.documents.text_store import StoredText, TextStore

__all__ = ["Extracted", "Output", "extract", "keep_texts", "keep_texts_in"]

Output = Literal["text", "bytes", "all", "names", "page", "photo", "picture", "safety"]

# A process that waits for its turn on a busy machine is not one that works: five times what it may work.
_WALL_SECONDS = 10.0
_MAX_IDLE = 2
_MAX_BUSY = 4
_POLL_SECONDS = 0.05
_MAX_CACHED_BYTES = MAX_OUTPUT_BYTES


@dataclass(frozen=True, slots=True)
class Extracted:
    """What was taken out of a file.

    Attributes:
        label: what kind of text this is; empty for bytes as they are.
        data: the text as UTF-8, or the bytes.
        cut_reason: why the rest is missing; empty where nothing is.
        members: of a whole archive, each file with its text or bytes.
    """

    label: str
    data: bytes
    cut_reason: str
    members: Sequence[tuple[str, bytes]] = ()

    @property
    def is_whole_text(self) -> bool:
        return bool(self.label) and not self.cut_reason


@dataclass(frozen=True, slots=True)
class _WorkerFailure:
    """What ended its process: too much time or memory, or the crash that is named.

    It is not tried again with every search.
    """

    crash: str = ""

    def to_problem(self, label: str) -> Problem:
        if self.crash:
            return Invalid(
                f"{quote(label)} can't be read: the process that extracts its text crashed ({self.crash}), "
                "which happens with damaged files, and with those that take too much memory.",
                "`read_media` gives its bytes.",
            )
        return TooLarge(
            f"{quote(label)} can't be read: extracting its text takes too long or too much memory.",
            "Name a part of it, as `a.zip!/b.txt`, `a.pdf!/3-9` or `a.xlsx!/Sheet1!A1:D20`, or leave it out.",
        )


@dataclass(frozen=True, slots=True)
class _Unreadable:
    """Why the process can't read a file.

    Attributes:
        kind: `missing`, `not installed`, `no memory` or `_DAMAGED`.
        failure: the end of a sentence that begins with the name of the file.
    """

    kind: str
    failure: str

    def to_problem(self, label: str) -> Problem:
        sentence = f"{quote(label)} {self.failure}."
        match self.kind:
            case "missing":
                return NotFound(sentence, "Read the archive itself, by `read_text`, to see what is in it.")
            case "not installed":
                return Unavailable(
                    f"{quote(label)} is {self.failure}, and mcp-fs is installed without the library that reads its "
                    "text.",
                    "The operator can install mcp-fs[documents].",
                )
            case _:
                return Invalid(sentence, "`read_media` gives its bytes.")


_DAMAGED = "unreadable"
_Result = Extracted | _WorkerFailure | _Unreadable


def extract(
    file: BinaryIO,
    name: str,
    member_path: Sequence[str],
    output: Output,
    label: str,
    cancel: CancelToken,
    *,
    page: int = 0,
    mime_type: str = "",
) -> Extracted:
    """Return what `output` names of an open file, or of a member of it.

    Args:
        name: of the file: what it is, that tells in part.
        member_path: names down to the member; none for the file itself.
        label: what the caller calls it.
        output: of a picture `picture`, a PNG or JPEG that models take, with JSON about it as the label, `photo`, where
            the label is JSON of what it says of itself, or `safety`, where it says whether they take the file as it is.
        page: of a PDF, from 1; the label is the number of pages then, and there is no data beyond the last.
        mime_type: of a picture, by its first bytes.

    Raises:
        NotFound: there is no such member.
        Invalid: the file is damaged, locked, or none that has text, or its library crashed.
        Unavailable: the library for it is not installed.
        TooLarge: it took too long.
    """
    status = os.fstat(file.fileno())
    request = _Request(status.st_size, name, output, tuple(member_path), page, mime_type)
    key = (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns, request)
    result = _cache.get(key)
    if result is None:
        result = _read_or_extract(request, file, label, cancel)
        _cache.put(key, result)
    if isinstance(result, Extracted):
        return result
    raise result.to_problem(label)


def keep_texts(store: TextStore | None) -> None:
    """Keep the texts of documents in a store from now on; without one only in memory."""
    _cache.texts = store


@asynccontextmanager
async def keep_texts_in(store: TextStore) -> AsyncGenerator[None]:
    """Keep the texts of documents in a store while a server runs."""
    keep_texts(store)
    try:
        yield
    finally:
        keep_texts(None)


@dataclass(frozen=True, slots=True)
class _Request:
    """What is asked of the process; `extract` says what the values mean."""

    size: int
    name: str
    want: Output
    path: tuple[str, ...]
    page: int
    mime_type: str

    @property
    def is_for_document(self) -> bool:
        """Whether it is for the text of a whole document, as searches want it."""
        return self.want == "text" and not self.path and is_document(self.name) and self.size <= MAX_OUTPUT_BYTES


def _read_or_extract(request: _Request, file: BinaryIO, label: str, cancel: CancelToken) -> _Result:
    """Return the text of a document as it is kept, or what the process takes out, which is kept then."""
    texts = _cache.texts
    if texts is None or not request.is_for_document:
        return _extract_anew(request, file, label, cancel)
    key = texts.key_of(file, request.name)
    stored = texts.read(key)
    if stored is not None:
        return _from_store(stored)
    result = _extract_anew(request, file, label, cancel)
    lasting = _to_store(result)
    # The file may have changed meanwhile.
    if lasting is not None and texts.key_of(file, request.name) == key:
        texts.write(key, lasting)
    return result


def _to_store(result: _Result) -> StoredText | None:
    """Return what is kept of a result: a whole text, or without a label why there is none; None for what may change.

    What is cut is longer on a machine that is less busy.
    """
    if isinstance(result, Extracted) and result.is_whole_text:
        return result.label, result.data
    if isinstance(result, _Unreadable) and result.kind == _DAMAGED:
        return "", result.failure.encode()
    return None


def _from_store(stored: StoredText) -> _Result:
    label, data = stored
    if label:
        return Extracted(label, data, cut_reason="")
    return _Unreadable(_DAMAGED, data.decode("utf-8", "replace"))


def _extract_anew(request: _Request, file: BinaryIO, label: str, cancel: CancelToken) -> _Result:
    with _pool.acquire(cancel) as worker:
        return worker.ask(json.dumps(asdict(request)), file, label, cancel)


@dataclass(slots=True)
class _Answer:
    """What the frames of one answer have said so far.

    Attributes:
        data: the content of the latest member, or of the file where none is named.
        received_bytes: how much content came in all, names of members included.
    """

    label: str = ""
    cut_reason: str = ""
    data: bytearray = field(default_factory=bytearray)
    members: list[tuple[str, bytearray]] = field(default_factory=list[tuple[str, bytearray]])
    unreadable: _Unreadable | None = None
    received_bytes: int = 0

    def add(self, letter: bytes, payload: bytes) -> None:
        """Take in one frame; `worker` says what the letters mean.

        Raises:
            EOFError: the process sends what it may not send.
        """
        if letter in b"TBM":
            self.received_bytes += len(payload)
        if self.received_bytes > 2 * MAX_OUTPUT_BYTES:
            raise EOFError
        match letter:
            case b"K":
                self.label = payload.decode()
            case b"M":
                self.data = bytearray()
                self.members.append((payload.decode("utf-8", "replace"), self.data))
            case b"T" | b"B":
                self.data += payload
            case b"X":
                self.cut_reason = payload.decode()
            case b"E":
                self.unreadable = _Unreadable(*json.loads(payload))
            case _:
                raise EOFError


class _Worker:
    """One process; one request at a time.

    Attributes:
        is_reusable: whether the last request was answered to its end, so that another can follow.
    """

    def __init__(self) -> None:
        self.is_reusable = True
        self._was_late = False
        self._process = subprocess.Popen(
            python_command("mcp_fs.engine.documents.worker", readable=FONT_FOLDERS),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=os.path.abspath(os.sep),
            env=child_environment(),
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

    def ask(self, request: str, file: BinaryIO, label: str, cancel: CancelToken) -> _Result:
        self.is_reusable = False
        overdue = threading.Timer(_WALL_SECONDS, self._kill)
        overdue.daemon = True
        overdue.start()
        try:
            self._send(request.encode() + b"\n")
            return self._read_answer(file, label, cancel)
        except (EOFError, OSError) as error:
            self._process.kill()
            code = self._process.wait()
            if crash := crash_name(code):
                return _WorkerFailure(crash)
            if code > 0 and not self._was_late:
                raise Unavailable(
                    f"{quote(label)} can't be read: the process that extracts text could not be used.",
                    "The operator can look whether this user may start processes, and how many.",
                ) from error
            return _WorkerFailure()
        finally:
            overdue.cancel()

    def _read_answer(self, file: BinaryIO, label: str, cancel: CancelToken) -> Extracted | _Unreadable:
        """Collect frames to the end of the answer, and serve what the process asks of the file meanwhile."""
        answer = _Answer()
        while True:
            if cancel.is_set():
                raise WorkCancelled
            letter, payload = self._read_frame()
            if letter == b"D":
                break
            if letter == b"R":
                self._send_range(file, payload)
            else:
                answer.add(letter, payload)
        self.is_reusable = True
        if answer.unreadable is not None:
            return answer.unreadable
        if answer.cut_reason and not answer.received_bytes:
            raise TooLarge(f"{quote(label)} unpacks to more than {MAX_OUTPUT_BYTES:,} bytes.", "Name a member of it.")
        members = [(name, bytes(content)) for name, content in answer.members]
        return Extracted(answer.label, bytes(answer.data), answer.cut_reason, members)

    def _send_range(self, file: BinaryIO, request: bytes) -> None:
        """Send the bytes of the file that the process asked for, behind their length."""
        offset, size = RANGE.unpack(request)
        file.seek(offset)
        data = file.read(min(size, MAX_OUTPUT_BYTES))
        self._send(len(data).to_bytes(4, "big") + data)

    def _read_frame(self) -> tuple[bytes, bytes]:
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


class _WorkerPool:
    """Processes that wait for the next request: the first takes as long as Python takes to start."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._slots = threading.BoundedSemaphore(_MAX_BUSY)
        atexit.register(self.end)

    @contextmanager
    def acquire(self, cancel: CancelToken) -> Generator[_Worker]:
        """Yield a process for one request; one that has not answered it to its end is ended."""
        while not self._slots.acquire(timeout=_POLL_SECONDS):
            cancel.check()
        try:
            worker = self._reuse_or_start()
            try:
                yield worker
            finally:
                if worker.is_reusable:
                    self._release(worker)
                else:
                    worker.end()
        finally:
            self._slots.release()

    def _reuse_or_start(self) -> _Worker:
        with self._lock:
            worker = None
            if self._idle:
                worker = self._idle.pop()
        if worker is not None:
            if worker.is_alive:
                return worker
            worker.end()
        try:
            return _Worker()
        except OSError as error:
            raise Unavailable(f"No process could be started to extract text: {error.strerror}.") from None

    def _release(self, worker: _Worker) -> None:
        with self._lock:
            if len(self._idle) < _MAX_IDLE:
                self._idle.append(worker)
                return
        worker.end()

    def end(self) -> None:
        """End those that wait; the next request starts another."""
        with self._lock:
            idle = self._idle
            self._idle = []
        for worker in idle:
            worker.end()


class _ResultCache:
    """What was taken out lately, as long as the files are what they were.

    Attributes:
        texts: where texts stay longer, if anywhere.
    """

    def __init__(self) -> None:
        self.texts: TextStore | None = None
        self._lock = threading.Lock()
        self._results: OrderedDict[tuple[object, ...], _Result] = OrderedDict()
        self._size = 0

    def get(self, key: tuple[object, ...]) -> _Result | None:
        with self._lock:
            if (result := self._results.get(key)) is not None:
                self._results.move_to_end(key)
            return result

    def put(self, key: tuple[object, ...], result: _Result) -> None:
        with self._lock:
            if key in self._results:
                return
            self._results[key] = result
            self._size += _cached_bytes(result)
            while self._size > _MAX_CACHED_BYTES and len(self._results) > 1:
                self._size -= _cached_bytes(self._results.popitem(last=False)[1])


def _cached_bytes(result: _Result) -> int:
    if not isinstance(result, Extracted):
        return 1000
    return 1000 + len(result.data) + sum(len(data) for _, data in result.members)


_pool = _WorkerPool()
_cache = _ResultCache()
