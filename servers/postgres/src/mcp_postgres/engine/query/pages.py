"""Answers queries page by page, and reads only a page and a bit of the result.

What was read beyond the first page is kept, so that the next pages show the same moment; pages behind that run the
query again and skip, and say so. No transaction, lock or connection is held between two pages.
"""

from __future__ import annotations

import functools
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

import psycopg

from mcp_batteries.clipping import count_fitting, share_bytes
from mcp_batteries.cursors import Cursor
from mcp_batteries.errors import Invalid, Problem, Refused
from mcp_batteries.sql.language.compared_values import MAX_KNOWN_VALUES, is_empty_result
from mcp_batteries.sql.results.rows import Results, RowPage
from mcp_postgres.engine.admission.call_settings import apply_settings_of
from mcp_postgres.engine.admission.explained import LEADING_COMMENTS, parse_explain
from mcp_postgres.engine.admission.statements import (
    admit,
    gate_statements,
    judge,
    transaction_opening,
)
from mcp_postgres.engine.catalog.suggestions import add_suggestion
from mcp_postgres.engine.connection.errors import NOT_UTF8_ADVICE, to_problem
from mcp_postgres.engine.connection.pipeline import Answer, Row, Statement
from mcp_postgres.engine.connection.pool import SERVER_ROLE, run_shielded
from mcp_postgres.engine.connection.result_values import NOT_UTF8, Column, RowWriter, limit_result
from mcp_postgres.engine.connection.role import Role
from mcp_postgres.engine.connection.session import Session, act_as_role, use_role_path
from mcp_postgres.engine.pools import ConnectionPools
from mcp_postgres.engine.query.absent_values import find_absent_values, find_hiding_policies
from mcp_postgres.policy import (
    MAX_STATEMENTS,
    Database,
    NextPage,
    Reads,
    ReadStatement,
    ReadWithSettings,
    inner_statement,
)

__all__ = ["MAX_CELL", "ResultPages", "stream_statement"]

# Characters of a cell, unless a caller says otherwise.
MAX_CELL = 10_000

_MAX_RESULTS = MAX_STATEMENTS
_MAX_KEPT_ROWS = 2000
_MAX_KEPT_BYTES = 2_000_000
_PAGE_BYTES = 20_000
# Of the few values of a column.
_MAX_VALUES_BYTES = 10_000
_MAX_REMEMBERED = 200
# Characters of a statement that is not remembered.
_MAX_REMEMBERED_CHARACTERS = 10_000
# What part of the time left a statement may take while others wait behind it.
_TIME_SHARE = 0.8
# How long reading goes on once the first page is full.
_READ_AHEAD_SECONDS = 0.1

PageOrFailure = TypeVar("PageOrFailure", RowPage, RowPage | str)

_MOMENT_NOTE = (
    "not all of the same state of the data: the role's statements are judged, and each saw the data as its turn came"
)
_SHOW = re.compile(
    LEADING_COMMENTS
    + r"SHOW\s+([\w.]+|\"[\w.]+\"|TIME\s+ZONE|TRANSACTION\s+ISOLATION\s+LEVEL|SESSION\s+AUTHORIZATION)\s*;?\s*",
    re.I,
)
_NO_QUERY = re.compile(LEADING_COMMENTS + r"(?:SHOW|EXPLAIN)\b", re.I)
_TEXT = 25
# What took longer is not read a second time so that its rows come in an order.
_MAX_READ_TWICE_SECONDS = 2.0
_SERIAL = "SELECT pg_catalog.set_config('max_parallel_workers_per_gather', '0', true)"


@dataclass
class _Result:
    """What was read of a statement's rows.

    Attributes:
        first_row: how many rows there are before those kept.
        lines: the rows kept.
        executed_sql: what PostgreSQL was asked for.
        is_serial: whether it was planned without parallel workers, as each later page then has to be.
    """

    statement: ReadStatement
    columns: Sequence[str]
    max_cell: int
    first_row: int
    lines: list[str] = field(default_factory=list[str])
    has_more: bool = False
    cut_cells: int = 0
    notes: list[str] = field(default_factory=list[str])
    executed_sql: str = ""
    is_serial: bool = False


class _RunKey(NamedTuple):
    database: str
    sql: str
    kept_rows: int
    max_cell: int


