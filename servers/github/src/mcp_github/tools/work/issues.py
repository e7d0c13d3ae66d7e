"""Issues and comments, as tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from mcp_batteries.server.declare import tool
from mcp_batteries.server.fields import DryRun
from mcp_github.models import Done, Listing, Record
from mcp_github.policy import Policy
from mcp_github.requests.work.issue_relations import COPILOT
from mcp_github.requests.work.issues import Issues, Options, SubIssue
from mcp_github.tools.arguments import (
    Body,
    Comment,
    Cursor,
    Fields,
    Limit,
    Listed,
    Names,
    Number,
    OptionalBody,
    OptionalComment,
    OptionalNumber,
    OptionalTitle,
    RepoName,
    Since,
    Title,
    on_lines,
    one_of,
)
from mcp_github.tools.drafts import drafted
from mcp_github.tools.views import DRAFT, ISSUES

__all__ = ["IssueTools", "given"]


def _from_0(number: int | None) -> int | None:
    if number is not None and number < 0:
        raise ValueError("must be 0 or more")
    return number


def _milestone(given: object) -> object:
    if isinstance(given, str) and not given.strip().isdigit():
        raise ValueError("must be a number; `list_issue_options` with kind=milestones shows them")
    return given


_sorts = AfterValidator(one_of("created", "updated", "comments"))
Login = Annotated[str | None, Field(description="Login")]
Type = Annotated[str | None, Field(description="Name")]
Milestone = Annotated[int | None, BeforeValidator(_milestone), AfterValidator(_from_0)]
Custom = Annotated[dict[str, Any] | None, Field(description="Values by field name")]
Review = Annotated[bool, Field(description="One on lines of code")]


@dataclass(frozen=True)
class IssueTools:
    policy: Policy
    issues: Issues

    @tool("List issues", toolset="issues", open_world=True, view=ISSUES)
    async def list_issues(
        self,
        repo: RepoName,
        state: Literal["open", "closed", "all"] = "open",
        labels: Annotated[Listed, Field(description="All of these")] = None,
        assignee: Annotated[str | None, Field(description="Login, none, or * for any")] = None,
        creator: Login = None,
        milestone: Milestone = None,
        type: Type = None,  # noqa: A002 - the word GitHub uses
        custom: Custom = None,
        since: Since = None,
        sort: Annotated[str | None, _sorts, Field(description="created, updated, comments")] = None,
        order: Literal["asc", "desc"] | None = None,
        fields: Fields = None,
        limit: Limit = 30,
        cursor: Cursor = None,
    ) -> Listing:
        """List a repository's issues by state, label or person, without pull requests, newest first.

        Without their texts: `get_issue` has one. By words: `search_github`.
        """
        params: dict[str, Any] = {
            "state": state, "assignee": await self._login(assignee), "creator": await self._login(creator),
            "milestone": milestone, "type": type, "since": since, "sort": sort, "direction": order,
        }  # fmt: skip
        return await self.issues.list(
            self.policy.repo(repo), params, labels=labels or (), custom=custom, fields=fields, limit=limit,
            cursor=cursor,
        )  # fmt: skip

    @tool("Get an issue", toolset="issues", open_world=True)
    async def get_issue(self, repo: RepoName, number: Number, fields: Fields = None) -> Record:
        """Get an issue: text, state, labels, parent, sub-issues and what it waits for.

        For comments use `list_comments`, for a pull request `get_pull_request`.
        """
        return await self.issues.get(self.policy.repo(repo), number, fields)

    @tool("List choices for issues", toolset=("issues", "labels"), open_world=True)
    async def list_issue_options(
        self, repo: RepoName, kind: Options, limit: Limit = 50, cursor: Cursor = None
    ) -> Listing:
        """List the values an issue of `repo` can have, by `kind`: labels, milestones, assignees, types, custom fields.

        The last two in organisations only. Issues with one: `list_issues`.
        """
        return await self.issues.options(self.policy.repo(repo), kind, limit=limit, cursor=cursor)

    @tool("List comments", toolset=("issues", "pull_requests"), open_world=True)
    async def list_comments(
        self, repo: RepoName, number: Number, since: Since = None, fields: Fields = None, limit: Limit = 30,
        cursor: Cursor = None,
    ) -> Listing:  # fmt: skip
        """List comments of an issue or pull request, oldest first.

        Long ones are cut, and say so. Those on lines of code: `list_reviews` with kind=threads.
        """
        return await self.issues.comments(
            self.policy.repo(repo), number, since=since, fields=fields, limit=limit, cursor=cursor
        )

    @tool("Create an issue", toolset="issues", effect="write", open_world=True, view=DRAFT)
    async def create_issue(
        self,
        repo: RepoName,
        title: Title,
        body: OptionalBody = None,
        labels: Annotated[Listed, Field(description="Names")] = None,
        assignees: Annotated[Listed, Field(description="Logins, or copilot")] = None,
        milestone: Milestone = None,
        type: Type = None,  # noqa: A002
        parent: OptionalNumber = None,
        dry_run: DryRun = False,
    ) -> Done:
        """Create an issue (under `parent`); labels need push rights. To change it: `edit_issue`."""
        where, people = self.policy.write_repo(repo), await self._people(assignees)
        fields = given(title=title, body=body, labels=labels, assignees=people, milestone=milestone, type=type)
        if dry_run:
            return await drafted(self.issues.api.flow, where, "issue", fields | given(parent=parent))
        return await self.issues.create(where, fields, parent=parent)

    @tool("Change an issue", toolset="issues", effect="destroy", open_world=True)
    async def edit_issue(
        self,
        repo: RepoName,
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
        where = self.policy.write_repo(repo)
        fields = given(
            title=title, body=body, state=state, state_reason=state_reason, labels=labels,
            assignees=await self._people(assignees), milestone=milestone, type=type,
        )  # fmt: skip
        if milestone == 0:
            fields["milestone"] = None
        return await self.issues.edit(where, number, fields, custom=custom, duplicate_of=duplicate_of)

    @tool("Arrange sub-issues", toolset="issues", effect="write", open_world=True)
    async def edit_sub_issue(
        self,
        repo: RepoName,
        number: Number,
        sub_issue: Number,
        action: SubIssue,
        sub_repo: Annotated[str | None, Field(description="If elsewhere")] = None,
        after: OptionalNumber = None,
    ) -> Done:
        """Add or remove a sub-issue of `number`, or put it first or `after` another.

        Both issues stay. A new one: `create_issue` with `parent`.
        """
        where = self.policy.write_repo(repo)
        child = self.policy.write_repo(sub_repo) if sub_repo else where
        return await self.issues.edit_sub_issue(where, number, child, sub_issue, action, after)

    async def _login(self, name: str | None) -> str | None:
        return await self.issues.api.meant_login(name) if name else name

    async def _people(self, names: list[str] | None) -> list[str] | None:
        if names is None:
            return None
        meant = self.issues.api.meant_login
        signed = [(name[0] if name[:1] in "+-" else "", await meant(name.lstrip("+-"))) for name in names]
        self.policy.logins([name for _, name in signed])
        return [sign + (COPILOT if name.lower() == "copilot" else name) for sign, name in signed]

    @tool("Comment", toolset=("issues", "pull_requests"), effect="write", open_world=True)
    async def create_comment(
        self,
        repo: RepoName,
        number: Number,
        body: Body,
        thread: Annotated[str | None, Field(description="From `list_reviews`, to reply")] = None,
    ) -> Done:
        """Comment on an issue or pull request, which notifies people. On lines: `create_review`."""
        where = self.policy.write_repo(repo)
        return await self.issues.comment(where, number, body, self.policy.node(thread) if thread else None)

    @tool("Change a comment", toolset=("issues", "pull_requests"), effect="destroy", open_world=True)
    async def edit_comment(self, repo: RepoName, comment: Comment, body: Body, review: Review = False) -> Done:
        """Replace the whole text of a comment, if you may change it.

        A new one: `create_comment`.
        """
        where = self.policy.write_repo(repo)
        return await self.issues.edit_comment(where, comment, body, review=on_lines(comment, review))

    @tool("React", toolset=("issues", "pull_requests"), effect="write", idempotent=True, open_world=True)
    async def create_reaction(
        self,
        repo: RepoName,
        reaction: Literal["+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes"],
        number: OptionalNumber = None,
        comment: OptionalComment = None,
        review: Review = False,
    ) -> Done:
        """React to an issue or pull request (`number`) or to a `comment`. In words: `create_comment`."""
        where = self.policy.write_repo(repo)
        return await self.issues.react(
            where, reaction, number=number, comment=comment, review=on_lines(comment, review)
        )

    @tool("Delete a comment", toolset=("issues", "pull_requests"), gate="delete", effect="destroy", open_world=True)
    async def delete_comment(self, repo: RepoName, comment: Comment, review: Review = False) -> Done:
        """Delete a comment, or one on lines (`review`), for good. To reword it use `edit_comment`."""
        where = self.policy.write_repo(repo, "delete")
        return await self.issues.delete_comment(where, comment, review=on_lines(comment, review))


def given(**values: Any) -> dict[str, Any]:
    """What the caller passed."""
    return {name: value for name, value in values.items() if value is not None}
