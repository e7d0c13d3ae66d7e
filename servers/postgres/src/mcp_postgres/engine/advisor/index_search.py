"""Searches the few indexes among candidates that help most, by the costs of the plans with them."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import anyio

from mcp_postgres.engine.advisor.candidates import Index
from mcp_postgres.engine.advisor.order_scans import find_order_scans
from mcp_postgres.engine.advisor.plan import AnalyzedStatement, format_plan

__all__ = ["AdvisorResult", "Trial", "choose_indexes"]

Node = dict[str, Any]

# Of the cost that there is, at most, with what is proposed.
_MAX_COST_SHARE = 0.7
# What it has to save, as the planner counts: a handful of pages is not worth an index.
_MIN_COST_SAVED = 20.0
# Of the cost that there is, what an index saves that is not worth having.
_MAX_USELESS_SHARE = 0.02


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
        """Return the steps of the first plan, without costs and conditions: the caller knows those from before."""
        lines = (line.lstrip() for line in self.plans[0])
        return [line.partition(": ")[0] for line in lines if line[:1].isupper()]


class Trial(Protocol):
    """Where indexes are tried."""

    @property
    def method(self) -> str:
        """How, in words for the report."""
        ...

    async def create(self, candidates: Sequence[Index]) -> list[Index]:
        """Make candidates; those of which PostgreSQL says that they can be."""
        ...

    async def plan_with(self, chosen: Collection[Index]) -> list[Node]:
        """Return the statements' plans where only these candidates are there; `{}` of one that has none."""
        ...

    def index_of_name(self, name: str) -> Index | None:
        """Return the candidate that a plan calls so."""
        ...

    async def estimate_bytes(self, index: Index) -> int:
        """Return about how many bytes one would have over the whole table."""
        ...


async def choose_indexes(
    trial: Trial, statements: Sequence[AnalyzedStatement], candidates: Sequence[Index], limit: int, deadline: float
) -> AdvisorResult:
    """Return the few candidates that help most.

    Args:
        trial: where they are tried.
        statements: what is to become cheaper.
        candidates: what might help.
        limit: at most so many are proposed.
        deadline: after which nothing more is tried.
    """
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
            chosen = await self._reduce(chosen, limit, deadline)
            plans = await self.trial.plan_with(chosen)
            used = _find_used_indexes(self.trial, plans)
            chosen = [index for index in chosen if index in used]
        if not chosen or not self._is_worth_it(plans):
            return AdvisorResult(tried_count=tried_count, method=self.trial.method)
        lines = [_format_plan(self.trial, plan) for plan in plans if plan]
        sizes = [(index, await self.trial.estimate_bytes(index)) for index in chosen]
        return AdvisorResult(sizes, self._compare_costs(plans), lines, tried_count, self.trial.method)

    def _compare_costs(self, plans: Sequence[Node]) -> list[tuple[float, float]]:
        """Return what each statement that has a plan cost before, and costs now."""
        costs: list[tuple[float, float]] = []
        for before, after in zip(self.plans_before, plans, strict=True):
            if before and after:
                costs.append((before["Total Cost"], after["Total Cost"]))
        return costs

    async def _reduce(self, chosen: list[Index], limit: int, deadline: float) -> list[Index]:
        """Return the simplest and the fewest of them that help about as much."""
        simplified = await self._simplify(chosen, deadline)
        return (await self._drop_useless(list(dict.fromkeys(simplified))))[:limit]

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
            walked = self._find_walked_keys(plans)
            if not walked:
                break
            # Without them the planner may find rows by another index that it thought a little dearer.
            self.created = [index for index in self.created if (index.table, index.keys[0]) not in walked]
            plans = await self.trial.plan_with(self.created)
        return plans

    def _find_walked_keys(self, plans: Sequence[Node]) -> set[tuple[str, str]]:
        """Return the tables and first keys of indexes that are only walked along for their order."""
        walked: set[tuple[str, str]] = set()
        for plan in plans:
            for scan in find_order_scans(self.trial.index_of_name, plan):
                walked.add((scan.index.table, scan.index.keys[0]))
        return walked

    async def _simplify(self, chosen: list[Index], deadline: float) -> list[Index]:
        """Put simpler indexes in the place of those that they help about as much as."""
        best = self._cost(await self.trial.plan_with(chosen))
        for index in list(chosen):
            for other in self._simpler_forms(index):
                if anyio.current_time() > deadline:
                    break
                instead = [*(item for item in chosen if item != index), other]
                cost = self._cost(await self.trial.plan_with(instead))
                if self._is_good_substitute(index, other, best, cost):
                    chosen = instead
                    best = cost
                    break
        return chosen

    def _simpler_forms(self, index: Index) -> list[Index]:
        """Return the simpler indexes that may stand for one, the simplest first."""
        forms = [other for other in self.created if other.is_simpler_form_of(index)]
        return sorted(forms, key=lambda form: form.complexity)

    def _is_good_substitute(self, index: Index, other: Index, best: float, cost: float) -> bool:
        if cost - best > 0.1 * self._base_cost:
            return False
        # An index that stores less, or that covers all rows, may cost a little more.
        is_other_kind = (bool(index.include), index.predicate) != (bool(other.include), other.predicate)
        return is_other_kind or cost <= 1.25 * best + 4

    async def _drop_useless(self, chosen: list[Index]) -> list[Index]:
        """Return those without which it would be dearer, what helps most first."""
        best = self._cost(await self.trial.plan_with(chosen))
        losses: dict[Index, float] = {}
        for index in list(chosen):
            others = [item for item in chosen if item != index]
            loss = self._cost(await self.trial.plan_with(others)) - best
            if loss <= _MAX_USELESS_SHARE * self._base_cost and len(chosen) > 1:
                chosen = others
                best += loss
            else:
                losses[index] = loss
        return sorted(chosen, key=lambda index: -losses.get(index, 0))


def _pessimistic_cost(trial: Trial, plan: Node) -> float:
    """Return what a plan costs where rows lie as badly as can be."""
    extra_cost = sum(scan.extra_cost for scan in find_order_scans(trial.index_of_name, plan))
    return plan.get("Total Cost", 1e30) + extra_cost


def _find_used_indexes(trial: Trial, plans: Sequence[Node]) -> list[Index]:
    indexes: dict[Index, None] = {}
    stack = list(plans)
    while stack:
        node = stack.pop()
        index = trial.index_of_name(str(node.get("Index Name", "")))
        if index is not None:
            indexes.setdefault(index)
        stack += node.get("Plans", [])
    return list(indexes)


def _format_plan(trial: Trial, plan: Node) -> list[str]:
    return [_name_index(trial, line) for line in format_plan(plan)]


def _name_index(trial: Trial, line: str) -> str:
    """Return a line of a plan, with the definition of a candidate in the place of its name."""
    use = re.search(r" using ([^\s:]+)", line)
    if use is None:
        return line
    index = trial.index_of_name(use[1])
    if index is None:
        return line
    return line.replace(use[0], f" using {index.definition()}", 1)
