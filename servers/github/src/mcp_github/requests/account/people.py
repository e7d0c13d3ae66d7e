"""The user, their teams, and the people they work with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from mcp_batteries.errors import Refused, quote
from mcp_github.client.api import Api
from mcp_github.listing.columns import PERSON, TEAM
from mcp_github.listing.pages import ListQuery, PageOptions, fetch_page
from mcp_github.listing.projections import Item, pick
from mcp_github.models import Listing, Record
from mcp_github.policy import Owner, Repo

__all__ = ["People"]

_USER_COLUMNS = ("login", "name", "company", "location", "bio", "url")


@dataclass(frozen=True)
class People:
    api: Api

    async def get_me(self) -> Record:
        """Return who the token belongs to, what it may do, how many requests are left, and what is served here."""
        data = await self._describe_server()
        credentials = self.api.client.credentials
        if not credentials.source:
            searched = ""
            if credentials.searched_places:
                searched = f" (looked in {credentials.searched_places})"
            note = f"There is no token{searched}: only public repositories can be read."
            return Record(note=note, data=data)
        data["token_from"] = credentials.source
        data["token_kind"] = credentials.kind
        note = None
        try:
            user = await self.api.get("/user", "the user of this token", internal=True)
        except Refused as problem:
            note = f"The token acts for no user. {problem.failure}"
        else:
            data |= PERSON.to_record(user.data, _USER_COLUMNS)
            data["scopes"] = user.headers.get("x-oauth-scopes")
            data["token_expires"] = user.headers.get("github-authentication-token-expiration")
            if data["scopes"] is None:
                note = "GitHub tells the permissions of such a token only when a call is refused."
        return Record(note=note, data=data)

    async def _describe_server(self) -> dict[str, Any]:
        """Return what is served here, and how many requests are left."""
        policy = self.api.policy
        limits = await self.api.get("/rate_limit", "the rate limits", internal=True)
        core = cast("dict[str, Any]", pick(limits.data, "resources.core") or {})
        return {
            "served": policy.allow_list_text,
            "toolsets": sorted(policy.toolsets),
            "may": policy.allowed_actions,
            "requests_left": core.get("remaining"),
            "requests_of": core.get("limit"),
        }

    async def list_teams(self, options: PageOptions) -> Listing:
        """Return a page of the teams of the token's user."""

        def select(teams: Sequence[Item]) -> Sequence[Item]:
            return self.api.policy.only_owners_served(teams, key=lambda team: str(pick(team, "organization.login")))

        return await fetch_page(self.api, ListQuery("/user/teams", "your teams", TEAM, select=select), options)

    async def list_collaborators(self, repo: Repo, options: PageOptions) -> Listing:
        """Return a page of who may work on a repository."""
        query = ListQuery(f"{repo.path}/collaborators", f"the collaborators of `{repo.full_name}`", PERSON, repo=repo)
        return await fetch_page(self.api, query, options)

    async def list_members(self, organisation: Owner, team: str | None, options: PageOptions) -> Listing:
        """Return a page of who belongs to an organisation, or to one of its teams."""
        query = ListQuery(f"/orgs/{organisation}/members", f"the organisation `{organisation.login}`", PERSON)
        if team is not None:
            path = f"/orgs/{organisation}/teams/{self.api.policy.team(team).text}/members"
            query = ListQuery(path, f"the team {quote(team)}", PERSON)
        return await fetch_page(self.api, query, options)
