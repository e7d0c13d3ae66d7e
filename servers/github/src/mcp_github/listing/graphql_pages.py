"""Pages of what GraphQL lists: connections, of which a page may be shown in parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from mcp_batteries.clipping import DEFAULT_PAGE_BYTES
from mcp_batteries.cursors import Cursor
from mcp_batteries.errors import NotFound, Unavailable
from mcp_github.call_context import current_call
from mcp_github.client.api import Api
from mcp_github.listing.pages import PageOptions, count_bytes, count_fitting_rows
from mcp_github.listing.projections import Projection
from mcp_github.models import Listing
from mcp_github.policy import Repo

# Nodes of a connection that GitHub answers at once.
_MAX_NODES = 100

__all__ = ["ConnectionPage", "ConnectionPosition", "GraphqlQuery", "fetch_graphql_page"]


@dataclass(frozen=True)
class ConnectionPosition:
    """Where a page of a connection begins.

    Attributes:
        page_size: how many nodes GitHub is asked for.
        after: GitHub's cursor of the page before; None for the first page.
        skip: how many nodes of the page were shown before.
        done: how many nodes of the connection were shown before.
    """

    page_size: int
    after: str | None = None
    skip: int = 0
    done: int = 0

    @classmethod
    def decode(cls, kind: str, cursor: str | None, scope: Sequence[Any], limit: int) -> ConnectionPosition:
        """Return the position that `cursor` names; without one the beginning."""
        if not cursor:
            return cls(min(_MAX_NODES, limit))
        value: dict[str, Any] = Cursor.decode(kind, cursor, scope)
        return cls(value["n"], value["after"], value["skip"], value["done"])

    def encode(self, kind: str, scope: Sequence[Any]) -> str:
        value = {"n": self.page_size, "after": self.after, "skip": self.skip, "done": self.done}
        return Cursor.encode(kind, value, scope)


@dataclass(frozen=True)
class ConnectionPage:
    """What of a page of GraphQL's fits an answer.

    Attributes:
        next_position: where the next answer begins; None after the last.
        total: of all nodes of the connection.
        removed: how many invisible characters were taken out.
    """

    rows: list[list[Any]]
    next_position: ConnectionPosition | None
    total: int
    removed: int = 0

    @classmethod
    def cut(
        cls, connection: Mapping[str, Any], rows: list[list[Any]], position: ConnectionPosition,
        *, max_bytes: int = DEFAULT_PAGE_BYTES,
    ) -> ConnectionPage:  # fmt: skip
        """Return those of `rows` that fit, and where to go on.

        Args:
            connection: as GitHub answered it, with its `pageInfo` and `totalCount`.
            rows: of its nodes from `position` on.
        """
        fitting = count_fitting_rows(rows, max_bytes)
        done = position.done + fitting
        next_position = None
        if fitting < len(rows):
            next_position = replace(position, skip=position.skip + fitting, done=done)
        elif connection["pageInfo"]["hasNextPage"]:
            next_position = replace(position, after=connection["pageInfo"]["endCursor"], skip=0, done=done)
        return cls(rows[:fitting], next_position, connection["totalCount"])

    def encode_cursor(self, kind: str, scope: Sequence[Any]) -> str | None:
        if self.next_position is None:
            return None
        return self.next_position.encode(kind, scope)

    def to_listing(self, kind: str, scope: Sequence[Any], columns: Sequence[str], *, removed: int) -> Listing:
        """Return the page as the result of a tool, with the cursor of the next one."""
        return Listing(
            cursor=self.encode_cursor(kind, scope), note=self.remaining_note() or self._round_note(), total=self.total,
            removed=removed or None, columns=list(columns), rows=self.rows,
        )  # fmt: skip

    def _round_note(self) -> str | None:
        """Return that these are all, where their number looks like the most that a page has."""
        if self.next_position is not None or not self.rows or self.total % _MAX_NODES:
            return None
        return f"Complete: there are no more than these {self.total}."

    @property
    def remaining_count(self) -> int:
        """How many nodes are to come."""
        if self.next_position is None:
            return 0
        return self.total - self.next_position.done

    def remaining_note(self, noun: str = "more") -> str | None:
        if self.next_position is None:
            return None
        return f"{self.remaining_count} {noun}."


@dataclass(frozen=True)
class GraphqlQuery:
    """A list that GraphQL has.

    Attributes:
        description: what it lists, in words for messages.
        find_connection: finds the connection in the answer; what it lacks is not there.
    """

    text: str
    variables: Mapping[str, Any]
    description: str
    projection: Projection
    find_connection: Callable[[Any], Any]
    repo: Repo | None = None


async def fetch_graphql_page(api: Api, query: GraphqlQuery, options: PageOptions) -> Listing:
    """Return one page of what a GraphQL query lists."""
    columns = query.projection.choose_columns(options.fields)
    scope = [query.text.split("(")[0], dict(query.variables)]
    position = ConnectionPosition.decode("nodes", options.cursor, scope, options.limit)
    page = await _fetch_nodes(api, query, columns, position, DEFAULT_PAGE_BYTES)
    for remaining in range(options.limit - _MAX_NODES, 0, -_MAX_NODES):
        if page.next_position is None or page.next_position.skip:
            break
        position = replace(page.next_position, page_size=min(_MAX_NODES, remaining))
        max_bytes = DEFAULT_PAGE_BYTES - count_bytes(page.rows)
        try:
            next_page = await _fetch_nodes(api, query, columns, position, max_bytes)
        except Unavailable as problem:
            current_call().add_note(f"{problem.failure} What came before is here.")
            break
        page = replace(next_page, rows=page.rows + next_page.rows, removed=page.removed + next_page.removed)
    return page.to_listing("nodes", scope, columns, removed=page.removed)


async def _fetch_nodes(
    api: Api, query: GraphqlQuery, columns: Sequence[str], position: ConnectionPosition, max_bytes: int
) -> ConnectionPage:
    """Return what of the page of GitHub's at `position` fits into so many bytes."""
    variables = {**query.variables, "first": position.page_size, "after": position.after}
    response = await api.graphql(query.text, variables, query.description, repo=query.repo)
    connection = _find_connection(query, response.data)
    rows = [query.projection.to_row(node, columns) for node in connection["nodes"][position.skip :]]
    page = ConnectionPage.cut(connection, rows, position, max_bytes=max_bytes)
    return replace(page, removed=response.removed)


def _find_connection(query: GraphqlQuery, data: Any) -> dict[str, Any]:
    """Return the connection that a query lists.

    Raises:
        NotFound: GitHub's answer has none.
    """
    try:
        connection = cast("dict[str, Any]", query.find_connection(data))
        _ = connection["nodes"]
    except (KeyError, TypeError):
        raise NotFound(f"GitHub does not find {query.description}, or hides it from this token.") from None
    return connection
