"""Milestones by their titles, where GitHub wants numbers."""

from __future__ import annotations

from mcp_batteries.errors import NotFound, quote
from mcp_github.client.api import Api
from mcp_github.policy import Repo

__all__ = ["find_milestone"]

_MAX_NAMED = 20
_MAX_QUOTED_CHARACTERS = 60


async def find_milestone(api: Api, repo: Repo, milestone: str) -> int:
    """Return the number of the milestone with this title or number.

    Raises:
        NotFound: no milestone, open or closed, has this title.
    """
    if milestone.isdecimal():
        return int(milestone)
    description = f"the milestones of `{repo.full_name}`"
    params = {"state": "all", "direction": "desc", "per_page": 100}
    titles: list[str] = []
    while True:
        response = await api.get(f"{repo.path}/milestones", description, params, internal=True)
        for item in response.data:
            if item["title"].casefold() == milestone.casefold():
                return int(item["number"])
            titles.append(quote(item["title"], _MAX_QUOTED_CHARACTERS))
        if not response.next_page:
            break
        params |= response.next_page
    raise NotFound(
        f"`{repo.full_name}` has no milestone {quote(milestone)}.",
        f"There are: {', '.join(titles[:_MAX_NAMED]) or 'none'}.",
    )
