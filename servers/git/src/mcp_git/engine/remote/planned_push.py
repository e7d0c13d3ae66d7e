"""A push as planned, which is shown to the user for confirmation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcp_git.path_quoting import escape_line_breaks
from mcp_git.policy import PushableRepository, Remote

__all__ = ["PlannedPush"]


@dataclass(frozen=True, slots=True)
class PlannedPush:
    """A push as the user is asked about it, and as it is then made: by hashes, not by names.

    Attributes:
        pushable: from where.
        source: what it is called here.
        following_branch: the branch that is to follow it; empty for none.
        commit: the hash that the remote gets; empty to delete what it has.
        target_ref: the whole name there.
        known_commit: what the remote had at the last fetch; empty if nothing is known.
        new_commits: what it would get, in words, then a line for each commit.
        lost_commits: the same of commits that it would lose.
    """

    pushable: PushableRepository
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
        _, _, name = self.target_ref.split("/", 2)
        return escape_line_breaks(name)

    @property
    def kind(self) -> str:
        return "tag" if self.target_ref.startswith("refs/tags/") else "branch"

    @property
    def lease_options(self) -> Sequence[str]:
        """The options that say what has to be there still, where something is replaced or deleted."""
        if self.force or not self.commit:
            return [f"--force-with-lease={self.target_ref}:{self.known_commit}"]
        return []

    @property
    def question(self) -> str:
        """What the user is asked: what goes where."""
        target = (
            f"the {self.kind} `{self.target_name}` of the remote `{self.remote.name}`, {self.remote.address.display}"
        )
        if not self.commit:
            return "\n".join([f"DELETE {target}?", f"It is at {self.known_commit[:12]}.", *self.lost_commits])
        lines = [f"Push `{escape_line_breaks(self.source)}` ({self.commit[:12]}) to {target}?", *self.new_commits]
        if self.force:
            lines.append(f"It may REPLACE what is there ({self.known_commit[:12]}).")
            lines += self.lost_commits
        if self.following_branch:
            lines.append(f"The branch `{escape_line_breaks(self.following_branch)}` will follow it.")
        return "\n".join(lines)
