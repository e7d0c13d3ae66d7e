"""Discussions, as tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from mcp_batteries.errors import Invalid
from mcp_batteries.server.declare import tool
from mcp_github.models import Done, Listing, Record
from mcp_github.policy import Policy
from mcp_github.requests.work.discussions import Discussions
from mcp_github.tools.arguments import Body, Cursor, Limit, Number, OptionalBody, RepoName, Title, refuse_beside

__all__ = ["DiscussionTools"]

CommentId = Annotated[str, Field(description="From `get_discussion`")]


@dataclass(frozen=True)
class DiscussionTools:
    policy: Policy
    discussions: Discussions

    @tool("List discussions", toolset="discussions", open_world=True)
    async def list_discussions(
        self,
        repo: RepoName,
        kind: Literal["discussions", "categories"] = "discussions",
        category: Annotated[str | None, Field(description="Name")] = None,
        answered: bool | None = None,
        limit: Limit = 20,
        cursor: Cursor = None,
    ) -> Listing:
        """List a repository's discussions, last changed first, or their categories (`kind`).

        Texts: `get_discussion`.
        """
        where = self.policy.repo(repo)
        if kind == "categories":
            refuse_beside("kind=categories", category=category, answered=answered)
            return await self.discussions.categories(where)
        return await self.discussions.list(where, category=category, answered=answered, limit=limit, cursor=cursor)

    @tool("Get a discussion", toolset="discussions", open_world=True)
    async def get_discussion(self, repo: RepoName, number: Number, limit: Limit = 20, cursor: Cursor = None) -> Record:
        """Get a discussion with its comments and replies; `limit` counts comments.

        All: `list_discussions`.
        """
        return await self.discussions.get(self.policy.repo(repo), number, limit=limit, cursor=cursor)

    @tool("Create a discussion", toolset="discussions", effect="write", open_world=True)
    async def create_discussion(
        self,
        repo: RepoName,
        title: Title,
        body: Body,
        category: Annotated[str, Field(description="Of kind=categories")],
    ) -> Done:
        """Start a discussion; its watchers hear of it. For a task use `create_issue`."""
        return await self.discussions.create(self.policy.write_repo(repo), title, body, category)

    @tool("Comment on a discussion", toolset="discussions", effect="write", open_world=True)
    async def create_discussion_comment(
        self,
        repo: RepoName,
        number: Number,
        body: Body,
        reply_to: Annotated[str | None, Field(description="Id of a comment")] = None,
    ) -> Done:
        """Comment on a discussion, or reply to a comment.

        Ids: `get_discussion`. On issues: `create_comment`.
        """
        where = self.policy.write_repo(repo)
        return await self.discussions.comment(where, number, body, self.policy.node(reply_to) if reply_to else None)

    @tool("Change a discussion's comment", toolset="discussions", effect="destroy", open_world=True)
    async def edit_discussion_comment(
        self,
        repo: RepoName,
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
        where = self.policy.write_repo(repo)
        return await self.discussions.edit(where, number, self.policy.node(comment_id), body, answer)

    @tool("Delete a discussion's comment", toolset="discussions", gate="delete", effect="destroy", open_world=True)
    async def delete_discussion_comment(self, repo: RepoName, number: Number, comment_id: CommentId) -> Done:
        """Delete a comment of a discussion, for good. To change it: `edit_discussion_comment`."""
        where = self.policy.write_repo(repo, "delete")
        return await self.discussions.delete(where, number, self.policy.node(comment_id))
