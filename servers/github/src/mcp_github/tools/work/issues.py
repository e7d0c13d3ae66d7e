"""Issues and comments, as tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from mcp_batteries.server.declaration.decorators import tool
from mcp_batteries.server.declaration.fields import EMPTY_COUNTS, DryRun
from mcp_github.listing.pages import PageOptions
from mcp_github.models import Done, Listing, Record
from mcp_github.policy import Policy
from mcp_github.requests.work.comments import Comments
from mcp_github.requests.work.issue_relations import COPILOT_AGENT
from mcp_github.requests.work.issues import IssueOption, Issues, SubIssueAction
from mcp_github.requests.work.name_changes import resolve_names
from mcp_github.tools.arguments import (
    Body,
    Comment,
    Cursor,
    Fields,
    Limit,
    Login,
    NameList,
    Names,
    Number,
    OptionalBody,
    OptionalComment,
    OptionalNumber,
    OptionalTitle,
    RepoText,
    Since,
    Title,
    drop_unset,
    is_on_lines,
    one_of,
)
from mcp_github.tools.drafts import draft_result
from mcp_github.tools.views import DRAFT, ISSUES

__all__ = ["IssueTools"]


def _check_from_0(number: int | None) -> int | None:
    if number is not None and number < 0:
        raise ValueError("must be 0 or more")
    return number


def _check_milestone(value: object) -> object:
    if isinstance(value, str) and not value.strip().isdigit():
        raise ValueError("must be a number; `list_issue_options` with kind=milestones shows them")
    return value


_SORT = AfterValidator(one_of("created", "updated", "comments"))
Type = Annotated[str | None, Field(description="Name"), EMPTY_COUNTS]
Milestone = Annotated[int | None, BeforeValidator(_check_milestone), AfterValidator(_check_from_0)]
Custom = Annotated[dict[str, Any] | None, Field(description="Values by field name")]
Review = Annotated[bool, Field(description="One on lines of code")]


@dataclass(frozen=True)
class IssueTools:
    policy: Policy
    issues: Issues
    comments: Comments

    @tool("List issues", toolset="issues", open_world=True, view=ISSUES)
    async def list_issues(
        self,
        repo: RepoText,
        state: Literal["open", "closed", "all"] = "open",
        labels: Annotated[NameList, Field(description="All of these")] = None,
        assignee: Annotated[str | None, Field(description="Login, none, or * for any")] = None,
        creator: Login = None,
        milestone: Milestone = None,
        type: Type = None,  # noqa: A002 - the word GitHub uses
        custom: Custom = None,
        since: Since = None,
        sort: Annotated[str | None, _SORT, Field(description="created, updated, comments")] = None,
        order: Literal["asc", "desc"] | None = None,
        fields: Fields = None,
        limit: Limit = 30,
        cursor: Cursor = None,
    ) -> Listing:
        """List a repository's issues by state, label or person, without pull requests, newest first.

        Without their texts: `get_issue` has one. By words: `search_github`.
        """
        params: dict[str, Any] = {
            "state": state, "assignee": await self._resolve_login(assignee),
            "creator": await self._resolve_login(creator),
            "milestone": milestone, "type": type, "since": since, "sort": sort, "direction": order,
        }  # fmt: skip
        options = PageOptions(fields, limit, cursor)
        return await self.issues.list(self.policy.repo(repo), params, options, labels=labels or (), custom=custom)

    @tool("Get an issue", toolset="issues", open_world=True)
    async def get_issue(self, repo: RepoText, number: Number, fields: Fields = None) -> Record:
        """Get an issue: text, state, labels, parent, sub-issues and what it waits for.

        For comments use `list_comments`, for a pull request `get_pull_request`.
        """
        return await self.issues.get(self.policy.repo(repo), number, fields)

    @tool("List choices for issues", toolset=("issues", "labels"), open_world=True)
    async def list_issue_options(
        self, repo: RepoText, kind: IssueOption, limit: Limit = 50, cursor: Cursor = None
    ) -> Listing:
        """List the values an issue of `repo` can have, by `kind`: labels, milestones, assignees, types, custom fields.

        The last two in organisations only. Issues with one: `list_issues`.
        """
        return await self.issues.list_options(self.policy.repo(repo), kind, PageOptions(limit=limit, cursor=cursor))

    @tool("List comments", toolset=("issues", "pull_requests"), open_world=True)
    async def list_comments(
        self, repo: RepoText, number: Number, since: Since = None, fields: Fields = None, limit: Limit = 30,
        cursor: Cursor = None,
    ) -> Listing:  # fmt: skip
        """List comments of an issue or pull request, oldest first.

        Long ones are cut, and say so. Those on lines of code: `list_reviews` with kind=threads.
        """
        return await self.comments.list(self.policy.repo(repo), number, since, PageOptions(fields, limit, cursor))

    @tool("Create an issue", toolset="issues", effect="write", open_world=True, view=DRAFT)
    async def create_issue(
        self,
        repo: RepoText,
        title: Title,
        body: OptionalBody = None,
        labels: Annotated[NameList, Field(description="Names")] = None,
        assignees: Annotated[NameList, Field(description="Logins, or copilot")] = None,
        milestone: Milestone = None,
        type: Type = None,  # noqa: A002
        parent: OptionalNumber = None,
        dry_run: DryRun = False,
    ) -> Done:
        """Create an issue (under `parent`); labels need push rights. To change it: `edit_issue`."""
        trusted_repo = self.policy.write_repo(repo)
        people = await resolve_names(assignees, self._resolve_assignee)
        issue = drop_unset(title=title, body=body, labels=labels, assignees=people, milestone=milestone, type=type)
        if dry_run:
            draft = issue | drop_unset(parent=parent)
            return await draft_result(self.issues.api.taint, trusted_repo, "issue", draft)
        return await self.issues.create(trusted_repo, issue, parent=parent)

    @tool("Change an issue", toolset="issues", effect="destroy", open_world=True)
    async def edit_issue(
        self,
        repo: RepoText,
        number: Number,
        title: OptionalTitle = None,
        body: OptionalBody = None,
        state: Literal["open", "closed"] | None = None,
        state_reason: Literal["completed", "not_planned", "duplicate", "reopened"] | None = None,
        labels: Names = None,
        assignees: Names = None,
        milestone: Annotated[Milestone, Field(description="0 removes it")] = None,
        type: Type = None,  # noqa: A002
        custom: Custom = None,
        duplicate_of: OptionalNumber = None,
    ) -> Done:
        """Change parts of an issue, or a pull request's labels, assignees, milestone (else `edit_pull_request`)."""
        trusted_repo = self.policy.write_repo(repo)
        changes = drop_unset(
            title=title, body=body, state=state, state_reason=state_reason, labels=labels,
            assignees=await resolve_names(assignees, self._resolve_assignee), milestone=milestone, type=type,
        )  # fmt: skip
        if milestone == 0:
            changes["milestone"] = None
        return await self.issues.edit(trusted_repo, number, changes, custom=custom, duplicate_of=duplicate_of)

    @tool("Arrange sub-issues", toolset="issues", effect="write", open_world=True)
    async def edit_sub_issue(
        self,
        repo: RepoText,
        number: Number,
        sub_issue: Number,
        action: SubIssueAction,
        sub_repo: Annotated[str | None, Field(description="If elsewhere")] = None,
        after: OptionalNumber = None,
    ) -> Done:
        """Add or remove a sub-issue of `number`, or put it first or `after` another.

        Both issues stay. A new one: `create_issue` with `parent`.
        """
        trusted_repo = self.policy.write_repo(repo)
        child = trusted_repo
        if sub_repo:
            child = self.policy.write_repo(sub_repo)
        return await self.issues.edit_sub_issue(trusted_repo, number, child, sub_issue, action, after)

    async def _resolve_login(self, name: str | None) -> str | None:
        if not name:
            return name
        return await self.issues.api.resolve_login(name)

    async def _resolve_assignee(self, name: str) -> str:
        """Return the login that GitHub knows for `name`."""
        login = await self.issues.api.resolve_login(name.lstrip("+-"))
        self.policy.logins([login])
        if login.lower() == "copilot":
            return COPILOT_AGENT
        return login

    @tool("Comment", toolset=("issues", "pull_requests"), effect="write", open_world=True)
    async def create_comment(
        self,
        repo: RepoText,
        number: Number,
        body: Body,
        thread: Annotated[str | None, Field(description="From `list_reviews`, to reply")] = None,
    ) -> Done:
        """Comment on an issue or pull request, which notifies people. On lines: `create_review`."""
        trusted_repo = self.policy.write_repo(repo)
        trusted_thread = None
        if thread:
            trusted_thread = self.policy.node(thread).text
        return await self.comments.create(trusted_repo, number, body, trusted_thread)

    @tool("Change a comment", toolset=("issues", "pull_requests"), effect="destroy", open_world=True)
    async def edit_comment(self, repo: RepoText, comment: Comment, body: Body, review: Review = False) -> Done:
        """Replace the whole text of a comment, if you may change it.

        A new one: `create_comment`.
        """
        trusted_repo = self.policy.write_repo(repo)
        return await self.comments.edit(trusted_repo, comment, body, is_on_lines=is_on_lines(comment, review))

    @tool("React", toolset=("issues", "pull_requests"), effect="write", idempotent=True, open_world=True)
    async def create_reaction(
        self,
        repo: RepoText,
        reaction: Literal["+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes"],
        number: OptionalNumber = None,
        comment: OptionalComment = None,
        review: Review = False,
    ) -> Done:
        """React to an issue or pull request (`number`) or to a `comment`. In words: `create_comment`."""
        trusted_repo = self.policy.write_repo(repo)
        return await self.comments.react(
            trusted_repo, reaction, number=number, comment=comment, is_on_lines=is_on_lines(comment, review)
        )

    @tool("Delete a comment", toolset=("issues", "pull_requests"), gate="delete", effect="destroy", open_world=True)
    async def delete_comment(self, repo: RepoText, comment: Comment, review: Review = False) -> Done:
        """Delete a comment, or one on lines (`review`), for good. To reword it use `edit_comment`."""
        trusted_repo = self.policy.write_repo(repo, "delete")
        return await self.comments.delete(trusted_repo, comment, is_on_lines=is_on_lines(comment, review))