class ResultPages:
    """Queries of all databases, and the last few results that were longer than a page."""

    def __init__(self, pools: ConnectionPools) -> None:
        self._pools = pools
        self._limits = pools.limits
        self._results: OrderedDict[str, _Result] = OrderedDict()
        # What was run of the last few statements that were admitted.
        self._executed: OrderedDict[_RunKey, str] = OrderedDict()

    async def read(
        self, request: ReadStatement | NextPage, *, limit: int, max_bytes: int, max_cell: int = MAX_CELL
    ) -> RowPage | Results:
        """Return the first page of a query's rows, or of each of several queries, or the one behind a cursor."""
        if isinstance(request, NextPage):
            return await self._read_next(request, limit=limit, max_bytes=max_bytes)
        if isinstance(request, Reads):
            results = await run_shielded(
                self._first_pages(request, limit=limit, max_bytes=max_bytes, max_cell=max_cell)
            )
            parts = zip(request.parts, results.results, strict=True)
            return Results([await self._explain_if_empty(part, result) for part, result in parts])
        statement = self.read_statement(request, limit=limit, max_bytes=max_bytes, max_cell=max_cell)
        page = await self._pools.run_with_suggestion(request.database, request.sql, statement)
        return await self._explain_if_empty(request, page)

    async def _explain_if_empty(self, statement: ReadStatement, page: PageOrFailure) -> PageOrFailure:
        """Return a page with notes on values that it has been asked for in vain."""
        if isinstance(page, str) or page.cursor or not is_empty_result(page.lines):
            return page
        if isinstance(statement, ReadWithSettings):
            # Policies may show other rows by what is set.
            return page
        notes = await self.explain_nothing_found(statement.database, statement.sql)
        return replace(page, notes=[*page.notes, *notes])

    async def explain_nothing_found(self, database: Database, sql: str) -> list[str]:
        """Return notes on policies that hide rows from the role, and on values that a statement asks for in vain."""
        read_page = functools.partial(self.read_statement, limit=MAX_KNOWN_VALUES + 1, max_bytes=_MAX_VALUES_BYTES)
        run_within = functools.partial(self._pools.within, database)
        policies = await find_hiding_policies(run_within, sql)
        return [*policies, *await find_absent_values(run_within, read_page, database, sql)]

    async def read_statement(
        self, statement: ReadStatement, *, limit: int, max_bytes: int, max_cell: int = MAX_CELL
    ) -> RowPage:
        """Return the first page of a statement's rows."""
        return await run_shielded(self._first_page(statement, limit=limit, max_bytes=max_bytes, max_cell=max_cell))

    async def _first_page(self, statement: ReadStatement, *, limit: int, max_bytes: int, max_cell: int) -> RowPage:
        first = transaction_opening(self._limits)
        role = statement.database.role
        key = _RunKey(statement.database.name, statement.sql, max(limit, _MAX_KEPT_ROWS), max_cell)
        seconds = self._limits.statement_seconds

        def prefetch(role: Role) -> Sequence[Statement]:
            if role.is_judged or isinstance(statement, ReadWithSettings) or _NO_QUERY.match(statement.sql):
                return ()
            executed_sql = self._executed.get(key)
            if executed_sql is None:
                return gate_statements(statement)
            # What ran the last time runs if the gate takes the statement, and counts if the columns are the same.
            return (*gate_statements(statement), (executed_sql, statement.parameters))

        connections = self._pools.of(statement.database)
        async with connections.session(first, seconds=seconds, role=role, prefetch=prefetch) as session:
            started = time.monotonic()
            result = await _read_result(session, statement, limit, max_bytes, max_cell)
            if not session.role.is_judged:
                self._remember(key, result.executed_sql)
            if result.has_more and time.monotonic() - started < _MAX_READ_TWICE_SECONDS:
                result = await _read_in_order(session, result, limit, max_bytes)
        return self._make_page(result, None, 0, limit, max_bytes)

    async def _first_pages(self, reads: Reads, *, limit: int, max_bytes: int, max_cell: int) -> Results:
        """Return the first page of each statement: short results whole, of the others as much as there is room for.

        Raises:
            Refused: one of them is refused; the others were not answered either.
        """
        first = transaction_opening(self._limits, same_snapshot=True)
        seconds = self._limits.statement_seconds
        deadline = time.monotonic() + seconds
        results: list[_Result | str] = []
        connections = self._pools.of(reads.database)
        async with connections.session(first, seconds=seconds, role=reads.database.role) as session:
            for number in range(len(reads.parts)):
                await _begin_part(session, deadline, is_last=number + 1 == len(reads.parts))
                result = await _read_part(session, reads, number, limit, max_bytes, max_cell)
                results.append(result)
            if session.role.harmful or session.caller_role:
                _add_moment_note(results)
        sizes = [_count_page_bytes(result, limit) for result in results]
        pages: list[RowPage | str] = []
        for result, share in zip(results, share_bytes(sizes, max_bytes), strict=True):
            if isinstance(result, str):
                pages.append(result)
            else:
                pages.append(self._make_page(result, None, 0, limit, share))
        if not any(isinstance(item, RowPage) for item in pages):
            messages = " ".join(f"{number}: {item}" for number, item in enumerate(pages, 1))
            raise Invalid(f"None of the {len(pages)} statements was answered. {messages}")
        return Results(pages)

    def page_of_answer(
        self,
        statement: ReadStatement,
        columns: Sequence[Column],
        lines: RowWriter,
        answer: Answer,
        *,
        limit: int,
    ) -> RowPage:
        """Return the first page of rows that a change returned; `query_rows` has those behind it, as they were."""
        result = _Result(statement, [column.name for column in columns], lines.max_cell, 0)
        used = 0
        for row in answer.rows()[:_MAX_KEPT_ROWS]:
            if used >= _MAX_KEPT_BYTES:
                break
            result.lines.append(lines.write(row))
            used += len(result.lines[-1])
        dropped_rows = answer.count - len(result.lines)
        if dropped_rows:
            result.notes.append(f"{dropped_rows:,} more rows were returned, which were not kept")
        result.cut_cells = lines.cut_count
        return self._make_page(result, None, 0, limit, _PAGE_BYTES)

    async def _read_next(self, request: NextPage, *, limit: int, max_bytes: int) -> RowPage:
        """Return the page behind a cursor.

        Raises:
            Invalid: it is not known, or not any more, or is of another database than the one that was named.
        """
        name, shown_rows = _decode_cursor(request.cursor)
        result = self._results.get(name)
        if result is None or result.statement.database.role != request.role:
            raise Invalid(
                f"The result behind the `cursor` is gone; the last {_MAX_RESULTS} are kept.", "Run the query again."
            )
        request.check(result.statement)
        self._results.move_to_end(name)
        if not result.first_row <= shown_rows < result.first_row + len(result.lines):
            result = await run_shielded(self._read_again(result, shown_rows, limit=limit, max_bytes=max_bytes))
        return self._make_page(result, name, shown_rows, limit, max_bytes)

    async def _read_again(self, result: _Result, shown_rows: int, *, limit: int, max_bytes: int) -> _Result:
        """Return a result as it is now, from a row on."""
        statement = result.statement
        async with self._pools.session(statement.database) as session:
            if result.is_serial:
                await session.run(_SERIAL)
            read = await _read_result(session, statement, limit, max_bytes, result.max_cell, shown_rows)
            read.is_serial = result.is_serial
        read.notes.append(
            f"read again from row {shown_rows + 1} on: what changed meanwhile, or has no ORDER BY a key, may be "
            "missing or twice"
        )
        return read

    async def compile(self, statement: ReadStatement) -> None:
        """Have PostgreSQL look at a query without running it.

        Raises:
            Problem: it would refuse it.
        """
        try:
            await self._pools.within(
                statement.database, functools.partial(admit, statement=statement), role=SERVER_ROLE
            )
        except Refused:
            # Callers may read what the server's own role may not; each is asked anew.
            if not self._pools.of(statement.database).has_callers:
                raise

    def close(self) -> None:
        """Forget all results."""
        self._results.clear()

    def _remember(self, key: _RunKey, executed_sql: str) -> None:
        if len(executed_sql) > _MAX_REMEMBERED_CHARACTERS:
            return
        self._executed[key] = executed_sql
        self._executed.move_to_end(key)
        if len(self._executed) > _MAX_REMEMBERED:
            self._executed.popitem(last=False)

    def _make_page(self, result: _Result, name: str | None, shown_rows: int, limit: int, max_bytes: int) -> RowPage:
        """Return the page behind `shown_rows` of a result, which is kept where there are more."""
        start = shown_rows - result.first_row
        row_count = count_fitting(result.lines[start : start + limit], max_bytes)
        cursor = None
        if result.has_more or start + row_count < len(result.lines):
            name = name or secrets.token_urlsafe(9)
            self._keep(name, result)
            cursor = Cursor.encode("rows", [name, shown_rows + row_count])
        lines = "".join(result.lines[start : start + row_count])
        notes = [*result.notes]
        if NOT_UTF8 in lines and not self._pools.of(result.statement.database).has_encoding:
            notes.append(f"{NOT_UTF8} stands for bytes that are not UTF-8. {NOT_UTF8_ADVICE}")
        return RowPage(
            columns=result.columns,
            lines=lines,
            start=shown_rows + 1,
            rows=row_count,
            cursor=cursor,
            cut=result.cut_cells,
            notes=notes,
        )

    def _keep(self, name: str, result: _Result) -> None:
        self._results[name] = result
        self._results.move_to_end(name)
        while len(self._results) > _MAX_RESULTS:
            self._results.popitem(last=False)


