"""Discussions, which only GraphQL has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from mcp_batteries.errors import Invalid, NotFound, quote
from mcp_batteries.server.declaration.decorators import tool
from mcp_batteries.server.declaration.trusted import FreeText, trusted
from mcp_github.client.api import Api, partial_success
from mcp_github.listing.graphql_pages import ConnectionPage, ConnectionPosition
from mcp_github.listing.pages import join_notes
from mcp_github.listing.projections import Getter, author_of, clip, is_clipped, pick, trust_of
from mcp_github.models import Done, Listing, Record
from mcp_github.number_forms import Number
from mcp_github.policy import NodeId, Policy, Repo, WriteRepo
from mcp_github.requests import graphql_queries
from mcp_github.tools.arguments import (
    Body,
    Cursor,
    DeleteRepoName,
    Limit,
    OptionalBody,
    RepoName,
    Title,
    WriteRepoName,
    refuse_beside,
)

__all__ = [
    "create_discussion", "create_discussion_comment", "delete_discussion_comment", "edit_discussion_comment",
    "get_discussion", "list_discussions",
]  # fmt: skip

_CATEGORY_COLUMNS = ("name", "slug", "description", "answerable")
_COLUMNS = ("number", "title", "author", "trust", "category", "answered", "closed", "comments", "updated_at")
_COMMENT_COLUMNS = ("id", "author", "association", "trust", "created_at", "is_answer", "body", "replies")
_REPLY_COLUMNS = ("id", "author", "trust", "created_at", "body")
_MAX_BODY_CHARACTERS = 8000
_MAX_REPLY_CHARACTERS = 800

CommentId = Annotated[NodeId, trusted(Policy.node), Field(description="From `get_discussion`")]


@dataclass(frozen=True)
class _Categories:
    """The categories of a repository.

    Attributes:
        repository_id: the opaque id of the repository.
        removed: how many invisible characters were taken out.
    """

    nodes: list[dict[str, Any]]
    repository_id: str
    removed: int

    def find_id(self, name: str) -> str | None:
        """Return the opaque id of the category that is called so, or has this slug; None if none is."""
        for node in self.nodes:
            if name.lower() in (str(node["name"]).lower(), str(node["slug"]).lower()):
                return str(node["id"])
        return None

    @property
    def quoted_names(self) -> str:
        return ", ".join(quote(str(node["name"])) for node in self.nodes)


@tool("List discussions", toolset="discussions", open_world=True)
async def list_discussions(
    api: Api,
    *,
    repo: RepoName,
    kind: Literal["discussions", "categories"] = "discussions",
    category: Annotated[FreeText | None, Field(description="Name")] = None,
    answered: bool | None = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Listing:
    """List a repository's discussions, last changed first, or their categories (`kind`).

    Texts: `get_discussion`.
    """
    if kind == "categories":
        refuse_beside("kind=categories", category=category, answered=answered)
        return await _list_categories(api, repo)
    category_id = None
    if category is not None:
        category_id = _require_category(await _fetch_categories(api, repo), category, repo)
    scope = [repo.key, category, answered]
    position = ConnectionPosition.decode("discussions", cursor, scope, limit)
    variables = {
        "owner": repo.owner, "name": repo.name, "category": category_id, "answered": answered,
        "first": position.page_size, "after": position.after,
    }  # fmt: skip
    response = await api.graphql(graphql_queries.DISCUSSIONS, variables, _describe_all(repo), repo=repo)
    connection = response.data["repository"]["discussions"]
    rows = [_to_row(node) for node in connection["nodes"][position.skip :]]
    page = ConnectionPage.cut(connection, rows, position)
    return page.to_listing("discussions", scope, _COLUMNS, removed=response.removed)


@tool("Get a discussion", toolset="discussions", open_world=True)
async def get_discussion(
    api: Api,
    *,
    repo: RepoName,
    number: Number,
    comment_id: Annotated[NodeId | None, trusted(Policy.node), Field(description="Only it, whole")] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Record:
    """Get a discussion with its comments and replies; `limit` counts comments.

    All: `list_discussions`.
    """
    if comment_id is not None:
        return await _get_comment(api, repo, number, comment_id, limit, cursor)
    scope = [repo.key, number]
    position = ConnectionPosition.decode("discussion", cursor, scope, limit)
    variables = {
        "owner": repo.owner, "name": repo.name, "number": number, "first": position.page_size,
        "after": position.after,
    }  # fmt: skip
    response = await api.graphql(graphql_queries.DISCUSSION, variables, _describe(repo, number), repo=repo)
    discussion = response.data["repository"]["discussion"]
    connection = discussion["comments"]
    rows = [_to_comment_row(node) for node in connection["nodes"][position.skip :]]
    page = ConnectionPage.cut(connection, rows, position)
    data: dict[str, Any] = {}
    if cursor is None:
        data = _to_record(discussion)
    data["comments"] = page.total
    data["comment_columns"] = list(_COMMENT_COLUMNS)
    data["comment_rows"] = page.rows
    next_cursor = page.encode_cursor("discussion", scope)
    if next_cursor is not None:
        data["cursor"] = next_cursor
    note = page.remaining_note("more comments")
    if _is_cut(page.rows):
        note = join_notes(note, "A comment is whole, with all of its replies, by its `comment_id`.")
    return Record(note=note, removed=response.removed or None, data=data)


@tool("Create a discussion", toolset="discussions", effect="write", open_world=True)
async def create_discussion(
    api: Api,
    *,
    repo: WriteRepoName,
    title: Title,
    body: Body,
    category: Annotated[FreeText, Field(description="Of kind=categories")],
) -> Done:
    """Start a discussion; its watchers hear of it. For a task use `create_issue`."""
    categories = await _fetch_categories(api, repo)
    mutation_input = {
        "repositoryId": categories.repository_id, "categoryId": _require_category(categories, category, repo),
        "title": title, "body": body,
    }  # fmt: skip
    response = await api.graphql(
        graphql_queries.CREATE_DISCUSSION, {"input": mutation_input}, _describe_all(repo), repo=repo, writes=True
    )
    discussion = response.data["createDiscussion"]["discussion"]
    return Done(done=f"Created discussion #{discussion['number']}.", url=discussion["url"])


@tool("Comment on a discussion", toolset="discussions", effect="write", open_world=True)
async def create_discussion_comment(
    api: Api,
    *,
    repo: WriteRepoName,
    number: Number,
    body: Body,
    reply_to: Annotated[NodeId | None, trusted(Policy.node), Field(description="Id of a comment")] = None,
) -> Done:
    """Comment on a discussion, or reply to a comment.

    Ids: `get_discussion`. On issues: `create_comment`.
    """
    if reply_to is not None:
        await _require_comment(api, repo, number, reply_to)
    mutation_input = {"discussionId": await _find_id(api, repo, number), "body": body}
    if reply_to is not None:
        mutation_input["replyToId"] = reply_to.text
    response = await api.graphql(
        graphql_queries.ADD_DISCUSSION_COMMENT, {"input": mutation_input}, _describe(repo, number), writes=True
    )
    comment = response.data["addDiscussionComment"]["comment"]
    return Done(done=f"Commented on discussion #{number}.", url=comment["url"], data={"comment": comment["id"]})


@tool("Change a discussion's comment", toolset="discussions", effect="destroy", open_world=True)
async def edit_discussion_comment(
    api: Api,
    *,
    repo: WriteRepoName,
    number: Number,
    comment_id: CommentId,
    body: OptionalBody = None,
    answer: bool | None = None,
) -> Done:
    """Replace the text of a discussion's comment, or mark it as the answer, or no longer.

    Of an issue: `edit_comment`.
    """
    if body is None and answer is None:
        raise Invalid("Nothing was given to change.", "Pass `body` or `answer`.")
    await _require_comment(api, repo, number, comment_id)
    report = nullcontext()
    if body is not None:
        mutation_input = {"commentId": comment_id.text, "body": body}
        await _mutate(api, repo, number, graphql_queries.EDIT_DISCUSSION_COMMENT, mutation_input)
        report = partial_success("Its text is changed", "Call again with `answer` alone.")
    if answer is not None:
        query = graphql_queries.UNMARK_ANSWER
        expects: dict[str, Any] = {"answer": None}
        if answer:
            query = graphql_queries.MARK_ANSWER
            expects = {"answer": comment_id.text}
        with report:
            await _mutate(api, repo, number, query, {"id": comment_id.text}, expects)
    return Done(done=f"Changed a comment of discussion #{number}.")


@tool("Delete a discussion's comment", toolset="discussions", gate="delete", effect="destroy", open_world=True)
async def delete_discussion_comment(api: Api, *, repo: DeleteRepoName, number: Number, comment_id: CommentId) -> Done:
    """Delete a comment of a discussion, for good. To change it: `edit_discussion_comment`."""
    await _require_comment(api, repo, number, comment_id)
    await _mutate(api, repo, number, graphql_queries.DELETE_DISCUSSION_COMMENT, {"id": comment_id.text})
    return Done(done=f"Deleted a comment of discussion #{number}.")


async def _get_comment(api: Api, repo: Repo, number: int, comment: NodeId, limit: int, cursor: str | None) -> Record:
    """Return one comment of a discussion, whole, and a page of its replies."""
    await _require_comment(api, repo, number, comment)
    scope = [repo.key, number, comment.text]
    position = ConnectionPosition.decode("replies", cursor, scope, limit)
    variables = {"id": comment.text, "first": position.page_size, "after": position.after}
    response = await api.graphql(graphql_queries.DISCUSSION_COMMENT, variables, _describe(repo, number), repo=repo)
    node = response.data["node"]
    rows = [_to_reply_row(reply, "body") for reply in node["replies"]["nodes"][position.skip :]]
    page = ConnectionPage.cut(node["replies"], rows, position)
    data: dict[str, Any] = {}
    if cursor is None:
        data = {
            "id": node["id"], "author": author_of(node), "association": node["authorAssociation"],
            "trust": trust_of(node), "created_at": node["createdAt"], "is_answer": node["isAnswer"],
            "body": node["body"],
        }  # fmt: skip
    data |= {"replies": page.total, "reply_columns": list(_REPLY_COLUMNS), "reply_rows": page.rows}
    next_cursor = page.encode_cursor("replies", scope)
    if next_cursor is not None:
        data["cursor"] = next_cursor
    return Record(note=page.remaining_note("more replies"), removed=response.removed or None, data=data)


async def _list_categories(api: Api, repo: Repo) -> Listing:
    categories = await _fetch_categories(api, repo)
    rows = [[node["name"], node["slug"], node.get("description"), node["isAnswerable"]] for node in categories.nodes]
    return Listing(removed=categories.removed or None, columns=list(_CATEGORY_COLUMNS), rows=rows)


async def _fetch_categories(api: Api, repo: Repo) -> _Categories:
    variables = {"owner": repo.owner, "name": repo.name}
    response = await api.graphql(graphql_queries.CATEGORIES, variables, _describe_all(repo), repo=repo)
    repository = response.data["repository"]
    return _Categories(repository["discussionCategories"]["nodes"], str(repository["id"]), response.removed)


async def _find_id(api: Api, repo: Repo, number: int) -> str:
    """Return the opaque id of a discussion."""
    variables = {"owner": repo.owner, "name": repo.name, "number": number, "first": 1, "after": None}
    response = await api.graphql(graphql_queries.DISCUSSION, variables, _describe(repo, number), internal=True)
    return str(response.data["repository"]["discussion"]["id"])


async def _mutate(
    api: Api, repo: WriteRepo, number: int, query: str, mutation_input: Mapping[str, Any],
    expects: Mapping[str, Any] | None = None,
) -> None:  # fmt: skip
    await api.graphql(query, {"input": mutation_input}, _describe(repo, number), writes=True, expects=expects)


async def _require_comment(api: Api, repo: Repo, number: int, comment: NodeId) -> None:
    """Raise `NotFound` unless `comment` is one of that discussion's: an opaque id could be of any repository."""
    response = await api.graphql(
        graphql_queries.NODE_PLACE, {"id": comment.text}, f"the comment {quote(comment.text)}", internal=True
    )
    discussion: dict[str, Any] = pick(response.data, "node.discussion") or {}
    full_name = str(pick(discussion, "repository.nameWithOwner") or "")
    if discussion.get("number") != number or not await api.is_repo(repo, full_name):
        raise NotFound(
            f"Discussion #{number} of `{repo.full_name}` has no comment {quote(comment.text)}.",
            "`get_discussion` has its comments.",
        )


