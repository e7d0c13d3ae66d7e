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
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import NamedTuple

import psycopg

from mcp_batteries.errors import Invalid, Problem, Refused
from mcp_batteries.limits import Cursor
from mcp_batteries.sql.rows import Results, RowPage
from mcp_postgres.engine.admission.statements import (
    TransactionLimits,
    admit,
    gate_statements,
    judge,
    transaction_opening,
)
from mcp_postgres.engine.catalog.suggestions import add_suggestion
from mcp_postgres.engine.connection.errors import to_problem
from mcp_postgres.engine.connection.pipeline import Answer, Row, Statement
from mcp_postgres.engine.connection.pool import ConnectionPool
from mcp_postgres.engine.connection.result_values import Column, RowWriter, limit_result
from mcp_postgres.engine.connection.role import Role
from mcp_postgres.engine.connection.session import Session, use_role_path
from mcp_postgres.policy import MAX_STATEMENTS, NextPage, Reads, ReadStatement, inner_statement

__all__ = ["ResultPages", "stream_statement"]

_MAX_RESULTS = MAX_STATEMENTS
_MAX_KEPT_ROWS = 2000
_MAX_KEPT_BYTES = 2_000_000
_PAGE_BYTES = 20_000
_MAX_REMEMBERED = 200
# Characters of a statement that is not remembered.
_MAX_REMEMBERED_CHARACTERS = 10_000
# What part of the time left a statement may take while others wait behind it.
_TIME_SHARE = 0.8
# How long reading goes on once the first page is full.
_READ_AHEAD_SECONDS = 0.1

_COMMENT = r"(?:\s|--[^\n]*\n|/\*(?:[^*/]|\*(?!/)|/(?!\*))*\*/)*"
_SHOW = re.compile(
    _COMMENT
    + r"SHOW\s+([\w.]+|\"[\w.]+\"|TIME\s+ZONE|TRANSACTION\s+ISOLATION\s+LEVEL|SESSION\s+AUTHORIZATION)\s*;?\s*",
    re.I,
)
_EXPLAIN = re.compile(
    _COMMENT + r"EXPLAIN(?P<options>\s*\((?:[\w\s,.']*)\)|(?:\s+(?:ANALYZE|VERBOSE)\b)*)\s*(?P<inner>.*)", re.I | re.S
)
_NO_QUERY = re.compile(_COMMENT + r"(?:SHOW|EXPLAIN)\b", re.I)
_TEXT = 25


@dataclass
class _Result:
    statement: ReadStatement
    columns: Sequence[str]
    max_cell: int
    # Rows before those kept.
    first_row: int
    lines: list[str] = field(default_factory=list[str])
    has_more: bool = False
    cut_cells: int = 0
    notes: list[str] = field(default_factory=list[str])
    # What PostgreSQL was asked for.
    executed_sql: str = ""


class _RunKey(NamedTuple):
    database: str
    sql: str
    kept_rows: int
    max_cell: int


