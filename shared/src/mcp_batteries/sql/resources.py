"""Resources of both SQL servers: declared as data, read by one method, also for the watchers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from mcp_types import Resource, TextResourceContents

from mcp_batteries.errors import NotFound, quote
from mcp_batteries.server.declaration.decorators import lists_resources, resource
from mcp_batteries.sql.policy import AnyPolicy, Database, Readable
from mcp_batteries.sql.results.rows import RowPage
from mcp_batteries.sql.saved_queries import SavedQueries

__all__ = [
    "JSON_MIME_TYPE",
    "MAX_LISTED",
    "Reader",
    "Resources",
    "declare_reader",
    "declare_row_reader",
    "declare_rows_reader",
    "declare_saved_query_reader",
]

JSON_MIME_TYPE = "application/json"
# The list has so many tables of one database; all others are read by their URI all the same.
MAX_LISTED = 200

P = TypeVar("P", bound=AnyPolicy)
Reader = Callable[[Any, str], Awaitable[TextResourceContents]]


def declare_reader(uri: str, name: str, title: str, mime_type: str, about: str) -> Reader:
    """Return an attribute of a `Resources` that offers a resource, or a template of them."""

    async def read(self: Resources[Any], uri: str) -> TextResourceContents:
        return await self.contents(uri)

    read.__doc__ = about
    return resource(uri, name=name, title=title, mime_type=mime_type)(read)


def declare_saved_query_reader(scheme: str) -> Reader:
    """Return an attribute that offers the result of a saved query."""
    about = "What a saved query finds with the defaults of its parameters, at most 100 rows."
    return declare_reader(f"{scheme}://.queries/{{name}}", "query", "A saved query's result", JSON_MIME_TYPE, about)


def declare_rows_reader(table: str) -> Reader:
    """Return an attribute that offers the rows of a table, whose URI is of the form `table`."""
    title = "A table's first rows in the order of its key, or those where a column has a value"
    about = (
        'At most 100 rows as `{"columns": [...], "rows": [[...]], "truncated": ...}`. Follow `order=newest` to hear of '
        "rows that are added beyond the first."
    )
    return declare_reader(f"{table}{{?column,value,limit,order}}", "rows", title, JSON_MIME_TYPE, about)


def declare_row_reader(table: str) -> Reader:
    """Return an attribute that offers one row of a table, whose URI is of the form `table`."""
    about = "One row by its primary key; commas between the parts of a key."
    return declare_reader(f"{table}/{{key}}", "row", "The row with a key", JSON_MIME_TYPE, about)


@dataclass(frozen=True)
class Resources(Generic[P]):
    """The common part of both servers' resources."""

    policy: P
    queries: SavedQueries | None = field(default=None, kw_only=True)

    # The media type of resources that are not rows.
    TEXT: ClassVar[str]

    @lists_resources
    async def list_all(self) -> list[Resource]:
        """Return saved queries that need no values, and the contents of each database."""
        resources: list[Resource] = []
        for query in self.queries.queries.values() if self.queries else ():
            if not any(parameter.default is None for parameter in query.parameters):
                uri = self.policy.saved_uri(query.name)
                resources.append(
                    Resource(uri=uri, name=query.name, description=query.description, mime_type=JSON_MIME_TYPE)
                )
        for database in self.policy.served_databases(None):
            resources += await self.list_contents(database)
        return resources

    @abstractmethod
    async def list_contents(self, database: Database) -> list[Resource]:
        """Return the contents of a database, including its tables."""

    @abstractmethod
    async def read_content(self, request: Any) -> RowPage | str:
        """Return what `request` asks for: rows, or a text.

        Raises:
            Problem: it can't be read.
        """

    def readable(self, uri: str) -> Readable[Any] | None:
        """Return the meaning of a URI; None for URIs of another kind.

        Raises:
            Problem: there is no such thing.
        """
        return self.policy.readable(uri, self.queries and self.queries.queries)

    async def contents(self, uri: str) -> TextResourceContents:
        """Return the content of a URI.

        Raises:
            Problem: there is no such thing, or it can't be read.
        """
        readable = self.readable(uri)
        if readable is None:
            raise NotFound(f"No resource has the URI {quote(uri)}.")
        result = await self.read_content(readable.request)
        if isinstance(result, RowPage):
            return TextResourceContents(uri=uri, mime_type=JSON_MIME_TYPE, text=result.document())
        return TextResourceContents(uri=uri, mime_type=self.TEXT, text=result)
