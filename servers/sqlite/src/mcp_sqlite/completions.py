"""Names of databases, tables and columns, completed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from mcp_batteries.errors import Problem
from mcp_batteries.server.declare import completes
from mcp_sqlite.engine.service import Engine
from mcp_sqlite.policy import Policy, escaped

__all__ = ["Completions"]


@dataclass(frozen=True)
class Completions:
    policy: Policy
    engine: Engine

    @completes("database", of="prompt")
    async def database(self, typed: str, others: Mapping[str, str]) -> list[str]:
        """Databases that are served."""
        return [name for name in self.policy.databases if name.startswith(typed.lower())]

    @completes("database", of="resource")
    async def database_in_uri(self, typed: str, others: Mapping[str, str]) -> list[str]:
        """The same; their names need no escapes."""
        return await self.database(typed, others)

    @completes("table", of="resource")
    async def table(self, typed: str, others: Mapping[str, str]) -> list[str]:
        """Tables and views of the database named before, as a URI spells them."""
        return await self._in_uri(typed, others, None)

    @completes("column", of="resource")
    async def column(self, typed: str, others: Mapping[str, str]) -> list[str]:
        """Columns of the table named before."""
        return await self._in_uri(typed, others, unquote(others.get("table", "")))

    async def _in_uri(self, typed: str, others: Mapping[str, str], table: str | None) -> list[str]:
        # What was completed before comes back as it was offered: escaped.
        try:
            where = self.policy.database(others.get("database"))
            return [escaped(name) for name in await self.engine.names(where, unquote(typed), table=table)]
        except Problem:
            return []
