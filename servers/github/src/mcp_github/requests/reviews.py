"""Reviews: complete ones, and pending ones that grow until they are submitted; and their threads of comments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from mcp_batteries.errors import Conflict, Invalid, NotFound, Problem, quote
from mcp_github.client.api import Api, ApiResponse
from mcp_github.listing.graphql_pages import ConnectionPage, ConnectionPosition
from mcp_github.listing.projections import author_of, clip, pick, trust_of
from mcp_github.models import Done, Listing
from mcp_github.policy import NodeId, Ref, Repo, ReviewComment, WriteRepo
from mcp_github.requests.graphql_queries import ADD_THREAD, NODE_PLACE, REPLY, RESOLVE, THREADS, UNRESOLVE

__all__ = [
    "NewReview", "ReviewAction", "Verdict", "add_to_review", "finish_review", "list_threads", "reply_in_thread",
    "send_review", "set_resolved",
]  # fmt: skip

Verdict = Literal["APPROVE", "REQUEST_CHANGES", "COMMENT"]
ReviewAction = Literal["submit", "delete", "dismiss"]

_THREAD_COLUMNS = ("thread", "path", "line", "resolved", "outdated", "comments")
_RESOLVED = _THREAD_COLUMNS.index("resolved")
_THREADS_PER_PAGE = 20
# How many of GitHub's pages are read for one of ours: twenty threads that are resolved would look like the end.
_MAX_THREAD_PAGES = 5
_MAX_COMMENT_CHARACTERS = 1000


@dataclass(frozen=True)
class NewReview:
    """What a reviewer says.

    Attributes:
        verdict: submits the review; without, it stays pending, seen by its author only.
        commit: the head that was reviewed.
    """

    verdict: Verdict | None
    body: str | None
    comments: Sequence[ReviewComment]
    commit: Ref | None = None


@dataclass(frozen=True)
class _PendingReview:
    """A review that can be added to.

    Attributes:
        node: its opaque id, for GraphQL.
    """

    repo: WriteRepo
    number: int
    review: int
    node: str


async def list_threads(api: Api, repo: Repo, number: int, *, unresolved_only: bool, cursor: str | None) -> Listing:
    """Return a page of threads of review comments, each with the id that a reply and a resolution take."""
    scope = [repo.key, number]
    position = ConnectionPosition.decode("threads", cursor, scope, _THREADS_PER_PAGE)
    removed = 0
    page_count = 0
    while True:
        response = await _fetch_threads(api, repo, number, position)
        page_count += 1
        removed += response.removed
        connection = response.data["repository"]["pullRequest"]["reviewThreads"]
        threads = cast("list[dict[str, Any]]", connection["nodes"])[position.skip :]
        page = ConnectionPage.cut(connection, [_to_thread_row(thread) for thread in threads], position)
        rows = page.rows
        if unresolved_only:
            rows = [row for row in rows if not row[_RESOLVED]]
        if rows or page.next_position is None or page_count == _MAX_THREAD_PAGES:
            break
        position = page.next_position
    note = "comments: id, author, association, trust, created_at, body"
    if page.next_position is not None:
        qualifier = ""
        if unresolved_only:
            qualifier = "At most "
        note += f". {qualifier}{page.remaining_count} more."
    return Listing(
        cursor=page.encode_cursor("threads", scope),
        note=note,
        total=page.total,
        removed=removed or None,
        columns=list(_THREAD_COLUMNS),
        rows=rows,
    )


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


async def send_review(api: Api, repo: WriteRepo, number: int, review: NewReview) -> Done:
    """Create a whole review at once."""
    _require_last_lines(review.comments)
    # A comment on a whole file can only be added to a review that is there.
    line_comments = [comment for comment in review.comments if comment.line is not None]
    file_comments = [comment for comment in review.comments if comment.line is None]
    body: dict[str, Any] = {"comments": [comment.to_rest() for comment in line_comments]}
    if review.verdict and not file_comments:
        body["event"] = review.verdict
    if review.body and not file_comments:
        body["body"] = review.body
    if review.commit is not None:
        body["commit_id"] = review.commit.name
    description = f"a review of #{number} of `{repo.full_name}`"
    response = await api.write("POST", f"{repo.path}/pulls/{number}/reviews", description, body, repo=repo)
    created = response.data
    if file_comments:
        pending = _PendingReview(repo, number, int(created["id"]), str(created["node_id"]))
        return await _grow(api, pending, NewReview(review.verdict, review.body, file_comments))
    state = str(created.get("state", "")).lower()
    return Done(done=f"Review of #{number}: {state}.", url=created.get("html_url"), data={"review": created["id"]})


async def add_to_review(api: Api, repo: WriteRepo, number: int, review_id: int, review: NewReview) -> Done:
    """Add to the pending review with the id `review_id`."""
    _require_last_lines(review.comments)
    if review.commit is not None:
        raise Invalid("A pending review has its commit already.", "Leave `commit` out.")
    return await _grow(api, await _find_pending(api, repo, number, review_id), review)


async def finish_review(
    api: Api, repo: WriteRepo, number: int, review: int, *, action: ReviewAction, verdict: Verdict | None,
    body: str | None,
) -> Done:  # fmt: skip
    """Submit or delete a pending review, or dismiss one."""
    path = f"{repo.path}/pulls/{number}/reviews/{review}"
    description = _describe(repo, number, review)
    match action:
        case "submit":
            event = {"event": verdict or "COMMENT"}
            if body:
                event["body"] = body
            await api.write("POST", f"{path}/events", description, event, repo=repo)
        case "delete":
            await api.write("DELETE", path, description, repo=repo)
        case "dismiss":
            message = {"message": body or "Dismissed."}
            await api.write("PUT", f"{path}/dismissals", description, message, repo=repo)
    return Done(done=f"Review {review}: {action}.")


async def _fetch_threads(api: Api, repo: Repo, number: int, position: ConnectionPosition) -> ApiResponse:
    variables = {
        "owner": repo.owner, "name": repo.name, "number": number, "first": _THREADS_PER_PAGE,
        "after": position.after,
    }  # fmt: skip
    description = f"pull request #{number} of `{repo.full_name}`"
    return await api.graphql(THREADS, variables, description, repo=repo)


async def _require_thread_of(api: Api, repo: Repo, number: int, thread: NodeId) -> None:
    """Raise `NotFound` unless `thread` is one of that pull request's: an opaque id could be of any repository."""
    response = await api.graphql(NODE_PLACE, {"id": thread.text}, f"the thread {quote(thread.text)}", internal=True)
    node: dict[str, Any] = response.data.get("node") or {}
    repo_key = str(pick(node, "repository.nameWithOwner") or "").lower()
    if repo_key != repo.key or pick(node, "pullRequest.number") != number:
        raise NotFound(
            f"#{number} of `{repo.full_name}` has no thread {quote(thread.text)}.",
            "`list_reviews` with kind=threads shows them.",
        )


