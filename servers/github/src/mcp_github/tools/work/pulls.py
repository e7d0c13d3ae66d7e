"""Pull requests and their reviews, as tools."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from mcp_batteries.server.declare import tool
from mcp_batteries.server.fields import DryRun
from mcp_github.client.polling import LONGEST, Wait
from mcp_github.models import Done, Listing, Record
from mcp_github.policy import Policy
from mcp_github.requests.automation.checks import Checks
from mcp_github.requests.work.pulls import COPILOT, Pulls
from mcp_github.requests.work.reviews import Event, ReviewComment, Reviews
from mcp_github.tools.arguments import (
    Cursor,
    Fields,
    Limit,
    Listed,
    Names,
    Number,
    OptionalBody,
    OptionalNumber,
    OptionalRef,
    OptionalTitle,
    RepoName,
    Title,
    Waiting,
    one_of,
    refuse_beside,
)
from mcp_github.tools.drafts import drafted
from mcp_github.tools.views import DRAFT, ISSUES, PULL
from mcp_github.tools.work.issues import given

__all__ = ["PullTools"]

_sorts = AfterValidator(one_of("created", "updated", "popularity", "long-running"))
Base = Annotated[str, Field(description="Branch to go into")]


def _sha(given: str) -> str:
    if not re.fullmatch("[0-9a-f]{7,64}", given):
        raise ValueError("must be 7 or more digits of a sha")
    return given


Side = Literal["LEFT", "RIGHT"]


class LineComment(BaseModel):
    model_config = ConfigDict(extra="forbid")
    path: str
    body: str
    line: OptionalNumber = Field(None, description="None: the file")
    side: Side = "RIGHT"
    start_line: OptionalNumber = None
    start_side: Side | None = None


@dataclass(frozen=True)
class PullTools:
    policy: Policy
    pulls: Pulls
    checks: Checks
    reviews: Reviews

    @tool("List pull requests", toolset="pull_requests", open_world=True, view=ISSUES)
    async def list_pull_requests(
        self,
        repo: RepoName,
        state: Literal["open", "closed", "all"] = "open",
        head: Annotated[str | None, Field(description="owner:branch")] = None,
        base: Annotated[str | None, Field(description="Branch")] = None,
        sort: Annotated[str | None, _sorts, Field(description="created, updated, popularity or long-running")] = None,
        order: Literal["asc", "desc"] | None = None,
        fields: Fields = None,
        limit: Limit = 30,
        cursor: Cursor = None,
    ) -> Listing:
        """List a repository's pull requests by state or branch, newest first.

        Texts, and whether one can be merged: `get_pull_request`. By author or words: `search_github`.
        """
        where = self.policy.repo(repo)
        params: dict[str, Any] = {
            "state": state, "head": self.policy.head_label(where, head) if head else None,
            "base": self.policy.ref(base).name if base else None, "sort": sort, "direction": order,
        }  # fmt: skip
        return await self.pulls.list(where, params, fields=fields, limit=limit, cursor=cursor)

    @tool("Get a pull request", toolset="pull_requests", open_world=True, view=PULL)
    async def get_pull_request(self, repo: RepoName, number: Number, fields: Fields = None) -> Record:
        """Get a pull request: text, branches, whether it can be merged, reviewers.

        `mergeable` is null while GitHub works it out. For its changes use `read_diff`.
        """
        return await self.pulls.get(self.policy.repo(repo), number, fields)

    @tool("List reviews", toolset="pull_requests", open_world=True)
    async def list_reviews(
        self,
        repo: RepoName,
        number: Number,
        kind: Literal["reviews", "threads"] = "reviews",
        unresolved: bool = False,
        fields: Fields = None,
        limit: Limit = 30,
        cursor: Cursor = None,
    ) -> Listing:
        """List a pull request's reviews, or the threads of comments on its lines (kind=threads).

        Threads come with their comments and state. General comments: `list_comments`.
        """
        where = self.policy.repo(repo)
        # Reviews are neither resolved nor open.
        if kind == "threads" or unresolved:
            return await self.pulls.threads(where, number, unresolved=unresolved, cursor=cursor)
        return await self.pulls.reviews(where, number, fields=fields, limit=limit, cursor=cursor)

    @tool("List checks", toolset="pull_requests", open_world=True, seconds=LONGEST + 120)
    async def list_checks(
        self,
        repo: RepoName,
        number: OptionalNumber = None,
        ref: OptionalRef = None,
        wait: Waiting = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Listing:
        """List the CI checks of a pull request (`number`) or commit (`ref`) with their conclusions.

        Those of other services come last; `wait` waits for running ones. Can it be merged: `get_pull_request`.
        """
        if number is not None:
            refuse_beside("`number`", ref=ref)
        where, at = self.policy.repo(repo), self.policy.ref(ref) if ref else None
        patience = None if wait is None else Wait(wait)
        return await self.checks.list(where, number=number, ref=at, wait=patience, limit=limit, cursor=cursor)

    @tool("Create a pull request", toolset="pull_requests", effect="write", open_world=True, view=DRAFT)
    async def create_pull_request(
        self,
        repo: RepoName,
        title: Title,
        head: Annotated[str, Field(description="Branch, or owner:branch of a fork")],
        base: Base,
        body: OptionalBody = None,
        draft: bool = False,
        reviewers: Annotated[Listed, Field(description="Logins, org/team, copilot")] = None,
        dry_run: DryRun = False,
    ) -> Done:
        """Open a pull request of `head` into `base`; fails without new commits. To commit: `write_files`."""
        where, policy = self.policy.write_repo(repo), self.policy
        source = policy.head(where, head)
        fields = given(
            title=title, head=source.label, head_repo=source.repo, base=policy.ref(base).name, body=body, draft=draft
        )
        await self.pulls.check_head(where, source)
        asked = await self._reviewers(reviewers) or []
        if dry_run:
            return await drafted(self.pulls.api.flow, where, "pull request", fields | given(reviewers=reviewers))
        return await self.pulls.create(where, fields, asked)

    @tool("Change a pull request", toolset="pull_requests", effect="destroy", open_world=True)
    async def edit_pull_request(
        self,
        repo: RepoName,
        number: Number,
        title: OptionalTitle = None,
        body: OptionalBody = None,
        state: Literal["open", "closed"] | None = None,
        base: Annotated[str | None, Field(description="Branch")] = None,
        draft: bool | None = None,
        reviewers: Names = None,
        update_branch: Annotated[bool, Field(description="Merge its base into it")] = False,
    ) -> Done:
        """Change a pull request's text, state, base or reviewers; what is not given stays.

        Labels: `edit_issue`.
        """
        where = self.policy.write_repo(repo)
        fields = given(title=title, body=body, state=state, base=self.policy.ref(base).name if base else None)
        return await self.pulls.edit(
            where, number, fields, draft=draft, reviewers=await self._reviewers(reviewers), update_branch=update_branch
        )

    @tool("Review", toolset="pull_requests", effect="write", open_world=True)
    async def create_review(
        self,
        repo: RepoName,
        number: Number,
        event: Annotated[Event | None, Field(description="Verdict")] = None,
        body: OptionalBody = None,
        comments: Annotated[list[LineComment], Field(description="On lines")] = [],  # noqa: B006
        commit: Annotated[str | None, Field(description="Head as reviewed")] = None,
        review_id: Annotated[OptionalNumber, Field(description="Pending one to add to")] = None,
    ) -> Done:
        """Review a pull request: comments on lines and a verdict (`event`; pending without).

        A general comment: `create_comment`.
        """
        where = self.policy.write_repo(repo)
        said = [
            ReviewComment(
                self.policy.file(item.path).name, item.body, item.line, item.side, item.start_line, item.start_side
            )
            for item in comments
        ]
        at = self.policy.ref(commit).name if commit else None
        return await self.reviews.create(
            where, number, event=event, body=body, comments=said, commit=at, review=review_id
        )

    @tool("Finish a review", toolset="pull_requests", effect="destroy", open_world=True)
    async def edit_review(
        self,
        repo: RepoName,
        number: Number,
        review_id: Number,
        action: Literal["submit", "delete", "dismiss"],
        event: Annotated[Event | None, Field(description="For submit")] = None,
        body: OptionalBody = None,
    ) -> Done:
        """Submit or delete a pending review, or dismiss a submitted one (`body` says why). Ids: `list_reviews`."""
        where = self.policy.write_repo(repo)
        return await self.reviews.edit(where, number, review_id, action=action, event=event, body=body)

    @tool("Resolve a thread", toolset="pull_requests", effect="write", idempotent=True, open_world=True)
    async def edit_thread(
        self,
        repo: RepoName,
        number: Number,
        thread: Annotated[str, Field(description="From `list_reviews`")],
        resolved: bool = True,
    ) -> Done:
        """Resolve or reopen a review's thread; its comments stay. To reply: `create_comment`."""
        where = self.policy.write_repo(repo)
        return await self.pulls.resolve(where, number, self.policy.node(thread), resolved=resolved)

    async def _reviewers(self, names: list[str] | None) -> list[str] | None:
        if names is None:
            return None
        kept: list[str] = []
        for name in names:
            sign, plain = (name[0], name[1:]) if name[:1] in "+-" else ("", name)
            plain = await self.pulls.api.meant_login(plain)
            for part in plain.split("/", 1):
                self.policy.logins([part])
            kept.append(sign + (COPILOT if plain.lower() == "copilot" else plain))
        return kept

    @tool("Merge a pull request", toolset="pull_requests", gate="merge", effect="destroy", open_world=True)
    async def run_merge(
        self,
        repo: RepoName,
        number: Number,
        head_sha: Annotated[str, AfterValidator(_sha), Field(description="Head you looked at")],
        method: Literal["merge", "squash", "rebase"] = "merge",
        title: OptionalTitle = None,
        body: OptionalBody = None,
    ) -> Done:
        """Merge a pull request, only if its head is still `head_sha`.

        Can it be merged: `get_pull_request`.
        """
        where = self.policy.write_repo(repo, "merge")
        return await self.pulls.merge(where, number, head=head_sha, method=method, title=title, message=body)
