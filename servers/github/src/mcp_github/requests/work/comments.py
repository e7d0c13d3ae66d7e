"""Comments and reactions; a pull request's conversation is that of an issue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from mcp_batteries.errors import Invalid, NotFound, quote
from mcp_github.client.api import Api
from mcp_github.listing.columns import COMMENT
from mcp_github.listing.pages import ListQuery, PageOptions, fetch_page
from mcp_github.listing.projections import pick
from mcp_github.models import Done, Listing
from mcp_github.policy import Repo, WriteRepo
from mcp_github.requests.graphql_queries import NODE_PLACE, REPLY

__all__ = ["Comments", "require_thread_of"]


class _Target(NamedTuple):
    """What a request is about: its path, and its description for messages."""

    path: str
    description: str


@dataclass(frozen=True)
class Comments:
    api: Api

    async def list(self, repo: Repo, number: int, since: str | None, options: PageOptions) -> Listing:
        """Return a page of what was said under an issue or a pull request, oldest first."""
        target = _issue(repo, number)
        query = ListQuery(f"{target.path}/comments", target.description, COMMENT, params={"since": since}, repo=repo)
        return await fetch_page(self.api, query, options)

    async def create(self, repo: WriteRepo, number: int, body: str, thread: str | None) -> Done:
        """Say something under an issue or pull request, or in a thread of a review."""
        if thread is not None:
            return await self._reply(repo, number, body, thread)
        target = _issue(repo, number)
        response = await self.api.write(
            "POST", f"{target.path}/comments", target.description, {"body": body}, repo=repo
        )
        comment = response.data
        return Done(done=f"Commented on #{number}.", url=comment.get("html_url"), data={"comment": comment["id"]})

    async def _reply(self, repo: WriteRepo, number: int, body: str, thread: str) -> Done:
        await require_thread_of(self.api, repo, number, thread)
        variables = {"input": {"pullRequestReviewThreadId": thread, "body": body}}
        description = _issue(repo, number).description
        response = await self.api.graphql(REPLY, variables, description, repo=repo, writes=True)
        comment = response.data["addPullRequestReviewThreadReply"]["comment"]
        return Done(done=f"Replied in #{number}.", url=comment["url"], data={"comment": comment["databaseId"]})

    async def edit(self, repo: WriteRepo, comment: int, body: str, *, is_on_lines: bool) -> Done:
        target = _comment(repo, comment, is_on_lines=is_on_lines)
        response = await self.api.write("PATCH", target.path, target.description, {"body": body}, repo=repo)
        return Done(done=f"Changed comment {comment}.", url=response.data.get("html_url"))

    async def delete(self, repo: WriteRepo, comment: int, *, is_on_lines: bool) -> Done:
        target = _comment(repo, comment, is_on_lines=is_on_lines)
        await self.api.write("DELETE", target.path, target.description, repo=repo)
        return Done(done=f"Deleted comment {comment}.")

    async def react(
        self, repo: WriteRepo, reaction: str, *, number: int | None, comment: int | None, is_on_lines: bool
    ) -> Done:
        """React to an issue or pull request, or to a comment."""
        if number is not None and comment is None:
            target = _issue(repo, number)
        elif comment is not None and number is None:
            target = _comment(repo, comment, is_on_lines=is_on_lines)
        else:
            raise Invalid("One of `number` and `comment` has to be given.")
        await self.api.write("POST", f"{target.path}/reactions", target.description, {"content": reaction}, repo=repo)
        return Done(done=f"Reacted with {reaction}.")


async def require_thread_of(api: Api, repo: Repo, number: int, thread: str) -> None:
    """Raise `NotFound` unless `thread` is one of that pull request's: an opaque id could be of any repository."""
    response = await api.graphql(NODE_PLACE, {"id": thread}, f"the thread {quote(thread)}", internal=True)
    node: dict[str, Any] = response.data.get("node") or {}
    repo_key = str(pick(node, "repository.nameWithOwner") or "").lower()
    if repo_key != repo.key or pick(node, "pullRequest.number") != number:
        raise NotFound(
            f"#{number} of `{repo.full_name}` has no thread {quote(thread)}.",
            "`list_reviews` with kind=threads shows them.",
        )


def _issue(repo: Repo, number: int) -> _Target:
    return _Target(f"{repo.path}/issues/{number}", f"#{number} of `{repo.full_name}`")


def _comment(repo: Repo, comment: int, *, is_on_lines: bool) -> _Target:
    """Return the target for a comment: one on lines of code is a pull request's."""
    kind = "issues"
    if is_on_lines:
        kind = "pulls"
    return _Target(f"{repo.path}/{kind}/comments/{comment}", f"comment `{comment}` in `{repo.full_name}`")
