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
from mcp_postgres.engine.admission.statements import Limits, admit, gate_of, judge, opening
from mcp_postgres.engine.catalog.suggestions import helped
from mcp_postgres.engine.connection.errors import problem
from mcp_postgres.engine.connection.pipeline import Answer, Row, Statement
from mcp_postgres.engine.connection.pool import Connections, Session
from mcp_postgres.engine.connection.result_values import Column, Lines, wrapped
from mcp_postgres.engine.connection.role import Role
from mcp_postgres.engine.connection.session import their_names
from mcp_postgres.policy import MAX_STATEMENTS, NextPage, Reads, ReadStatement, part_of

__all__ = ["Pages", "rows_of"]

_MOST_RESULTS = MAX_STATEMENTS
_KEPT_ROWS = 2000
_KEPT_BYTES = 2_000_000
_PAGE_BYTES = 20_000
_MOST_RUNS = 200
_LONG = 10_000
"""Characters of a statement that is not remembered."""
_MOST_OF_IT = 0.8
"""What part of the time left a statement may take while others wait behind it."""
_AHEAD_SECONDS = 0.1
"""How long reading goes on once the first page is full."""

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
    start: int
    """Rows before those kept."""
    lines: list[str] = field(default_factory=list[str])
    more: bool = False
    cut: int = 0
    notes: list[str] = field(default_factory=list[str])
    runs: str = ""
    """What PostgreSQL was asked for."""


class _Wanted(NamedTuple):
    database: str
    sql: str
    kept: int
    max_cell: int


