"""Milestones by their titles, where GitHub wants numbers."""

from __future__ import annotations

import re
from typing import NamedTuple

from mcp_batteries.errors import Invalid, NotFound, quote
from mcp_github.client.api import Api
from mcp_github.policy import Repo

__all__ = ["NO_MILESTONE", "Milestone", "find_milestone"]

_MAX_NAMED = 20
_MAX_QUOTED_CHARACTERS = 60


class Milestone(NamedTuple):
    """A milestone of a repository.

    Attributes:
        number: None stands for having no milestone.
        title: how people call it; its number if that is all that was said.
    """

    number: int | None
    title: str


NO_MILESTONE = Milestone(None, "none")


async def find_milestone(api: Api, repo: Repo, milestone: str) -> Milestone:
    """Return the milestone with this title, or this number, which may stand behind `#`.

    Raises:
        Invalid: it is the title of one, and the number of another.
        NotFound: no milestone, open or closed, has this title or number.
    """
    if re.fullmatch(r"#\d+", milestone):
        return Milestone(int(milestone[1:]), milestone)
    titles = await _fetch_titles(api, repo)
    matches = [number for number, title in titles.items() if title.casefold() == milestone.casefold()]
    if milestone.isdecimal() and int(milestone) in titles:
        matches.append(int(milestone))
    names = [quote(title, _MAX_QUOTED_CHARACTERS) for title in titles.values()]
    if not matches:
        raise NotFound(
            f"`{repo.full_name}` has no milestone {quote(milestone)}.",
            f"There are: {', '.join(names[:_MAX_NAMED]) or 'none'}.",
        )
    if milestone.isdecimal() and len(set(matches)) > 1:
        raise Invalid(
            f"`{milestone}` is the title of milestone #{matches[0]} and the number of {quote(titles[matches[-1]])}.",
            f"Name it by its number: `#{matches[0]}` or `#{matches[-1]}`.",
        )
    return Milestone(matches[0], titles[matches[0]])


async def _fetch_titles(api: Api, repo: Repo) -> dict[int, str]:
    """Return the titles of all milestones, open and closed, by their numbers."""
    params = {"state": "all", "direction": "desc", "per_page": 100}
    titles: dict[int, str] = {}
    while True:
        response = await api.get(
            f"{repo.path}/milestones", f"the milestones of `{repo.full_name}`", params, internal=True
        )
        titles.update((int(item["number"]), str(item["title"])) for item in response.data)
        if not response.next_page:
            return titles
        params |= response.next_page
