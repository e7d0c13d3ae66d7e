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
from typing import IO, Any

from mcp_batteries.errors import Invalid, Problem
from mcp_batteries.limits import Cursor, Stop, in_thread
from mcp_batteries.scratch import Scratch
from mcp_batteries.sql.rows import Results, RowPage
from mcp_sqlite.engine.worker_pool import Remainder, WorkerPool
from mcp_sqlite.engine.worker_process import to_problem
from mcp_sqlite.policy import JoiningStatement, NextPage, ReadStatement

__all__ = ["ResultPages", "to_request"]

_MOST_RESULTS = 24
_BYTES = 64 * 1024 * 1024


@dataclass
class _Result:
    statement: ReadStatement
    columns: list[str]
    file: IO[bytes]
    rest: Remainder
    notes: list[str]
    lock: threading.Lock = field(default_factory=threading.Lock)
    finalizer: Any = None

    def __post_init__(self) -> None:
        self.finalizer = weakref.finalize(self, self.file.close)


class ResultPages:
    """Queries answered by pages.

    Args:
        scratch: where a longer result lies, unnamed as soon as it is open.
    """

    def __init__(self, pool: WorkerPool, scratch: Scratch) -> None:
        self._pool, self._scratch = pool, scratch
        self._results: OrderedDict[str, _Result] = OrderedDict()

    async def read_first(
        self, statement: ReadStatement, *, limit: int, max_bytes: int, max_cell: int
    ) -> RowPage | Results:
        """The first page of a statement's rows, or of several statements'.

        Raises:
            Problem: it fails; of several, all of them.
        """
        spool = self._scratch.new(".rows")
        request = {
            "do": "query", **to_request(statement),
            "limit": limit, "max_bytes": max_bytes, "max_cell": max_cell, "spool": spool, "spool_bytes": _BYTES,
        }  # fmt: skip
        with self._tidied(spool):
            reply, rest = await self._pool.call_for_pages(request)
            if "results" not in reply:
                return self._page(statement, reply, rest, spool)
            found = [
                to_problem(page["error"]) if "error" in page
                else self._page(statement, page, _ended(page), f"{spool}{number}")
                for number, page in enumerate(reply["results"])
            ]  # fmt: skip
            if all(isinstance(item, Problem) for item in found):
                raise found[0] if isinstance(found[0], Problem) else AssertionError
            return Results([item if isinstance(item, RowPage) else str(item) for item in found])

    async def run_change(
        self, request: Mapping[str, Any], statement: ReadStatement
    ) -> tuple[dict[str, Any], list[RowPage | None]]:
        """What a change did, and the rows that each of its statements gave back."""
        spool = self._scratch.new(".rows")
        with self._tidied(spool):
            reply = await self._pool.call({**request, "spool": spool, "spool_bytes": _BYTES})
            return reply, [
                None if step["columns"] is None else self._page(statement, step, _ended(step), f"{spool}{number}")
                for number, step in enumerate(reply["steps"])
            ]

    def _page(self, statement: ReadStatement, reply: Mapping[str, Any], rest: Remainder | None, spool: str) -> RowPage:
        """The first page of a result, whose other rows a worker has written to `spool`, or writes still."""
        notes = _notes(reply)
        cursor = None
        if rest is not None:
            file = open(spool, "rb")  # noqa: SIM115 - a local file, kept with the result
            # Where an open file can't be unnamed it goes with the folder.
            with contextlib.suppress(PermissionError):
                os.unlink(spool)
            name = secrets.token_urlsafe(9)
            self._results[name] = _Result(statement, reply["columns"], file, rest, notes)
            while len(self._results) > _MOST_RESULTS:
                self._results.popitem(last=False)[1].finalizer()
            cursor = Cursor.encode("rows", [name, 0, reply["shown"]])
        return RowPage(reply["columns"], reply["lines"], 1, reply["shown"], cursor, reply["cut"], notes)

    @contextlib.contextmanager
    def _tidied(self, spool: str) -> Generator[None]:
        """Take away what a call that failed has left: files whose names begin with `spool`."""
        try:
            yield
        except BaseException:
            for path in glob.glob(glob.escape(spool) + "*"):
                with contextlib.suppress(OSError):
                    os.unlink(path)
            raise

    async def read_next(self, wanted: NextPage, *, limit: int, max_bytes: int) -> RowPage:
        """The page behind a cursor.

        Raises:
            Invalid: it is not known, or not any more, or is of another database than the one that was named.
        """
        match Cursor.decode("rows", wanted.cursor):
            case [str() as name, int() as offset, int() as shown] if offset >= 0:
                result = self._results.get(name)
            case _:
                name, offset, shown, result = "", 0, 0, None
        if result is None:
            raise Invalid(
                f"The result behind the `cursor` is gone; the last {_MOST_RESULTS} are kept.", "Run the query again."
            )
        wanted.check(result.statement)
        self._results.move_to_end(name)
        await result.rest.done.wait()
        found, end, more = await in_thread(
            lambda stop: _slice(result.file, result.lock, offset, limit, max_bytes, stop)
        )
        rows = len(found)
        try:
            cut = sum(int(line.partition(" ")[0]) for line in found)
        except ValueError:
            raise Invalid("The `cursor` is not one that was given.", "Run the query again.") from None
        lines = "".join(line.partition(" ")[2] for line in found)
        notes = list(result.notes)
        if not more and result.rest.stopped:
            notes.append(f"not the end of the result: {result.rest.stopped}; narrow the query or page by a key")
        following = Cursor.encode("rows", [name, end, shown + rows]) if more else None
        return RowPage(result.columns, lines, shown + 1, rows, following, cut, notes)

    def close(self) -> None:
        """Forget all results."""
        for result in self._results.values():
            result.finalizer()
        self._results.clear()


