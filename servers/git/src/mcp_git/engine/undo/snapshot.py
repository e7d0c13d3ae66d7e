"""Keeps the state before an operation as trees.

The trees use our own index and object folder, so that a refused operation leaves nothing behind.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Conflict
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.revisions import explained_missing_contents
from mcp_git.engine.undo.earlier_state import Snapshot
from mcp_git.engine.undo.undo_kind import HASH_LENGTH
from mcp_git.engine.work_tree.status import Status, is_conflict
from mcp_git.policy import Repository
from mcp_git.repository_paths import Layout

__all__ = ["take_snapshot"]


@contextmanager
def take_snapshot(
    git: Git,
    repository: Repository,
    layout: Layout,
    status: Status,
    keeps_files: bool,
    cancel: CancelToken,
    new_files: Sequence[bytes] = (),
) -> Generator[Snapshot]:
    """Keep the state as it is now, for the time of an operation.

    Args:
        status: what `git status` says of it.
        keeps_files: whether what is not committed may go.
        new_files: untracked files that are kept as well.

    Raises:
        Conflict: what is not committed can't be kept.
        Unavailable: nor can it in a partial clone that lacks some of it.
    """
    tracked = [entry.letters for entry in status.entries if entry.letters != "??"]
    is_staged = _is_staged(tracked)
    has_files = keeps_files and bool(tracked or new_files)
    has_index = os.path.exists(os.path.join(layout.git_dir, "index"))
    if not has_index or not (is_staged or has_files):
        yield Snapshot(status)
        return
    with git.copy_index(layout) as folder:
        index_tree = ""
        files_tree = ""
        try:
            with explained_missing_contents(git, repository):
                if is_staged:
                    index_tree = _write_tree(git, repository, folder, cancel)
                if has_files:
                    git.run(repository, ["add", "--update"], cancel, scratch_index=folder)
                    if new_files:
                        names = [*map(os.fsdecode, new_files)]
                        git.run(repository, ["add", "--", *names], cancel, scratch_index=folder)
                    files_tree = _write_tree(git, repository, folder, cancel)
        except GitFailed as failure:
            fix = "Commit it, or put it aside with `run_stash`, first."
            raise Conflict(f"What is not committed can't be kept: {failure}", fix) from None
        yield Snapshot(status, index_tree, files_tree, folder)


def _is_staged(letters_of_files: Sequence[str]) -> bool:
    """Whether something is staged that a tree can hold, which a conflict can't be."""
    if any(map(is_conflict, letters_of_files)):
        return False
    return any(letters[0] != " " for letters in letters_of_files)


def _write_tree(git: Git, repository: Repository, scratch_index: str, cancel: CancelToken) -> str:
    arguments = ["write-tree"]
    if git.is_partial(repository):
        arguments.append("--missing-ok")
    return git.run(repository, arguments, cancel, scratch_index=scratch_index).text.strip()[:HASH_LENGTH]
