"""A running transaction on one connection, and the ways to run statements in it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

import psycopg
from psycopg import AsyncRawCursor

from mcp_postgres.engine.audit.function_audit import World
from mcp_postgres.engine.connection.pipeline import Answer, Raw, Row, Statement, Trip, run
from mcp_postgres.engine.connection.role import Role

__all__ = ["PATH", "Service", "Session", "own_names", "their_names"]

PATH = "SELECT pg_catalog.set_config('search_path', $1, true)"
"""Says where names are looked up."""

Service = tuple[tuple[int, int], ...]
"""The state of the files that told where to connect."""


class Session:
    """A transaction under way.

    Attributes:
        raw: the connection.
        notices: what the server said beside results since the start.
        service: the state of the service file that told where to connect.
        world: whose code there is in the database.
    """

    def __init__(self, raw: Raw, role: Role, service: Service, world: World) -> None:
        self.raw, self.role, self.service, self.world = raw, role, service, world
        self.notices: list[tuple[str, str]] = []
        self.caller: str | None = None
        """The role, as SQL spells it, that the caller is there; None where everybody is the server's own."""
        self.acting: str | None = None
        """The role, as SQL spells it, as which the statements of others run."""
        self.spent = False
        """Whether something was left in it that the next caller must not meet."""
        self.in_doubt = False
        """Whether a commit was sent that nobody has answered."""
        self._trip: Trip | None = None

    def cursor(self) -> AsyncRawCursor[Any]:
        return self.raw.cursor()  # pyright: ignore[reportReturnType] - its factory is set at connect

    async def open(self, opening: Sequence[str], ahead: Sequence[Statement]) -> None:
        """Begin a transaction, and let go what `together` and `rows` will ask for."""
        if not ahead:
            await self.simple("; ".join(opening))
            return
        trip = await self._sent(*((sql, ()) for sql in opening), *ahead, ends=len(opening))
        for _ in opening:
            await trip.answer()

    async def together(self, *statements: Statement) -> list[Answer]:
        """Run statements in one trip, each by the protocol that admits one only."""
        if self._trip is not None and self._trip.leads_to(*statements):
            return [await self._trip.answer() for _ in statements]
        try:
            trip = await self._sent(*statements)
            return [await trip.answer() for _ in statements]
        finally:
            await self.settle()

    async def rows(self, statement: Statement) -> AsyncGenerator[Row]:
        """The rows of a statement as they come; it is stopped on the server if they are not all taken."""
        try:
            trip = self._trip if self.leads_to(statement) else None
            async with aclosing((trip or await self._sent(statement)).rows()) as rows:
                async for row in rows:
                    yield row
        finally:
            await self.settle()

    def leads_to(self, statement: Statement) -> bool:
        """Whether a statement is under way, and next to be answered."""
        return self._trip is not None and self._trip.leads_to(statement)

    async def settle(self) -> bool:
        """Be done with what is under way; whether there was more than was asked for."""
        trip, self._trip = self._trip, None
        return trip is not None and await trip.end()

    async def _sent(self, *statements: Statement, ends: int = 0) -> Trip:
        await self.settle()
        self._trip = Trip(self.raw, statements, ends=ends)
        await self._trip.send()
        return self._trip

    async def simple(self, sql: str) -> None:
        """Run statements of our own, several in one trip."""
        await run(self.raw, sql)

    async def commit(self, sql: str) -> None:
        """Run statements of our own, the last of which is COMMIT."""
        self.in_doubt = True
        try:
            await self.simple(sql)
        except psycopg.Error:
            self.in_doubt = self.raw.broken
            raise
        self.in_doubt = False

    async def last(self, sql: str) -> str | None:
        """Run statements of our own in one trip; the one value that the last of them finds."""
        found = (await run(self.raw, sql)).first()
        return None if found is None else found[0]

    async def value(self, sql: str, *values: str | None) -> str | None:
        """The one value a query of our own finds."""
        sql = self.world.part.filled(sql)
        found = await (await self.cursor().execute(sql.encode(), values or None)).fetchone()
        return None if found is None else found[0]

    async def column(self, sql: str) -> list[str]:
        """The values of one column a query of our own finds."""
        sql = self.world.part.filled(sql)
        return [row[0] for row in await (await self.cursor().execute(sql.encode())).fetchall()]

    @asynccontextmanager
    async def itself(self) -> AsyncGenerator[None]:
        """Within the block the server's own role looks at what all callers share; no statement of others runs there."""
        if self.caller is not None:
            await self.simple("SET LOCAL ROLE NONE")
        yield
        # Not if that fails: the transaction is over then, or goes back to where it was the caller's.
        if self.caller is not None:
            await self.simple(f"SET LOCAL ROLE {self.caller}")


async def own_names(session: Session) -> None:
    """From here on statements of our own run: names mean PostgreSQL's own things."""
    if session.role.judged:
        await session.together((PATH, ("pg_catalog",)))


async def their_names(session: Session) -> None:
    """From here on statements of others run that were judged: names mean what the role's `search_path` says."""
    if session.role.judged:
        await session.together((PATH, (session.role.path,)))
