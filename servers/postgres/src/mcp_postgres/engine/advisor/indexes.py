"""Finds indexes that would make statements cheaper, and tries each: with hypopg, or on a sample of the tables."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

import anyio
import psycopg

from mcp_batteries.errors import Invalid, Problem, Refused, quote
from mcp_batteries.sql.results.rows import format_count, format_size
from mcp_postgres.engine.advisor.candidates import Index, propose_indexes
from mcp_postgres.engine.advisor.hypothetical_indexes import HypotheticalIndexes
from mcp_postgres.engine.advisor.index_search import AdvisorResult, Trial, choose_indexes
from mcp_postgres.engine.advisor.plan import (
    FORGET_PLAN,
    AnalyzedStatement,
    find_hypopg_schema,
    plan_judged,
    plan_or_nothing,
)
from mcp_postgres.engine.advisor.sample import SampledTable, TableSample, read_tables
from mcp_postgres.engine.advisor.table_uses import TableUse, read_table_uses
from mcp_postgres.engine.connection.errors import to_problem
from mcp_postgres.engine.connection.session import Session
from mcp_postgres.models import Report
from mcp_postgres.policy import ReadStatement

__all__ = ["MIN_PAGES", "AdvisorInput", "AdvisorResult", "advise", "analyze_statements", "format_report"]

Node = dict[str, Any]

# A smaller table is best read whole.
MIN_PAGES = 20
_MAX_CANDIDATES = 150
_TRIGRAM_CLASS = (
    "SELECT quote_ident(n.nspname) || '.gin_trgm_ops' FROM pg_extension e JOIN pg_namespace n"
    " ON n.oid = e.extnamespace WHERE e.extname = 'pg_trgm'"
)
_MAY_CREATE_TEMPORARY_TABLES = "SELECT 1::text WHERE has_database_privilege(current_database(), 'TEMPORARY')"
_NO_TEMPORARY_TABLES = (
    "The role may not make temporary tables (GRANT TEMPORARY ON DATABASE), and the extension `hypopg` isn't there."
)
# Tables that inherit one may be hundreds.
_MAX_TABLES_TO_ANALYZE = 8
_STANDBY = "This is a standby, where there are no temporary tables, and the extension `hypopg` isn't there."


@dataclass
class AdvisorInput:
    """Statements with their plans, and what might be tried for them.

    Attributes:
        skipped_count: how many statements have no plan.
        obstacle: why nothing can be tried; empty where it can.
        tables_without_statistics: tables that PostgreSQL's statistics tell nothing true of, each with the reason.
        hypopg_schema: hypopg's schema, as SQL spells it.
        without_trigrams: what is searched for parts of texts, `column of table`, where pg_trgm is missing.
    """

    statements: list[AnalyzedStatement]
    candidates: list[Index]
    tables: list[SampledTable]
    needed_columns: Mapping[str, Collection[str]]
    skipped_count: int = 0
    obstacle: str = ""
    tables_without_statistics: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    hypopg_schema: str | None = None
    without_trigrams: list[str] = field(default_factory=list[str])

    def format_prerequisites(self) -> list[str]:
        """Return what has to be done before a plan can be believed."""
        lines = [
            f"Run `ANALYZE {table};` first, plans are guesses without: {reason}."
            for table, reason in self.tables_without_statistics[:_MAX_TABLES_TO_ANALYZE]
        ]
        further_count = len(self.tables_without_statistics) - len(lines)
        if further_count:
            lines.append(f"The same goes for {format_count(further_count, 'more table')}; `ANALYZE;` is for all.")
        return lines

    def format_missing_extension(self) -> list[str]:
        """Return which indexes could not be tried, because they need an extension."""
        if not self.without_trigrams:
            return []
        searched = ", ".join(self.without_trigrams)
        return [
            f"Parts of texts are found by an index with pg_trgm, which isn't here: CREATE EXTENSION pg_trgm; then "
            f"CREATE INDEX ON table USING gin (column gin_trgm_ops), for {searched}."
        ]


async def analyze_statements(
    session: Session, statements: Sequence[tuple[ReadStatement, float]], *, strict: bool, plans: Sequence[Node] = ()
) -> AdvisorInput:
    """Return the plans of statements, and what might help them.

    Args:
        session: where they are planned.
        statements: each with how much its cost counts.
        strict: each has to have a plan.
        plans: those of the statements, where they are known.

    Raises:
        Problem: a statement has no plan.
    """
    analyzed: list[AnalyzedStatement] = []
    uses: dict[tuple[str, str], TableUse] = {}
    for number, (statement, weight) in enumerate(statements):
        item = AnalyzedStatement.of(statement, weight)
        if plans:
            plan = plans[number]
        elif strict:
            plan = await _plan_or_explain(session, item)
        else:
            plan = await plan_or_nothing(session, item)
        if not plan:
            continue
        analyzed.append(item)
        for key, use in read_table_uses(plan).items():
            uses.setdefault(key, TableUse(*key)).add(use)
    advice = AdvisorInput(analyzed, [], [], {}, len(statements) - len(analyzed))
    if uses:
        await _add_candidates(session, advice, uses)
    return advice


async def _plan_or_explain(session: Session, item: AnalyzedStatement) -> Node:
    """Return the plan of a statement that has to have one."""
    statement = item.statement
    await session.run("SAVEPOINT mcp_cost")
    try:
        return (await plan_judged(session, statement, generic=item.is_generic))["Plan"]
    except Refused:
        await session.run(FORGET_PLAN)
        raise
    except psycopg.Error as error:
        await session.run(FORGET_PLAN)
        problem = to_problem(error, statement.database.name)
        raise Invalid(f"{quote(statement.sql)} has no plan: {problem.failure}", problem.fix) from error


async def _add_candidates(session: Session, advice: AdvisorInput, uses: Mapping[tuple[str, str], TableUse]) -> None:
    """Add what might be tried for the tables that the statements use, and where it can be."""
    advice.tables = await read_tables(session, uses.keys())
    uses_by_oid = {table.oid: _use_of_table(table, uses) for table in advice.tables}
    advice.needed_columns = {oid: list(use.columns) for oid, use in uses_by_oid.items()}
    trigram_class = await session.fetch_value(_TRIGRAM_CLASS)
    advice.candidates = _propose(advice.tables, uses_by_oid, trigram_class)
    if trigram_class is None:
        advice.without_trigrams = _find_text_matches(advice.tables, uses_by_oid)
    for table in advice.tables:
        reason = table.explain_missing_statistics
        if reason:
            advice.tables_without_statistics.append((table.display_name, reason))
    if not advice.candidates:
        return
    obstacle = await _find_obstacle(session)
    # hypopg asks the planner, who knows by statistics alone; a sample has statistics of its own.
    if obstacle or not advice.tables_without_statistics:
        advice.hypopg_schema = await find_hypopg_schema(session)
    if advice.hypopg_schema is None:
        advice.obstacle = obstacle


def _use_of_table(table: SampledTable, uses: Mapping[tuple[str, str], TableUse]) -> TableUse:
    """Return what the statements do with a table, or with parts of it."""
    use_of_table = TableUse(table.schema, table.name)
    for name, use in uses.items():
        if name in table.names():
            use_of_table.add(use)
    return use_of_table


def _find_text_matches(tables: Sequence[SampledTable], uses: Mapping[str, TableUse]) -> list[str]:
    """Return what is searched for parts of texts, in tables that are worth an index."""
    searched: list[str] = []
    for table in tables:
        if table.pages > MIN_PAGES:
            searched += [f"{operand} of {table.display_name}" for operand in uses[table.oid].text_matches]
    return searched


def _propose(tables: Sequence[SampledTable], uses: Mapping[str, TableUse], trigram_class: str | None) -> list[Index]:
    """Return the candidates, the simplest of each table first."""
    proposals_by_table: list[list[Index]] = []
    for table in tables:
        if table.pages > MIN_PAGES:
            columns = {column["name"]: column["other"] for column in table.columns}
            proposals_by_table.append(
                propose_indexes(uses[table.oid], table.display_name, columns, trigram_class=trigram_class)
            )
    candidates: list[Index] = []
    for same_rank in itertools.zip_longest(*proposals_by_table):
        candidates += [index for index in same_rank if index is not None]
    return candidates[:_MAX_CANDIDATES]


async def _find_obstacle(session: Session) -> str:
    """Return why no sample of the tables can be made; empty where it can."""
    if session.role.is_standby:
        return _STANDBY
    if await session.fetch_value(_MAY_CREATE_TEMPORARY_TABLES):
        return ""
    return _NO_TEMPORARY_TABLES


async def advise(
    session_context: AbstractAsyncContextManager[Session], advice: AdvisorInput, *, limit: int, search_seconds: float
) -> AdvisorResult:
    """Return what of the candidates helps; a session that may write is needed, and left as it was.

    Args:
        search_seconds: after which nothing more is tried.
    """
    if advice.obstacle or not advice.candidates:
        return AdvisorResult(obstacle=advice.obstacle)
    deadline = anyio.current_time() + search_seconds
    try:
        async with session_context as session:
            if advice.hypopg_schema is not None:
                trial: Trial = HypotheticalIndexes(session, advice.hypopg_schema, advice.statements)
            else:
                trial = TableSample(session, advice.tables)
                await trial.copy_tables(advice.statements, advice.needed_columns)
            return await choose_indexes(trial, advice.statements, advice.candidates, limit, deadline)
    except Problem as error:
        return AdvisorResult(obstacle=error.failure)


def format_report(advice: AdvisorInput, result: AdvisorResult) -> Report:
    """Return what is proposed for a workload."""
    statements = format_count(len(advice.statements), "statement")
    notes = [f"{statements} looked at, {result.tried_count} indexes {result.method}".rstrip()]
    if advice.skipped_count:
        notes.append(f"{advice.skipped_count} more have no plan that can be looked at")
    sections = [*_format_prerequisites(advice), *_format_result(advice, result)]
    sections += [(line, []) for line in advice.format_missing_extension()]
    return Report(sections, notes)


def _format_prerequisites(advice: AdvisorInput) -> list[tuple[str, list[str]]]:
    if not advice.tables_without_statistics:
        return []
    return [("Before all others:", [f"- {line}" for line in advice.format_prerequisites()])]


def _format_result(advice: AdvisorInput, result: AdvisorResult) -> list[tuple[str, list[str]]]:
    if result.obstacle:
        return [(f"No index was tried: {result.obstacle}", [])]
    if not result.indexes:
        return [("No index tried makes these statements much cheaper.", [])]
    lines = [f"- CREATE INDEX ON {index.definition()}; about {format_size(bytes_)}" for index, bytes_ in result.indexes]
    effects: list[str] = []
    for item, (before, after) in zip(advice.statements, result.costs, strict=False):
        if after < before:
            effects.append(f"- {before:,.0f} -> {after:,.0f}: {' '.join(item.statement.sql.split())[:200]}")
    return [("Indexes, what helps most first:", lines), ("Cost with all of them:", effects)]
