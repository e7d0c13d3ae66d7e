"""A push: as requested, and as shown to the user for consent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcp_git.path_quoting import escape_line_breaks
from mcp_git.policy import NewName, Remote, Revision

__all__ = ["PlannedPush", "PushRequest"]


@dataclass(frozen=True, slots=True)
class PushRequest:
    """What is to be pushed.

    Attributes:
        revision: None for the current branch.
        to: the name that it gets there; None for its own.
        tag: whether it is a tag.
        force: whether it may replace what the remote has, if that is what was fetched last.
        upstream: whether the branch is to follow it from now on.
        delete: whether the remote is to have it no longer.
    """

    remote: str
    revision: Revision | None = None
    target: NewName | None = None
    is_tag: bool = False
    force: bool = False
    sets_upstream: bool = False
    delete: bool = False


@dataclass(frozen=True, slots=True)
class PlannedPush:
    """A push as the user is asked about it, and as it is then made: by hashes, not by names.

    Attributes:
        source: what it is called here.
        branch: the branch that is to follow it; empty for none.
        oid: what the remote gets; empty to delete what it has.
        ref: the whole name there.
        before: what the remote had at the last fetch; empty if nothing is known.
        new: what it would get, in words, then a line for each commit.
        lost: the same of commits that it would lose.
    """

    remote: Remote
    source: str
    following_branch: str
    commit: str
    target_ref: str
    known_commit: str
    force: bool
    new_commits: Sequence[str]
    lost_commits: Sequence[str]

    @property
    def target_name(self) -> str:
        return escape_line_breaks(self.target_ref.partition("/")[2].partition("/")[2])

    @property
    def kind(self) -> str:
        return "tag" if self.target_ref.startswith("refs/tags/") else "branch"

    @property
    def lease_options(self) -> Sequence[str]:
        """What has to be there still, where something is replaced or deleted."""
        return [f"--force-with-lease={self.target_ref}:{self.known_commit}"] if self.force or not self.commit else []

    @property
    def question(self) -> str:
        """What the user is asked: what goes where."""
        where = (
            f"the {self.kind} `{self.target_name}` of the remote `{self.remote.name}`, {self.remote.address.display}"
        )
        if not self.commit:
            return "\n".join([f"DELETE {where}?", f"It is at {self.known_commit[:12]}.", *self.lost_commits])
        lines = [f"Push `{escape_line_breaks(self.source)}` ({self.commit[:12]}) to {where}?", *self.new_commits]
        if self.force:
            lines.append(f"It may REPLACE what is there ({self.known_commit[:12]}).")
            lines += self.lost_commits
        if self.following_branch:
            lines.append(f"The branch `{escape_line_breaks(self.following_branch)}` will follow it.")
        return "\n".join(lines)
