"""Finds changes that git was told to overlook (`--assume-unchanged`), which it overwrites or commits all the same."""

from __future__ import annotations

import os
from collections.abc import Sequence

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Conflict
from mcp_git.engine.operation.conflicts import is_at_or_below
from mcp_git.engine.operation.untracked_files import name_some
from mcp_git.engine.program.git import Git
from mcp_git.engine.program.output import split_names
from mcp_git.engine.work_tree.overlooked_files import (
    list_assumed_unchanged,
    list_overlooked,
    list_overlooked_changes,
)
from mcp_git.engine.work_tree.status import Status
from mcp_git.path_quoting import quote_paths
from mcp_git.policy import Repository, Revision
from mcp_git.repository_paths import Layout

__all__ = ["refuse_failing_merge", "refuse_overwriting_hidden_changes", "refuse_overwriting_skipped"]


def refuse_overwriting_hidden_changes(
    git: Git, repository: Repository, layout: Layout, paths: Sequence[str], cancel: CancelToken
) -> None:
    """Check that no file at or below `paths` has changes that git overlooks: no stash and no undo would have them.

    Raises:
        Conflict: one has.
    """
    changed = _list_hidden_changes(git, repository, layout, paths, cancel)
    if changed:
        raise _lost(changed)


def refuse_overwriting_skipped(
    git: Git, repository: Repository, layout: Layout, source: Revision, paths: Sequence[str], cancel: CancelToken
) -> None:
    """Check that no file at or below `paths` that is marked `--skip-worktree` has changes and is another in a commit.

    Git leaves such files alone, unless a restore brings other contents.

    Raises:
        Conflict: one is.
    """
    marked = list_overlooked(git, repository, paths, cancel)
    if not marked:
        return
    arguments = ["diff-index", "--cached", "--name-only", "--no-renames", "-z", source.text, "--", *paths]
    differing = set(split_names(git.run(repository, arguments, cancel, exit_codes=(0, 128)).stdout))
    written = [name for name in marked if name in differing]
    changed = list_overlooked_changes(git, repository, layout, written, cancel)
    if changed:
        raise Conflict(
            f"What is marked `--skip-worktree` has changes, which would be lost for good: "
            f"{name_some(quote_paths(map(os.fsencode, changed)))}.",
            "Nothing was changed. The user can unmark it: `git update-index --no-skip-worktree`.",
        )


def refuse_failing_merge(
    git: Git, repository: Repository, layout: Layout, status: Status, revision: Revision, cancel: CancelToken
) -> None:
    """Check that git refuses no merge while there are changes that it overlooks: it resets all files where it does.

    Raises:
        Conflict: something uncommitted is in the way of the merge.
    """
    hidden = _list_hidden_changes(git, repository, layout, ["."], cancel)
    if not hidden:
        return
    obstacles = [entry.path for entry in status.entries] + [os.fsencode(name) for name in hidden]
    merged = _list_merged(git, repository, revision, cancel)
    folders = [path.rstrip(b"/") for path in obstacles]
    if status.list_staged() or any(is_at_or_below(name, folders) for name in merged):
        raise _lost(hidden)


def _list_merged(git: Git, repository: Repository, revision: Revision, cancel: CancelToken) -> list[bytes]:
    """Return the files that HEAD or a revision has changed since both parted."""
    names: list[bytes] = []
    for sides in (("HEAD", revision.text), (revision.text, "HEAD")):
        arguments = ["diff-tree", "-r", "--name-only", "--no-renames", "-z", "--merge-base", *sides, "--"]
        names += git.run(repository, arguments, cancel, exit_codes=(0, 128)).stdout.split(b"\0")[:-1]
    return names


def _list_hidden_changes(
    git: Git, repository: Repository, layout: Layout, paths: Sequence[str], cancel: CancelToken
) -> list[str]:
    """Return the files at or below `paths` that are marked `--assume-unchanged` and have other contents on disk."""
    marked = list_assumed_unchanged(git, repository, paths, cancel)
    return list_overlooked_changes(git, repository, layout, marked, cancel)


def _lost(changed: Sequence[str]) -> Conflict:
    return Conflict(
        f"What is marked `--assume-unchanged` has changes, which would be lost for good: "
        f"{name_some(quote_paths(map(os.fsencode, changed)))}.",
        "Nothing was changed. The user can mark it `--skip-worktree` instead: git leaves that alone.",
    )
