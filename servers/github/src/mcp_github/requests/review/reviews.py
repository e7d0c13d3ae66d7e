"""Reviews: complete ones, and pending ones that grow until they are submitted."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mcp_batteries.errors import Conflict, Invalid, Problem
from mcp_github.client.api import Api
from mcp_github.models import Done
from mcp_github.policy import Ref, Repo, ReviewComment, WriteRepo
from mcp_github.requests.branches import resolve_sha
from mcp_github.requests.graphql_queries import ADD_THREAD
from mcp_github.requests.review.lines import explain_misplaced

__all__ = [
    "NewReview", "ReviewAction", "Verdict", "add_to_review", "finish_review", "send_review",
]  # fmt: skip

Verdict = Literal["APPROVE", "REQUEST_CHANGES", "COMMENT"]
ReviewAction = Literal["submit", "delete", "dismiss"]

_FULL_SHA = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")


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


async def send_review(api: Api, repo: WriteRepo, number: int, review: NewReview) -> Done:
    """Create a whole review at once."""
    _require_last_lines(review.comments)
    # A comment on a whole file can only be added to a review that is there.
    file_comments = [comment for comment in review.comments if comment.line is None]
    created = await _create(api, repo, number, review, stays_pending=bool(file_comments))
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


async def _create(
    api: Api, repo: WriteRepo, number: int, review: NewReview, *, stays_pending: bool
) -> Mapping[str, Any]:
    """Create a review with its comments on lines, and return what GitHub has of it.

    Args:
        stays_pending: leave out the verdict, which would submit it, and the text that belongs to it.
    """
    line_comments = [comment for comment in review.comments if comment.line is not None]
    body: dict[str, Any] = {"comments": [comment.to_rest() for comment in line_comments]}
    if review.verdict and not stays_pending:
        body["event"] = review.verdict
    if review.body and not stays_pending:
        body["body"] = review.body
    if review.commit is not None:
        body["commit_id"] = await _full_sha(api, repo, review.commit)
    description = f"a review of #{number} of `{repo.full_name}`"
    try:
        response = await api.write("POST", f"{repo.path}/pulls/{number}/reviews", description, body, repo=repo)
    except Invalid as problem:
        misplaced = await explain_misplaced(api, repo, number, review.comments)
        if not misplaced:
            raise
        raise Invalid(
            f"{problem.failure} {misplaced}", "Nothing was posted: move or drop these, and call again.",
            status=problem.status,
        ) from None  # fmt: skip
    return response.data


async def _full_sha(api: Api, repo: WriteRepo, commit: Ref) -> str:
    """Return all digits of a commit: a review takes no other name of one."""
    if _FULL_SHA.fullmatch(commit.name):
        return commit.name
    return await resolve_sha(api, repo, commit)


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
        misplaced = await explain_misplaced(api, pending.repo, pending.number, addition.comments[added_count:][:1])
        if misplaced:
            misplaced = f" {misplaced}"
        raise Conflict(
            f"{problem.failure}{misplaced} The review is pending, with {added_count} of these "
            f"{len(addition.comments)} comments.",
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
