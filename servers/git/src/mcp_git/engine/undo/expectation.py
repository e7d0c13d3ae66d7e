"""Refuses an undo where somebody has changed since what it expects to find."""

from __future__ import annotations

import os
from collections.abc import Sequence

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Conflict, quote
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.undo.later_state import branch_of
from mcp_git.engine.undo.undo_kind import HASH_LENGTH
from mcp_git.engine.work_tree.status_reader import read_status
from mcp_git.path_quoting import quote_paths
from mcp_git.policy import Expectation, Repository

__all__ = ["refuse_changed_since"]

_MAX_NAMES = 5
# How `git ls-files -t` marks such an entry.
_SKIP_WORKTREE = b"S "


def refuse_changed_since(
    git: Git, repository: Repository, expectation: Expectation, paths: Sequence[str], cancel: CancelToken
) -> None:
    """Check that what an undo expects is still so.

    Args:
        paths: of the files, or of what is staged, that it writes over.

    Raises:
        Conflict: somebody has changed it since.
    """
    if expectation.head:
        _refuse_other_head(git, repository, expectation, cancel)
    if expectation.files:
        changed = _list_changed(git, repository, expectation.files, paths, cancel, with_files=True)
        if changed and not expectation.head:
            # A restore leaves alone what no file is written for, where a reset goes over that too.
            unwritten = _list_skip_worktree(git, repository, paths, cancel)
            changed = [path for path in changed if path not in unwritten]
        _refuse_changed(changed, "has changed since, and would be overwritten")
    if expectation.index:
        changed = _list_changed(git, repository, expectation.index, paths, cancel, with_files=False)
        _refuse_changed(changed, "was staged in another form since")


def _refuse_other_head(git: Git, repository: Repository, expectation: Expectation, cancel: CancelToken) -> None:
    status = read_status(git, repository, cancel)
    if branch_of(status) == expectation.branch and status.oid.startswith(expectation.head):
        return
    was = f"{expectation.branch} {expectation.head}".strip()
    now = f"{branch_of(status)} {status.oid[:HASH_LENGTH]}".strip()
    raise Conflict(
        f"HEAD is no longer {quote(was)}, it is {quote(now)}: it has moved since.",
        "Nothing was changed. `list_refs` with kind=reflog tells what came; to do it all the same leave out `only_if`.",
    )


def _list_changed(
    git: Git, repository: Repository, tree: str, paths: Sequence[str], cancel: CancelToken, *, with_files: bool
) -> list[bytes]:
    """Return the paths of which the index differs from a tree, or with `with_files` the tracked files do."""
    layout = git.layout(repository)
    if not os.path.exists(os.path.join(layout.git_dir, "index")):
        return []
    arguments = ["diff-index", "--cached", "--name-only", "--no-renames", "--ita-invisible-in-index", "-z", tree, "--"]
    with git.copy_index(layout) as folder:
        try:
            if with_files:
                git.run(repository, ["add", "--update"], cancel, scratch_index=folder)
            output = git.run(repository, [*arguments, *paths], cancel, scratch_index=folder)
        except GitFailed as failure:
            raise Conflict(
                f"What this undo expects can't be compared: {failure}", "Leave `only_if` out to go on without that."
            ) from None
    return output.stdout.split(b"\0")[:-1]


def _list_skip_worktree(git: Git, repository: Repository, paths: Sequence[str], cancel: CancelToken) -> set[bytes]:
    """Return the paths of the index that git writes no files for, as outside of a sparse checkout."""
    output = git.run(repository, ["ls-files", "-t", "-z", "--", *paths], cancel)
    return {
        entry.removeprefix(_SKIP_WORKTREE) for entry in output.stdout.split(b"\0") if entry.startswith(_SKIP_WORKTREE)
    }


def _refuse_changed(changed: Sequence[bytes], predicate: str) -> None:
    if not changed:
        return
    names = ", ".join(quote_paths(changed[:_MAX_NAMES]))
    if len(changed) > _MAX_NAMES:
        names += f" and {len(changed) - _MAX_NAMES:,} more"
    raise Conflict(
        f"{quote(names)} {predicate}.",
        "Nothing was changed. Name the other files in `paths`, or leave out `only_if` to lose that too.",
    )
