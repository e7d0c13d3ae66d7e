"""Filters of issues and pull requests by labels and milestone, as far as GitHub applies them, and what it leaves.

By a label that does not exist GitHub finds nothing, without an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcp_batteries.errors import NotFound, Problem, quote
from mcp_github.client.api import Api
from mcp_github.listing.pages import join_notes
from mcp_github.listing.projections import Item, pick, pluck
from mcp_github.models import Listing
from mcp_github.policy import Repo
from mcp_github.requests.milestones import find_milestone

__all__ = ["LabelFilter", "note_missing_labels", "resolve_milestone_filter"]

# Each is a request.
_MAX_LOOKED_UP_LABELS = 10
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
    def required_names(self) -> Sequence[str]:
        """The labels that an issue has to have."""
        if self._is_none:
            return []
        return self.names

    @property
    def _is_none(self) -> bool:
        return [name.lower() for name in self.names] == [_NONE]


async def note_missing_labels(api: Api, repo: Repo, page: Listing, labels: LabelFilter) -> Listing:
    """Return the page; if it is empty, with a note on those labels of its filter that the repository lacks."""
    if page.rows:
        return page
    missing: list[str] = []
    for name in labels.required_names[:_MAX_LOOKED_UP_LABELS]:
        try:
            await api.get(f"{repo.path}/labels/{api.policy.label(name).path}", f"label {quote(name)}", internal=True)
        except NotFound:
            missing.append(quote(name))
        except Problem:
            # The note can be spared, as the empty page is right without it.
            break
    if not missing:
        return page
    note = f"`{repo.full_name}` has no label {', '.join(missing)}: `list_issue_options` lists those there are."
    return page.model_copy(update={"note": join_notes(note, page.note)})


async def resolve_milestone_filter(api: Api, repo: Repo, milestone: str | None) -> int | str | None:
    """Return the number of the milestone whose issues are listed; those without or with any have words of GitHub's."""
    if milestone is None or milestone == "0":
        return None
    if milestone.lower() in (_NONE, _ANY):
        return milestone.lower()
    return (await find_milestone(api, repo, milestone)).number