async def _find_pending(api: Api, repo: WriteRepo, number: int, review: int) -> _PendingReview:
    """Return the review with its opaque id, if it is pending."""
    description = _describe(repo, number, review)
    response = await api.get(f"{repo.path}/pulls/{number}/reviews/{review}", description, internal=True)
    state = response.data.get("state")
    if state != "PENDING":
        raise Conflict(
            f"The {description} is {str(state).lower()}, and only a pending one can be added to.",
            "Create another review.",
        )
    return _PendingReview(repo, number, review, str(response.data["node_id"]))


async def _grow(api: Api, pending: _PendingReview, addition: NewReview) -> Done:
    """Add comments to a pending review one by one, and then its verdict or its text."""
    added_count = 0
    try:
        for comment in addition.comments:
            await _add_comment(api, pending, comment)
            added_count += 1
        if addition.verdict is not None:
            return await finish_review(
                api, pending.repo, pending.number, pending.review, action="submit", verdict=addition.verdict,
                body=addition.body,
            )  # fmt: skip
        if addition.body is not None:
            await _set_body(api, pending, addition.body)
    except Problem as problem:
        raise Conflict(
            f"{problem.failure} The review is pending, with {added_count} of these {len(addition.comments)} comments.",
            f"Go on with review_id={pending.review}, with lines that `read_diff` shows, or delete it with "
            "`edit_review`.",
        ) from None
    return Done(
        done=f"Review of #{pending.number}: pending, {added_count} more comments.",
        data={"review": pending.review},
    )


async def _add_comment(api: Api, pending: _PendingReview, comment: ReviewComment) -> None:
    description = _describe(pending.repo, pending.number, pending.review)
    variables = {"input": comment.to_graphql(pending.node)}
    await api.graphql(ADD_THREAD, variables, description, repo=pending.repo, writes=True)


async def _set_body(api: Api, pending: _PendingReview, body: str) -> None:
    path = f"{pending.repo.path}/pulls/{pending.number}/reviews/{pending.review}"
    description = _describe(pending.repo, pending.number, pending.review)
    await api.write("PUT", path, description, {"body": body}, repo=pending.repo)


def _require_last_lines(comments: Sequence[ReviewComment]) -> None:
    for comment in comments:
        if comment.line is None and comment.start_line:
            raise Invalid("A comment with `start_line` needs `line`, its last one.")


def _describe(repo: Repo, number: int, review: int) -> str:
    return f"review `{review}` of #{number} of `{repo.full_name}`"


def _to_thread_row(thread: Mapping[str, Any]) -> list[Any]:
    comments = [_to_comment_row(comment) for comment in thread["comments"]["nodes"]]
    more = thread["comments"]["totalCount"] - len(comments)
    if more > 0:
        comments.append([f"{more} more"])
    return [
        thread["id"],
        thread["path"],
        thread["line"],
        thread["isResolved"],
        thread["isOutdated"],
        comments,
    ]


def _to_comment_row(comment: Mapping[str, Any]) -> list[Any]:
    return [
        comment["databaseId"],
        author_of(comment),
        comment["authorAssociation"],
        trust_of(comment),
        comment["createdAt"],
        pick(comment, clip("body", _MAX_COMMENT_CHARACTERS)),
    ]
