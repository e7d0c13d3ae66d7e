"""Tries indexes with hypopg, which makes the planner believe in them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg

from mcp_postgres.engine.advisor.candidates import Index
from mcp_postgres.engine.advisor.plan import PLAIN_INDEX, QUERY_CANCELED, AnalyzedStatement, plan_or_nothing
from mcp_postgres.engine.connection.session import Session

__all__ = ["HypotheticalIndexes"]

Node = dict[str, Any]


@dataclass
class HypotheticalIndexes:
    """Indexes in which only the planner of this session believes."""

    session: Session
    schema: str
    statements: Sequence[AnalyzedStatement]
    _index_of_name: dict[str, Index] = field(default_factory=dict[str, Index])
    _sizes: dict[Index, int] = field(default_factory=dict[Index, int])
    method: str = "tried with hypopg"

    async def create(self, candidates: Sequence[Index]) -> list[Index]:
        """Make candidates; those of which PostgreSQL says that they can be."""
        self.session.must_be_closed = True
        return [index for index in candidates if self._may_create(index) and await self._try_to_create(index)]

    def _may_create(self, index: Index) -> bool:
        """Return whether hypopg may see it: it parses and folds it, and PostgreSQL can't be asked what that runs."""
        is_judged = self.session.audit.closed or self.session.audit.visible.schema
        return not is_judged or PLAIN_INDEX.fullmatch(f"CREATE INDEX ON {index.definition()}") is not None

    async def _try_to_create(self, index: Index) -> bool:
        await self.session.run("SAVEPOINT mcp_try")
        try:
            await self._create_one(index)
        except psycopg.Error as error:
            if error.sqlstate == QUERY_CANCELED:
                raise
            await self.session.run("ROLLBACK TO SAVEPOINT mcp_try")
            return False
        return True

    async def plan_with(self, chosen: Collection[Index]) -> list[Node]:
        """Return the statements' plans where only these candidates are there; `{}` of one that has none."""
        await self.session.fetch_value(f"SELECT {self.schema}.hypopg_reset()::text")
        for index in chosen:
            await self._create_one(index)
        return [await plan_or_nothing(self.session, item) for item in self.statements]

    def index_of_name(self, name: str) -> Index | None:
        """Return the candidate that a plan calls so."""
        return self._index_of_name.get(name)

    async def estimate_bytes(self, index: Index) -> int:
        """Return about how many bytes one would have."""
        return self._sizes[index]

    async def _create_one(self, index: Index) -> None:
        text = await self.session.fetch_value(
            f"SELECT concat_ws(' ', indexrelid, indexname) FROM {self.schema}.hypopg_create_index($1::pg_catalog.text)",
            f"CREATE INDEX ON {index.definition()}",
        )
        number, _, name = (text or "").partition(" ")
        self._index_of_name[name] = index
        if index not in self._sizes:
            size_text = await self.session.fetch_value(
                f"SELECT {self.schema}.hypopg_relation_size($1::oid)::text", number
            )
            self._sizes[index] = int(size_text or 0)