def _require_category(categories: _Categories, name: str, repo: Repo) -> str:
    """Return the opaque id of a category, by its name or slug."""
    category_id = categories.find_id(name)
    if category_id is None:
        raise NotFound(
            f"There is no category {quote(name)} in `{repo.full_name}`.", f"There are: {categories.quoted_names}."
        )
    return category_id


def _describe(repo: Repo, number: int) -> str:
    return f"discussion #{number} of `{repo.full_name}`"


def _describe_all(repo: Repo) -> str:
    return f"the discussions of `{repo.full_name}`"


def _to_row(discussion: Mapping[str, Any]) -> list[Any]:
    return [
        discussion["number"],
        discussion["title"],
        author_of(discussion),
        trust_of(discussion),
        pick(discussion, "category.name"),
        discussion["isAnswered"],
        discussion["closed"],
        pick(discussion, "comments.totalCount"),
        discussion["updatedAt"],
    ]


def _to_record(discussion: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "number": discussion["number"],
        "title": discussion["title"],
        "author": author_of(discussion),
        "association": discussion["authorAssociation"],
        "trust": trust_of(discussion),
        "category": pick(discussion, "category.name"),
        "answered": discussion["isAnswered"],
        "closed": discussion["closed"],
        "created_at": discussion["createdAt"],
        "body": pick(discussion, clip("body", _MAX_BODY_CHARACTERS)),
        "url": discussion["url"],
    }


