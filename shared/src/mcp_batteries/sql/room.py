"""What both SQL servers' rooms stand on: a policy, and an engine of this form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from mcp_batteries.server.results import TextResult
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
from mcp_batteries.sql.rows import Hits, Results, RowPage

__all__ = ["AnyPolicy", "E", "Engine", "P", "Room"]

AnyPolicy = Policy[Any, Any]


class Engine(Protocol):
    """What both engines do: trusted types in, results out; each raises a `Problem` for what can't be done."""

    async def rows(
        self, wanted: ReadStatement | NextPage, *, limit: int, max_bytes: int, max_cell: int = ...
    ) -> RowPage | Results:
        """A page of rows; of several statements the first page each, all of one moment."""
        ...

    async def read(self, request: Any) -> RowPage | str:
        """The content of a resource."""
        ...

    async def compile(self, statement: ReadStatement) -> None:
        """Have the database look at a statement without running it."""
        ...

    async def change(self, statement: WriteStatement | SchemaStatement, *, dry_run: bool) -> TextResult:
        """Run a statement in one transaction, and keep what it did unless `dry_run`."""
        ...

    async def import_rows(self, table: Any, file: ServedFile, *, dry_run: bool) -> TextResult:
        """Insert all records of a file into a table, or none; keep them unless `dry_run`."""
        ...

    async def describe(self, table: Any, *, sample: int) -> TextResult:
        """One table with all that hangs on it, and `sample` of its rows."""
        ...

    async def compare(self, one: Any, other: Any) -> TextResult:
        """In which rows two tables differ."""
        ...

    async def find(self, wanted: SearchOf, *, limit: int) -> Hits:
        """Where words occur in the schemas of databases."""
        ...

    async def names(self, wanted: NamesOf) -> list[str]:
        """Names that begin with what was typed."""
        ...


P = TypeVar("P", bound=AnyPolicy)
E = TypeVar("E", bound=Engine)


@dataclass(frozen=True)
class Room(Generic[P, E]):
    """A room of a SQL server."""

    policy: P
    engine: E
