"""A push: as requested, and as shown to the user for consent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcp_git.path_quoting import one_line
from mcp_git.policy import NewName, Remote, Revision

__all__ = ["Push", "Wanted"]


@dataclass(frozen=True, slots=True)
class Wanted:
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
    to: NewName | None = None
    tag: bool = False
    force: bool = False
    upstream: bool = False
    delete: bool = False


@dataclass(frozen=True, slots=True)
class Push:
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
    branch: str
    oid: str
    ref: str
    before: str
    force: bool
    new: Sequence[str]
    lost: Sequence[str]

    @property
    def short(self) -> str:
        return one_line(self.ref.partition("/")[2].partition("/")[2])

    @property
    def kind(self) -> str:
        return "tag" if self.ref.startswith("refs/tags/") else "branch"

    @property
    def lease(self) -> Sequence[str]:
        """What has to be there still, where something is replaced or deleted."""
        return [f"--force-with-lease={self.ref}:{self.before}"] if self.force or not self.oid else []

    @property
    def question(self) -> str:
        """What the user is asked: what goes where."""
        where = f"the {self.kind} `{self.short}` of the remote `{self.remote.name}`, {self.remote.address.shown}"
        if not self.oid:
            return "\n".join([f"DELETE {where}?", f"It is at {self.before[:12]}.", *self.lost])
        lines = [f"Push `{one_line(self.source)}` ({self.oid[:12]}) to {where}?", *self.new]
        if self.force:
            lines.append(f"It may REPLACE what is there ({self.before[:12]}).")
            lines += self.lost
        if self.branch:
            lines.append(f"The branch `{one_line(self.branch)}` will follow it.")
        return "\n".join(lines)
