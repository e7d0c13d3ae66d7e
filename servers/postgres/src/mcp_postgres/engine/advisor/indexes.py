"""Finds indexes that would make statements cheaper, and tries each: with hypopg, or on a sample of the tables."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import anyio
import psycopg

from mcp_batteries.errors import Invalid, Problem, Refused, quote
from mcp_batteries.sql.rows import count, size
from mcp_postgres.engine.advisor.candidates import Index, TableUse, propose_indexes, read_table_uses
from mcp_postgres.engine.advisor.plan import PLAIN_INDEX, find_hypopg_schema, format_plan, plan_judged
from mcp_postgres.engine.advisor.sample import AnalyzedStatement, SampledTable, TableSample, read_tables
from mcp_postgres.engine.connection.errors import to_problem
from mcp_postgres.engine.connection.session import Session
from mcp_postgres.models import Report
from mcp_postgres.policy import ReadStatement

__all__ = ["MIN_PAGES", "AdvisorInput", "AdvisorResult", "advise", "analyze_statements", "format_report"]

Node = dict[str, Any]

# A smaller table is best read whole.
MIN_PAGES = 20
# Of the cost that there is, at most, with what is proposed.
_MAX_COST_SHARE = 0.7
# What it has to save, as the planner counts: a handful of pages is not worth an index.
_MIN_COST_SAVED = 20.0
_MAX_CANDIDATES = 150
# Steps that give rows as they come, so that LIMIT ends what is below them.
_STREAMING_NODES = {
    "Append", "Gather Merge", "Group", "Hash Join", "Incremental Sort", "LockRows", "Merge Append", "Merge Join",
    "Nested Loop", "ProjectSet", "Result", "Subquery Scan", "Unique", "WindowAgg",
}  # fmt: skip
_NO_TEMPORARY_TABLES = (
    "The role may not make temporary tables (GRANT TEMPORARY ON DATABASE), and the extension `hypopg` isn't there."
)
_STANDBY = "This is a standby, where there are no temporary tables, and the extension `hypopg` isn't there."


@dataclass
class AdvisorInput:
    """Statements with their plans, and what might be tried for them.

    Attributes:
        skipped_count: how many statements have no plan.
        obstacle: why nothing can be tried; empty where it can.
        tables_without_statistics: tables that PostgreSQL's statistics tell nothing true of, each with the reason.
        hypopg_schema: hypopg's schema, as SQL spells it.
    """

    statements: list[AnalyzedStatement]
    candidates: list[Index]
    tables: list[SampledTable]
    needed_columns: Mapping[str, Collection[str]]
    skipped_count: int = 0
    obstacle: str = ""
    tables_without_statistics: Sequence[tuple[str, str]] = ()
    hypopg_schema: str | None = None

    def format_prerequisites(self) -> list[str]:
        """Return what has to be done before a plan can be believed."""
        return [
            f"Run `ANALYZE {table};` first, plans are guesses without: {why}."
            for table, why in self.tables_without_statistics
        ]


@dataclass(frozen=True)
class AdvisorResult:
    """What was tried, and what of it helps.

    Attributes:
        costs: of each statement, before and after.
        plans: of each statement, with the indexes that help.
        obstacle: why nothing was tried.
    """

    indexes: Sequence[tuple[Index, int]] = ()
    costs: Sequence[tuple[float, float]] = ()
    plans: Sequence[Sequence[str]] = ()
    tried_count: int = 0
    method: str = ""
    obstacle: str = ""

    def format_lines(self) -> list[str]:
        """Return what is proposed for one statement, as text."""
        if self.obstacle:
            return [f"No index was tried: {self.obstacle}"]
        if not self.indexes:
            if self.tried_count:
                return [f"None of {self.tried_count} indexes makes it much cheaper, {self.method}."]
            return []
        before, after = self.costs[0]
        return [
            f"Cost {before:,.0f} -> {after:,.0f}, {self.method}, with:",
            *(f"CREATE INDEX ON {index.definition()};" for index, _ in self.indexes),
            f"The plan then: {', '.join(self._format_steps())}",
        ]

    def _format_steps(self) -> list[str]:
        """The steps of the first plan, without costs and conditions: the caller knows those of the plan before."""
        lines = (line.lstrip() for line in self.plans[0])
        return [line.partition(": ")[0] for line in lines if line[:1].isupper()]


class Trial(Protocol):
    """Where indexes are tried."""

    @property
    def method(self) -> str: ...
    async def create(self, candidates: Sequence[Index]) -> list[Index]: ...
    async def plan_with(self, chosen: Collection[Index]) -> list[Node]: ...
    def index_of_name(self, name: str) -> Index | None: ...
    async def estimate_bytes(self, index: Index) -> int: ...


@dataclass
class _HypotheticalIndexes:
    """Indexes in which only the planner of this session believes."""

    session: Session
    schema: str
    statements: Sequence[AnalyzedStatement]
    _index_of_name: dict[str, Index] = field(default_factory=dict[str, Index])
    _sizes: dict[Index, int] = field(default_factory=dict[Index, int])
    method: str = "tried with hypopg"

    async def create(self, candidates: Sequence[Index]) -> list[Index]:
        self.session.must_be_closed = True
        plain = self.session.audit.closed or self.session.audit.visible.schema
        created: list[Index] = []
        for index in candidates:
            # hypopg parses and folds it, and PostgreSQL can't be asked before what that would run.
            if plain and not PLAIN_INDEX.fullmatch(f"CREATE INDEX ON {index.definition()}"):
                continue
            await self.session.run("SAVEPOINT mcp_try")
            try:
                await self._create_one(index)
            except psycopg.Error as error:
                if error.sqlstate == "57014":
                    raise
                await self.session.run("ROLLBACK TO SAVEPOINT mcp_try")
                continue
            created.append(index)
        return created

    async def plan_with(self, chosen: Collection[Index]) -> list[Node]:
        await self.session.fetch_value(f"SELECT {self.schema}.hypopg_reset()::text")
        for index in chosen:
            await self._create_one(index)
        plans: list[Node] = []
        for item in self.statements:
            await self.session.run("SAVEPOINT mcp_cost")
            try:
                plans.append((await plan_judged(self.session, item.statement, generic=item.is_generic))["Plan"])
            except (psycopg.Error, Refused):
                await self.session.run("ROLLBACK TO SAVEPOINT mcp_cost; DEALLOCATE ALL")
                plans.append({})
        return plans

    def index_of_name(self, name: str) -> Index | None:
        return self._index_of_name.get(name)

    async def estimate_bytes(self, index: Index) -> int:
        return self._sizes[index]

    async def _create_one(self, index: Index) -> None:
        text = await self.session.fetch_value(
            f"SELECT concat_ws(' ', indexrelid, indexname) FROM {self.schema}.hypopg_create_index($1::pg_catalog.text)",
            f"CREATE INDEX ON {index.definition()}",
        )
        number, _, name = (text or "").partition(" ")
        self._index_of_name[name] = index
        if index not in self._sizes:
            size = await self.session.fetch_value(f"SELECT {self.schema}.hypopg_relation_size($1::oid)::text", number)
            self._sizes[index] = int(size or 0)


async def analyze_statements(
    session: Session, statements: Sequence[tuple[ReadStatement, float]], *, strict: bool, plans: Sequence[Node] = ()
) -> AdvisorInput:
    """Return the plans of statements, and what might help them.

    Args:
        strict: each has to have a plan.
        plans: those of the statements, where they are known.

    Raises:
        Problem: a statement has no plan.
    """
    analyzed: list[AnalyzedStatement] = []
    uses: dict[tuple[str, str], TableUse] = {}
    for number, (statement, weight) in enumerate(statements):
        item = AnalyzedStatement(
            statement, not statement.parameters and bool(re.search(r"\$\d", statement.sql)), weight
        )
        if plans:
            plan = plans[number]
        else:
            plan = await _plan_or_skip(session, item, strict=strict)
        if plan:
            analyzed.append(item)
            for key, each in read_table_uses(plan).items():
                _merge_uses(uses.setdefault(key, TableUse(*key)), each)
    advice = AdvisorInput(analyzed, [], [], {}, len(statements) - len(analyzed))
    if uses:
        await _add_candidates(session, advice, uses)
    return advice


async def _add_candidates(session: Session, advice: AdvisorInput, uses: Mapping[tuple[str, str], TableUse]) -> None:
    advice.tables = await read_tables(session, uses.keys())
    trigrams = await session.fetch_value(
        "SELECT quote_ident(n.nspname) || '.gin_trgm_ops' FROM pg_extension e JOIN pg_namespace n"
        " ON n.oid = e.extnamespace WHERE e.extname = 'pg_trgm'"
    )
    needed: dict[str, Collection[str]] = {}
    proposals_by_table: list[list[Index]] = []
    for table in advice.tables:
        use = TableUse(table.schema, table.name)
        for key, each in uses.items():
            if key in table.names():
                _merge_uses(use, each)
        needed[table.oid] = list(use.columns)
        if table.pages > MIN_PAGES:
            columns = {column["name"]: column["other"] for column in table.columns}
            proposals_by_table.append(propose_indexes(use, table.shown, columns, trigram_class=trigrams))
    # The simplest of each table first.
    for place in range(max(map(len, proposals_by_table), default=0)):
        advice.candidates += [each[place] for each in proposals_by_table if place < len(each)]
    del advice.candidates[_MAX_CANDIDATES:]
    advice.needed_columns = needed
    advice.tables_without_statistics = [
        (table.shown, table.explain_missing_statistics) for table in advice.tables if table.explain_missing_statistics
    ]
    if not advice.candidates:
        return
    obstacle = _STANDBY if session.role.is_standby else ""
    if not obstacle and not await session.fetch_value(
        "SELECT 1::text WHERE has_database_privilege(current_database(), 'TEMPORARY')"
    ):
        obstacle = _NO_TEMPORARY_TABLES
    # hypopg asks the planner, who knows by statistics alone; a sample has statistics of its own.
    if obstacle or not advice.tables_without_statistics:
        advice.hypopg_schema = await find_hypopg_schema(session)
    if advice.hypopg_schema is None:
        advice.obstacle = obstacle


async def _plan_or_skip(session: Session, item: AnalyzedStatement, *, strict: bool) -> Node:
    statement = item.statement
    await session.run("SAVEPOINT mcp_cost")
    try:
        return (await plan_judged(session, statement, generic=item.is_generic))["Plan"]
    except (psycopg.Error, Refused) as error:
        await session.run("ROLLBACK TO SAVEPOINT mcp_cost; DEALLOCATE ALL")
        if strict and isinstance(error, Refused):
            raise
        if strict and isinstance(error, psycopg.Error):
            reported = to_problem(error, statement.database.name)
            raise Invalid(f"{quote(statement.sql)} has no plan: {reported.what}", reported.fix) from error
        return {}


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
                trial: Trial = _HypotheticalIndexes(session, advice.hypopg_schema, advice.statements)
            else:
                trial = TableSample(session, advice.tables)
                await trial.copy_tables(advice.statements, advice.needed_columns)
            return await _choose(trial, advice.statements, advice.candidates, limit, deadline)
    except Problem as error:
        return AdvisorResult(obstacle=error.what)


async def _choose(
    trial: Trial, statements: Sequence[AnalyzedStatement], candidates: Sequence[Index], limit: int, deadline: float
) -> AdvisorResult:
    created = await trial.create(candidates)
    search = _IndexSearch(trial, statements, created, await trial.plan_with([]))
    return await search.run(limit, deadline)


@dataclass
class _IndexSearch:
    """A search for the few indexes that help most.

    Attributes:
        created: the candidates that PostgreSQL could make.
        plans_before: the plans without any of them; empty for a statement that has none.
    """

    trial: Trial
    statements: Sequence[AnalyzedStatement]
    created: list[Index]
    plans_before: Sequence[Node]

    async def run(self, limit: int, deadline: float) -> AdvisorResult:
        """Return the indexes that make the statements much cheaper, if there are any."""
        tried_count = len(self.created)
        plans = await self._plan_without_order_scans()
        chosen = _find_used_indexes(self.trial, plans)
        if chosen and self._is_worth_it(plans):
            chosen = await self._simplify(chosen, deadline)
            chosen = await _drop_useless(self.trial, self._cost, list(dict.fromkeys(chosen)), self._base_cost, limit)
            plans = await self.trial.plan_with(chosen)
            used = _find_used_indexes(self.trial, plans)
            chosen = [index for index in chosen if index in used]
        if not chosen or not self._is_worth_it(plans):
            return AdvisorResult(tried_count=tried_count, method=self.trial.method)
        costs: list[tuple[float, float]] = []
        for before, after in zip(self.plans_before, plans, strict=True):
            if before and after:
                costs.append((before["Total Cost"], after["Total Cost"]))
        lines = [_format_plan(self.trial, plan) for plan in plans if plan]
        sizes = [(index, await self.trial.estimate_bytes(index)) for index in chosen]
        return AdvisorResult(sizes, costs, lines, tried_count, self.trial.method)

    @cached_property
    def _base_cost(self) -> float:
        return self._cost(self.plans_before)

    def _cost(self, plans: Sequence[Node]) -> float:
        total = 0.0
        for statement, before, plan in zip(self.statements, self.plans_before, plans, strict=True):
            if before:
                total += statement.weight * _pessimistic_cost(self.trial, plan)
        return total

    def _is_worth_it(self, plans: Sequence[Node]) -> bool:
        base = self._base_cost
        return self._cost(plans) <= min(_MAX_COST_SHARE * base, base - _MIN_COST_SAVED)

    async def _plan_without_order_scans(self) -> list[Node]:
        """Plan with all candidates, but without those that are only walked along for their order, if that costs."""
        plans = await self.trial.plan_with(self.created)
        while self._cost(plans) > _MAX_COST_SHARE * self._base_cost:
            walked: set[tuple[str, str]] = set()
            for plan in plans:
                for _, index in _index_only_order_scans(self.trial, plan):
                    walked.add((index.table, index.keys[0]))
            if not walked:
                break
            # Without them the planner may find rows by another index that it thought a little dearer.
            self.created = [index for index in self.created if (index.table, index.keys[0]) not in walked]
            plans = await self.trial.plan_with(self.created)
        return plans

    async def _simplify(self, chosen: list[Index], deadline: float) -> list[Index]:
        """Put simpler indexes in the place of those that they help about as much as."""
        best = self._cost(await self.trial.plan_with(chosen))
        for index in list(chosen):
            simpler = [other for other in self.created if other.is_simpler_form_of(index)]
            for other in sorted(simpler, key=lambda item: item.complexity):
                if anyio.current_time() > deadline:
                    break
                instead = [*(item for item in chosen if item != index), other]
                cost = self._cost(await self.trial.plan_with(instead))
                if self._is_good_substitute(index, other, best, cost):
                    chosen = instead
                    best = cost
                    break
        return chosen

    def _is_good_substitute(self, index: Index, other: Index, best: float, cost: float) -> bool:
        if cost - best > 0.1 * self._base_cost:
            return False
        # An index that stores less, or that covers all rows, may cost a little more.
        is_other_kind = (bool(index.include), index.predicate) != (bool(other.include), other.predicate)
        return is_other_kind or cost <= 1.25 * best + 4


async def _drop_useless(trial: Trial, cost: Any, chosen: list[Index], base: float, limit: int) -> list[Index]:
    """Return those without which it would be dearer, what helps most first."""
    best = cost(await trial.plan_with(chosen))
    losses: dict[Index, float] = {}
    for index in list(chosen):
        others = [item for item in chosen if item != index]
        loss = cost(await trial.plan_with(others)) - best
        if loss <= 0.02 * base and len(chosen) > 1:
            chosen = others
            best = best + loss
        else:
            losses[index] = loss
    return sorted(chosen, key=lambda index: -losses.get(index, 0))[:limit]


def _pessimistic_cost(trial: Trial, plan: Node) -> float:
    """Return what a plan costs where rows lie as badly as can be."""
    return plan.get("Total Cost", 1e30) + sum(more for more, _ in _index_only_order_scans(trial, plan))


def _index_only_order_scans(trial: Trial, plan: Node) -> list[tuple[float, Index]]:
    """Return walks along a new index for its order only, and what more they may cost than the planner thinks.

    It takes rows to lie anywhere, so that LIMIT soon has its rows. Often they do not: all that is still open is new.
    Without LIMIT such a walk reads the whole table row by row, which sorting hardly ever is dearer than.
    """
    scans: list[tuple[float, Index]] = []
    stack = [(plan, False)]
    while stack:
        node, is_cut_short = stack.pop()
        children: list[Node] = node.get("Plans", [])
        kind = node.get("Node Type")
        index = trial.index_of_name(str(node.get("Index Name", "")))
        if index and not index.predicate and not is_cut_short and kind == "Index Scan" and "Index Cond" not in node:
            scans.append((node["Total Cost"], index))
        if kind == "Limit":
            input_node = next(child for child in children if child["Parent Relationship"] == "Outer")
            more = input_node["Total Cost"] - node["Total Cost"]
            scans += [(more, index) for index in _find_order_scans(trial, input_node, is_filtered=False)][:1]
        for child in children:
            # A merge ends with the shorter of its two lists, and is counted as cheaper than to read the longer.
            merged = kind == "Merge Join" and node["Total Cost"] < child["Total Cost"]
            stack.append((child, kind == "Limit" or merged or (is_cut_short and kind in _STREAMING_NODES)))
    return scans


def _find_order_scans(trial: Trial, node: Node, *, is_filtered: bool) -> list[Index]:
    is_filtered = is_filtered or "Filter" in node or "Join Filter" in node
    if (index := trial.index_of_name(str(node.get("Index Name", "")))) is not None:
        if is_filtered and node["Node Type"] != "Bitmap Index Scan":
            return [index]
        return []
    if node["Node Type"] not in _STREAMING_NODES:
        return []
    children: list[Node] = node.get("Plans", [])
    is_filtered = is_filtered or any("Filter" in child for child in children if child["Parent Relationship"] == "Inner")
    drive = (child for child in children if child["Parent Relationship"] in ("Outer", "Member", "Subquery"))
    return [index for child in drive for index in _find_order_scans(trial, child, is_filtered=is_filtered)]


def _find_used_indexes(trial: Trial, plans: Sequence[Node]) -> list[Index]:
    indexes: dict[Index, None] = {}
    stack = list(plans)
    while stack:
        node = stack.pop()
        if (index := trial.index_of_name(str(node.get("Index Name", "")))) is not None:
            indexes.setdefault(index)
        stack += node.get("Plans", [])
    return list(indexes)


def _format_plan(trial: Trial, plan: Node) -> list[str]:
    lines: list[str] = []
    for line in format_plan(plan):
        used = re.search(r" using ([^\s:]+)", line)
        index = None
        if used:
            index = trial.index_of_name(used[1])
        lines.append(
            line if used is None or index is None else line.replace(used[0], f" using {index.definition()}", 1)
        )
    return lines


def _merge_uses(use: TableUse, other: TableUse) -> None:
    use.equalities.update(other.equalities)
    use.ranges.update(other.ranges)
    use.patterns.update(other.patterns)
    use.text_matches.update(other.text_matches)
    use.containments.update(other.containments)
    use.distances.update(other.distances)
    use.orders.update(other.orders)
    use.conditions.update(other.conditions)
    use.columns.update(other.columns)


def format_report(advice: AdvisorInput, result: AdvisorResult) -> Report:
    """Return what is proposed for a workload."""
    notes = [
        f"{count(len(advice.statements), 'statement')} looked at, {result.tried_count} indexes {result.method}".rstrip()
    ]
    if advice.skipped_count:
        notes.append(f"{advice.skipped_count} more have no plan that can be looked at")
    if advice.tables_without_statistics:
        prerequisites = [("Before all others:", [f"- {line}" for line in advice.format_prerequisites()])]
    else:
        prerequisites = []
    if result.obstacle:
        return Report([*prerequisites, (f"No index was tried: {result.obstacle}", [])], notes)
    if not result.indexes:
        return Report([*prerequisites, ("No index tried makes these statements much cheaper.", [])], notes)
    costs = zip(advice.statements, result.costs, strict=False)
    lines = [f"- CREATE INDEX ON {index.definition()}; about {size(bytes_)}" for index, bytes_ in result.indexes]
    effect = [
        f"- {before:,.0f} -> {after:,.0f}: {' '.join(item.statement.sql.split())[:200]}"
        for item, (before, after) in costs
        if after < before
    ]
    return Report(
        [*prerequisites, ("Indexes, what helps most first:", lines), ("Cost with all of them:", effect)], notes
    )
