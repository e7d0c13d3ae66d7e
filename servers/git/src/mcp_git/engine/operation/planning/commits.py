"""Plans commits by another author, of some paths alone, and of single hunks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from mcp_batteries.errors import Conflict, NotFound, quote
from mcp_git.engine.operation.conflicts import is_at_or_below
from mcp_git.engine.operation.operation import CommitOperation, GitInput
from mcp_git.engine.operation.patch import encode_patch
from mcp_git.engine.operation.planning.planner import OperationPlanner
from mcp_git.engine.work_tree.overlooked_files import list_assumed_unchanged
from mcp_git.engine.work_tree.status import Status
from mcp_git.engine.work_tree.status_reader import read_status
from mcp_git.path_quoting import quote_path
from mcp_git.policy import Revision

__all__ = ["CommitPlanner"]


class CommitPlanner(OperationPlanner):
    """Plans commits."""

    def commit_as(self, operation: CommitOperation, revision: Revision) -> CommitOperation:
        """Plan to commit by the author of another commit, with the date on which they wrote that.

        Raises:
            NotFound: there is no such commit.
        """
        arguments = ["log", "--max-count=1", "--format=%an <%ae>%x00%ad", "--date=raw", revision.text, "--"]
        output = self.git.run(self.repository, arguments, self.cancel, exit_codes=(0, 128))
        author, _, date = output.text.strip().partition("\0")
        if not date:
            raise NotFound(
                f"{quote(revision.text)} is not an author, and no commit either.",
                "Write the name and the address: `Ada <ada@example.org>`, or name a commit.",
            )
        # Behind the sign, git takes any number for seconds.
        return replace(operation, arguments=[*operation.arguments, f"--author={author}", f"--date=@{date}"])

    def commit_only(self, operation: CommitOperation, paths: Sequence[str], *, has_patch: bool) -> CommitOperation:
        """Plan to commit some paths, and to leave staged what else is; git can't do that with a patch.

        Raises:
            Conflict: with a patch, something else is staged.
        """
        status = read_status(self.git, self.repository, self.cancel)
        is_merge_or_pick = bool(status.in_progress) and status.in_progress[0].startswith(("merge", "cherry-pick"))
        if is_merge_or_pick and "." in paths:
            # Git refuses to commit paths there, even all.
            return operation
        if not has_patch:
            paths = self._without_assumed_unchanged(paths, status)
            return replace(operation, arguments=[*operation.arguments, "--", *paths])
        staged = status.list_staged()
        if staged:
            raise Conflict(
                f"{quote(quote_path(staged[0]))} is staged, and with a `patch` it would be committed as well.",
                "Commit it first, or unstage it with `stage_files`; to commit both, stage `paths` and leave them out.",
            )
        return operation

    def stage_patch(self, patch: str, *, unstages: bool = False) -> GitInput:
        """Plan to stage the hunks of a patch, or to take them out of the index."""
        arguments = ["apply", "--cached", "--whitespace=nowarn"]
        if unstages:
            arguments.append("--reverse")
        return GitInput([*arguments, "-"], encode_patch(self.git, self.repository, patch, self.cancel))

    def _without_assumed_unchanged(self, paths: Sequence[str], status: Status) -> Sequence[str]:
        """Return the paths, or the changed ones below them if some are marked `--assume-unchanged`.

        `git add` leaves those alone; `git commit` with paths takes their changes, and drops the mark.

        Raises:
            Conflict: there is no other change.
        """
        marked = frozenset(list_assumed_unchanged(self.git, self.repository, paths, self.cancel))
        if not marked:
            return paths
        folders = [os.fsencode(path).rstrip(b"/") for path in paths]
        names = [name for entry in status.entries for name in (entry.path, entry.renamed_from) if name]
        names = [os.fsdecode(name) for name in names if is_at_or_below(name, folders)]
        # One that was staged before it was marked stays staged as it was.
        changed = [name for name in names if name not in marked]
        if not changed:
            raise Conflict(
                "Nothing there has changed but what is marked `--assume-unchanged`, which stays out of commits.",
                "The user can unmark it: `git update-index --no-assume-unchanged`.",
            )
        return changed
