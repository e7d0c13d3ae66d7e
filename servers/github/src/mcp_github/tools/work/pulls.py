"""Pull requests and their reviews, as tools."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from mcp_batteries.errors import Invalid
from mcp_batteries.server.declaration.decorators import tool
from mcp_batteries.server.declaration.fields import DryRun
from mcp_github.client.polling import MAX_WAIT_SECONDS, Poller
from mcp_github.listing.pages import PageOptions
from mcp_github.models import Done, Listing, Record
from mcp_github.policy import Policy
from mcp_github.requests.automation.checks import list_checks_of_commit, list_checks_of_pull
from mcp_github.requests.work.name_changes import resolve_names
from mcp_github.requests.work.pulls import COPILOT_REVIEWER, MergeMethod, Pulls
from mcp_github.requests.work.reviews import NewReview, ReviewAction, ReviewComment, Reviews, Side, Verdict
from mcp_github.tools.arguments import (
    Cursor,
    Fields,
    Limit,
    NameList,
    Names,
    Number,
    OptionalBody,
    OptionalNumber,
    OptionalRefText,
    OptionalTitle,
    RepoText,
    Title,
    drop_unset,
    one_of,
    parse_ref,
    refuse_beside,
)
from mcp_github.tools.drafts import draft_result
from mcp_github.tools.views import DRAFT, ISSUES, PULL

__all__ = ["PullTools"]

_SORT = AfterValidator(one_of("created", "updated", "popularity", "long-running"))
Base = Annotated[str, Field(description="Branch to go into")]


def poller(seconds: int | None) -> Poller | None:
    return None if seconds is None else Poller(seconds)


def _check_sha(text: str) -> str:
    if not re.fullmatch("[0-9a-f]{7,64}", text):
        raise ValueError("must be 7 or more digits of a sha")
    return text


class LineComment(BaseModel):
    model_config = ConfigDict(extra="forbid")
    path: str
    body: str
    line: OptionalNumber = Field(None, description="None: the file")
    side: Side = "RIGHT"
    start_line: OptionalNumber = None
    start_side: Side | None = None

    def to_trusted(self, policy: Policy) -> ReviewComment:
        """Return the comment with its path checked."""
        path = policy.file(self.path).name
        return ReviewComment(path, self.body, self.line, self.side, self.start_line, self.start_side)


@dataclass(frozen=True)
class PullTools:
    policy: Policy
    pulls: Pulls
    reviews: Reviews

    @tool("List pull requests", toolset="pull_requests", open_world=True, view=ISSUES)
    async def list_pull_requests(
        self,
        repo: RepoText,
        state: Literal["open", "closed", "all"] = "open",
        head: Annotated[str | None, Field(description="owner:branch")] = None,
        base: Annotated[str | None, Field(description="Branch")] = None,
        sort: Annotated[str | None, _SORT, Field(description="created, updated, popularity or long-running")] = None,
        order: Literal["asc", "desc"] | None = None,
        fields: Fields = None,
        limit: Limit = 30,
        cursor: Cursor = None,
    ) -> Listing:
        """List a repository's pull requests by state or branch, newest first.

        Texts, and whether one can be merged: `get_pull_request`. By author or words: `search_github`.
        """
        trusted_repo = self.policy.repo(repo)
        params: dict[str, Any] = {"state": state, "sort": sort, "direction": order}
        if head:
            params["head"] = self.policy.head_filter(trusted_repo, head)
        if base:
            params["base"] = self.policy.ref(base).name
        return await self.pulls.list(trusted_repo, params, PageOptions(fields, limit, cursor))

    @tool("Get a pull request", toolset="pull_requests", open_world=True, view=PULL)
    async def get_pull_request(self, repo: RepoText, number: Number, fields: Fields = None) -> Record:
        """Get a pull request: text, branches, whether it can be merged, reviewers.

        `mergeable` is null while GitHub works it out. For its changes use `read_diff`.
        """
        return await self.pulls.get(self.policy.repo(repo), number, fields)

    @tool("List reviews", toolset="pull_requests", open_world=True)
    async def list_reviews(
        self,
        repo: RepoText,
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
        trusted_repo = self.policy.repo(repo)
        # Reviews are neither resolved nor open.
        if kind == "threads" or unresolved:
            return await self.reviews.list_threads(trusted_repo, number, unresolved_only=unresolved, cursor=cursor)
        return await self.reviews.list(trusted_repo, number, PageOptions(fields, limit, cursor))

    @tool("List checks", toolset="pull_requests", open_world=True, seconds=MAX_WAIT_SECONDS + 120)
    async def list_checks(
        self,
        repo: RepoText,
        number: OptionalNumber = None,
        ref: OptionalRefText = None,
        wait: Annotated[int | None, Field(description="Seconds")] = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Listing:
        """List the CI checks of a pull request (`number`) or commit (`ref`) with their conclusions.

        Those of other services come last; `wait` waits for running ones. Can it be merged: `get_pull_request`.
        """
        options = PageOptions(limit=limit, cursor=cursor)
        if number is not None:
            refuse_beside("`number`", ref=ref)
            return await list_checks_of_pull(self.pulls.api, self.policy.repo(repo), number, options, poller(wait))
        trusted_repo = self.policy.repo(repo)
        trusted_ref = parse_ref(self.policy, ref)
        if trusted_ref is None:
            raise Invalid("One of `number` and `ref` has to be given.")
        return await list_checks_of_commit(self.pulls.api, trusted_repo, trusted_ref, options, poller(wait))

    @tool("Create a pull request", toolset="pull_requests", effect="write", open_world=True, view=DRAFT)
    async def create_pull_request(
        self,
        repo: RepoText,
        title: Title,
        head: Annotated[str, Field(description="Branch, or owner:branch of a fork")],
        base: Base,
        body: OptionalBody = None,
        draft: bool = False,
        reviewers: Annotated[NameList, Field(description="Logins, org/team, copilot")] = None,
        dry_run: DryRun = False,
    ) -> Done:
        """Open a pull request of `head` into `base`; fails without new commits. To commit: `write_files`."""
        trusted_repo = self.policy.write_repo(repo)
        source = self.policy.head(trusted_repo, head)
        pull = drop_unset(
            title=title, head=source.label, head_repo=source.repo, base=self.policy.ref(base).name, body=body,
            draft=draft,
        )  # fmt: skip
        await self.pulls.require_served_head(trusted_repo, source)
        resolved_reviewers = await resolve_names(reviewers, self._resolve_reviewer)
        if dry_run:
            preview = pull | drop_unset(reviewers=reviewers)
            return await draft_result(self.pulls.api.taint, trusted_repo, "pull request", preview)
        return await self.pulls.create(trusted_repo, pull, resolved_reviewers or [])

    @tool("Change a pull request", toolset="pull_requests", effect="destroy", open_world=True)
    async def edit_pull_request(
        self,
        repo: RepoText,
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
        trusted_repo = self.policy.write_repo(repo)
        changes = drop_unset(title=title, body=body, state=state)
        if base:
            changes["base"] = self.policy.ref(base).name
        resolved_reviewers = await resolve_names(reviewers, self._resolve_reviewer)
        return await self.pulls.edit(
            trusted_repo, number, changes, draft=draft, reviewers=resolved_reviewers, update_branch=update_branch
        )

    @tool("Review", toolset="pull_requests", effect="write", open_world=True)
    async def create_review(
        self,
        repo: RepoText,
        number: Number,
        event: Annotated[Verdict | None, Field(description="Verdict")] = None,
        body: OptionalBody = None,
        comments: Annotated[list[LineComment], Field(description="On lines")] = [],  # noqa: B006
        commit: Annotated[str | None, Field(description="Head as reviewed")] = None,
        review_id: Annotated[OptionalNumber, Field(description="Pending one to add to")] = None,
    ) -> Done:
        """Review a pull request: comments on lines and a verdict (`event`; pending without).

        A general comment: `create_comment`.
        """
        trusted_repo = self.policy.write_repo(repo)
        trusted_comments = [comment.to_trusted(self.policy) for comment in comments]
        trusted_commit = None
        if commit:
            trusted_commit = self.policy.ref(commit).name
        review = NewReview(event, body, trusted_comments, trusted_commit)
        if review_id is not None:
            return await self.reviews.add(trusted_repo, number, review_id, review)
        return await self.reviews.create(trusted_repo, number, review)

    @tool("Finish a review", toolset="pull_requests", effect="destroy", open_world=True)
    async def edit_review(
        self,
        repo: RepoText,
        number: Number,
        review_id: Number,
        action: ReviewAction,
        event: Annotated[Verdict | None, Field(description="For submit")] = None,
        body: OptionalBody = None,
    ) -> Done:
        """Submit or delete a pending review, or dismiss a submitted one (`body` says why). Ids: `list_reviews`."""
        trusted_repo = self.policy.write_repo(repo)
        return await self.reviews.edit(trusted_repo, number, review_id, action=action, verdict=event, body=body)

    @tool("Resolve a thread", toolset="pull_requests", effect="write", idempotent=True, open_world=True)
    async def edit_thread(
        self,
        repo: RepoText,
        number: Number,
        thread: Annotated[str, Field(description="From `list_reviews`")],
        resolved: bool = True,
    ) -> Done:
        """Resolve or reopen a review's thread; its comments stay. To reply: `create_comment`."""
        trusted_repo = self.policy.write_repo(repo)
        return await self.reviews.resolve_thread(trusted_repo, number, self.policy.node(thread).text, resolved=resolved)

    async def _resolve_reviewer(self, name: str) -> str:
        """Return the login or team that GitHub knows for `name`."""
        reviewer = await self.pulls.api.resolve_login(name)
        self.policy.logins(reviewer.split("/", 1))
        if reviewer.lower() == "copilot":
            return COPILOT_REVIEWER
        return reviewer

    @tool("Merge a pull request", toolset="pull_requests", gate="merge", effect="destroy", open_world=True)
    async def run_merge(
        self,
        repo: RepoText,
        number: Number,
        head_sha: Annotated[str, AfterValidator(_check_sha), Field(description="Head you looked at")],
        method: MergeMethod = "merge",
        title: OptionalTitle = None,
        body: OptionalBody = None,
    ) -> Done:
        """Merge a pull request, only if its head is still `head_sha`.

        Can it be merged: `get_pull_request`.
        """
        trusted_repo = self.policy.write_repo(repo, "merge")
        return await self.pulls.merge(trusted_repo, number, head=head_sha, method=method, title=title, message=body)
