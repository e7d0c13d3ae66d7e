"""Explains plans of statements, and finds indexes that would make them cheaper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mcp_postgres.engine.advisor.indexes import AdvisorInput, AdvisorResult, advise, analyze_statements, format_report
from mcp_postgres.engine.advisor.plan import explain
from mcp_postgres.engine.connection.pool import run_shielded
from mcp_postgres.engine.connection.session import Session
from mcp_postgres.engine.health.workload import read_top_statements
from mcp_postgres.engine.pools import ConnectionPools
from mcp_postgres.models import Plan, Report
from mcp_postgres.policy import Database, PlannerSettings, ReadStatement

__all__ = ["explain_plan", "find_indexes"]

# Indexes that go with a plan.
_MAX_PLAN_INDEXES = 5


async def explain_plan(
    pools: ConnectionPools,
    statement: ReadStatement,
    indexes: Sequence[str],
    settings: PlannerSettings | None,
    *,
    analyze: bool,
) -> Plan:
    """Return the plan of a statement, and what would make it cheaper.

    Args:
        indexes: what follows `CREATE INDEX ON`; it is planned as if there were these too.
        settings: what the planner is to believe; it proposes no indexes then.
        analyze: whether it is run.
    """
    database = statement.database

    async def plan_and_analyze(session: Session) -> tuple[Plan, AdvisorInput | None]:
        plan, top = await explain(session, statement, indexes, settings, analyze=analyze)
        if indexes or settings:
            return plan, None
        return plan, await analyze_statements(session, [(statement, 1.0)], strict=False, plans=[top])

    work = pools.within(database, plan_and_analyze)
    plan, advice = await pools.run_with_suggestion(database, statement.sql, work)
    if advice is None:
        return plan
    result = await _try_indexes(pools, database, advice, _MAX_PLAN_INDEXES)
    findings = [*plan.findings, *advice.format_prerequisites(), *result.format_lines()]
    return replace(plan, findings=[*findings, *advice.format_missing_extension()])


async def find_indexes(
    pools: ConnectionPools, database: Database, statements: Sequence[ReadStatement], limit: int
) -> Report:
    """Return indexes that would help.

    Args:
        statements: those that cost most, if none is given.
    """

    async def analyze(session: Session) -> AdvisorInput:
        weighted = [(statement, 1.0) for statement in statements]
        if not weighted:
            weighted = await read_top_statements(session, database)
        return await analyze_statements(session, weighted, strict=bool(statements))

    advice = await pools.within(database, analyze)
    return format_report(advice, await _try_indexes(pools, database, advice, limit))


async def _try_indexes(pools: ConnectionPools, database: Database, advice: AdvisorInput, limit: int) -> AdvisorResult:
    session_context = pools.session(database, writes=advice.hypopg_schema is None)
    search_seconds = pools.limits.statement_seconds / 2
    return await run_shielded(advise(session_context, advice, limit=limit, search_seconds=search_seconds))
