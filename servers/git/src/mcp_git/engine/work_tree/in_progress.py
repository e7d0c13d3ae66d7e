"""Finds the operations that are in progress in a repository: a merge, a rebase, a bisect."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_git.engine.program.git import Git
from mcp_git.engine.program.output import split_lines
from mcp_git.path_quoting import escape_line_breaks
from mcp_git.policy import Repository
from mcp_git.repository_paths import Layout, read_small_file

__all__ = [
    "find_operations_in_progress",
    "find_picked_commits",
    "find_start",
    "find_unmade_commit",
    "has_sequence",
    "list_remaining_commits",
    "list_sequence_options",
]

_PICKS = {"CHERRY_PICK_HEAD": "cherry-pick", "REVERT_HEAD": "revert"}
_COMMANDS_BY_STEP = {"pick": "cherry-pick", "revert": "revert"}
_STARTS = (("rebase-merge", "orig-head"), ("rebase-apply", "orig-head"), ("sequencer", "head"))
# Steps that make no commit.
_OTHER_STEPS = frozenset({"drop", "d", "noop"})
_HASH = re.compile("[0-9a-f]{4,64}")
# What git notes of how each of several commits is made once more, as options.
_OPTIONS_BY_NOTE = {"mainline": "--mainline=", "record-origin": "-x", "signoff": "--signoff"}
_NOTE = re.compile(r"(?m)^\s*([a-z-]+) = (\w+)$")
_MAX_NUMBER_LENGTH = 9
_MAX_BRANCH_LENGTH = 60


def find_operations_in_progress(git: Git, repository: Repository, layout: Layout, cancel: CancelToken) -> list[str]:
    """Return what was begun in a repository and is not finished; the first word of each is git's own for it."""
    operations: list[str] = []
    if _exists(layout, "rebase-merge"):
        operations.append(_describe_rebase(layout, "rebase-merge", "msgnum", "end"))
    if _exists(layout, "rebase-apply"):
        operations.append(_describe_rebase(layout, "rebase-apply", "next", "last"))
    if _exists(layout, "MERGE_HEAD"):
        operations.append("merge under way")
    if not operations:
        operations = _find_picks(git, repository, layout, cancel)
    if _exists(layout, "BISECT_LOG"):
        operations.append("bisect under way")
    return operations


def find_picked_commits(git: Git, repository: Repository, layout: Layout, cancel: CancelToken) -> list[str]:
    """Return the commits at which a cherry-pick and a revert stand; empty for none, as between two of several."""
    if layout.has_reftable:
        return [git.find_hash(repository, name, cancel) for name in _PICKS]
    return [read_small_file(os.path.join(layout.git_dir, name)) or "" for name in _PICKS]


def has_sequence(layout: Layout) -> bool:
    """Whether a cherry-pick or revert of several commits is in progress."""
    return os.path.lexists(os.path.join(layout.git_dir, "sequencer"))


def find_start(layout: Layout) -> str:
    """Return the commit at which a rebase in progress began, or several picks; empty for none of these."""
    for path in _STARTS:
        start = (read_small_file(os.path.join(layout.git_dir, *path)) or "").strip()
        if start:
            return start
    return ""


def list_remaining_commits(layout: Layout) -> list[str]:
    """Return the commits that are still to be made once more after the one at hand, in what is in progress."""
    rebase = read_small_file(os.path.join(layout.git_dir, "rebase-merge", "git-rebase-todo"))
    if rebase is not None:
        return _list_hashes(rebase)
    # Here the first is the one at hand.
    return _list_hashes(read_small_file(os.path.join(layout.git_dir, "sequencer", "todo")) or "")[1:]


def find_unmade_commit(git: Git, repository: Repository, layout: Layout, cancel: CancelToken) -> str:
    """Return the commit that several picks have come to and git did not begin; empty if there is none.

    It was refused, or git was ended before it. `--continue` takes it for made, and goes on with the next one.
    """
    last_head = read_small_file(os.path.join(layout.git_dir, "sequencer", "abort-safety"))
    if last_head is None or any(find_picked_commits(git, repository, layout, cancel)):
        return ""
    todo = read_small_file(os.path.join(layout.git_dir, "sequencer", "todo")) or ""
    commit = next(iter(_list_hashes(todo)), "")
    if not commit or "no-commit" in _read_notes(layout):
        return ""
    if last_head == git.find_hash(repository, "HEAD", cancel):
        return commit
    # Behind the sign no text of a file is an option.
    since = ["HEAD", f"^{last_head}"]
    is_made = _has_reverted if todo.startswith("revert") else _has_picked
    return "" if is_made(git, repository, commit, since, cancel) else commit


