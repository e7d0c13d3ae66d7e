"""Names submodules that an operation left where they were, and those that a commit takes back to an earlier commit.

No operation moves the work tree of a submodule. If one brought another commit of it, committing all changes would
undo that: what somebody else recorded would be taken back, and git does not warn of it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_git.engine.history.commit_rows import shorten_hash
from mcp_git.engine.operation.untracked_files import name_some
from mcp_git.engine.program.git import Git
from mcp_git.engine.program.output import split_names
from mcp_git.engine.work_tree.status import Status
from mcp_git.path_quoting import quote_path
from mcp_git.policy import Repository
from mcp_git.repository_paths import Layout

__all__ = ["describe_left_behind", "describe_taken_back"]

_RAW_OPTIONS = ("--raw", "--no-abbrev", "--no-renames", "-z")
# How many earlier changes of a submodule are searched for its commit.
_MAX_EARLIER_CHANGES = 50


class _Change(NamedTuple):
    """A change of the commit that is recorded of a submodule."""

    path: str
    old_oid: str
    new_oid: str


def describe_left_behind(git: Git, layout: Layout, before: Status, after: Status) -> list[str]:
    """Return the submodules that came to differ from what is recorded, as HEAD or the index moved without them."""
    changed = [entry for entry in after.entries if entry.letters[1] == "M" and entry not in before.entries]
    if not changed:
        return []
    submodules = git.list_submodules(layout)
    paths = [entry.path for entry in changed if os.fsdecode(entry.path) in submodules]
    if not paths:
        return []
    names = name_some([quote_path(path) for path in paths])
    return [f"not moved with it, so a commit of it would undo that: {names}; the user can `git submodule update`"]


def describe_taken_back(
    git: Git, repository: Repository, layout: Layout, command: Sequence[str], cancel: CancelToken
) -> list[str]:
    """Return the submodules that a change takes back to a commit which was replaced before.

    Args:
        command: the command of git that lists the change.
    """
    submodules = git.list_submodules(layout)
    if not submodules:
        return []
    lines: list[str] = []
    for change in _list_changes(git, repository, [*command, *_RAW_OPTIONS, "--", *submodules], cancel):
        history = ["log", "--format=", f"--max-count={_MAX_EARLIER_CHANGES}", *_RAW_OPTIONS, "HEAD", "--", change.path]
        if any(earlier.old_oid == change.new_oid for earlier in _list_changes(git, repository, history, cancel)):
            name = quote_path(os.fsencode(change.path))
            hashes = f"{shorten_hash(change.old_oid)} to {shorten_hash(change.new_oid)}"
            lines.append(f"the submodule {name} goes back from {hashes}, which was replaced before")
    return lines


def _list_changes(git: Git, repository: Repository, arguments: Sequence[str], cancel: CancelToken) -> list[_Change]:
    """Return the changes that a command prints as `--raw`."""
    changes: list[_Change] = []
    records = iter(split_names(git.run(repository, arguments, cancel).stdout))
    for description, path in zip(records, records, strict=False):
        old_mode, new_mode, old_oid, new_oid, _ = description.split()
        if old_mode == ":160000" and new_mode == "160000":
            changes.append(_Change(path, old_oid, new_oid))
    return changes
