"""Completes names of databases, tables and columns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import unquote

from mcp_batteries.errors import Problem
from mcp_batteries.server.declaration.decorators import completes
from mcp_batteries.sql.policy import AnyPolicy, NamesOf, escape_uri_part

__all__ = ["Completions"]


@dataclass(frozen=True)
class Completions:
    """What both SQL servers complete."""

    policy: AnyPolicy

    # Kinds of names, each inside those before it, with the name that is meant where none is given.
    LEVELS: ClassVar[Mapping[str, str]] = {"table": "", "column": ""}

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
        """Tables and views of what was named before, in URI form."""
        return await self.in_uri("table", typed, others)

    @completes("column", of="resource")
    async def column(self, typed: str, others: Mapping[str, str]) -> list[str]:
        """Columns of the table that was named before."""
        return await self.in_uri("column", typed, others)

    async def in_uri(self, kind: str, typed: str, others: Mapping[str, str]) -> list[str]:
        """Names of a kind, in URI form."""
        # What was completed before comes back as it was offered: escaped.
        named = {level: unquote(name) for level, name in others.items()}
        return [escape_uri_part(name) for name in await self.names(kind, unquote(typed), named)]

    async def names(self, kind: str, typed: str, others: Mapping[str, str]) -> list[str]:
        """Names of a kind inside those named before; none if something fails."""
        above = list(self.LEVELS)[: list(self.LEVELS).index(kind)]
        inside = [others.get(level) or self.LEVELS[level] for level in above]
        try:
            return await self.complete(self.policy.names(others.get("database"), kind, typed, inside))
        except Problem:
            return []

    @abstractmethod
    async def complete(self, names: NamesOf) -> list[str]:
        """Names that begin with the typed text.

        Raises:
            Problem: the database can't be asked.
        """
