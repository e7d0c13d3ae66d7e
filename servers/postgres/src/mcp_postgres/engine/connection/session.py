"""A running transaction on one connection, and the ways to run statements in it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

import psycopg
from psycopg import AsyncRawCursor

from mcp_postgres.engine.audit.function_audit import CodeAudit
from mcp_postgres.engine.connection.pipeline import Answer, Connection, Pipeline, Row, Statement, run_simple_query
from mcp_postgres.engine.connection.role import Role

__all__ = [
    "SET_SEARCH_PATH",
    "Opening",
    "Prefetch",
    "ServiceFileState",
    "Session",
    "act_as_role",
    "fetch_json",
    "keep_settings_apart",
    "use_catalog_path",
    "use_role_path",
]

_SETS_BY_FUNCTION = re.compile(r"\bset_config\b", re.I)
_MAX_WARNINGS = 10
_WARNING_CHARACTERS = 300
# Says where names are looked up.
SET_SEARCH_PATH = "SELECT pg_catalog.set_config('search_path', $1, true)"

# The state of the files that told where to connect.
ServiceFileState = tuple[tuple[int, int], ...]
# What begins a transaction of the server's role, for a caller's.
Opening = Callable[[Role, str | None], Sequence[str]]
# What goes with the opening in one trip, since it will be asked for next: nothing that changes anything.
Prefetch = Callable[[Role], Sequence[Statement]]


class Session:
    """A transaction under way.

    Attributes:
        connection: psycopg's.
        notices: what the server said beside results, while `keeps_notices`.
        keeps_notices: notices are awaited. Else one for each row of a statement would fill the memory.
        service: the state of the service file that told where to connect.
        audit: whose code there is in the database.
    """

    def __init__(self, connection: Connection, role: Role, service: ServiceFileState, audit: CodeAudit) -> None:
        self.connection = connection
        self.role = role
        self.service = service
        self.audit = audit
        self.notices: list[tuple[str, str]] = []
        self.keeps_notices = False
        # The first warnings of statements, and how often each came.
        self._warnings: Counter[str] = Counter()
        # The role, as SQL spells it, that the caller is there; None where everybody is the server's own.
        self.caller_role: str | None = None
        # The role, as SQL spells it, as which the statements of others run.
        self.acting_role: str | None = None
        # Whether something was left in it that the next caller must not meet.
        self.must_be_closed = False
        # Whether a commit was sent that nobody has answered.
        self.in_doubt = False
        # The text sent last, other than to go back.
        self.last_sql = ""
        self._pipeline: Pipeline | None = None

    def hear(self, severity: str | None, primary: str, detail: str) -> None:
        """Take a notice of the server's."""
        if self.keeps_notices:
            self.notices.append((primary, detail))
        elif severity == "WARNING":
            warning = primary[:_WARNING_CHARACTERS]
            if warning in self._warnings or len(self._warnings) < _MAX_WARNINGS:
                self._warnings[warning] += 1

    def take_warnings(self) -> list[str]:
        """Return what statements have warned of since this was asked last: a line for each text."""
        warnings = self._warnings
        self._warnings = Counter()
        if warnings and self.audit.visible.schema:
            return ["some that may quote what is not served"]
        return [
            " ".join(warning.split()) + (f" ({count:,} times)" if count > 1 else "")
            for warning, count in warnings.items()
        ]

    def cursor(self) -> AsyncRawCursor[Any]:
        return self.connection.cursor()  # pyright: ignore[reportReturnType] - its factory is set at connect

    async def open(self, opening: Sequence[str], prefetch: Sequence[Statement]) -> None:
        """Begin a transaction, and let go what `run_pipeline` and `stream_rows` will ask for."""
        if not prefetch:
            await self.run("; ".join(opening))
            return
        pipeline = await self._send(*((sql, ()) for sql in opening), *prefetch, flush_after=len(opening))
        for _ in opening:
            await pipeline.read_answer()

    async def run_pipeline(self, *statements: Statement) -> list[Answer]:
        """Run statements in one trip, each by the protocol that admits one only."""
        if self._pipeline is not None and self._pipeline.is_next(*statements):
            return [await self._pipeline.read_answer() for _ in statements]
        try:
            pipeline = await self._send(*statements)
            return [await pipeline.read_answer() for _ in statements]
        finally:
            await self.finish_pipeline()

    async def stream_rows(self, statement: Statement) -> AsyncGenerator[Row]:
        """Yield the rows of a statement as they come; it is stopped on the server if they are not all taken."""
        try:
            pipeline = None
            if self.is_next(statement):
                pipeline = self._pipeline
            async with aclosing((pipeline or await self._send(statement)).stream_rows()) as rows:
                async for row in rows:
                    yield row
        finally:
            await self.finish_pipeline()

    def is_next(self, statement: Statement) -> bool:
        """Return whether a statement is under way, and next to be answered."""
        return self._pipeline is not None and self._pipeline.is_next(statement)

    async def finish_pipeline(self) -> bool:
        """Be done with what is under way; whether there was more than was asked for."""
        pipeline = self._pipeline
        self._pipeline = None
        return pipeline is not None and await pipeline.finish()

    async def _send(self, *statements: Statement, flush_after: int = 0) -> Pipeline:
        await self.finish_pipeline()
        self.last_sql = "\n".join(sql for sql, _ in statements)
        self._pipeline = Pipeline(self.connection, statements, flush_after=flush_after)
        await self._pipeline.send()
        return self._pipeline

    async def run(self, sql: str) -> None:
        """Run statements of our own, several in one trip."""
        if not sql.startswith("ROLLBACK"):
            self.last_sql = sql
        await run_simple_query(self.connection, sql)

    async def commit(self, sql: str) -> None:
        """Run statements of our own, the last of which is COMMIT."""
        self.in_doubt = True
        try:
            await self.run(sql)
        except psycopg.Error:
            self.in_doubt = self.connection.broken
            raise
        self.in_doubt = False

    async def fetch_last_value(self, sql: str) -> str | None:
        """Run statements of our own in one trip; the one value that the last of them finds."""
        row = (await run_simple_query(self.connection, sql)).first()
        if row is None:
            return None
        return row[0]

    async def fetch_value(self, sql: str, *values: str | None) -> str | None:
        """Return the one value a query of our own finds."""
        sql = self.audit.visible.fill_placeholders(sql)
        row = await (await self.cursor().execute(sql.encode(), values or None)).fetchone()
        if row is None:
            return None
        return row[0]

    async def fetch_column(self, sql: str) -> list[str]:
        """Return the values of one column a query of our own finds."""
        sql = self.audit.visible.fill_placeholders(sql)
        return [row[0] for row in await (await self.cursor().execute(sql.encode())).fetchall()]

    @asynccontextmanager
    async def as_server_role(self) -> AsyncGenerator[None]:
        """Within the block the server's own role looks at what all callers share; no statement of others runs there."""
        if self.caller_role is not None:
            await self.run("SET LOCAL ROLE NONE")
        yield
        # Not if that fails: the transaction is over then, or goes back to where it was the caller's.
        if self.caller_role is not None:
            await self.run(f"SET LOCAL ROLE {self.caller_role}")


async def use_catalog_path(session: Session) -> None:
    """Have names mean PostgreSQL's own things: from here on statements of our own run."""
    if session.role.is_judged:
        await session.run_pipeline((SET_SEARCH_PATH, ("pg_catalog",)))


async def use_role_path(session: Session) -> None:
    """Have names mean what the role's `search_path` says: from here on statements of others run that were judged."""
    if session.role.is_judged:
        await session.run_pipeline((SET_SEARCH_PATH, (session.role.search_path,)))


async def act_as_role(session: Session) -> None:
    """Become the role that the call has set, if any, for the statement that runs next."""
    if session.acting_role is not None:
        await session.run(f"SET LOCAL ROLE {session.acting_role}")


def keep_settings_apart(session: Session, sql: str) -> None:
    """Have the session closed behind a statement that may set what the next caller must not meet."""
    if _SETS_BY_FUNCTION.search(sql):
        session.must_be_closed = True


async def fetch_json(session: Session, sql: str, *values: str | None) -> Any:
    """Return the one value that a query of our own finds, which is JSON; None where it finds NULL."""
    text = await session.fetch_value(sql, *values)
    if text is None:
        return None
    return json.loads(text)
