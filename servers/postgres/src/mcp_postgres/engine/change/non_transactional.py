"""Statements that PostgreSQL runs only outside transactions: they cannot be tried, and a failure names what it left."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

import psycopg

from mcp_batteries.errors import Problem, Unavailable, quote
from mcp_batteries.sql.changes import Change, Step
from mcp_postgres.engine.admission.statements import Limits
from mcp_postgres.engine.change.objects import difference, look
from mcp_postgres.engine.connection.errors import problem
from mcp_postgres.engine.connection.pool import Connections
from mcp_postgres.engine.connection.role import Role
from mcp_postgres.policy import ReadStatement

__all__ = ["ALONE", "run_alone"]

ALONE = re.compile(
    r"((?:CREATE INDEX|DROP INDEX|REINDEX|ALTER TABLE \.\.\. DETACH) CONCURRENTLY"
    r"|VACUUM|REINDEX (?:SCHEMA|TABLE|INDEX)) "
)
"""How PostgreSQL begins its refusal to run a statement in a transaction, of those that may run without one."""
_CONCERNED = "SELECT oid::text FROM pg_class WHERE oid >= 16384 AND (relkind IN ('i', 'I') OR relispartition)"
"""All that one of them can make or change."""


async def run_alone(connections: Connections, statement: ReadStatement, limits: Limits, tag: str) -> Change:
    """Run one statement without a transaction around it.

    Its time is kept here: a setting would outlive the statement, and behind a pooler meet somebody else.
    """
    name = statement.database.name
    async with connections.session(_nothing, seconds=2 * limits.seconds, role=None) as session:
        concerned = {*await session.column(_CONCERNED)}
        before = await look(session, concerned)
        failed: Problem | None = None
        try:
            async with asyncio.timeout(limits.seconds):
                await session.together((statement.sql, ()))
        except TimeoutError:
            failed = Unavailable(
                f"{tag} was stopped at its time limit, {limits.seconds:g} s.",
                "The operator can raise `--timeout`; `list_sessions` shows what it may have waited for.",
            )
        except psycopg.Error as error:
            if session.raw.broken:
                raise problem(error, name) from error
            failed = problem(error, name)
        concerned |= {*await session.column(_CONCERNED)}
        left = difference(before, await look(session, concerned))
        if failed is None:
            return Change([Step(tag)], False, left)
        if made := [line[2:] for line in left if line.startswith("+")]:
            fix = f"It left behind what must be dropped first: {quote(', '.join(made), 300)}. {failed.fix}"
            raise type(failed)(failed.what, fix.rstrip()) from failed
        raise failed


def _nothing(role: Role, caller: str | None) -> Sequence[str]:
    """No transaction begins; whoever may define things is not a caller of a role of their own."""
    return ("SELECT 1",)
