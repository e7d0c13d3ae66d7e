"""Stars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from mcp_batteries.server.declaration.decorators import tool
from mcp_batteries.server.declaration.trusted import trusted
from mcp_github.client.api import Api
from mcp_github.listing.columns import REPOSITORY
from mcp_github.listing.pages import ListQuery, PageOptions, fetch_page, keep_served
from mcp_github.listing.projections import Item, Projection
from mcp_github.models import Done, Listing
from mcp_github.policy import Owner, Policy
from mcp_github.tools.arguments import Cursor, Fields, Limit, WriteRepoName

__all__ = ["edit_star", "list_stars"]

_STAR_TYPE = "application/vnd.github.star+json"
_STARRED = Projection(
    {**REPOSITORY.getters, "starred_at": "starred_at"}, ("repo", "description", "language", "starred_at")
)


@tool("List starred repositories", toolset="stars", open_world=True)
async def list_stars(
    api: Api,
    *,
    user: Annotated[Owner | None, trusted(Policy.other_user), Field(description="Login")] = None,
    fields: Fields = None,
    limit: Limit = 30,
    cursor: Cursor = None,
) -> Listing:
    """List repositories that you, or `user`, starred, the latest first. Any others: `search_github`."""
    path = "/user/starred"
    description = "what you starred"
    if user is not None:
        path = f"/users/{user}/starred"
        description = f"what `{user.login}` starred"

    def select(items: Sequence[Item]) -> Sequence[Item]:
        return keep_served(api, items, repo_getter="full_name", private_getter=lambda item: item.get("private", False))

    query = ListQuery(path, description, _STARRED, find_list=_flatten, select=select, accept=_STAR_TYPE)
    return await fetch_page(api, query, PageOptions(fields, limit, cursor))


@tool("Star or unstar", toolset="stars", effect="write", idempotent=True, open_world=True)
async def edit_star(api: Api, *, repo: WriteRepoName, starred: bool = True) -> Done:
    """Star a repository in your name, or take the star off with starred=false. Yours: `list_stars`."""
    method = "DELETE"
    verb = "Unstarred"
    if starred:
        method = "PUT"
        verb = "Starred"
    path = f"/user/starred{repo.path.removeprefix('/repos')}"
    await api.write(method, path, f"repository `{repo.full_name}`", repo=repo)
    return Done(done=f"{verb} {repo.full_name}.", uri=repo.uri)


def _flatten(stars: Any) -> list[dict[str, Any]]:
    """Return the repositories of `stars`, each with the time of its star."""
    return [{**star.get("repo", star), "starred_at": star.get("starred_at")} for star in stars]