class ResultPages:
    """Queries of all databases, and the last few results that were longer than a page."""

    def __init__(self, limits: TransactionLimits) -> None:
        self._limits = limits
        self._results: OrderedDict[str, _Result] = OrderedDict()
        # What was run of the last few statements that were admitted.
        self._executed: OrderedDict[_RunKey, str] = OrderedDict()

    async def first_page(
        self, connections: ConnectionPool, statement: ReadStatement, *, limit: int, max_bytes: int, max_cell: int
    ) -> RowPage:
        """Return the first page of a statement's rows."""
        first = transaction_opening(self._limits)
        role = statement.database.role
        key = _RunKey(statement.database.name, statement.sql, max(limit, _MAX_KEPT_ROWS), max_cell)
        seconds = self._limits.statement_seconds

        def ahead(role: Role) -> Sequence[Statement]:
            if role.is_judged or _NO_QUERY.match(statement.sql):
                return ()
            # What ran the last time runs if the gate takes the statement, and counts if the columns are the same.
            runs = self._executed.get(key)
            return (*gate_statements(statement), *([] if runs is None else [(runs, statement.parameters)]))

        async with connections.session(first, seconds=seconds, role=role, prefetch=ahead) as session:
            result = await _read_result(session, statement, limit, max_bytes, max_cell)
            if not session.role.is_judged:
                self._remember(key, result.executed_sql)
        return self._make_page(result, None, 0, limit, max_bytes)

    async def first_pages(
        self, connections: ConnectionPool, reads: Reads, *, limit: int, max_bytes: int, max_cell: int
    ) -> Results:
        """Return the first page of each statement; what one leaves of its share of the bytes goes to those behind it.

        Raises:
            Refused: one of them is refused; the others were not answered either.
        """
        pages: list[RowPage | str] = []
        first = transaction_opening(self._limits, same_snapshot=True)
        deadline = time.monotonic() + self._limits.statement_seconds
        async with connections.session(
            first, seconds=self._limits.statement_seconds, role=reads.database.role
        ) as session:
            for number, statement in enumerate(reads.parts):
                share = max_bytes // (len(reads.parts) - number)
                last = number + 1 == len(reads.parts)
                milliseconds = max(1, int(1000 * (deadline - time.monotonic()) * (1 if last else _TIME_SHARE)))
                await session.run(
                    "ROLLBACK TO SAVEPOINT mcp_start;"
                    f" SELECT pg_catalog.set_config('statement_timeout', '{milliseconds}', true)"
                )
                try:
                    result = await _read_result(session, statement, limit, share, max_cell)
                except Refused as error:
                    told = await add_suggestion(error, statement.sql, functools.partial(_run_after_failure, session))
                    raise Refused(f"{number + 1} of {len(reads.parts)}: {told.what}", told.fix) from error
                except (Problem, psycopg.Error) as error:
                    if session.connection.broken:
                        raise
                    if isinstance(error, Problem):
                        said = error
                    else:
                        said = to_problem(error, statement.database.name)
                    pages.append(
                        str(await add_suggestion(said, statement.sql, functools.partial(_run_after_failure, session)))
                    )
                    continue
                if number == 0 and (session.role.harmful or session.caller_role):
                    result.notes.append("each statement saw a moment of its own: the role's statements are judged")
                page = self._make_page(result, None, 0, limit, share)
                max_bytes -= len(page.lines.encode())
                pages.append(page)
        if not any(isinstance(item, RowPage) for item in pages):
            said = " ".join(f"{number}: {item}" for number, item in enumerate(pages, 1))
            raise Invalid(f"None of the {len(pages)} statements was answered. {said}")
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
        if dropped_rows := answer.count - len(result.lines):
            result.notes.append(f"{dropped_rows:,} more rows were returned, which were not kept")
        result.cut_cells = lines.cut_count
        return self._make_page(result, None, 0, limit, _PAGE_BYTES)

    def find_result(self, request: NextPage) -> tuple[str, int, ReadStatement]:
        """Return the result a cursor belongs to: its name, how many rows were shown, its statement.

        Raises:
            Invalid: it is not known, or not any more, or is of another database than the one that was named.
        """
        match Cursor.decode("rows", request.cursor):
            case [str() as name, int() as shown_rows] if shown_rows >= 0:
                result = self._results.get(name)
            case _:
                name = ""
                shown_rows = 0
                result = None
        if result is None or result.statement.database.role != request.role:
            raise Invalid(
                f"The result behind the `cursor` is gone; the last {_MAX_RESULTS} are kept.", "Run the query again."
            )
        request.check(result.statement)
        return name, shown_rows, result.statement

    async def next_page(
        self, connections: ConnectionPool, name: str, shown_rows: int, *, limit: int, max_bytes: int
    ) -> RowPage:
        """Return the page behind `shown` rows of the result `name`."""
        result = self._results[name]
        self._results.move_to_end(name)
        if not result.first_row <= shown_rows < result.first_row + len(result.lines):
            notes = [f"read again from row {shown_rows + 1} on: what changed meanwhile may be missing or twice"]
            first = transaction_opening(self._limits)
            role = result.statement.database.role
            async with connections.session(first, seconds=self._limits.statement_seconds, role=role) as session:
                result = await _read_result(session, result.statement, limit, max_bytes, result.max_cell, shown_rows)
            result.notes += notes
        return self._make_page(result, name, shown_rows, limit, max_bytes)

    def close(self) -> None:
        """Forget all results."""
        self._results.clear()

    def _remember(self, key: _RunKey, runs: str) -> None:
        if len(runs) > _MAX_REMEMBERED_CHARACTERS:
            return
        self._executed[key] = runs
        self._executed.move_to_end(key)
        if len(self._executed) > _MAX_REMEMBERED:
            self._executed.popitem(last=False)

    def _make_page(self, result: _Result, name: str | None, shown_rows: int, limit: int, max_bytes: int) -> RowPage:
        start = shown_rows - result.first_row
        row_count = 0
        used = 0
        for line in result.lines[start : start + limit]:
            used += len(line.encode())
            if row_count and used > max_bytes:
                break
            row_count += 1
        more = result.has_more or start + row_count < len(result.lines)
        cursor = None
        if more:
            name = name or secrets.token_urlsafe(9)
            self._results[name] = result
            self._results.move_to_end(name)
            while len(self._results) > _MAX_RESULTS:
                self._results.popitem(last=False)
            cursor = Cursor.encode("rows", [name, shown_rows + row_count])
        lines = "".join(result.lines[start : start + row_count])
        return RowPage(result.columns, lines, shown_rows + 1, row_count, cursor, result.cut_cells, result.notes)