def _to_comment_row(comment: Mapping[str, Any]) -> list[Any]:
    return [
        comment["id"],
        author_of(comment),
        comment["authorAssociation"],
        trust_of(comment),
        comment["createdAt"],
        comment["isAnswer"],
        pick(comment, clip("body")),
        _to_reply_rows(comment["replies"]),
    ]


def _to_reply_rows(replies: Mapping[str, Any]) -> list[list[Any]]:
    rows: list[list[Any]] = []
    for reply in replies["nodes"]:
        rows.append(_to_reply_row(reply, clip("body", _MAX_REPLY_CHARACTERS)))
    more = replies["totalCount"] - len(rows)
    if more > 0:
        rows.append([f"{more} more"])
    return rows


def _to_reply_row(reply: Mapping[str, Any], body: Getter) -> list[Any]:
    return [reply["id"], author_of(reply), trust_of(reply), reply["createdAt"], pick(reply, body)]


def _is_cut(comment_rows: Sequence[Sequence[Any]]) -> bool:
    """Return whether a text is cut in rows of comments, or replies are left out."""
    for row in comment_rows:
        *_, body, replies = row
        if is_clipped(str(body)):
            return True
        if any(len(reply) == 1 or is_clipped(str(reply[-1])) for reply in replies):
            return True
    return False
