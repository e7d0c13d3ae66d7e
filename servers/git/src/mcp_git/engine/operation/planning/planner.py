"""What every kind of plan needs to know of the repository at its turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.undo.undo_kind import HASH_LENGTH
from mcp_git.engine.work_tree.status_reader import read_status
from mcp_git.policy import Repository, Revision
from mcp_git.tool_calls import ToolCall, format_call

__all__ = ["OperationPlanner"]


@dataclass(frozen=True, slots=True)
class OperationPlanner:
    """Plans operations on one repository, and says what any kind of them needs to know; every method blocks."""

    git: Git
    repository: Repository
    cancel: CancelToken

    def _find_hash(self, ref: str) -> str:
        return self.git.find_hash(self.repository, ref, self.cancel)[:HASH_LENGTH]

    def _shorten_ref(self, name: str, folder: Literal["heads", "tags", "remotes"]) -> str:
        return self.git.shorten_ref(self.repository, name, folder, self.cancel)

    def _disambiguate(self, revision: Revision) -> str:
        """Return what stands for `revision` in every command.

        Some of git's take the branch of that name for it, where there is a tag as well, or HEAD.
        """
        commit = self._find_hash(revision.text)
        if not commit:
            return revision.text
        branch = self._find_hash(f"refs/heads/{revision.text}")
        if branch in ("", commit):
            return revision.text
        return commit

    def _return_calls(self, target: str) -> Sequence[ToolCall]:
        """Return the call that leads to where HEAD is now; none if that is `target`, or no commit."""
        status = read_status(self.git, self.repository, self.cancel)
        if not status.has_commit or status.head == target:
            return ()
        position = status.oid[:HASH_LENGTH] if status.is_detached else status.head
        return [format_call("run_switch", rev=position)]

    def _list_stashes(self) -> list[str]:
        """Return the hashes of the stashes, the latest first."""
        arguments = ["log", "--walk-reflogs", "--format=%H", "refs/stash", "--"]
        try:
            return self.git.run(self.repository, arguments, self.cancel).text.split()
        except GitFailed:
            return []