def _decode_cursor(cursor: str) -> tuple[str, int]:
    """Return the name of a result, and how many of its rows were shown; no name where the cursor is none."""
    match Cursor.decode("rows", cursor):
        case [str() as name, int() as shown_rows] if shown_rows >= 0:
            return name, shown_rows
        case _:
            return "", 0


def _add_moment_note(results: Iterable[_Result | str]) -> None:
    """Say with the first of several results that they are not of one moment."""
    for result in results:
        if isinstance(result, _Result):
            result.notes.append(_MOMENT_NOTE)
            return


def _count_page_bytes(result: _Result | str, limit: int) -> int:
    """Return the bytes of the rows that a page of a result may have at most."""
    if isinstance(result, str):
        return 0
    return sum(len(line.encode()) for line in result.lines[:limit])


async def _begin_part(session: Session, deadline: float, *, is_last: bool) -> None:
    """Go back to the beginning of the transaction, and give one of several statements its part of the time."""
    seconds = deadline - time.monotonic()
    if not is_last:
        seconds *= _TIME_SHARE
    milliseconds = max(1, int(1000 * seconds))
    await session.run(
        f"ROLLBACK TO SAVEPOINT mcp_start; SELECT pg_catalog.set_config('statement_timeout', '{milliseconds}', true)"
    )


