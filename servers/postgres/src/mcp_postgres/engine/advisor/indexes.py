"""Finds indexes that would make statements cheaper, and tries each: with hypopg, or on a sample of the tables."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

import anyio
import psycopg

from mcp_batteries.errors import Invalid, Problem, Refused, quote
from mcp_batteries.sql.rows import count, size
from mcp_postgres.engine.advisor.candidates import Compared, Index, compared, proposals
from mcp_postgres.engine.advisor.plan import PLAIN, drawn, hypopg_schema, plan_of
from mcp_postgres.engine.advisor.sample import Asked, Sample, Table, tables_of
from mcp_postgres.engine.connection.errors import problem
from mcp_postgres.engine.connection.pool import Session
from mcp_postgres.models import Report
from mcp_postgres.policy import ReadStatement

__all__ = ["FEW_PAGES", "Found", "Looked", "advised", "looked_at", "report"]

Node = dict[str, Any]

FEW_PAGES = 20
"""A smaller table is best read whole."""
_WORTH = 0.7
"""Of the cost that there is, at most, with what is proposed."""
_LEAST = 20.0
"""What it has to save, as the planner counts: a handful of pages is not worth an index."""
_MOST = 150
_FLOWING = {
    "Append", "Gather Merge", "Group", "Hash Join", "Incremental Sort", "LockRows", "Merge Append", "Merge Join",
    "Nested Loop", "ProjectSet", "Result", "Subquery Scan", "Unique", "WindowAgg",
}  # fmt: skip
"""Steps that give rows as they come, so that LIMIT ends what is below them."""
_NO_ROOM = (
    "The role may not make temporary tables (GRANT TEMPORARY ON DATABASE), and the extension `hypopg` isn't there."
)
_STANDBY = "This is a standby, where there are no temporary tables, and the extension `hypopg` isn't there."


@dataclass
class Looked:
    """Statements with their plans, and what might be tried for them.

    Attributes:
        skipped: how many statements have no plan.
        cannot: why nothing can be tried; empty where it can.
        unknown: tables that PostgreSQL's statistics tell nothing true of, each with the reason.
        schema: hypopg's, as SQL spells it.
    """

    asked: list[Asked]
    candidates: list[Index]
    tables: list[Table]
    needed: Mapping[str, Collection[str]]
    skipped: int = 0
    cannot: str = ""
    unknown: Sequence[tuple[str, str]] = ()
    schema: str | None = None

    def first(self) -> list[str]:
        """What has to be done before a plan can be believed."""
        return [f"Run `ANALYZE {table};` first, plans are guesses without: {why}." for table, why in self.unknown]


@dataclass(frozen=True)
class Found:
    """What was tried, and what of it helps.

    Attributes:
        costs: of each statement, before and after.
        plans: of each statement, with the indexes that help.
        why: why nothing was tried.
    """

    indexes: Sequence[tuple[Index, int]] = ()
    costs: Sequence[tuple[float, float]] = ()
    plans: Sequence[Sequence[str]] = ()
    tried: int = 0
    how: str = ""
    why: str = ""

    def lines(self) -> list[str]:
        """What is proposed for one statement, as text."""
        if self.why:
            return [f"No index was tried: {self.why}"]
        if not self.indexes:
            return [f"None of {self.tried} indexes makes it much cheaper, {self.how}."] if self.tried else []
        before, after = self.costs[0]
        return [
            f"Cost {before:,.0f} -> {after:,.0f}, {self.how}, with:",
            *(f"CREATE INDEX ON {index.on()};" for index, _ in self.indexes),
            f"The plan then: {', '.join(self._steps())}",
        ]

    def _steps(self) -> list[str]:
        """The steps of the first plan, without costs and conditions: the caller knows those of the plan before."""
        lines = (line.lstrip() for line in self.plans[0])
        return [line.partition(": ")[0] for line in lines if line[:1].isupper()]


class Trial(Protocol):
    """Where indexes are tried."""

    @property
    def how(self) -> str: ...
    async def offer(self, candidates: Sequence[Index]) -> list[Index]: ...
    async def plans(self, chosen: Collection[Index]) -> list[Node]: ...
    def named(self, name: str) -> Index | None: ...
    async def size(self, index: Index) -> int: ...


@dataclass
class _Hypothetical:
    """Indexes in which only the planner of this session believes."""

    session: Session
    schema: str
    asked: Sequence[Asked]
    _whose: dict[str, Index] = field(default_factory=dict[str, Index])
    _sizes: dict[Index, int] = field(default_factory=dict[Index, int])
    how: str = "tried with hypopg"

    async def offer(self, candidates: Sequence[Index]) -> list[Index]:
        self.session.spent = True
        plain = self.session.world.closed or self.session.world.part.part
        made: list[Index] = []
        for index in candidates:
            # hypopg parses and folds it, and PostgreSQL can't be asked before what that would run.
            if plain and not PLAIN.fullmatch(f"CREATE INDEX ON {index.on()}"):
                continue
            await self.session.simple("SAVEPOINT mcp_try")
            try:
                await self._make(index)
            except psycopg.Error as error:
                if error.sqlstate == "57014":
                    raise
                await self.session.simple("ROLLBACK TO SAVEPOINT mcp_try")
                continue
            made.append(index)
        return made

    async def plans(self, chosen: Collection[Index]) -> list[Node]:
        await self.session.value(f"SELECT {self.schema}.hypopg_reset()::text")
        for index in chosen:
            await self._make(index)
        found: list[Node] = []
        for item in self.asked:
            await self.session.simple("SAVEPOINT mcp_cost")
            try:
                found.append((await plan_of(self.session, item.statement, generic=item.generic))["Plan"])
            except (psycopg.Error, Refused):
                await self.session.simple("ROLLBACK TO SAVEPOINT mcp_cost; DEALLOCATE ALL")
                found.append({})
        return found

    def named(self, name: str) -> Index | None:
        return self._whose.get(name)

    async def size(self, index: Index) -> int:
        return self._sizes[index]

    async def _make(self, index: Index) -> None:
        text = await self.session.value(
            f"SELECT concat_ws(' ', indexrelid, indexname) FROM {self.schema}.hypopg_create_index($1::pg_catalog.text)",
            f"CREATE INDEX ON {index.on()}",
        )
        number, _, name = (text or "").partition(" ")
        self._whose[name] = index
        if index not in self._sizes:
            found = await self.session.value(f"SELECT {self.schema}.hypopg_relation_size($1::oid)::text", number)
            self._sizes[index] = int(found or 0)


async def looked_at(
    session: Session, statements: Sequence[tuple[ReadStatement, float]], *, strict: bool, plans: Sequence[Node] = ()
) -> Looked:
    """The plans of statements, and what might help them.

    Args:
        strict: each has to have a plan.
        plans: those of the statements, where they are known.

    Raises:
        Problem: a statement has no plan.
    """
    asked: list[Asked] = []
    found: dict[tuple[str, str], Compared] = {}
    for number, (statement, weight) in enumerate(statements):
        item = Asked(statement, not statement.parameters and bool(re.search(r"\$\d", statement.sql)), weight)
        plan = plans[number] if plans else await _plan(session, item, strict=strict)
        if plan:
            asked.append(item)
            for key, each in compared(plan).items():
                _join(found.setdefault(key, Compared(*key)), each)
    looked = Looked(asked, [], [], {}, len(statements) - len(asked))
    if found:
        await _propose(session, looked, found)
    return looked


async def _propose(session: Session, looked: Looked, found: Mapping[tuple[str, str], Compared]) -> None:
    looked.tables = await tables_of(session, found.keys())
    trigrams = await session.value(
        "SELECT quote_ident(n.nspname) || '.gin_trgm_ops' FROM pg_extension e JOIN pg_namespace n"
        " ON n.oid = e.extnamespace WHERE e.extname = 'pg_trgm'"
    )
    needed: dict[str, Collection[str]] = {}
    lists: list[list[Index]] = []
    for table in looked.tables:
        whole = Compared(table.schema, table.name)
        for key, each in found.items():
            if key in table.names():
                _join(whole, each)
        needed[table.oid] = list(whole.used)
        if table.pages > FEW_PAGES:
            columns = {column["name"]: column["other"] for column in table.columns}
            lists.append(proposals(whole, table.shown, columns, trigrams=trigrams))
    # The simplest of each table first.
    for place in range(max(map(len, lists), default=0)):
        looked.candidates += [each[place] for each in lists if place < len(each)]
    del looked.candidates[_MOST:]
    looked.needed = needed
    looked.unknown = [(table.shown, table.unknown) for table in looked.tables if table.unknown]
    if not looked.candidates:
        return
    cannot = _STANDBY if session.role.standby else ""
    if not cannot and not await session.value(
        "SELECT 1::text WHERE has_database_privilege(current_database(), 'TEMPORARY')"
    ):
        cannot = _NO_ROOM
    # hypopg asks the planner, who knows by statistics alone; a sample has statistics of its own.
    if cannot or not looked.unknown:
        looked.schema = await hypopg_schema(session)
    if looked.schema is None:
        looked.cannot = cannot


async def _plan(session: Session, item: Asked, *, strict: bool) -> Node:
    statement = item.statement
    await session.simple("SAVEPOINT mcp_cost")
    try:
        return (await plan_of(session, statement, generic=item.generic))["Plan"]
    except (psycopg.Error, Refused) as error:
        await session.simple("ROLLBACK TO SAVEPOINT mcp_cost; DEALLOCATE ALL")
        if strict and isinstance(error, Refused):
            raise
        if strict and isinstance(error, psycopg.Error):
            found = problem(error, statement.database.name)
            raise Invalid(f"{quote(statement.sql)} has no plan: {found.what}", found.fix) from error
        return {}


async def advised(opened: AbstractAsyncContextManager[Session], looked: Looked, *, limit: int, seconds: float) -> Found:
    """What of the candidates helps; a session that may write is needed, and left as it was.

    Args:
        seconds: after which nothing more is tried.
    """
    if looked.cannot or not looked.candidates:
        return Found(why=looked.cannot)
    until = anyio.current_time() + seconds
    try:
        async with opened as session:
            if looked.schema is not None:
                trial: Trial = _Hypothetical(session, looked.schema, looked.asked)
            else:
                trial = Sample(session, looked.tables)
                await trial.open(looked.asked, looked.needed)
            return await _chosen(trial, looked.asked, looked.candidates, limit, until)
    except Problem as why:
        return Found(why=why.what)


async def _chosen(trial: Trial, asked: Sequence[Asked], candidates: Sequence[Index], limit: int, until: float) -> Found:
    made = await trial.offer(candidates)
    tried = len(made)
    before = await trial.plans([])

    def cost(plans: Sequence[Node]) -> float:
        pairs = zip(asked, before, plans, strict=True)
        return sum(item.weight * (_feared(trial, plan) if was else 0.0) for item, was, plan in pairs)

    base = cost(before)
    plans = await trial.plans(made)
    while (walked := {index for plan in plans for _, index in _walks(trial, plan)}) and cost(plans) > _WORTH * base:
        # Without them the planner may find rows by another that it thought a little dearer.
        made = [index for index in made if (index.table, index.keys[0]) not in {(w.table, w.keys[0]) for w in walked}]
        plans = await trial.plans(made)
    chosen: list[Index] = _used(trial, plans)
    if chosen and cost(plans) <= min(_WORTH * base, base - _LEAST):
        best = cost(await trial.plans(chosen))
        for index in list(chosen):
            for other in sorted((item for item in made if item.is_part_of(index)), key=lambda item: item.size):
                if anyio.current_time() > until:
                    break
                instead = [*(item for item in chosen if item != index), other]
                now = cost(await trial.plans(instead))
                kind = (bool(index.include), index.where) != (bool(other.include), other.where)
                if (kind or now <= 1.25 * best + 4) and now - best <= 0.1 * base:
                    chosen, best = instead, now
                    break
        chosen = await _needed(trial, cost, list(dict.fromkeys(chosen)), base, limit)
        plans = await trial.plans(chosen)
        chosen = [index for index in chosen if index in _used(trial, plans)]
    if not chosen or cost(plans) > min(_WORTH * base, base - _LEAST):
        return Found(tried=tried, how=trial.how)
    costs = [(was["Total Cost"], plan["Total Cost"]) for was, plan in zip(before, plans, strict=True) if was and plan]
    lines = [_drawn(trial, plan) for plan in plans if plan]
    return Found([(index, await trial.size(index)) for index in chosen], costs, lines, tried, trial.how)


async def _needed(trial: Trial, cost: Any, chosen: list[Index], base: float, limit: int) -> list[Index]:
    """Those without which it would be dearer, what helps most first."""
    best = cost(await trial.plans(chosen))
    losses: dict[Index, float] = {}
    for index in list(chosen):
        rest = [item for item in chosen if item != index]
        loss = cost(await trial.plans(rest)) - best
        if loss <= 0.02 * base and len(chosen) > 1:
            chosen, best = rest, best + loss
        else:
            losses[index] = loss
    return sorted(chosen, key=lambda index: -losses.get(index, 0))[:limit]


def _feared(trial: Trial, plan: Node) -> float:
    """What a plan costs where rows lie as badly as can be."""
    return plan.get("Total Cost", 1e30) + sum(more for more, _ in _walks(trial, plan))


def _walks(trial: Trial, plan: Node) -> list[tuple[float, Index]]:
    """Walks along a new index for its order only, and what more they may cost than the planner thinks.

    It takes rows to lie anywhere, so that LIMIT soon has its rows. Often they do not: all that is still open is new.
    Without LIMIT such a walk reads the whole table row by row, which sorting hardly ever is dearer than.
    """
    found: list[tuple[float, Index]] = []
    stack = [(plan, False)]
    while stack:
        node, ended = stack.pop()
        children: list[Node] = node.get("Plans", [])
        kind = node.get("Node Type")
        index = trial.named(str(node.get("Index Name", "")))
        if index and not index.where and not ended and kind == "Index Scan" and "Index Cond" not in node:
            found.append((node["Total Cost"], index))
        if kind == "Limit":
            below = next(child for child in children if child["Parent Relationship"] == "Outer")
            more = below["Total Cost"] - node["Total Cost"]
            found += [(more, index) for index in _walked(trial, below, thinned=False)][:1]
        for child in children:
            # A merge ends with the shorter of its two lists, and is counted as cheaper than to read the longer.
            merged = kind == "Merge Join" and node["Total Cost"] < child["Total Cost"]
            stack.append((child, kind == "Limit" or merged or (ended and kind in _FLOWING)))
    return found


def _walked(trial: Trial, node: Node, *, thinned: bool) -> list[Index]:
    thinned = thinned or "Filter" in node or "Join Filter" in node
    if (index := trial.named(str(node.get("Index Name", "")))) is not None:
        return [index] if thinned and node["Node Type"] != "Bitmap Index Scan" else []
    if node["Node Type"] not in _FLOWING:
        return []
    children: list[Node] = node.get("Plans", [])
    thinned = thinned or any("Filter" in child for child in children if child["Parent Relationship"] == "Inner")
    drive = (child for child in children if child["Parent Relationship"] in ("Outer", "Member", "Subquery"))
    return [index for child in drive for index in _walked(trial, child, thinned=thinned)]


def _used(trial: Trial, plans: Sequence[Node]) -> list[Index]:
    found: dict[Index, None] = {}
    stack = list(plans)
    while stack:
        node = stack.pop()
        if (index := trial.named(str(node.get("Index Name", "")))) is not None:
            found.setdefault(index)
        stack += node.get("Plans", [])
    return list(found)


def _drawn(trial: Trial, plan: Node) -> list[str]:
    lines: list[str] = []
    for line in drawn(plan):
        used = re.search(r" using ([^\s:]+)", line)
        index = trial.named(used[1]) if used else None
        lines.append(line if used is None or index is None else line.replace(used[0], f" using {index.on()}", 1))
    return lines


def _join(whole: Compared, part: Compared) -> None:
    for name in ("equal", "ranges", "patterns", "alike", "inside", "near", "orders", "conditions", "used"):
        getattr(whole, name).update(getattr(part, name))


def report(looked: Looked, found: Found) -> Report:
    """What is proposed for a workload."""
    notes = [f"{count(len(looked.asked), 'statement')} looked at, {found.tried} indexes {found.how}".rstrip()]
    if looked.skipped:
        notes.append(f"{looked.skipped} more have no plan that can be looked at")
    first = [("Before all others:", [f"- {line}" for line in looked.first()])] if looked.unknown else []
    if found.why:
        return Report([*first, (f"No index was tried: {found.why}", [])], notes)
    if not found.indexes:
        return Report([*first, ("No index tried makes these statements much cheaper.", [])], notes)
    costs = zip(looked.asked, found.costs, strict=False)
    lines = [f"- CREATE INDEX ON {index.on()}; about {size(bytes_)}" for index, bytes_ in found.indexes]
    effect = [
        f"- {before:,.0f} -> {after:,.0f}: {' '.join(item.statement.sql.split())[:200]}"
        for item, (before, after) in costs
        if after < before
    ]
    return Report([*first, ("Indexes, what helps most first:", lines), ("Cost with all of them:", effect)], notes)
