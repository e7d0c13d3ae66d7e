"""Discussions, as tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from mcp_batteries.errors import Invalid
from mcp_batteries.server.declaration.decorators import tool
from mcp_github.listing.pages import PageOptions
from mcp_github.models import Done, Listing, Record
from mcp_github.policy import Policy
from mcp_github.requests.work.discussions import Discussions
from mcp_github.tools.arguments import Body, Cursor, Limit, Number, OptionalBody, RepoText, Title, refuse_beside

__all__ = ["DiscussionTools"]

CommentId = Annotated[str, Field(description="From `get_discussion`")]


@dataclass(frozen=True)
class DiscussionTools:
    policy: Policy
    discussions: Discussions

    @tool("List discussions", toolset="discussions", open_world=True)
    async def list_discussions(
        self,
        repo: RepoText,
        kind: Literal["discussions", "categories"] = "discussions",
        category: Annotated[str | None, Field(description="Name")] = None,
        answered: bool | None = None,
        limit: Limit = 20,
        cursor: Cursor = None,
    ) -> Listing:
        """List a repository's discussions, last changed first, or their categories (`kind`).

        Texts: `get_discussion`.
        """
        trusted_repo = self.policy.repo(repo)
        if kind == "categories":
            refuse_beside("kind=categories", category=category, answered=answered)
            return await self.discussions.list_categories(trusted_repo)
        options = PageOptions(limit=limit, cursor=cursor)
        return await self.discussions.list(trusted_repo, options, category=category, answered=answered)

    @tool("Get a discussion", toolset="discussions", open_world=True)
    async def get_discussion(self, repo: RepoText, number: Number, limit: Limit = 20, cursor: Cursor = None) -> Record:
        """Get a discussion with its comments and replies; `limit` counts comments.

        All: `list_discussions`.
        """
        return await self.discussions.get(self.policy.repo(repo), number, PageOptions(limit=limit, cursor=cursor))

    @tool("Create a discussion", toolset="discussions", effect="write", open_world=True)
    async def create_discussion(
        self,
        repo: RepoText,
        title: Title,
        body: Body,
        category: Annotated[str, Field(description="Of kind=categories")],
    ) -> Done:
        """Start a discussion; its watchers hear of it. For a task use `create_issue`."""
        return await self.discussions.create(self.policy.write_repo(repo), title, body, category)

    @tool("Comment on a discussion", toolset="discussions", effect="write", open_world=True)
    async def create_discussion_comment(
        self,
        repo: RepoText,
        number: Number,
        body: Body,
        reply_to: Annotated[str | None, Field(description="Id of a comment")] = None,
    ) -> Done:
        """Comment on a discussion, or reply to a comment.

        Ids: `get_discussion`. On issues: `create_comment`.
        """
        trusted_repo = self.policy.write_repo(repo)
        trusted_comment = None
        if reply_to:
            trusted_comment = self.policy.node(reply_to).text
        return await self.discussions.comment(trusted_repo, number, body, trusted_comment)

    @tool("Change a discussion's comment", toolset="discussions", effect="destroy", open_world=True)
    async def edit_discussion_comment(
        self,
        repo: RepoText,
        number: Number,
        comment_id: CommentId,
        body: OptionalBody = None,
        answer: bool | None = None,
    ) -> Done:
        """Replace the text of a discussion's comment, or mark it as the answer, or no longer.

        One of an issue: `edit_comment`.
        """
        if body is None and answer is None:
            raise Invalid("Nothing was given to change.", "Pass `body` or `answer`.")
        trusted_repo = self.policy.write_repo(repo)
        return await self.discussions.edit_comment(
            trusted_repo, number, self.policy.node(comment_id).text, body, is_answer=answer
        )

    @tool("Delete a discussion's comment", toolset="discussions", gate="delete", effect="destroy", open_world=True)
    async def delete_discussion_comment(self, repo: RepoText, number: Number, comment_id: CommentId) -> Done:
        """Delete a comment of a discussion, for good. To change it: `edit_discussion_comment`."""
        trusted_repo = self.policy.write_repo(repo, "delete")
        return await self.discussions.delete_comment(trusted_repo, number, self.policy.node(comment_id).text)