async def _read_part(
    session: Session, reads: Reads, number: int, limit: int, max_bytes: int, max_cell: int
) -> _Result | str:
    """Return the rows of one of several statements, or why it has none.

    Raises:
        Refused: it is refused.
    """
    statement = reads.parts[number]
    run_within = functools.partial(_run_after_failure, session)
    try:
        return await _read_result(session, statement, limit, max_bytes, max_cell)
    except Refused as error:
        problem = await add_suggestion(error, statement.sql, run_within)
        raise Refused(f"{number + 1} of {len(reads.parts)}: {problem.failure}", problem.fix) from error
    except (Problem, psycopg.Error) as error:
        if session.connection.broken:
            raise
        problem = error if isinstance(error, Problem) else to_problem(error, statement.database.name)
    return str(await add_suggestion(problem, statement.sql, run_within))


async def _read_result(
    session: Session, statement: ReadStatement, limit: int, max_bytes: int, max_cell: int, skipped_rows: int = 0
) -> _Result:
    """Return as many rows of a statement as are kept, behind those that are skipped."""
    await apply_settings_of(session, statement)
    sql, columns = await _prepare(session, statement)
    result = _Result(statement, [column.name for column in columns], max_cell, skipped_rows)
    writer = RowWriter(columns, max_cell)
    reader = _RowReader(session, result, writer, limit, max_bytes)
    try:
        executed_sql = sql
        # EXPLAIN and SHOW cannot be a subquery, and are short.
        if sql is statement.sql:
            max_rows = reader.max_rows + 1
            executed_sql = limit_result(sql, columns, max_cell=max_cell, limit=max_rows, offset=skipped_rows)
        if not session.is_next((executed_sql, statement.parameters)) and await session.finish_pipeline():
            # It went ahead for other columns than there are now, and may have failed.
            await session.run("ROLLBACK TO SAVEPOINT mcp_start")
        result.executed_sql = executed_sql
        await reader.read(executed_sql)
    except psycopg.errors.SyntaxError:
        if result.lines:
            raise
        # A comment behind the last semicolon, say: as it stands, then.
        await session.run("ROLLBACK TO SAVEPOINT mcp_start")
        await apply_settings_of(session, statement)
        await use_role_path(session)
        await act_as_role(session)
        await reader.read(sql, skipped_rows)
    result.cut_cells = writer.cut_count
    return result


