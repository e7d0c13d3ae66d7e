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

    def matches(self, item: Item) -> bool:
        """Return whether an object that GitHub found has what GitHub could not look for."""
        labels = {str(name).lower() for name in pick(item, _GET_LABELS) or ()}
        if self._is_none:
            return not labels
        return all(name.lower() in labels for name in self.names if "," in name)

    @property
    def left_out(self) -> Sequence[str]:
        """What of that `matches` refuses, in nouns."""
        if self._is_none:
            return ["with labels"]
        if any("," in name for name in self.names):
            return ["without all of these labels"]
        return []

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