class Pages:
    """Queries of all databases, and the last few results that were longer than a page."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._results: OrderedDict[str, _Result] = OrderedDict()
        self._runs: OrderedDict[_Wanted, str] = OrderedDict()
        """What was run of the last few statements that were admitted."""

    async def first(
        self, connections: Connections, statement: ReadStatement, *, limit: int, max_bytes: int, max_cell: int
    ) -> RowPage:
        """The first page of a statement's rows."""
        first, role = opening(self._limits), statement.database.role
        wanted = _Wanted(statement.database.name, statement.sql, max(limit, _KEPT_ROWS), max_cell)
        seconds = self._limits.seconds

        def ahead(role: Role) -> Sequence[Statement]:
            if role.judged or _NO_QUERY.match(statement.sql):
                return ()
            # What ran the last time runs if the gate takes the statement, and counts if the columns are the same.
            runs = self._runs.get(wanted)
            return (*gate_of(statement), *([] if runs is None else [(runs, statement.parameters)]))

        async with connections.session(first, seconds=seconds, role=role, ahead=ahead) as session:
            result = await _read(session, statement, limit, max_bytes, max_cell)
            if not session.role.judged:
                self._remember(wanted, result.runs)
        return self._page(result, None, 0, limit, max_bytes)

    async def several(
        self, connections: Connections, reads: Reads, *, limit: int, max_bytes: int, max_cell: int
    ) -> Results:
        """The first page of each statement; what one leaves of its share of the bytes goes to those behind it.

        Raises:
            Refused: one of them is refused; the others were not answered either.
        """
        found: list[RowPage | str] = []
        first = opening(self._limits, several=True)
        until = time.monotonic() + self._limits.seconds
        async with connections.session(first, seconds=self._limits.seconds, role=reads.database.role) as session:
            for number, statement in enumerate(reads.parts):
                share = max_bytes // (len(reads.parts) - number)
                last = number + 1 == len(reads.parts)
                left = max(1, int(1000 * (until - time.monotonic()) * (1 if last else _MOST_OF_IT)))
                await session.simple(
                    "ROLLBACK TO SAVEPOINT mcp_start;"
                    f" SELECT pg_catalog.set_config('statement_timeout', '{left}', true)"
                )
                try:
                    result = await _read(session, statement, limit, share, max_cell)
                except Refused as why:
                    told = await helped(why, statement.sql, functools.partial(_anew, session))
                    raise Refused(f"{number + 1} of {len(reads.parts)}: {told.what}", told.fix) from why
                except (Problem, psycopg.Error) as why:
                    if session.raw.broken:
                        raise
                    said = why if isinstance(why, Problem) else problem(why, statement.database.name)
                    found.append(str(await helped(said, statement.sql, functools.partial(_anew, session))))
                    continue
                if number == 0 and (session.role.harmful or session.caller):
                    result.notes.append("each statement saw a moment of its own: the role's statements are judged")
                page = self._page(result, None, 0, limit, share)
                max_bytes -= len(page.lines.encode())
                found.append(page)
        if not any(isinstance(item, RowPage) for item in found):
            said = " ".join(f"{number}: {item}" for number, item in enumerate(found, 1))
            raise Invalid(f"None of the {len(found)} statements was answered. {said}")
        return Results(found)

    def kept(
        self,
        statement: ReadStatement,
        columns: Sequence[Column],
        lines: Lines,
        answer: Answer,
        *,
        limit: int,
    ) -> RowPage:
        """The first page of rows that a change returned; `query_rows` has those behind it, as they were."""
        result = _Result(statement, [column.name for column in columns], lines.max_cell, 0)
        used = 0
        for row in answer.rows()[:_KEPT_ROWS]:
            if used >= _KEPT_BYTES:
                break
            result.lines.append(lines.line(row))
            used += len(result.lines[-1])
        if rest := answer.count - len(result.lines):
            result.notes.append(f"{rest:,} more rows were returned, which were not kept")
        result.cut = lines.cut
        return self._page(result, None, 0, limit, _PAGE_BYTES)

    def known(self, wanted: NextPage) -> tuple[str, int, ReadStatement]:
        """The result a cursor belongs to: its name, how many rows were shown, its statement.

        Raises:
            Invalid: it is not known, or not any more, or is of another database than the one that was named.
        """
        match Cursor.decode("rows", wanted.cursor):
            case [str() as name, int() as shown] if shown >= 0:
                result = self._results.get(name)
            case _:
                name, shown, result = "", 0, None
        if result is None or result.statement.database.role != wanted.role:
            raise Invalid(
                f"The result behind the `cursor` is gone; the last {_MOST_RESULTS} are kept.", "Run the query again."
            )
        wanted.check(result.statement)
        return name, shown, result.statement

    async def next(self, connections: Connections, name: str, shown: int, *, limit: int, max_bytes: int) -> RowPage:
        """The page behind `shown` rows of the result `name`."""
        result = self._results[name]
        self._results.move_to_end(name)
        if not result.start <= shown < result.start + len(result.lines):
            notes = [f"read again from row {shown + 1} on: what changed meanwhile may be missing or twice"]
            first, role = opening(self._limits), result.statement.database.role
            async with connections.session(first, seconds=self._limits.seconds, role=role) as session:
                result = await _read(session, result.statement, limit, max_bytes, result.max_cell, shown)
            result.notes += notes
        return self._page(result, name, shown, limit, max_bytes)

    def close(self) -> None:
        """Forget all results."""
        self._results.clear()

    def _remember(self, wanted: _Wanted, runs: str) -> None:
        if len(runs) > _LONG:
            return
        self._runs[wanted] = runs
        self._runs.move_to_end(wanted)
        if len(self._runs) > _MOST_RUNS:
            self._runs.popitem(last=False)

    def _page(self, result: _Result, name: str | None, shown: int, limit: int, max_bytes: int) -> RowPage:
        begin = shown - result.start
        taken, used = 0, 0
        for line in result.lines[begin : begin + limit]:
            used += len(line.encode())
            if taken and used > max_bytes:
                break
            taken += 1
        more = result.more or begin + taken < len(result.lines)
        cursor = None
        if more:
            name = name or secrets.token_urlsafe(9)
            self._results[name] = result
            self._results.move_to_end(name)
            while len(self._results) > _MOST_RESULTS:
                self._results.popitem(last=False)
            cursor = Cursor.encode("rows", [name, shown + taken])
        lines = "".join(result.lines[begin : begin + taken])
        return RowPage(result.columns, lines, shown + 1, taken, cursor, result.cut, result.notes)


