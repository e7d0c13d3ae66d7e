"""Names of databases, schemas, tables and columns, completed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from mcp_batteries.errors import Problem
from mcp_batteries.server.declare import completes
from mcp_postgres.engine.service import Engine
from mcp_postgres.policy import Policy, escaped

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

    @completes("schema", of="prompt")
    async def schema(self, typed: str, others: Mapping[str, str]) -> list[str]:
        """Schemas of the database named before."""
        return await self._names("schema", typed, others)

    @completes("schema", of="resource")
    async def schema_in_uri(self, typed: str, others: Mapping[str, str]) -> list[str]:
        """The same, as a URI spells them."""
        return await self._in_uri("schema", typed, others)

    @completes("table", of="resource")
    async def table(self, typed: str, others: Mapping[str, str]) -> list[str]:
        """Tables and views of the schema named before."""
        return await self._in_uri("table", typed, others, others.get("schema", "public"))

    @completes("column", of="resource")
    async def column(self, typed: str, others: Mapping[str, str]) -> list[str]:
        """Columns of the table named before."""
        return await self._in_uri("column", typed, others, others.get("schema", "public"), others.get("table", ""))

    async def _in_uri(self, what: str, typed: str, others: Mapping[str, str], *inside: str) -> list[str]:
        # What was completed before comes back as it was offered: escaped.
        names = await self._names(what, unquote(typed), others, *map(unquote, inside))
        return [escaped(name) for name in names]

    async def _names(self, what: str, typed: str, others: Mapping[str, str], *inside: str) -> list[str]:
        try:
            return await self.engine.names(self.policy.database(others.get("database") or None), what, typed, *inside)
        except Problem:
            return []
