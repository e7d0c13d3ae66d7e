"""Discussions and blame, which only GraphQL has."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, cast

from mcp_batteries.errors import NotFound, quote
from mcp_batteries.limits import DEFAULT_PAGE_BYTES, Cursor
from mcp_github.client.api import Api, after
from mcp_github.listing.pages import author, clipped, pick, rows_within, trust, turned
from mcp_github.models import Done, Listing, Record
from mcp_github.policy import FilePath, Ref, Repo, WriteRepo
from mcp_github.requests import graphql_queries

__all__ = ["Discussions"]

_COMMENT = ("id", "author", "association", "trust", "created_at", "is_answer", "body", "replies")
_DISCUSSION = ("number", "title", "author", "trust", "category", "answered", "closed", "comments", "updated_at")


@dataclass(frozen=True)
class Discussions:
    api: Api

    async def categories(self, repo: Repo) -> Listing:
        nodes, removed, _ = await self._categories(repo)
        rows = [[node["name"], node["slug"], node.get("description"), node["isAnswerable"]] for node in nodes]
        return Listing(removed=removed or None, columns=["name", "slug", "description", "answerable"], rows=rows)

    async def _categories(self, repo: Repo) -> tuple[list[dict[str, Any]], int, str]:
        """The categories, how many characters were taken out of them, and the repository's id."""
        given = {"owner": repo.owner, "name": repo.name}
        what = f"the discussions of `{repo.full}`"
        answer = await self.api.graphql(graphql_queries.CATEGORIES, given, what, repo=repo)
        found = answer.data["repository"]
        return found["discussionCategories"]["nodes"], answer.removed, str(found["id"])

    async def _category(self, repo: Repo, name: str) -> tuple[str, str]:
        """The ids of a category, by its name, and of the repository."""
        nodes, _, identity = await self._categories(repo)
        known = {str(node[key]).lower(): str(node["id"]) for node in nodes for key in ("name", "slug")}
        if (found := known.get(name.lower())) is None:
            names = ", ".join(quote(str(node["name"])) for node in nodes)
            raise NotFound(f"There is no category {quote(name)} in `{repo.full}`.", f"There are: {names}.")
        return found, identity

    async def create(self, repo: WriteRepo, title: str, body: str, category: str) -> Done:
        """Begin a discussion."""
        identity, place = await self._category(repo, category)
        given = {"repositoryId": place, "categoryId": identity, "title": title, "body": body}
        what = f"the discussions of `{repo.full}`"
        made = await self.api.graphql(graphql_queries.CREATE_DISCUSSION, {"input": given}, what, repo=repo, writes=True)
        found = made.data["createDiscussion"]["discussion"]
        return Done(done=f"Created discussion #{found['number']}.", url=found["url"])

    async def list(
        self, repo: Repo, *, category: str | None, answered: bool | None, limit: int, cursor: str | None
    ) -> Listing:
        """Discussions, the last changed first."""
        identity = None
        if category is not None:
            identity, _ = await self._category(repo, category)
        scope = [repo.key, category, answered]
        first: dict[str, Any] = {"n": limit, "after": None, "skip": 0, "done": 0}
        position: dict[str, Any] = Cursor.decode("discussions", cursor, scope) if cursor else first
        given = {
            "owner": repo.owner, "name": repo.name, "category": identity, "answered": answered, "first": position["n"],
            "after": position["after"],
        }  # fmt: skip
        answer = await self.api.graphql(
            graphql_queries.DISCUSSIONS, given, f"the discussions of `{repo.full}`", repo=repo
        )
        found = answer.data["repository"]["discussions"]
        rows = [
            [
                node["number"], node["title"], author(node), trust(node), pick(node, "category.name"),
                node["isAnswered"], node["closed"], pick(node, "comments.totalCount"), node["updatedAt"],
            ]
            for node in found["nodes"][position["skip"] :]
        ]  # fmt: skip
        following, fit = turned(found, rows, position)
        return Listing(
            cursor=Cursor.encode("discussions", following, scope) if following else None,
            note=f"{found['totalCount'] - following['done']} more." if following else None, total=found["totalCount"],
            removed=answer.removed or None, columns=list(_DISCUSSION), rows=rows[:fit],
        )  # fmt: skip

    async def get(self, repo: Repo, number: int, *, limit: int, cursor: str | None) -> Record:
        """One discussion with its comments, page by page."""
        scope = [repo.key, number]
        first: dict[str, Any] = {"n": limit, "after": None, "skip": 0, "done": 0}
        position: dict[str, Any] = Cursor.decode("discussion", cursor, scope) if cursor else first
        given = {
            "owner": repo.owner, "name": repo.name, "number": number, "first": position["n"],
            "after": position["after"],
        }  # fmt: skip
        what = f"discussion #{number} of `{repo.full}`"
        answer = await self.api.graphql(graphql_queries.DISCUSSION, given, what, repo=repo)
        found = answer.data["repository"]["discussion"]
        comments = found["comments"]
        rows = [_comment(node) for node in comments["nodes"][position["skip"] :]]
        following, fit = turned(comments, rows, position)
        data: dict[str, Any] = {}
        if cursor is None:
            data = {
                "number": found["number"], "title": found["title"], "author": author(found),
                "association": found["authorAssociation"], "trust": trust(found),
                "category": pick(found, "category.name"), "answered": found["isAnswered"],
                "closed": found["closed"], "created_at": found["createdAt"],
                "body": pick(found, clipped("body", 8000)), "url": found["url"],
            }  # fmt: skip
        data |= {"comments": comments["totalCount"], "comment_columns": list(_COMMENT), "comment_rows": rows[:fit]}
        if following:
            data["cursor"] = Cursor.encode("discussion", following, scope)
        note = f"{comments['totalCount'] - following['done']} more comments." if following else None
        return Record(note=note, removed=answer.removed or None, data=data)

    async def comment(self, repo: WriteRepo, number: int, body: str, reply_to: str | None) -> Done:
        if reply_to is not None:
            await self._check(repo, number, reply_to)
        what = f"discussion #{number} of `{repo.full}`"
        given = {"owner": repo.owner, "name": repo.name, "number": number, "first": 1, "after": None}
        found = await self.api.graphql(graphql_queries.DISCUSSION, given, what, quiet=True)
        identity = found.data["repository"]["discussion"]["id"]
        body_input = {"discussionId": identity, "body": body, **({"replyToId": reply_to} if reply_to else {})}
        made = await self.api.graphql(graphql_queries.ADD_DISCUSSION_COMMENT, {"input": body_input}, what, writes=True)
        comment = made.data["addDiscussionComment"]["comment"]
        return Done(done=f"Commented on discussion #{number}.", url=comment["url"], data={"comment": comment["id"]})

    async def edit(self, repo: WriteRepo, number: int, comment: str, body: str | None, answer: bool | None) -> Done:
        """Change a comment's text, or whether it is the answer."""
        await self._check(repo, number, comment)
        what = f"discussion #{number} of `{repo.full}`"
        if body is not None:
            given = {"input": {"commentId": comment, "body": body}}
            await self.api.graphql(graphql_queries.EDIT_DISCUSSION_COMMENT, given, what, writes=True)
        if answer is not None:
            query = graphql_queries.MARK_ANSWER if answer else graphql_queries.UNMARK_ANSWER
            with after("Its text is changed", "Call again with `answer` alone.") if body is not None else nullcontext():
                await self.api.graphql(query, {"input": {"id": comment}}, what, writes=True)
        return Done(done=f"Changed a comment of discussion #{number}.")

    async def delete(self, repo: WriteRepo, number: int, comment: str) -> Done:
        await self._check(repo, number, comment)
        what = f"discussion #{number} of `{repo.full}`"
        await self.api.graphql(graphql_queries.DELETE_DISCUSSION_COMMENT, {"input": {"id": comment}}, what, writes=True)
        return Done(done=f"Deleted a comment of discussion #{number}.")

    async def _check(self, repo: Repo, number: int, comment: str) -> None:
        """Raise `NotFound` unless `comment` is one of that discussion's: an opaque id could be of any repository."""
        what = f"the comment {quote(comment)}"
        found = await self.api.graphql(graphql_queries.NODE_PLACE, {"id": comment}, what, quiet=True)
        place: dict[str, Any] = pick(found.data, "node.discussion") or {}
        if str(pick(place, "repository.nameWithOwner") or "").lower() != repo.key or place.get("number") != number:
            raise NotFound(f"Discussion #{number} of `{repo.full}` has no comment {quote(comment)}.", "Read it again.")

    async def blame(self, repo: Repo, path: FilePath, ref: Ref | None, *, start_line: int, lines: int) -> Listing:
        """Which commit last changed the lines of a file."""
        given = {"owner": repo.owner, "name": repo.name, "ref": ref.name if ref else "HEAD", "path": path.name}
        what = f"{quote(path.shown)} in `{repo.full}`"
        answer = await self.api.graphql(graphql_queries.BLAME, given, what, repo=repo)
        commit = cast("dict[str, Any]", pick(answer.data, "repository.object") or {})
        ranges = cast("list[dict[str, Any]]", pick(commit, "blame.ranges") or [])
        last = start_line + lines - 1
        rows = [
            [
                max(start_line, item["startingLine"]), min(last, item["endingLine"]), item["commit"]["oid"],
                pick(item, "commit.author.user.login") or pick(item, "commit.author.name"),
                item["commit"]["committedDate"], item["commit"]["messageHeadline"],
            ]
            for item in ranges
            if item["endingLine"] >= start_line and item["startingLine"] <= last
        ]  # fmt: skip
        if not rows:
            raise NotFound(f"There is nothing to tell about {what} there.", "Look at `ref`, `path` and `start_line`.")
        fit = rows_within(rows, DEFAULT_PAGE_BYTES)
        note = f"truncated, continue with start_line={rows[fit][0]}" if fit < len(rows) else None
        columns = ["from", "to", "sha", "author", "date", "message"]
        return Listing(note=note, removed=answer.removed or None, columns=columns, rows=rows[:fit])


def _comment(node: Mapping[str, Any]) -> list[Any]:
    replies = node["replies"]
    said: list[Any] = [
        [item["id"], author(item), trust(item), item["createdAt"], pick(item, clipped("body", 800))]
        for item in replies["nodes"]
    ]
    if (more := replies["totalCount"] - len(said)) > 0:
        said.append([f"{more} more"])
    return [
        node["id"], author(node), node["authorAssociation"], trust(node), node["createdAt"],
        node["isAnswer"], pick(node, clipped("body")), said,
    ]  # fmt: skip
