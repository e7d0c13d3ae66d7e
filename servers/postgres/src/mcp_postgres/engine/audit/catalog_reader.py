"""What the audits need of a session: queries of our own, without knowing how a session is made."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

__all__ = ["CatalogReader", "QueryResult"]


class QueryResult(Protocol):
    """The rows that one query gave."""

    def rows(self) -> list[tuple[Any, ...]]:
        """Return all rows."""
        ...

    def first(self) -> tuple[Any, ...] | None:
        """Return the first row, if there is any."""
        ...


class CatalogReader(Protocol):
    """A session that reads the catalog."""

    async def run_pipeline(self, *statements: tuple[str, Sequence[str | None]]) -> Sequence[QueryResult]:
        """Run statements in one round trip."""
        ...

    async def fetch_value(self, sql: str, *values: str | None) -> str | None:
        """Return the one value that a query finds."""
        ...

    def as_server_role(self) -> AbstractAsyncContextManager[None]:
        """Act as the server's own role, and not as the caller's, within the block."""
        ...
