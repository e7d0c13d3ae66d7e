"""Comments on the lines of a pull request, of which each names a path in the repository."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from mcp_github.number_forms import OptionalNumber
from mcp_github.policy.names import file

__all__ = ["LineComment", "ReviewComment", "Side", "review_comments"]

Side = Literal["LEFT", "RIGHT"]


class LineComment(BaseModel):
    model_config = ConfigDict(extra="forbid")
    path: str
    body: str
    line: OptionalNumber = Field(None, description="None: the file")
    side: Side = "RIGHT"
    start_line: OptionalNumber = None
    start_side: Side | None = None


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
    start_side: Side | None

    def to_rest(self) -> dict[str, Any]:
        """Return it as part of a new review."""
        comment = {"path": self.path, "body": self.body, "line": self.line, "side": self.side}
        if self.start_line:
            comment["start_line"] = self.start_line
            comment["start_side"] = self.start_side or self.side
        return comment

    def to_graphql(self, review_node: str) -> dict[str, Any]:
        """Return it as what is added to the pending review with this id."""
        comment: dict[str, Any] = {"pullRequestReviewId": review_node, "path": self.path, "body": self.body}
        if self.line is None:
            return {**comment, "subjectType": "FILE"}
        if self.start_line:
            comment["startLine"] = self.start_line
            comment["startSide"] = self.start_side or self.side
        return {**comment, "line": self.line, "side": self.side}


def review_comments(comments: list[LineComment]) -> list[ReviewComment]:
    """Return `comments` with their paths checked.

    Raises:
        Invalid: a path could leave its place in a request.
    """
    return [_parse_comment(comment) for comment in comments]


def _parse_comment(comment: LineComment) -> ReviewComment:
    """Return `comment` with its path checked, and its lines as GitHub takes them: one alone is no range."""
    line = comment.line
    start_line = comment.start_line
    is_of_one_side = comment.start_side in (None, comment.side)
    if is_of_one_side and line and start_line:
        line, start_line = max(line, start_line), min(line, start_line)
        if start_line == line:
            start_line = None
    path = file(comment.path).name
    return ReviewComment(path, comment.body, line, comment.side, start_line, comment.start_side)
