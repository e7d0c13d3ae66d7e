"""Stars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mcp_github.client.api import Api
from mcp_github.listing.columns import REPOSITORY
from mcp_github.listing.pages import ListQuery, PageOptions, fetch_page, keep_served
from mcp_github.listing.projections import Item, Projection
from mcp_github.models import Done, Listing
from mcp_github.policy import Owner, WriteRepo

__all__ = ["Stars"]

_STAR_TYPE = "application/vnd.github.star+json"
_STARRED = Projection(
    {**REPOSITORY.getters, "starred_at": "starred_at"}, ("repo", "description", "language", "starred_at")
)


@dataclass(frozen=True)
class Stars:
    api: Api

    async def list(self, user: Owner | None, options: PageOptions) -> Listing:
        """Return a page of what is starred of what is served, the latest first."""
        path = "/user/starred"
        description = "what you starred"
        if user is not None:
            path = f"/users/{user}/starred"
            description = f"what `{user.login}` starred"

        def select(items: Sequence[Item]) -> Sequence[Item]:
            return keep_served(
                self.api, items, repo_getter="full_name", private_getter=lambda item: item.get("private", False)
            )

        query = ListQuery(path, description, _STARRED, find_list=_flatten, select=select, accept=_STAR_TYPE)
        return await fetch_page(self.api, query, options)

    async def edit(self, repo: WriteRepo, *, starred: bool) -> Done:
        """Star a repository, or take the star off."""
        method = "DELETE"
        verb = "Unstarred"
        if starred:
            method = "PUT"
            verb = "Starred"
        path = f"/user/starred{repo.path.removeprefix('/repos')}"
        await self.api.write(method, path, f"repository `{repo.full_name}`", repo=repo)
        return Done(done=f"{verb} {repo.full_name}.", uri=repo.uri)


def _flatten(stars: Any) -> list[dict[str, Any]]:
    """Return the repositories of `stars`, each with the time of its star."""
    return [{**star.get("repo", star), "starred_at": star.get("starred_at")} for star in stars]
