"""The threads of a pull request's reviews: where each stands, what was said in it, and whether it is resolved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, cast

from mcp_batteries.errors import NotFound, quote
from mcp_github.client.api import Api
from mcp_github.listing.graphql_pages import ConnectionPage, ConnectionPosition
from mcp_github.listing.pages import join_notes
from mcp_github.listing.projections import Getter, author_of, clip, is_clipped, pick, trust_of
from mcp_github.models import Done, Listing
from mcp_github.policy import NodeId, Repo, WriteRepo
from mcp_github.requests.graphql_queries import NODE_PLACE, REPLY, RESOLVE, THREAD, THREADS, UNRESOLVE

__all__ = ["Order", "list_thread", "list_threads", "reply_in_thread", "set_resolved"]

Order = Literal["asc", "desc"]

_THREAD_COLUMNS = ("thread", "path", "line", "side", "resolved", "outdated", "original", "comments")
_RESOLVED = _THREAD_COLUMNS.index("resolved")
_COMMENT_COLUMNS = ("id", "author", "association", "trust", "created_at", "body")
_THREADS_PER_PAGE = 20
# How many of GitHub's pages are read for one of ours: twenty threads that are resolved would look like the end.
_MAX_THREAD_PAGES = 5
# Of a comment beside those of other threads.
_EXCERPT = clip("body", 1000)
# Of the code that an outdated thread was about, which no longer stands there; its line is the last.
_MAX_HUNK_LINES = 6
_MAX_HUNK_CHARACTERS = 600


async def list_threads(api: Api, repo: Repo, number: int, *, unresolved_only: bool, cursor: str | None) -> Listing:
    """Return a page of threads of review comments, each with the id that a reply and a resolution take."""
    scope = [repo.key, number]
    position = ConnectionPosition.decode("threads", cursor, scope, _THREADS_PER_PAGE)
    page = await _fetch_threads(api, repo, number, position, unresolved_only=unresolved_only)
    for _ in range(_MAX_THREAD_PAGES - 1):
        if page.rows or page.next_position is None:
            break
        next_page = await _fetch_threads(api, repo, number, page.next_position, unresolved_only=unresolved_only)
        page = replace(next_page, removed=page.removed + next_page.removed)
    remaining = None
    if page.next_position is not None:
        qualifier = ""
        if unresolved_only:
            qualifier = "At most "
        remaining = f"{qualifier}{page.remaining_count} more."
    return Listing(
        cursor=page.encode_cursor("threads", scope),
        note=join_notes(f"comments: {', '.join(_COMMENT_COLUMNS)}.", _cut_note(page.rows), remaining),
        # GitHub counts the resolved ones too.
        total=None if unresolved_only else page.total,
        removed=page.removed or None,
        columns=list(_THREAD_COLUMNS),
        rows=page.rows,
    )


def _cut_note(thread_rows: Sequence[Sequence[Any]]) -> str | None:
    """Return how to read a comment whole, if one is cut."""
    for *_, comments in thread_rows:
        if any(is_clipped(str(comment[-1])) for comment in comments):
            return "A comment that was cut is whole with its `thread`."
    return None


async def list_thread(
    api: Api, repo: Repo, number: int, thread: NodeId, *, order: Order, limit: int, cursor: str | None
) -> Listing:
    """Return a page of the comments of one thread, whole, oldest or newest first."""
    scope = [repo.key, number, thread.text, order]
    position = ConnectionPosition.decode("thread", cursor, scope, limit)
    variables: dict[str, Any] = {"id": thread.text, "first": position.page_size, "after": position.after}
    if order == "desc":
        variables = {"id": thread.text, "last": position.page_size, "before": position.after}
    response = await api.graphql(THREAD, variables, f"the thread {quote(thread.text)}", repo=repo)
    node: dict[str, Any] = response.data.get("node") or {}
    await _require_place(api, node, repo, number, thread)
    connection = node["comments"]
    if order == "desc":
        connection = _reversed(connection)
    rows = [_to_comment_row(comment, "body") for comment in connection["nodes"][position.skip :]]
    page = ConnectionPage.cut(connection, rows, position)
    return page.to_listing("thread", scope, _COMMENT_COLUMNS, removed=response.removed)


async def reply_in_thread(api: Api, repo: WriteRepo, number: int, thread: NodeId, body: str) -> Done:
    """Say something in a thread of a review."""
    await _require_thread_of(api, repo, number, thread)
    variables = {"input": {"pullRequestReviewThreadId": thread.text, "body": body}}
    response = await api.graphql(REPLY, variables, f"#{number} of `{repo.full_name}`", repo=repo, writes=True)
    comment = response.data["addPullRequestReviewThreadReply"]["comment"]
    return Done(done=f"Replied in #{number}.", url=comment["url"], data={"comment": comment["databaseId"]})


async def set_resolved(api: Api, repo: WriteRepo, number: int, thread: NodeId, *, resolved: bool) -> Done:
    """Resolve a thread, or open it again."""
    await _require_thread_of(api, repo, number, thread)
    description = f"thread {quote(thread.text)} of #{number} of `{repo.full_name}`"
    query = UNRESOLVE
    state = "open"
    if resolved:
        query = RESOLVE
        state = "resolved"
    await api.graphql(
        query, {"input": {"threadId": thread.text}}, description, repo=repo, writes=True,
        expects={"isResolved": resolved},
    )  # fmt: skip
    return Done(done=f"Thread {thread.text} is {state}.")


async def _fetch_threads(
    api: Api, repo: Repo, number: int, position: ConnectionPosition, *, unresolved_only: bool
) -> ConnectionPage:
    """Return what of the page of GitHub's at `position` fits, then without the resolved threads if so asked."""
    variables = {
        "owner": repo.owner, "name": repo.name, "number": number, "first": _THREADS_PER_PAGE,
        "after": position.after,
    }  # fmt: skip
    description = f"pull request #{number} of `{repo.full_name}`"
    response = await api.graphql(THREADS, variables, description, repo=repo)
    connection = response.data["repository"]["pullRequest"]["reviewThreads"]
    threads = cast("list[dict[str, Any]]", connection["nodes"])[position.skip :]
    page = ConnectionPage.cut(connection, [_to_thread_row(thread) for thread in threads], position)
    rows = page.rows
    if unresolved_only:
        rows = [row for row in rows if not row[_RESOLVED]]
    return replace(page, rows=rows, removed=response.removed)