async def _read(
    session: Session, statement: ReadStatement, limit: int, max_bytes: int, max_cell: int, skip: int = 0
) -> _Result:
    sql, columns = await _runnable(session, statement)
    result = _Result(statement, [column.name for column in columns], max_cell, skip)
    kept = max(limit, _KEPT_ROWS)
    lines = Lines(columns, max_cell)
    try:
        asked = sql
        # EXPLAIN and SHOW cannot be a subquery, and are short.
        if sql is statement.sql:
            asked = wrapped(sql, columns, max_cell=max_cell, limit=kept + 1, offset=skip)
        if not session.leads_to((asked, statement.parameters)) and await session.settle():
            # It went ahead for other columns than there are now, and may have failed.
            await session.simple("ROLLBACK TO SAVEPOINT mcp_start")
        result.runs = asked
        await _take(session, asked, statement, lines, result, limit, kept, max_bytes)
    except psycopg.errors.SyntaxError:
        if result.lines:
            raise
        # A comment behind the last semicolon, say: as it stands, then.
        await session.simple("ROLLBACK TO SAVEPOINT mcp_start")
        await their_names(session)
        await _take(session, sql, statement, lines, result, limit, kept, max_bytes, skip)
    result.cut = lines.cut
    return result


async def _runnable(session: Session, statement: ReadStatement) -> tuple[str, list[Column]]:
    """What to run for `statement`, with its columns, once the server took it for something that only reads."""
    if shown := _SHOW.fullmatch(statement.sql):
        await their_names(session)  # one of the settings is where names are looked up
        names = ("name", "setting", "description") if shown[1].upper() == "ALL" else (shown[1].lower(),)
        return f"{statement.sql} ", [Column(name, _TEXT) for name in names]
    found = _EXPLAIN.fullmatch(statement.sql)
    if found is None:
        return statement.sql, await admit(session, statement)
    options = found["options"].strip().strip("()").split(",") if "(" in found["options"] else found["options"].split()
    words = [word.strip() for word in options if word.strip()]
    if any(re.match(r"ANALY[SZ]E\b", word, re.I) for word in words):
        await admit(session, part_of(statement, found["inner"]))
    else:
        await judge(session, part_of(statement, found["inner"]), planned=True)
    # With options in parentheses nothing but a statement can follow: no second ANALYZE.
    return f"EXPLAIN ({', '.join(words) or 'COSTS'}) {found['inner']}", [Column("QUERY PLAN", _TEXT)]


async def _take(
    session: Session,
    sql: str,
    statement: ReadStatement,
    lines: Lines,
    result: _Result,
    limit: int,
    kept: int,
    max_bytes: int,
    skip: int = 0,
) -> None:
    used, until = 0, None
    try:
        async with aclosing(rows_of(session, sql, statement)) as rows:
            async for row in rows:
                if skip:
                    skip -= 1
                    continue
                if len(result.lines) == kept or used > _KEPT_BYTES or (until and time.monotonic() > until):
                    result.more = True
                    return
                line = lines.line(row)
                result.lines.append(line)
                used += len(line)
                if until is None and (len(result.lines) >= limit or used > max_bytes):
                    until = time.monotonic() + _AHEAD_SECONDS
    except psycopg.errors.SyntaxError:
        raise
    except psycopg.Error as error:
        raise problem(error, statement.database.name) from error


def rows_of(session: Session, sql: str, statement: ReadStatement) -> AsyncGenerator[Row]:
    """The rows of a statement that was admitted, as they come."""
    return session.rows((sql, statement.parameters))


async def _anew(session: Session, work: Callable[[Session], Awaitable[str]]) -> str:
    """What a statement of our own says behind one that failed."""
    await session.simple("ROLLBACK TO SAVEPOINT mcp_start")
    return await work(session)
