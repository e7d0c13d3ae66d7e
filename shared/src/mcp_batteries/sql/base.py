"""The base of both SQL servers' rooms: a policy, and an engine of this form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from mcp_batteries.server.calling.results import TextResult
from mcp_batteries.sql.policy import (
    NamesOf,
    NextPage,
    Policy,
    ReadStatement,
    SchemaStatement,
    SearchOf,
    ServedFile,
    WriteStatement,
)
from mcp_batteries.sql.results.rows import Results, RowPage, SearchHits

__all__ = ["AnyPolicy", "E", "Engine", "P", "Room"]

AnyPolicy = Policy[Any, Any]


class Engine(Protocol):
    """The methods of both engines: trusted types in, results out; each raises a `Problem` for what it cannot do."""

    async def rows(
        self, wanted: ReadStatement | NextPage, *, limit: int, max_bytes: int, max_cell: int = ...
    ) -> RowPage | Results:
        """A page of rows; for several statements the first page of each, all from one moment."""
        ...

    async def read(self, request: Any) -> RowPage | str:
        """The content of a resource."""
        ...

    async def compile(self, statement: ReadStatement) -> None:
        """Let the database check a statement without running it."""
        ...

    async def change(self, statement: WriteStatement | SchemaStatement, *, dry_run: bool) -> TextResult:
        """Run a statement in one transaction, and keep its effects unless `dry_run`."""
        ...

    async def import_rows(self, table: Any, file: ServedFile, *, dry_run: bool) -> TextResult:
        """Insert all records of a file into a table, or none; keep them unless `dry_run`."""
        ...

    async def describe(self, table: Any, *, sample: int) -> TextResult:
        """One table with everything that depends on it, and `sample` of its rows."""
        ...

    async def compare(self, one: Any, other: Any) -> TextResult:
        """In which rows two tables differ."""
        ...

    async def find(self, wanted: SearchOf, *, limit: int) -> SearchHits:
        """Where words occur in the schemas of databases."""
        ...

    async def names(self, wanted: NamesOf) -> list[str]:
        """Names that begin with the typed text."""
        ...


P = TypeVar("P", bound=AnyPolicy)
E = TypeVar("E", bound=Engine)


@dataclass(frozen=True)
class Room(Generic[P, E]):
    """A room of a SQL server."""

    policy: P
    engine: E