async def _require_thread_of(api: Api, repo: Repo, number: int, thread: NodeId) -> None:
    """Raise `NotFound` unless `thread` is one of that pull request's: an opaque id could be of any repository."""
    response = await api.graphql(NODE_PLACE, {"id": thread.text}, f"the thread {quote(thread.text)}", internal=True)
    await _require_place(api, response.data.get("node") or {}, repo, number, thread)


async def _require_place(api: Api, node: Mapping[str, Any], repo: Repo, number: int, thread: NodeId) -> None:
    full_name = str(pick(node, "repository.nameWithOwner") or "")
    if pick(node, "pullRequest.number") != number or not await api.is_repo(repo, full_name):
        raise NotFound(
            f"#{number} of `{repo.full_name}` has no thread {quote(thread.text)}.",
            "`list_reviews` with kind=threads shows them.",
        )


def _reversed(connection: Mapping[str, Any]) -> dict[str, Any]:
    """Return a page from the end of a connection as one from its beginning, the newest first."""
    page_info = connection["pageInfo"]
    return {
        "totalCount": connection["totalCount"],
        "pageInfo": {"hasNextPage": page_info["hasPreviousPage"], "endCursor": page_info["startCursor"]},
        "nodes": list(reversed(connection["nodes"])),
    }


def _to_thread_row(thread: Mapping[str, Any]) -> list[Any]:
    comments = [_to_comment_row(comment, _EXCERPT) for comment in thread["comments"]["nodes"]]
    more = thread["comments"]["totalCount"] - len(comments)
    if more > 0:
        comments.append([f"{more} more: kind=threads with this `thread`"])
    is_on_file = thread.get("subjectType") == "FILE"
    original = None
    if thread["isOutdated"] and not is_on_file:
        original = _original_place(thread)
    return [
        thread["id"],
        thread["path"],
        _lines(thread.get("startLine"), thread["line"]),
        "FILE" if is_on_file else _sides(thread),
        thread["isResolved"],
        thread["isOutdated"],
        original,
        comments,
    ]


def _lines(start: int | None, end: int | None) -> int | str | None:
    """Return one line by its number, several as `3-7`."""
    if start is None or end is None or start == end:
        return end
    return f"{start}-{end}"


def _sides(thread: Mapping[str, Any]) -> str | None:
    """Return which file the lines are of: LEFT is the old one, RIGHT the new one; both if they begin in another."""
    side = thread.get("diffSide")
    start_side = thread.get("startDiffSide")
    if start_side and start_side != side and thread.get("startLine"):
        return f"{start_side}-{side}"
    return side


def _original_place(thread: Mapping[str, Any]) -> dict[str, Any]:
    """Return where an outdated thread stood, and the code there."""
    comments = cast("list[Mapping[str, Any]]", thread["comments"]["nodes"])
    hunk = ""
    if comments:
        hunk = str(comments[0].get("diffHunk") or "")
    lines = hunk.splitlines()[-_MAX_HUNK_LINES:]
    return {
        "line": _lines(thread.get("originalStartLine"), thread.get("originalLine")),
        "hunk": "\n".join(lines)[-_MAX_HUNK_CHARACTERS:],
    }


def _to_comment_row(comment: Mapping[str, Any], body: Getter) -> list[Any]:
    return [
        comment["databaseId"],
        author_of(comment),
        comment["authorAssociation"],
        trust_of(comment),
        comment["createdAt"],
        pick(comment, body),
    ]