async def _read_result(
    session: Session, statement: ReadStatement, limit: int, max_bytes: int, max_cell: int, skipped_rows: int = 0
) -> _Result:
    sql, columns = await _prepare(session, statement)
    result = _Result(statement, [column.name for column in columns], max_cell, skipped_rows)
    max_rows = max(limit, _MAX_KEPT_ROWS)
    lines = RowWriter(columns, max_cell)
    try:
        executed = sql
        # EXPLAIN and SHOW cannot be a subquery, and are short.
        if sql is statement.sql:
            executed = limit_result(sql, columns, max_cell=max_cell, limit=max_rows + 1, offset=skipped_rows)
        if not session.is_next((executed, statement.parameters)) and await session.finish_pipeline():
            # It went ahead for other columns than there are now, and may have failed.
            await session.run("ROLLBACK TO SAVEPOINT mcp_start")
        result.executed_sql = executed
        await _read_rows(session, executed, statement, lines, result, limit, max_rows, max_bytes)
    except psycopg.errors.SyntaxError:
        if result.lines:
            raise
        # A comment behind the last semicolon, say: as it stands, then.
        await session.run("ROLLBACK TO SAVEPOINT mcp_start")
        await use_role_path(session)
        await _read_rows(session, sql, statement, lines, result, limit, max_rows, max_bytes, skipped_rows)
    result.cut_cells = lines.cut_count
    return result


async def _prepare(session: Session, statement: ReadStatement) -> tuple[str, list[Column]]:
    """Return what to run for `statement`, with its columns, once the server took it for something that only reads."""
    if show := _SHOW.fullmatch(statement.sql):
        await use_role_path(session)  # one of the settings is where names are looked up
        if show[1].upper() == "ALL":
            names = ("name", "setting", "description")
        else:
            names = (show[1].lower(),)
        return f"{statement.sql} ", [Column(name, _TEXT) for name in names]
    explain = _EXPLAIN.fullmatch(statement.sql)
    if explain is None:
        return statement.sql, await admit(session, statement)
    if "(" in explain["options"]:
        options = explain["options"].strip().strip("()").split(",")
    else:
        options = explain["options"].split()
    words = [word.strip() for word in options if word.strip()]
    if any(re.match(r"ANALY[SZ]E\b", word, re.I) for word in words):
        await admit(session, inner_statement(statement, explain["inner"]))
    else:
        await judge(session, inner_statement(statement, explain["inner"]), only_planned=True)
    # With options in parentheses nothing but a statement can follow: no second ANALYZE.
    return f"EXPLAIN ({', '.join(words) or 'COSTS'}) {explain['inner']}", [Column("QUERY PLAN", _TEXT)]


async def _read_rows(
    session: Session,
    sql: str,
    statement: ReadStatement,
    lines: RowWriter,
    result: _Result,
    limit: int,
    max_rows: int,
    max_bytes: int,
    skipped_rows: int = 0,
) -> None:
    used = 0
    deadline = None
    try:
        async with aclosing(stream_statement(session, sql, statement)) as rows:
            async for row in rows:
                if skipped_rows:
                    skipped_rows -= 1
                    continue
                if (
                    len(result.lines) == max_rows
                    or used > _MAX_KEPT_BYTES
                    or (deadline and time.monotonic() > deadline)
                ):
                    result.has_more = True
                    return
                line = lines.write(row)
                result.lines.append(line)
                used += len(line)
                if deadline is None and (len(result.lines) >= limit or used > max_bytes):
                    deadline = time.monotonic() + _READ_AHEAD_SECONDS
    except psycopg.errors.SyntaxError:
        raise
    except psycopg.Error as error:
        raise to_problem(error, statement.database.name) from error


def stream_statement(session: Session, sql: str, statement: ReadStatement) -> AsyncGenerator[Row]:
    """Return the rows of a statement that was admitted, as they come."""
    return session.stream_rows((sql, statement.parameters))


async def _run_after_failure(session: Session, work: Callable[[Session], Awaitable[str]]) -> str:
    """Return what a statement of our own says behind one that failed."""
    await session.run("ROLLBACK TO SAVEPOINT mcp_start")
    return await work(session)
