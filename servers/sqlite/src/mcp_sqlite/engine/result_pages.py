"""Results longer than a page: kept whole in unnamed files, so that every page shows the same moment.

No lock or transaction is held between two pages, and no row is skipped or repeated, whoever writes in the meantime.
"""

from __future__ import annotations

import contextlib
import glob
import os
import secrets
import threading
import weakref
from collections import OrderedDict
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any, NamedTuple

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.concurrency.threads import run_in_thread
from mcp_batteries.cursors import Cursor
from mcp_batteries.errors import Invalid, Problem
from mcp_batteries.scratch import Scratch
from mcp_batteries.sql.results.rows import Results, RowPage, to_one_line
from mcp_sqlite.engine.requests import to_request
from mcp_sqlite.engine.workers.pool import Remainder, WorkerPool
from mcp_sqlite.engine.workers.process import to_problem
from mcp_sqlite.policy import NextPage, ReadStatement

__all__ = ["MAX_CELL", "ResultPages"]

# Characters of a cell, unless a caller says otherwise.
MAX_CELL = 2000
_MAX_RESULTS = 24
_MAX_RESULT_BYTES = 64 * 1024 * 1024
_BLOCK_BYTES = 1 << 16
_MAX_NAMED_TEXTS = 5


@dataclass
class _Result:
    """A result that has more pages.

    Attributes:
        file: its lines, each with the number of its cells that were cut; those of the first page only where several
            results share an answer.
        remainder: what a worker still writes there.
        lock: held while the file is read.
    """

    statement: ReadStatement
    columns: list[str]
    file: IO[bytes]
    remainder: Remainder
    notes: list[str]
    lock: threading.Lock = field(default_factory=threading.Lock)
    finalizer: Any = None

    def __post_init__(self) -> None:
        self.finalizer = weakref.finalize(self, self.file.close)


class _Position(NamedTuple):
    """Where a page begins: in which result, at which byte, behind how many rows."""

    name: str
    offset: int
    rows_before: int


class _Slice(NamedTuple):
    """Lines of a file, where they end, and whether more follow."""

    lines: list[str]
    end: int
    has_more: bool


