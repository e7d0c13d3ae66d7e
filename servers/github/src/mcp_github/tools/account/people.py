"""The user, their teams, and the people they work with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, cast

from pydantic import Field

from mcp_batteries.errors import Invalid, NotFound, Refused, quote
from mcp_batteries.server.declaration.decorators import tool
from mcp_batteries.server.declaration.trusted import trusted
from mcp_github.client.api import NO_CONTENT, Api
from mcp_github.listing.columns import CONTRIBUTOR, PERSON, TEAM
from mcp_github.listing.pages import ListQuery, PageOptions, fetch_page
from mcp_github.listing.projections import Item, pick
from mcp_github.models import Listing, Record
from mcp_github.policy import Owner, Policy, Repo, TeamSlug
from mcp_github.tools.arguments import Cursor, Fields, Limit, OptionalOwnerName, OptionalRepoName, refuse_beside

__all__ = ["get_me", "list_people"]

_USER_COLUMNS = ("login", "name", "company", "location", "bio", "url")


@tool("Who am I", toolset="context", open_world=True)
async def get_me(api: Api) -> Record:
    """Get whose token is used, what it may do here, and how many requests are left this hour.

    Others: `list_people`.
    """
    data = await _describe_server(api)
    credentials = api.client.credentials
    if not credentials.source:
        searched = ""
        if credentials.searched_places:
            searched = f" (looked in {credentials.searched_places})"
        data["may"] = ["read"]
        note = f"There is no token{searched}: only public repositories can be read."
        return Record(note=note, data=data)
    data["token_from"] = credentials.source
    data["token_kind"] = credentials.kind
    note = None
    try:
        user = await api.get("/user", "the user of this token", internal=True)
    except Refused as problem:
        note = f"The token acts for no user. {problem.failure}"
    else:
        data |= PERSON.to_record(user.data, _USER_COLUMNS)
        data["scopes"] = user.headers.get("x-oauth-scopes")
        data["token_expires"] = user.headers.get("github-authentication-token-expiration")
        if data["scopes"] is None:
            note = "GitHub tells the permissions of such a token only when a call is refused."
    return Record(note=note, data=data)


@tool("List people or teams", toolset="context", open_world=True)
async def list_people(
    api: Api,
    *,
    repo: OptionalRepoName = None,
    org: OptionalOwnerName = None,
    team: Annotated[TeamSlug | None, trusted(Policy.team), Field(description="Slug, with `org`")] = None,
    kind: Literal["collaborators", "contributors"] = "collaborators",
    fields: Fields = None,
    limit: Limit = 30,
    cursor: Cursor = None,
) -> Listing:
    """List collaborators or contributors of `repo`, members of `org` or of its `team`; else your own teams.

    Collaborators need push access. Yourself: `get_me`.
    """
    if kind == "contributors" and repo is None:
        raise Invalid("Contributors are those of a repository.", "Pass its `repo`.")
    if repo is not None and org is not None:
        raise Invalid("Only one of `repo` and `org` can be given.")
    if repo is not None:
        refuse_beside("`repo`", team=team)
        query = _query_people_of(repo, kind)
    elif org is not None:
        query = _query_members(org, team)
    elif team is not None:
        raise Invalid("A team is one of an organisation.", "Pass its `org` too.")
    else:
        query = _query_own_teams(api)
    return await fetch_page(api, query, PageOptions(fields, limit, cursor))


async def _describe_server(api: Api) -> dict[str, Any]:
    """Return what is served here, and how many requests are left."""
    data: dict[str, Any] = {
        "served": api.policy.allow_list_text,
        "toolsets": sorted(api.policy.toolsets),
        "may": api.policy.allowed_actions,
    }
    try:
        limits = await api.get("/rate_limit", "the rate limits", internal=True)
    except NotFound:
        # An Enterprise Server has none unless its administrator sets them.
        data["requests_left"] = "no limit"
    else:
        core = cast("dict[str, Any]", pick(limits.data, "resources.core") or {})
        data["requests_left"] = core.get("remaining")
        data["requests_of"] = core.get("limit")
    return data


def _query_people_of(repo: Repo, kind: Literal["collaborators", "contributors"]) -> ListQuery:
    """Return the list of who may push to a repository, or whose commits are in it."""
    if kind == "collaborators":
        return ListQuery(f"{repo.path}/{kind}", f"the {kind} of `{repo.full_name}`", PERSON, repo=repo)
    return ListQuery(
        f"{repo.path}/{kind}", f"the {kind} of `{repo.full_name}`", CONTRIBUTOR, params={"anon": 1}, repo=repo,
        find_list=_contributors_of, hint="`list_commits` shows who wrote what.",
    )  # fmt: skip


def _contributors_of(answer: Any) -> Any:
    """Return the contributors in GitHub's answer, which is empty while a repository has no commit."""
    if answer is NO_CONTENT:
        return []
    return answer


def _query_own_teams(api: Api) -> ListQuery:
    """Return the list of the teams of the token's user."""

    def select(teams: Sequence[Item]) -> Sequence[Item]:
        return api.policy.only_owners_served(teams, key=lambda team: str(pick(team, "organization.login")))

    return ListQuery("/user/teams", "your teams", TEAM, select=select)


def _query_members(org: Owner, team: TeamSlug | None) -> ListQuery:
    """Return the list of who belongs to an organisation, or to one of its teams."""
    if team is None:
        return ListQuery(f"/orgs/{org}/members", f"the organisation `{org.login}`", PERSON)
    return ListQuery(f"/orgs/{org}/teams/{team.text}/members", f"the team {quote(team.text)}", PERSON)
