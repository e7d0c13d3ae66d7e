"""Finds the folders in which something can change a repository's answers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Set

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.output import split_records
from mcp_git.policy import Repository
from mcp_git.repository_paths import Layout

__all__ = ["find_watched_folders"]

_MAX_FOLDERS = 50_000
_OPERATION_FOLDERS = ("rebase-merge", "rebase-apply", "sequencer")


def find_watched_folders(
    git: Git, repository: Repository, with_work_tree: bool, cancel: CancelToken
) -> tuple[Layout, set[str]]:
    """Return the git directory's folders that hold refs and what is in progress.

    Args:
        with_work_tree: whether to return those of files that are not ignored as well.
    """
    layout = git.layout(repository)
    folders = {layout.git_dir, layout.common_dir, os.path.join(layout.common_dir, "info")}
    for git_dir in {layout.git_dir, layout.common_dir}:
        folders.update(_walk(os.path.join(git_dir, "refs"), cancel))
        folders.add(os.path.join(git_dir, "reftable"))
    for name in _OPERATION_FOLDERS:
        folders.add(os.path.join(layout.git_dir, name))
    if with_work_tree and layout.work_tree:
        ignored = _find_ignored(git, repository, layout.work_tree, cancel)
        folders.update(_walk(layout.work_tree, cancel, ignored))
    return layout, {folder for folder in folders if os.path.isdir(folder)}


def _find_ignored(git: Git, repository: Repository, work_tree: str, cancel: CancelToken) -> set[str]:
    arguments = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"]
    ignored: set[str] = set()
    try:
        with git.stream(repository, arguments, cancel) as pieces:
            for name in split_records(pieces):
                if name.endswith(b"/"):
                    ignored.add(os.path.join(work_tree, os.fsdecode(name[:-1])))
    except GitFailed:
        return set()
    return ignored


def _walk(top: str, cancel: CancelToken, excluded: Set[str] = frozenset()) -> Iterator[str]:
    """Iterate over a folder and those below it, as far as so many can be watched."""
    for number, (folder, names, _) in enumerate(os.walk(top)):
        cancel.check()
        if number == _MAX_FOLDERS:
            return
        yield folder
        # A repository inside of another is one entry of it.
        names[:] = [name for name in names if name != ".git" and os.path.join(folder, name) not in excluded]
