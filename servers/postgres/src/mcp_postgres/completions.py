"""Completes names of databases, schemas, tables and columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from mcp_batteries.server.declaration.decorators import completes
from mcp_batteries.sql import completions
from mcp_batteries.sql.policy import NamesOf
from mcp_postgres.engine.pools import ConnectionPools
from mcp_postgres.engine.schemas import complete_names

__all__ = ["Completions"]


@dataclass(frozen=True)
class Completions(completions.Completions):
    """Also completes schemas, which contain the tables."""

    pools: ConnectionPools

    LEVELS: ClassVar[Mapping[str, str]] = {"schema": "public", "table": "", "column": ""}

    @completes("schema", of="prompt")
    async def schema(self, typed: str, others: Mapping[str, str]) -> list[str]:
        """Schemas of the database named before."""
        return await self.names("schema", typed, others)

    @completes("schema", of="resource")
    async def schema_in_uri(self, typed: str, others: Mapping[str, str]) -> list[str]:
        """Return the same in the form of URIs."""
        return await self.in_uri("schema", typed, others)

    async def complete(self, names: NamesOf) -> list[str]:
        return await complete_names(self.pools, names)
