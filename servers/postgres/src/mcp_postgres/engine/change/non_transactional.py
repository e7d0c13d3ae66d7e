"""Statements that PostgreSQL runs only outside transactions: they cannot be tried, and a failure names what it left."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

import psycopg

from mcp_batteries.errors import Problem, Unavailable, quote
from mcp_batteries.sql.results.changes import Change, Step
from mcp_postgres.engine.admission.statements import TransactionLimits
from mcp_postgres.engine.change.objects import diff_objects, read_objects
from mcp_postgres.engine.connection.errors import to_problem
from mcp_postgres.engine.connection.lock_holders import describe_lock_holders
from mcp_postgres.engine.connection.pool import ConnectionPool
from mcp_postgres.engine.connection.role import Role
from mcp_postgres.policy import ReadStatement

__all__ = ["NON_TRANSACTIONAL", "run_non_transactional"]

# How PostgreSQL begins its refusal to run a statement in a transaction, of those that may run without one.
NON_TRANSACTIONAL = re.compile(
    r"((?:CREATE INDEX|DROP INDEX|REINDEX|ALTER TABLE \.\.\. DETACH) CONCURRENTLY"
    r"|VACUUM|REINDEX (?:SCHEMA|TABLE|INDEX)) "
)
# All that one of them can make or change.
_AFFECTED_OIDS = "SELECT oid::text FROM pg_class WHERE oid >= 16384 AND (relkind IN ('i', 'I') OR relispartition)"


async def run_non_transactional(
    connections: ConnectionPool, statement: ReadStatement, limits: TransactionLimits, tag: str
) -> Change:
    """Run one statement without a transaction around it.

    Its time is kept here: a setting would outlive the statement, and behind a pooler meet somebody else.
    """
    name = statement.database.name
    async with connections.session(_open_nothing, seconds=2 * limits.statement_seconds, role=None) as session:
        oids = {*await session.fetch_column(_AFFECTED_OIDS)}
        before = await read_objects(session, oids)
        failure: Problem | None = None
        try:
            async with asyncio.timeout(limits.statement_seconds):
                await session.run_pipeline((statement.sql, ()))
        except TimeoutError:
            holders = await describe_lock_holders(session, statement.sql)
            failure = Unavailable(
                f"{tag} was stopped at its time limit, {limits.statement_seconds:g} s. {holders}".rstrip(),
                "The operator can raise `--timeout`; `list_sessions` shows what it may have waited for.",
            )
        except psycopg.Error as error:
            if session.connection.broken:
                raise to_problem(error, name) from error
            failure = to_problem(error, name)
        oids |= {*await session.fetch_column(_AFFECTED_OIDS)}
        differences = diff_objects(before, await read_objects(session, oids))
        if failure is None:
            return Change([Step(tag)], False, [change.line for change in differences])
        if created := [change.line[2:] for change in differences if change.sign == "+"]:
            fix = f"It left behind what must be dropped first: {quote(', '.join(created), 300)}. {failure.fix}"
            raise failure.reword(failure.failure, fix.rstrip()) from failure
        raise failure


def _open_nothing(role: Role, caller: str | None) -> Sequence[str]:
    """Begin no transaction; whoever may define things is not a caller of a role of their own."""
    return ("SELECT 1",)
