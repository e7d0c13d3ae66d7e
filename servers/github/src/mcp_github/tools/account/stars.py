"""Stars, as tools."""

from __future__ import annotations

from dataclasses import dataclass

from mcp_batteries.server.declaration.decorators import tool
from mcp_github.listing.pages import PageOptions
from mcp_github.models import Done, Listing
from mcp_github.policy import Policy
from mcp_github.requests.account.stars import Stars
from mcp_github.tools.arguments import Cursor, Fields, Limit, Login, RepoText, parse_other_user

__all__ = ["StarTools"]


@dataclass(frozen=True)
class StarTools:
    policy: Policy
    stars: Stars

    @tool("List starred repositories", toolset="stars", open_world=True)
    async def list_stars(
        self, user: Login = None, fields: Fields = None, limit: Limit = 30, cursor: Cursor = None
    ) -> Listing:
        """List repositories that you, or `user`, starred, the latest first. Any others: `search_github`."""
        return await self.stars.list(parse_other_user(self.policy, user), PageOptions(fields, limit, cursor))

    @tool("Star or unstar", toolset="stars", effect="write", idempotent=True, open_world=True)
    async def edit_star(self, repo: RepoText, starred: bool = True) -> Done:
        """Star a repository in your name, or take the star off with starred=false. Yours: `list_stars`."""
        return await self.stars.edit(self.policy.write_repo(repo), starred=starred)
