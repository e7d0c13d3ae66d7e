"""Who one is and whom one works with, as tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from mcp_batteries.declare import tool
from mcp_batteries.errors import Invalid
from mcp_github.engine.repositories import Repositories
from mcp_github.models import Listing, Record
from mcp_github.policy import Policy
from mcp_github.tools.arguments import Cursor, Fields, Limit, OptionalRepo

__all__ = ["ContextTools"]


@dataclass(frozen=True)
class ContextTools:
    policy: Policy
    repositories: Repositories

    @tool("Who am I", open_world=True)
    async def get_me(self) -> Record:
        """Get the user of the token, what may be done here, and how many requests are left. Begin here."""
        return await self.repositories.me()

    @tool("List my teams", open_world=True)
    async def list_teams(self, fields: Fields = None, limit: Limit = 30, cursor: Cursor = None) -> Listing:
        """List the teams you are in."""
        return await self.repositories.teams(fields=fields, limit=limit, cursor=cursor)

    @tool("List people", open_world=True)
    async def list_people(
        self,
        repo: OptionalRepo = None,
        org: Annotated[str | None, Field(description="Organisation.")] = None,
        team: Annotated[str | None, Field(description="Slug, with `org`.")] = None,
        fields: Fields = None,
        limit: Limit = 30,
        cursor: Cursor = None,
    ) -> Listing:
        """List a repository's collaborators, or the members of an organisation or team."""
        if (repo is None) == (org is None):
            raise Invalid("One of `repo` and `org` has to be given.")
        place = self.policy.repo(repo) if repo is not None else self.policy.owner(org or "")
        return await self.repositories.people(place, team, fields=fields, limit=limit, cursor=cursor)
