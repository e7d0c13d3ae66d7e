"""Pull requests by their labels and milestone, which only GitHub's list of issues can be asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_batteries.errors import quote
from mcp_github.listing.columns import PULL
from mcp_github.listing.pages import Complete, ListQuery
from mcp_github.listing.projections import Item, pick
from mcp_github.policy import Ref, Repo
from mcp_github.requests.issue_filters import LabelFilter

__all__ = ["PullsAsIssues"]

_MERGED_AT = "pull_request.merged_at"


@dataclass(frozen=True)
class PullsAsIssues:
    """Which pull requests are listed.

    Attributes:
        params: of the request, without those for labels.
        merged_only: whether those that were closed without a merge are left out.
        base: the branch that they go to; None for any.
        add_facts: adds what the list of issues does not tell of pull requests.
    """

    repo: Repo
    labels: LabelFilter
    params: Mapping[str, Any]
    merged_only: bool
    base: Ref | None
    add_facts: Complete

    def to_query(self) -> ListQuery:
        """Return the list of these pull requests."""
        return ListQuery(
            f"{self.repo.path}/issues", f"the pull requests of `{self.repo.full_name}`", PULL,
            params={**self.params, "labels": self.labels.param}, repo=self.repo, exclude=self._exclude,
            complete=self._complete, excluded_late=self._excluded_late,
        )  # fmt: skip

    @property
    def _excluded_late(self) -> str:
        if self.base is None:
            return ""
        return f"not into {quote(self.base.name)}"

    def _exclude(self, item: Item) -> str | None:
        if "pull_request" not in item:
            return "issues"
        kind = self.labels.exclude(item)
        if kind is None and self.merged_only and pick(item, _MERGED_AT) is None:
            return "closed without a merge"
        return kind

    async def _complete(self, items: Sequence[Item | None], columns: Sequence[str]) -> Sequence[Item | None]:
        """Add to pull requests what they lack as issues; None takes the place of those of another branch."""
        pulls: list[Item | None] = []
        for item in items:
            if item is not None:
                item = {**item, "merged_at": pick(item, _MERGED_AT)}
            pulls.append(item)
        if self.base is None:
            return await self.add_facts(pulls, columns)
        completed: list[Item | None] = []
        for item in await self.add_facts(pulls, [*columns, "base"]):
            # One whose branches GitHub did not tell may go there, and the caller reads that they are not known.
            goes_elsewhere = item is not None and pick(item, "base.ref") not in (self.base.name, None)
            completed.append(None if goes_elsewhere else item)
        return completed