def _slice(
    file: IO[bytes], lock: threading.Lock, offset: int, limit: int, max_bytes: int, stop: Stop
) -> tuple[list[str], int, bool]:
    """Whole lines from `offset` on, where they end, and whether more follow."""
    size = os.fstat(file.fileno()).st_size
    data = bytearray()
    while True:
        stop.check()
        ends = data.count(b"\n")
        full = ends > limit or (ends and len(data) > max_bytes + (1 << 16))
        if full or offset + len(data) >= size:
            break
        with lock:  # two pages of one result may be read at once
            file.seek(min(offset, size) + len(data))
            data += file.read(1 << 16)
    taken: list[str] = []
    used = 0
    for line in bytes(data).splitlines(keepends=True):
        if not line.endswith(b"\n") or len(taken) == limit or (taken and used + len(line) > max_bytes):
            break
        taken.append(line.decode(errors="replace"))
        used += len(line)
    # A line that its writer could not end is none.
    more = b"\n" in data[used:] or (bool(taken) and offset + len(data) < size)
    return taken, offset + used, more


def to_request(statement: ReadStatement) -> dict[str, Any]:
    """A statement as a worker is told it."""
    request = {"path": statement.database.address, "sql": statement.sql, "parameters": statement.parameters}
    if isinstance(statement, JoiningStatement):
        request["beside"] = {other.name: other.address for other in statement.beside}
    return request


def _ended(reply: Mapping[str, Any]) -> Remainder | None:
    """What a worker has done behind a first page, where it told both at once."""
    if (end := reply.get("rest")) is None:
        return None
    rest = Remainder()
    rest.stopped = end["stopped"]
    rest.done.set()
    return rest


def _notes(reply: Mapping[str, Any]) -> list[str]:
    notes: list[str] = []
    if reply.get("immutable"):
        notes.append("opened as a file that can't change: what other programs write is not seen")
    if masks := reply.get("masks"):
        verb = "is" if len(masks) == 1 else "are"
        notes.append(f"{', '.join(masks)} {verb} masked: every value counts as •••, in conditions too")
    if texts := reply.get("texts"):
        said = ", ".join(f"\"{text}\" is not a column, SQLite took it for the text '{text}'" for text in texts[:5])
        notes.append(said)
    return [*notes, *reply.get("files", ())]