class ResultPages:
    """Queries answered by pages.

    Args:
        scratch: where a longer result lies, unnamed as soon as it is open.
    """

    def __init__(self, pool: WorkerPool, scratch: Scratch) -> None:
        self._pool = pool
        self._scratch = scratch
        self._results: OrderedDict[str, _Result] = OrderedDict()

    async def read(
        self, request: ReadStatement | NextPage, *, limit: int, max_bytes: int, max_cell: int = MAX_CELL
    ) -> RowPage | Results:
        """Return the first page of each query's rows, or the one behind a cursor."""
        if isinstance(request, NextPage):
            return await self.read_next(request, limit=limit, max_bytes=max_bytes)
        return await self.read_first(request, limit=limit, max_bytes=max_bytes, max_cell=max_cell)

    async def read_first(
        self, statement: ReadStatement, *, limit: int, max_bytes: int, max_cell: int
    ) -> RowPage | Results:
        """Return the first page of a statement's rows, or of several statements'.

        Raises:
            Problem: it fails; of several, all of them.
        """
        spool = self._scratch.new(".rows")
        request = {
            "do": "query",
            **to_request(statement),
            "limit": limit,
            "max_bytes": max_bytes,
            "max_cell": max_cell,
            "spool": spool,
            "spool_bytes": _MAX_RESULT_BYTES,
        }
        with self._removed_on_failure(spool):
            reply, remainder = await self._pool.call_for_pages(request)
            if "results" not in reply:
                return self._open_page(statement, reply, remainder, spool)
            return self._open_pages(statement, reply["results"], spool)

    def _open_pages(self, statement: ReadStatement, replies: list[dict[str, Any]], spool: str) -> Results:
        """Return the first pages of several statements, with the problems of those that fail in their place."""
        pages: list[RowPage | str] = []
        problems: list[Problem] = []
        for number, reply in enumerate(replies):
            if "error" in reply:
                problems.append(to_problem(reply["error"]))
                pages.append(str(problems[-1]))
            else:
                pages.append(self._open_page(statement, reply, _read_remainder(reply), f"{spool}{number}"))
        if len(problems) == len(pages):
            raise problems[0]
        return Results(pages)

    async def run_change(
        self, request: Mapping[str, Any], statement: ReadStatement
    ) -> tuple[dict[str, Any], list[RowPage | None]]:
        """Return what a change did, and the rows that each of its statements gave back.

        Of a dry run that failed, those of the statements before; its `failure` says why.
        """
        spool = self._scratch.new(".rows")
        with self._removed_on_failure(spool):
            reply = await self._pool.call({**request, "spool": spool, "spool_bytes": _MAX_RESULT_BYTES})
            pages: list[RowPage | None] = []
            for number, step in enumerate(reply["steps"]):
                page = None
                if step["columns"] is not None:
                    page = self._open_page(statement, step, _read_remainder(step), f"{spool}{number}")
                pages.append(page)
            if "failure" in reply:
                # The statement that failed may have begun a file.
                _remove_files(spool)
            return reply, pages

    def _open_page(
        self, statement: ReadStatement, reply: Mapping[str, Any], remainder: Remainder | None, spool: str
    ) -> RowPage:
        """Return the first page of a result, whose other rows a worker has written to `spool`, or writes still."""
        notes = _list_notes(reply)
        source_notes = reply.get("files", ())
        cursor = None
        if remainder is not None:
            file = open(spool, "rb")  # noqa: SIM115 - a local file, kept with the result
            # Where an open file can't be unnamed it goes with the folder.
            with contextlib.suppress(PermissionError):
                os.unlink(spool)
            name = secrets.token_urlsafe(9)
            self._results[name] = _Result(statement, reply["columns"], file, remainder, [*notes, *source_notes])
            while len(self._results) > _MAX_RESULTS:
                _, oldest = self._results.popitem(last=False)
                oldest.finalizer()
            cursor = _encode_cursor(_Position(name, reply.get("offset", 0), reply["shown"]))
        return RowPage(
            columns=reply["columns"],
            lines=reply["lines"],
            start=1,
            rows=reply["shown"],
            cursor=cursor,
            cut=reply["cut"],
            notes=notes,
            source_notes=source_notes,
        )

    @contextlib.contextmanager
    def _removed_on_failure(self, spool: str) -> Generator[None]:
        """Remove what a call that fails has left: files whose names begin with `spool`."""
        try:
            yield
        except BaseException:
            _remove_files(spool)
            raise

    async def read_next(self, next_page: NextPage, *, limit: int, max_bytes: int) -> RowPage:
        """Return the page behind a cursor.

        Raises:
            Invalid: it is not known, or not any more, or is of another database than the one that was named.
        """
        position = _decode_cursor(next_page.cursor)
        if position is None or position.name not in self._results:
            raise Invalid(
                f"The result behind the `cursor` is gone; the last {_MAX_RESULTS} are kept.", "Run the query again."
            )
        result = self._results[position.name]
        next_page.check(result.statement)
        self._results.move_to_end(position.name)
        await result.remainder.done.wait()
        page = await run_in_thread(lambda cancel: _read_slice(result, position.offset, limit, max_bytes, cancel))
        cut_cells = 0
        lines: list[str] = []
        for spooled_line in page.lines:
            cut_in_line, _, line = spooled_line.partition(" ")
            try:
                cut_cells += int(cut_in_line)
            except ValueError:
                raise Invalid("The `cursor` is not one that was given.", "Run the query again.") from None
            lines.append(line)
        notes = list(result.notes)
        if not page.has_more and result.remainder.stopped:
            notes.append(f"not the end of the result: {result.remainder.stopped}; narrow the query or page by a key")
        cursor = None
        if page.has_more:
            cursor = _encode_cursor(_Position(position.name, page.end, position.rows_before + len(lines)))
        return RowPage(
            columns=result.columns,
            lines="".join(lines),
            start=position.rows_before + 1,
            rows=len(lines),
            cursor=cursor,
            cut=cut_cells,
            notes=notes,
        )

    def close(self) -> None:
        """Forget all results."""
        for result in self._results.values():
            result.finalizer()
        self._results.clear()