async def _read_in_order(session: Session, result: _Result, limit: int, max_bytes: int) -> _Result:
    """Return a result whose later pages will be read again, by a plan that gives the rows in one order each time.

    Parallel workers give them as they find them.
    """
    statement = result.statement
    await session.run("ROLLBACK TO SAVEPOINT mcp_start")
    # There may be no time left for it.
    with suppress(Problem, psycopg.Error):
        await apply_settings_of(session, statement)
        await use_role_path(session)
        await act_as_role(session)
        explain = f"EXPLAIN (COSTS OFF) {result.executed_sql}"
        (plan,) = await session.run_pipeline((explain, statement.parameters))
        if _gathers(str(row[0]) for row in plan.rows()):
            await session.run(f"ROLLBACK TO SAVEPOINT mcp_start; {_SERIAL}")
            result = await _read_result(session, statement, limit, max_bytes, result.max_cell)
            result.is_serial = True
    return result


def _gathers(plan: Iterable[str]) -> bool:
    """Return whether rows are gathered from parallel workers as they come; `Gather Merge` keeps them in an order."""
    return any(line.strip().removeprefix("->").strip() == "Gather" for line in plan)


class _RowReader:
    """Reads the rows of a result, up to what is kept of it.

    Attributes:
        max_rows: how many rows are kept at most.
    """

    def __init__(self, session: Session, result: _Result, writer: RowWriter, limit: int, max_bytes: int) -> None:
        self.max_rows = max(limit, _MAX_KEPT_ROWS)
        self._session = session
        self._result = result
        self._writer = writer
        self._limit = limit
        self._max_bytes = max_bytes
        self._used_bytes = 0
        # When reading ends, once the first page is full.
        self._deadline: float | None = None

    async def read(self, sql: str, skipped_rows: int = 0) -> None:
        """Read the rows behind those that are skipped."""
        statement = self._result.statement
        try:
            async with aclosing(stream_statement(self._session, sql, statement)) as rows:
                async for row in rows:
                    if skipped_rows:
                        skipped_rows -= 1
                        continue
                    if self._is_full():
                        self._result.has_more = True
                        return
                    self._add(row)
        except psycopg.errors.SyntaxError:
            raise
        except psycopg.Error as error:
            raise to_problem(error, statement.database.name) from error

    def _is_full(self) -> bool:
        if len(self._result.lines) == self.max_rows or self._used_bytes > _MAX_KEPT_BYTES:
            return True
        return self._deadline is not None and time.monotonic() > self._deadline

    def _add(self, row: Row) -> None:
        lines = self._result.lines
        line = self._writer.write(row)
        lines.append(line)
        self._used_bytes += len(line)
        if self._deadline is None and (len(lines) >= self._limit or self._used_bytes > self._max_bytes):
            self._deadline = time.monotonic() + _READ_AHEAD_SECONDS


async def _prepare(session: Session, statement: ReadStatement) -> tuple[str, list[Column]]:
    """Return what to run for `statement`, with its columns, once the server took it for something that only reads."""
    show = _SHOW.fullmatch(statement.sql)
    if show is not None:
        # One of the settings is where names are looked up.
        await use_role_path(session)
        await act_as_role(session)
        return f"{statement.sql} ", [Column(name, _TEXT) for name in _setting_columns(show[1])]
    explained = parse_explain(statement.sql)
    if explained is None:
        return statement.sql, await admit(session, statement)
    inner = inner_statement(statement, explained.inner)
    if explained.runs:
        await admit(session, inner)
    else:
        await judge(session, inner, only_planned=True)
        await act_as_role(session)
    return explained.sql, [Column("QUERY PLAN", _TEXT)]


def _setting_columns(name: str) -> tuple[str, ...]:
    """Return the columns of what SHOW says of a setting, or of all."""
    if name.upper() == "ALL":
        return ("name", "setting", "description")
    return (name.lower(),)


def stream_statement(session: Session, sql: str, statement: ReadStatement) -> AsyncGenerator[Row]:
    """Return the rows of a statement that was admitted, as they come."""
    return session.stream_rows((sql, statement.parameters))


async def _run_after_failure(session: Session, work: Callable[[Session], Awaitable[str]]) -> str:
    """Return what a statement of our own says behind one that failed."""
    await session.run("ROLLBACK TO SAVEPOINT mcp_start")
    return await work(session)
