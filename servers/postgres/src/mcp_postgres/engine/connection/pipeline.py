"""Sends several statements to PostgreSQL in one trip, each by the protocol that admits only one, and reads the answers.

psycopg's own pipeline enters the event loop for every statement; here a trip enters it as often as answers come late.
After a statement that failed PostgreSQL runs none of those behind it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

import psycopg
from psycopg import AsyncConnection, pq
from psycopg.abc import PQGen
from psycopg.abc import Transformer as Loading
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.generators import execute, fetch, fetch_many, send
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn, PGresult

__all__ = ["Answer", "Raw", "Row", "Statement", "Trip", "run"]

Raw = AsyncConnection[Any]
Statement = tuple[str, Sequence[str | None]]
Row = tuple[str | None, ...]

_FINE = (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK, ExecStatus.EMPTY_QUERY)
_COPIES = (ExecStatus.COPY_IN, ExecStatus.COPY_OUT, ExecStatus.COPY_BOTH)
_CHUNK = 64 if pq.version() >= 170000 else 1


class Answer:
    """What one statement came to, whole."""

    def __init__(self, raw: Raw, result: PGresult) -> None:
        self._raw, self._result = raw, result

    @property
    def columns(self) -> list[tuple[str, int]]:
        """The columns' names, and the numbers of their types in `pg_type`; none where no rows could come."""
        result = self._result
        return [((result.fname(at) or b"").decode(), result.ftype(at)) for at in range(result.nfields)]

    @property
    def tag(self) -> str:
        """What PostgreSQL calls what it did, such as `UPDATE 3`."""
        return (self._result.command_status or b"").decode()

    @property
    def count(self) -> int:
        """Rows that it gives or has changed; -1 where it is not about rows."""
        if self._result.status == ExecStatus.TUPLES_OK:
            return self._result.ntuples
        changed = self._result.command_tuples
        return -1 if changed is None else changed

    def rows(self) -> list[tuple[Any, ...]]:
        return _rows(Transformer(self._raw), self._result)

    def first(self) -> tuple[Any, ...] | None:
        """The first row, if there is any."""
        return next(iter(self.rows()), None)


class Trip:
    """Statements under way, to be asked for their answers one after the other.

    Args:
        ends: of how many of the first the answers are to come at once, and not with those behind them.
    """

    def __init__(self, raw: Raw, statements: Sequence[Statement], *, ends: int = 0) -> None:
        self._raw, self._ends = raw, ends
        self._left = deque(statements)
        self._under_way = self._unread = self._failed = False

    async def send(self) -> None:
        """Let them go."""
        connection = self._raw.pgconn
        whole = [
            (_bytes(sql), [None if value is None else _bytes(value) for value in given]) for sql, given in self._left
        ]
        self._under_way = True
        try:
            connection.enter_pipeline_mode()
            for number, (sql, values) in enumerate(whole, 1):
                connection.send_query_params(sql, values)
                if number == self._ends:
                    connection.send_flush_request()
            connection.pipeline_sync()
        except psycopg.Error:
            # Without its end nothing would ever answer.
            connection.finish()
            raise
        await self._raw.wait(send(connection))

    def leads_to(self, *statements: Statement) -> bool:
        """Whether these are the next."""
        return tuple(islice(self._left, len(statements))) == statements

    async def answer(self) -> Answer:
        """The answer to the next.

        Raises:
            psycopg.Error: it failed, or one before it.
        """
        self._left.popleft()
        found = await self._raw.wait(fetch_many(self._raw.pgconn))
        if not found:
            raise psycopg.OperationalError("the connection ended before the answer")
        return Answer(self._raw, self._checked(found[-1]))

    async def rows(self) -> AsyncGenerator[Row]:
        """The rows of the next, as they come; no more of them is kept than what is on its way.

        Raises:
            psycopg.Error: it failed, or one before it.
        """
        self._left.popleft()
        connection, loader, first = self._raw.pgconn, Transformer(self._raw), True
        if _CHUNK > 1:
            connection.set_chunked_rows_mode(_CHUNK)
        else:
            connection.set_single_row_mode()
        self._unread = True
        while (result := await self._raw.wait(fetch(connection))) is not None:
            if result.status in (ExecStatus.TUPLES_CHUNK, ExecStatus.SINGLE_TUPLE):
                for row in _rows(loader, result, anew=first):
                    yield row
                first = False
            else:
                self._unread = False
                self._checked(result)
        self._unread = False

    async def end(self) -> bool:
        """Stop what still runs, take what is left; afterwards the connection takes statements of any kind.

        Returns:
            Whether there were statements that nobody asked for.
        """
        if not self._under_way:
            return False
        self._under_way = False
        connection = self._raw.pgconn
        try:
            # What went wrong is told by the answers; a connection that is lost here can't be left in order below.
            with suppress(psycopg.Error):
                if (self._unread or self._left) and not self._failed and connection.status == pq.ConnStatus.OK:
                    await self._raw.cancel_safe(timeout=5)
                await self._raw.wait(_rest(connection))
        finally:
            try:
                connection.exit_pipeline_mode()
            except psycopg.OperationalError:
                connection.finish()
        return bool(self._left)

    def _checked(self, result: PGresult) -> PGresult:
        self._failed = self._failed or result.status not in _FINE
        return _checked(self._raw, result)


async def run(raw: Raw, sql: str) -> Answer:
    """Run statements of our own by the protocol that takes several at once; what the last came to.

    A cursor does the same and takes 40 microseconds more for what nobody asks it.

    Raises:
        psycopg.Error: one failed; none of those behind it ran.
    """
    connection = raw.pgconn
    connection.send_query(_bytes(sql))
    # As one: who is cancelled meanwhile takes the answer all the same, or the next statement would.
    found = await raw.wait(execute(connection))
    if not found:
        raise psycopg.OperationalError("the connection ended before the answer")
    for result in found:
        _checked(raw, result)
    return Answer(raw, found[-1])


def _checked(raw: Raw, result: PGresult) -> PGresult:
    if result.status in _FINE:
        return result
    if result.status == ExecStatus.FATAL_ERROR:
        raise error_from_result(result)
    if result.status in _COPIES:
        # There is no way out of it but this.
        raw.pgconn.finish()
        raise psycopg.NotSupportedError("COPY is not part of a trip")
    raise psycopg.errors.PipelineAborted("a statement before it failed")


def _rest(connection: PGconn) -> PQGen[None]:
    while connection.status == pq.ConnStatus.OK:
        result = yield from fetch(connection)
        if result is not None and result.status == ExecStatus.PIPELINE_SYNC:
            return


def _rows(loader: Loading, result: PGresult, *, anew: bool = True) -> list[Row]:
    loader.set_pgresult(result, set_loaders=anew)
    return loader.load_rows(0, result.ntuples, tuple)


def _bytes(text: str) -> bytes:
    if "\0" in text:
        raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
    return text.encode()
