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

__all__ = ["Answer", "Connection", "Pipeline", "Row", "Statement", "run_simple_query"]

Connection = AsyncConnection[Any]
Statement = tuple[str, Sequence[str | None]]
Row = tuple[str | None, ...]

_SUCCESSES = (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK, ExecStatus.EMPTY_QUERY)
_COPY_STATES = (ExecStatus.COPY_IN, ExecStatus.COPY_OUT, ExecStatus.COPY_BOTH)
_CHUNK_ROWS = 64 if pq.version() >= 170000 else 1


class Answer:
    """What one statement came to, whole."""

    def __init__(self, connection: Connection, result: PGresult) -> None:
        self._connection = connection
        self._result = result

    @property
    def columns(self) -> list[tuple[str, int]]:
        """The columns' names, and the numbers of their types in `pg_type`; none where no rows could come."""
        result = self._result
        return [((result.fname(at) or b"").decode(errors="replace"), result.ftype(at)) for at in range(result.nfields)]

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
        return _load_rows(Transformer(self._connection), self._result)

    def first(self) -> tuple[Any, ...] | None:
        """Return the first row, if there is any."""
        return next(iter(self.rows()), None)


class Pipeline:
    """Statements under way, to be asked for their answers one after the other.

    Args:
        flush_after: of how many of the first the answers are to come at once, and not with those behind them.
    """

    def __init__(self, connection: Connection, statements: Sequence[Statement], *, flush_after: int = 0) -> None:
        self._connection = connection
        self._flush_after = flush_after
        self._pending = deque(statements)
        self._is_open = self._has_unread_rows = self._has_failed = False

    async def send(self) -> None:
        """Let them go."""
        connection = self._connection.pgconn
        encoded = [(_encode(sql), _encode_values(values)) for sql, values in self._pending]
        self._is_open = True
        try:
            connection.enter_pipeline_mode()
            for number, (sql, values) in enumerate(encoded, 1):
                connection.send_query_params(sql, values)
                if number == self._flush_after:
                    connection.send_flush_request()
            connection.pipeline_sync()
        except psycopg.Error:
            # Without its end nothing would ever answer.
            connection.finish()
            raise
        await self._connection.wait(send(connection))

    def is_next(self, *statements: Statement) -> bool:
        """Return whether these are the next."""
        return tuple(islice(self._pending, len(statements))) == statements

    async def read_answer(self) -> Answer:
        """Return the answer to the next.

        Raises:
            psycopg.Error: it failed, or one before it.
        """
        self._pending.popleft()
        results = await self._connection.wait(fetch_many(self._connection.pgconn))
        if not results:
            raise psycopg.OperationalError("the connection ended before the answer")
        return Answer(self._connection, self._check(results[-1]))

    async def stream_rows(self) -> AsyncGenerator[Row]:
        """Yield the rows of the next, as they come; no more of them is kept than what is on its way.

        Raises:
            psycopg.Error: it failed, or one before it.
        """
        self._pending.popleft()
        connection = self._connection.pgconn
        loader = Transformer(self._connection)
        first = True
        if _CHUNK_ROWS > 1:
            connection.set_chunked_rows_mode(_CHUNK_ROWS)
        else:
            connection.set_single_row_mode()
        self._has_unread_rows = True
        while (result := await self._connection.wait(fetch(connection))) is not None:
            if result.status in (ExecStatus.TUPLES_CHUNK, ExecStatus.SINGLE_TUPLE):
                for row in _load_rows(loader, result, set_loaders=first):
                    yield row
                first = False
            else:
                self._has_unread_rows = False
                self._check(result)
        self._has_unread_rows = False

    async def finish(self) -> bool:
        """Stop what still runs, take what is left; afterwards the connection takes statements of any kind.

        Returns:
            Whether there were statements that nobody asked for.
        """
        if not self._is_open:
            return False
        self._is_open = False
        connection = self._connection.pgconn
        try:
            # What went wrong is told by the answers; a connection that is lost here can't be left in order below.
            with suppress(psycopg.Error):
                if (
                    (self._has_unread_rows or self._pending)
                    and not self._has_failed
                    and connection.status == pq.ConnStatus.OK
                ):
                    await self._connection.cancel_safe(timeout=5)
                await self._connection.wait(_drain(connection))
        finally:
            try:
                connection.exit_pipeline_mode()
            except psycopg.OperationalError:
                connection.finish()
        return bool(self._pending)

    def _check(self, result: PGresult) -> PGresult:
        self._has_failed = self._has_failed or result.status not in _SUCCESSES
        return _check_result(self._connection, result)


async def run_simple_query(raw: Connection, sql: str) -> Answer:
    """Run statements of our own by the protocol that takes several at once; what the last came to.

    A cursor does the same and takes 40 microseconds more for what nobody asks it.

    Raises:
        psycopg.Error: one failed; none of those behind it ran.
    """
    connection = raw.pgconn
    connection.send_query(_encode(sql))
    # As one: who is cancelled meanwhile takes the answer all the same, or the next statement would.
    results = await raw.wait(execute(connection))
    if not results:
        raise psycopg.OperationalError("the connection ended before the answer")
    for result in results:
        _check_result(raw, result)
    return Answer(raw, results[-1])


def _check_result(raw: Connection, result: PGresult) -> PGresult:
    if result.status in _SUCCESSES:
        return result
    if result.status == ExecStatus.FATAL_ERROR:
        raise error_from_result(result)
    if result.status in _COPY_STATES:
        # There is no way out of it but this.
        raw.pgconn.finish()
        raise psycopg.NotSupportedError("COPY is not part of a trip")
    raise psycopg.errors.PipelineAborted("a statement before it failed")


def _drain(connection: PGconn) -> PQGen[None]:
    while connection.status == pq.ConnStatus.OK:
        result = yield from fetch(connection)
        if result is not None and result.status == ExecStatus.PIPELINE_SYNC:
            return


def _load_rows(loader: Loading, result: PGresult, *, set_loaders: bool = True) -> list[Row]:
    loader.set_pgresult(result, set_loaders=set_loaders)
    return loader.load_rows(0, result.ntuples, tuple)


def _encode_values(values: Sequence[str | None]) -> list[bytes | None]:
    return [None if value is None else _encode(value) for value in values]


def _encode(text: str) -> bytes:
    if "\0" in text:
        raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
    return text.encode()
