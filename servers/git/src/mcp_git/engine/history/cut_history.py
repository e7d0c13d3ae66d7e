"""Tells where the history of a repository is cut: in a shallow clone, and where a file had another name."""

from __future__ import annotations

import os
from collections.abc import Iterable

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_git.engine.history.commit_rows import shorten_hash
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.path_quoting import quote_path
from mcp_git.policy import Repository, RepositoryPath
from mcp_git.repository_paths import Layout, read_small_file

__all__ = ["describe_boundary", "find_earlier_name", "list_boundary"]


def list_boundary(layout: Layout) -> list[str]:
    """Return the hashes of the commits in which a shallow clone begins, as many as are looked at; none elsewhere."""
    return (read_small_file(os.path.join(layout.common_dir, "shallow")) or "").split()


def describe_boundary(boundary: Iterable[str], shown: Iterable[str]) -> str:
    """Return what to know of a listing in a shallow clone.

    Args:
        shown: the commits that it has.
    """
    reached = [oid for oid in boundary if oid in set(shown)]
    if not reached:
        return "shallow clone: what is before its first commits is not here"
    names = ", ".join(shorten_hash(oid) for oid in reached[:2])
    if len(reached) > 2:
        names += f" and {len(reached) - 2:,} more"
    return f"shallow clone: what is before {names} is not here and counts as made there, so who made it is not known"


def find_earlier_name(git: Git, repository: Repository, oid: str, path: RepositoryPath, cancel: CancelToken) -> str:
    """Return the name, quoted, that a file had before a commit gave it this one; empty if it did not."""
    arguments = ["diff-tree", "-r", "-M", "--diff-filter=R", "--no-commit-id", "--name-status", "-z", oid, "--"]
    try:
        fields = git.run(repository, arguments, cancel).stdout.split(b"\0")
    except GitFailed:
        return ""  # Of a partial clone the contents are not here.
    for earlier, later in zip(fields[1::3], fields[2::3], strict=False):
        if later == os.fsencode(path.text):
            return quote_path(earlier)
    return ""