def _has_picked(git: Git, repository: Repository, commit: str, since: Sequence[str], cancel: CancelToken) -> bool:
    """Whether somebody has picked a commit: that keeps its author and date, also with a conflict."""

    def list_origins(*span: str) -> list[str]:
        arguments = ["log", "--format=%an%x00%ae%x00%at", *span, "--"]
        return split_lines(git.run(repository, arguments, cancel, exit_codes=(0, 128)))

    origins = list_origins("--max-count=1", commit)
    return bool(origins) and origins[0] in list_origins(*since)


def _has_reverted(git: Git, repository: Repository, commit: str, since: Sequence[str], cancel: CancelToken) -> bool:
    """Whether somebody has reverted a commit, as git's message for that says.

    Where another message was given, it is reverted again: that changes nothing, or shows its conflict once more.
    """
    search = ["--max-count=1", "--fixed-strings", f"--grep=reverts commit {commit}"]
    arguments = ["log", "--format=%H", *search, *since, "--"]
    return bool(git.run(repository, arguments, cancel, exit_codes=(0, 128)).stdout)


def list_sequence_options(layout: Layout) -> list[str]:
    """Return the options with which several picks in progress were begun, as far as they shape a commit."""
    options: list[str] = []
    for name, value in _read_notes(layout).items():
        option = _OPTIONS_BY_NOTE.get(name, "")
        if option.endswith("="):
            option += value
        if option:
            options.append(option)
    return options


def _read_notes(layout: Layout) -> dict[str, str]:
    return dict(_NOTE.findall(read_small_file(os.path.join(layout.git_dir, "sequencer", "opts")) or ""))


def _list_hashes(todo: str) -> list[str]:
    """Return the commits of a list of steps, such as `pick 1234567 Subject`."""
    hashes: list[str] = []
    for line in todo.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        step, *words = line.split()
        if step in _OTHER_STEPS:
            continue
        # Before the hash an option can stand, as in `fixup -C`.
        hashes += [word for word in words[:2] if _HASH.fullmatch(word)][:1]
    return hashes


def _exists(layout: Layout, name: str) -> bool:
    return os.path.exists(f"{layout.git_dir}{os.sep}{name}")


def _describe_rebase(layout: Layout, folder: str, step_file: str, end_file: str) -> str:
    def read(name: str) -> str | None:
        return read_small_file(os.path.join(layout.git_dir, folder, name))

    command = "am" if _exists(layout, os.path.join(folder, "applying")) else "rebase"
    step = escape_line_breaks(read(step_file) or "?")[:_MAX_NUMBER_LENGTH]
    end = escape_line_breaks(read(end_file) or "?")[:_MAX_NUMBER_LENGTH]
    phrase = f"{command} under way, step {step} of {end}"
    ref = read("head-name") or ""
    if ref.startswith("refs/heads/"):
        branch = escape_line_breaks(ref.removeprefix("refs/heads/"))[:_MAX_BRANCH_LENGTH]
        phrase += f", of {branch}"
    return phrase


def _find_picks(git: Git, repository: Repository, layout: Layout, cancel: CancelToken) -> list[str]:
    # Between two commits of several only the list of steps is there.
    todo = read_small_file(os.path.join(layout.git_dir, "sequencer", "todo")) or ""
    command_of_list = _COMMANDS_BY_STEP.get(todo.split(" ")[0])
    operations: list[str] = []
    for name, command in _PICKS.items():
        is_begun = command == command_of_list or _exists(layout, name)
        if not is_begun and layout.has_reftable:
            # A reftable holds what is otherwise a file.
            is_begun = bool(git.find_hash(repository, name, cancel))
        if is_begun:
            operations.append(f"{command} under way")
    return operations