def _remove_files(spool: str) -> None:
    """Remove the files whose names begin with `spool`; those that are open stay readable."""
    for path in glob.glob(glob.escape(spool) + "*"):
        with contextlib.suppress(OSError):
            os.unlink(path)


def _encode_cursor(position: _Position) -> str:
    return Cursor.encode("rows", list(position))


def _decode_cursor(cursor: str) -> _Position | None:
    """Return the position that a cursor stands for; None where it is none."""
    match Cursor.decode("rows", cursor):
        case [str() as name, int() as offset, int() as rows_before] if offset >= 0:
            return _Position(name, offset, rows_before)
        case _:
            return None


def _read_slice(result: _Result, offset: int, limit: int, max_bytes: int, cancel: CancelToken) -> _Slice:
    """Return whole lines from `offset` on, at least one."""
    size = os.fstat(result.file.fileno()).st_size
    content = _read_enough(result, offset, size, limit, max_bytes, cancel)
    lines: list[str] = []
    used_bytes = 0
    for line in content.splitlines(keepends=True):
        is_full = len(lines) == limit or (lines and used_bytes + len(line) > max_bytes)
        if is_full or not line.endswith(b"\n"):
            break
        lines.append(line.decode(errors="replace"))
        used_bytes += len(line)
    # A line that its writer could not end is none.
    has_whole_line = b"\n" in content[used_bytes:]
    has_unread_bytes = bool(lines) and offset + len(content) < size
    return _Slice(lines, offset + used_bytes, has_whole_line or has_unread_bytes)


def _read_enough(result: _Result, offset: int, size: int, limit: int, max_bytes: int, cancel: CancelToken) -> bytes:
    """Return the bytes from `offset` on, as many as a page can need."""
    content = bytearray()
    while True:
        cancel.check()
        line_count = content.count(b"\n")
        has_enough_bytes = line_count > 0 and len(content) > max_bytes + _BLOCK_BYTES
        if line_count > limit or has_enough_bytes or offset + len(content) >= size:
            return bytes(content)
        with result.lock:  # two pages of one result may be read at once
            result.file.seek(min(offset, size) + len(content))
            content += result.file.read(_BLOCK_BYTES)


def _read_remainder(reply: Mapping[str, Any]) -> Remainder | None:
    """Return what a worker has done behind a first page, where it answered both at once."""
    last_frame = reply.get("rest")
    if last_frame is None:
        return None
    remainder = Remainder()
    remainder.stopped = last_frame["stopped"]
    remainder.done.set()
    return remainder


def _list_notes(reply: Mapping[str, Any]) -> list[str]:
    notes: list[str] = []
    if reply.get("immutable"):
        notes.append("opened as a file that can't change: what other programs write is not seen")
    masked_columns = reply.get("masks")
    if masked_columns:
        verb = "is" if len(masked_columns) == 1 else "are"
        notes.append(f"{', '.join(masked_columns)} {verb} masked: every value counts as •••, in conditions too")
    texts: list[str] = reply.get("texts") or []
    if texts:
        notes.append(", ".join(map(_describe_text, texts[:_MAX_NAMED_TEXTS])))
    if reply.get("misses_case"):
        notes.append("LIKE and NOCASE ignore the case of ASCII letters only: others match in the case that they are in")
    notes += [to_one_line(note) for note in (*reply.get("incomparable", ()), *reply.get("absent", ()))]
    return notes


def _describe_text(text: str) -> str:
    return f"\"{text}\" is not a column, SQLite took it for the text '{text}'"
