"""Completes names of databases, schemas, tables and columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from mcp_batteries.server.declaration.decorators import completes
from mcp_batteries.sql import completions
from mcp_postgres.engine.service import Engine
from mcp_postgres.policy import Policy

__all__ = ["Completions"]


class Completions(completions.Completions[Policy, Engine]):
    """Also completes schemas, which contain the tables."""

    LEVELS: ClassVar[Mapping[str, str]] = {"schema": "public", "table": "", "column": ""}

    @completes("schema", of="prompt")
    async def schema(self, typed: str, others: Mapping[str, str]) -> list[str]:
        """Schemas of the database named before."""
        return await self.names("schema", typed, others)

    @completes("schema", of="resource")
    async def schema_in_uri(self, typed: str, others: Mapping[str, str]) -> list[str]:
        """Return the same in the form of URIs."""
        return await self.in_uri("schema", typed, others)
