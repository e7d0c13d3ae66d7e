"""Tools for the user and the people they work with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from mcp_batteries.errors import Invalid
from mcp_batteries.server.declaration.decorators import tool
from mcp_github.listing.pages import PageOptions
from mcp_github.models import Listing, Record
from mcp_github.policy import Policy
from mcp_github.requests.account.people import People
from mcp_github.tools.arguments import Cursor, Fields, Limit, OptionalRepoText, refuse_beside

__all__ = ["PeopleTools"]


@dataclass(frozen=True)
class PeopleTools:
    policy: Policy
    people: People

    @tool("Who am I", toolset="context", open_world=True)
    async def get_me(self) -> Record:
        """Get whose token is used, what it may do here, and how many requests are left this hour.

        For other people use `list_people`.
        """
        return await self.people.get_me()

    @tool("List people or teams", toolset="context", open_world=True)
    async def list_people(
        self,
        repo: OptionalRepoText = None,
        org: Annotated[str | None, Field(description="Login")] = None,
        team: Annotated[str | None, Field(description="Slug, with `org`")] = None,
        fields: Fields = None,
        limit: Limit = 30,
        cursor: Cursor = None,
    ) -> Listing:
        """List collaborators of `repo`, members of `org` or of its `team`; without any of them, your own teams.

        Collaborators need push access to `repo`. Yourself: `get_me`.
        """
        options = PageOptions(fields, limit, cursor)
        if repo is None and org is None:
            if team is not None:
                raise Invalid("A team is one of an organisation.", "Pass its `org` too.")
            return await self.people.list_teams(options)
        if repo is not None and org is not None:
            raise Invalid("Only one of `repo` and `org` can be given.")
        if repo is not None:
            refuse_beside("`repo`", team=team)
            return await self.people.list_collaborators(self.policy.repo(repo), options)
        return await self.people.list_members(self.policy.owner(org or ""), team, options)
