"""Finds the folders in which something can change a repository's answers."""

from __future__ import annotations

import os
from collections.abc import Iterator

from mcp_batteries.limits import Stop
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.output import split_records
from mcp_git.policy import Repository
from mcp_git.repository_paths import Layout

__all__ = ["find_watched_folders"]

_MOST = 50_000


def find_watched_folders(git: Git, repository: Repository, work_tree: bool, stop: Stop) -> tuple[Layout, set[str]]:
    """The git directory's folders that hold refs and what is under way; with `work_tree` those of files that are not
    ignored as well."""
    layout = git.layout(repository)
    found = {layout.git_dir, layout.common_dir}
    for part in {layout.git_dir, layout.common_dir}:
        found.update(_below(os.path.join(part, "refs"), stop))
        found.add(os.path.join(part, "reftable"))
    found.update(os.path.join(layout.git_dir, name) for name in ("rebase-merge", "rebase-apply", "sequencer"))
    found.add(os.path.join(layout.common_dir, "info"))
    if work_tree and layout.work_tree:
        ignored = _ignored(git, repository, layout.work_tree, stop)
        found.update(_below(layout.work_tree, stop, ignored))
    return layout, {folder for folder in found if os.path.isdir(folder)}


def _ignored(git: Git, repository: Repository, top: str, stop: Stop) -> set[str]:
    words = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"]
    try:
        with git.stream(repository, words, stop) as pieces:
            return {os.path.join(top, os.fsdecode(name[:-1])) for name in split_records(pieces) if name.endswith(b"/")}
    except GitFailed:
        return set()


def _below(top: str, stop: Stop, but: set[str] | frozenset[str] = frozenset()) -> Iterator[str]:
    for number, (above, folders, _) in enumerate(os.walk(top)):
        stop.check()
        if number == _MOST:
            return
        yield above
        # A repository inside of another is one entry of it.
        folders[:] = [name for name in folders if name != ".git" and os.path.join(above, name) not in but]
