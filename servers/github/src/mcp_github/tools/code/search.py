"""One tool for everything that GitHub can search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from mcp_batteries.server.declaration.decorators import tool
from mcp_github.listing.pages import PageOptions
from mcp_github.models import Listing
from mcp_github.requests.code.search import Search, SearchKind
from mcp_github.tools.arguments import Cursor, Fields, Limit, OptionalRepoText

__all__ = ["SearchTools"]


@dataclass(frozen=True)
class SearchTools:
    search: Search

    @tool("Search GitHub", toolset=("repos", "issues", "pull_requests", "search"), open_world=True)
    async def search_github(
        self,
        kind: SearchKind,
        query: Annotated[str, Field(description="Words, qualifiers as is:open")],
        repo: OptionalRepoText = None,
        sort: Annotated[str | None, Field(description="stars, updated, comments ...")] = None,
        order: Literal["asc", "desc"] | None = None,
        fields: Fields = None,
        limit: Limit = 20,
        cursor: Cursor = None,
    ) -> Listing:
        """Search GitHub, or one `repo`, for repositories, code, commits, issues, people or topics (`kind`), best first.

        Finds 1000 at most; few searches a minute. A repository's issues: `list_issues`.
        """
        options = PageOptions(fields, limit, cursor)
        return await self.search.find(kind, query, repo, sort=sort, order=order, options=options)
