"""Completes names of databases, tables and columns."""

from dataclasses import dataclass

from mcp_batteries.sql import completions
from mcp_batteries.sql.policy import NamesOf
from mcp_sqlite.engine.schemas import complete_names
from mcp_sqlite.engine.workers.pool import WorkerPool

__all__ = ["Completions"]


@dataclass(frozen=True)
class Completions(completions.Completions):
    """The completions that every SQL server has."""

    pool: WorkerPool

    async def complete(self, names: NamesOf) -> list[str]:
        return await complete_names(self.pool, names)
