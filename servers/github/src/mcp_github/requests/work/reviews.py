"""Reviews: complete ones, and pending ones that grow until they are submitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mcp_batteries.errors import Conflict, Invalid, Problem
from mcp_github.client.api import Api
from mcp_github.models import Done
from mcp_github.policy import Repo, WriteRepo
from mcp_github.requests.graphql_queries import ADD_THREAD

__all__ = ["Event", "ReviewComment", "Reviews"]

Event = Literal["APPROVE", "REQUEST_CHANGES", "COMMENT"]
Side = Literal["LEFT", "RIGHT"]


@dataclass(frozen=True)
class ReviewComment:
    """A comment on a line of a difference, on several, or on a whole file.

    Attributes:
        line: the last one; None for the file.
        start_side: that of `start_line`, where it is not that of `line`.
    """

    path: str
    body: str
    line: int | None
    side: Side
    start_line: int | None
    start_side: Side | None = None

    def by_rest(self) -> dict[str, Any]:
        """It as part of a new review."""
        start = {"start_line": self.start_line, "start_side": self.start_side or self.side} if self.start_line else {}
        return {"path": self.path, "body": self.body, "line": self.line, "side": self.side, **start}

    def by_graphql(self, review: str) -> dict[str, Any]:
        """It as what is added to the pending review with this id."""
        given: dict[str, Any] = {"pullRequestReviewId": review, "path": self.path, "body": self.body}
        if self.line is None:
            return {**given, "subjectType": "FILE"}
        start = {"startLine": self.start_line, "startSide": self.start_side or self.side} if self.start_line else {}
        return {**given, "line": self.line, "side": self.side, **start}


@dataclass(frozen=True)
class Reviews:
    api: Api

    async def create(
        self, repo: WriteRepo, number: int, *, event: Event | None, body: str | None,
        comments: Sequence[ReviewComment], commit: str | None, review: int | None,
    ) -> Done:  # fmt: skip
        """A whole review at once, or more of a pending one.

        Args:
            event: submits it; without, it stays pending, seen by its author only.
            review: the pending one that is added to.
        """
        if any(item.line is None and item.start_line for item in comments):
            raise Invalid("A comment with `start_line` needs `line`, its last one.")
        what = f"a review of #{number} of `{repo.full}`"
        if review is not None:
            if commit is not None:
                raise Invalid("A pending review has its commit already.", "Leave `commit` out.")
            node = await self._pending(repo, number, review)
            return await self._grown(repo, number, review, node, comments, event, body)
        # A comment on a whole file can only be added to a review that is there.
        later = [item for item in comments if item.line is None]
        given: dict[str, Any] = {"comments": [item.by_rest() for item in comments if item.line is not None]}
        given |= {"event": event} if event and not later else {}
        given |= {"body": body} if body and not later else {}
        given |= {"commit_id": commit} if commit else {}
        made = (await self.api.write("POST", f"{repo.path}/pulls/{number}/reviews", what, given, repo=repo)).data
        if later:
            return await self._grown(repo, number, int(made["id"]), str(made["node_id"]), later, event, body)
        state = str(made.get("state", "")).lower()
        return Done(done=f"Review of #{number}: {state}.", url=made.get("html_url"), data={"review": made["id"]})

    async def _pending(self, repo: Repo, number: int, review: int) -> str:
        """The opaque id of a pending review."""
        what = f"review `{review}` of #{number} of `{repo.full}`"
        found = (await self.api.get(f"{repo.path}/pulls/{number}/reviews/{review}", what, quiet=True)).data
        if found.get("state") != "PENDING":
            raise Conflict(
                f"The {what} is {str(found.get('state')).lower()}, and only a pending one can be added to.",
                "Create another review.",
            )
        return str(found["node_id"])

    async def _grown(
        self, repo: WriteRepo, number: int, review: int, node: str, comments: Sequence[ReviewComment],
        event: Event | None, body: str | None,
    ) -> Done:  # fmt: skip
        what, added = f"review `{review}` of #{number} of `{repo.full}`", 0
        try:
            for item in comments:
                given = {"input": item.by_graphql(node)}
                await self.api.graphql(ADD_THREAD, given, what, repo=repo, writes=True)
                added += 1
            if event is not None:
                return await self.edit(repo, number, review, action="submit", event=event, body=body)
            if body is not None:
                where = f"{repo.path}/pulls/{number}/reviews/{review}"
                await self.api.write("PUT", where, what, {"body": body}, repo=repo)
        except Problem as problem:
            raise Conflict(
                f"{problem.what} The review is pending, with {added} of these {len(comments)} comments.",
                f"Go on with review_id={review}, with lines that `read_diff` shows, or delete it with `edit_review`.",
            ) from None
        return Done(done=f"Review of #{number}: pending, {added} more comments.", data={"review": review})

    async def edit(
        self, repo: WriteRepo, number: int, review: int, *, action: Literal["submit", "delete", "dismiss"],
        event: Event | None, body: str | None,
    ) -> Done:  # fmt: skip
        """Submit or delete a pending review, or dismiss one."""
        where, what = f"{repo.path}/pulls/{number}/reviews/{review}", f"review `{review}` of #{number} of `{repo.full}`"
        if action == "submit":
            given = {"event": event or "COMMENT", **({"body": body} if body else {})}
            await self.api.write("POST", f"{where}/events", what, given, repo=repo)
        elif action == "delete":
            await self.api.write("DELETE", where, what, repo=repo)
        else:
            await self.api.write("PUT", f"{where}/dismissals", what, {"message": body or "Dismissed."}, repo=repo)
        return Done(done=f"Review {review}: {action}.")
