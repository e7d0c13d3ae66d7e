"""Filters of issues and pull requests by labels and milestone, as far as GitHub applies them, and what it leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcp_github.client.api import Api
from mcp_github.listing.projections import Item, pick, pluck
from mcp_github.policy import Repo
from mcp_github.requests.milestones import find_milestone

__all__ = ["LabelFilter", "resolve_milestone_filter"]

# GitHub's words for issues without a milestone, or with whichever.
_NONE = "none"
_ANY = "*"
_GET_LABELS = pluck("labels")


@dataclass(frozen=True)
class LabelFilter:
    """Those with all of some labels; `none` alone stands for those without any."""

    names: Sequence[str]

    @property
    def param(self) -> str | None:
        """The labels that GitHub looks for: it divides what it is asked for at commas, and a label may have one."""
        if self._is_none:
            return None
        return ",".join(name for name in self.names if "," not in name) or None

    def exclude(self, item: Item) -> str | None:
        """Return what an object that GitHub found is if it lacks what GitHub could not look for; else None."""
        labels = {str(name).lower() for name in pick(item, _GET_LABELS) or ()}
        if self._is_none and labels:
            return "with labels"
        if not self._is_none and any(name.lower() not in labels for name in self.names if "," in name):
            return "without all of these labels"
        return None

    @property
    def _is_none(self) -> bool:
        return [name.lower() for name in self.names] == [_NONE]


async def resolve_milestone_filter(api: Api, repo: Repo, milestone: str | None) -> int | str | None:
    """Return the number of the milestone whose issues are listed; those without or with any have words of GitHub's."""
    if milestone is None or milestone == "0":
        return None
    if milestone.lower() in (_NONE, _ANY):
        return milestone.lower()
    return (await find_milestone(api, repo, milestone)).number
