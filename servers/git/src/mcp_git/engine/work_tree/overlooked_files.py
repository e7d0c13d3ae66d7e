"""Finds files of which git was told to overlook changes: `--assume-unchanged`, `--skip-worktree`."""

from __future__ import annotations

import os
from collections.abc import Sequence

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_git.engine.program.git import Git
from mcp_git.engine.program.output import split_names
from mcp_git.policy import Repository
from mcp_git.repository_paths import Layout

__all__ = ["list_assumed_unchanged", "list_overlooked", "list_overlooked_changes"]


def list_assumed_unchanged(git: Git, repository: Repository, paths: Sequence[str], cancel: CancelToken) -> list[str]:
    """Return the files at or below `paths` that are marked `--assume-unchanged`."""
    return [name for letter, name in _list_letters(git, repository, paths, cancel) if letter.islower()]


def list_overlooked(git: Git, repository: Repository, paths: Sequence[str], cancel: CancelToken) -> list[str]:
    """Return the files at or below `paths` that have either mark."""
    letters = _list_letters(git, repository, paths, cancel)
    return [name for letter, name in letters if letter.islower() or letter == "S"]


def list_overlooked_changes(
    git: Git, repository: Repository, layout: Layout, marked: Sequence[str], cancel: CancelToken
) -> list[str]:
    """Return which of the marked files have other contents on disk."""
    if not marked:
        return []
    with git.copy_index(layout) as folder:
        names = os.fsencode("".join(f"{name}\0" for name in marked))
        # Of two such options in one call git follows the last one only.
        for option in ("--no-assume-unchanged", "--no-skip-worktree"):
            unmark = ["update-index", "-z", option, "--stdin"]
            git.run(repository, unmark, cancel, stdin=names, scratch_index=folder)
        refresh = ["update-index", "-q", "--refresh"]
        git.run(repository, refresh, cancel, exit_codes=(0, 1), scratch_index=folder)
        compare = ["diff-files", "--name-only", "-z", "--diff-filter=d"]
        output = git.run(repository, compare, cancel, scratch_index=folder)
    return sorted(set(marked).intersection(split_names(output.stdout)))


def _list_letters(git: Git, repository: Repository, paths: Sequence[str], cancel: CancelToken) -> list[tuple[str, str]]:
    """Return the files of the index, each with the letter that `git ls-files -v` has for it."""
    output = git.run(repository, ["ls-files", "-v", "-z", "--", *paths], cancel)
    return [(entry[0], entry[2:]) for entry in split_names(output.stdout)]
