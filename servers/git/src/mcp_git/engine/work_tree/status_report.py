"""Describes the state of a work tree: the branch, operations in progress, and differences, folded if there are many."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.server.calling.results import is_answering_script
from mcp_git.engine.history.missing_paths import refuse_missing_path
from mcp_git.engine.program.git import Git
from mcp_git.engine.program.revisions import explained_failures
from mcp_git.engine.work_tree.status import Status, StatusEntry, count_kinds, describe_counts
from mcp_git.engine.work_tree.status_reader import describe_submodules, read_status
from mcp_git.models import Answer, Table, count
from mcp_git.path_quoting import escape_line_breaks, quote_path
from mcp_git.policy import Repository, RepositoryPath
from mcp_git.repository_paths import Layout

__all__ = ["describe_status"]

# In the order of `StatusEntry.values`.
_COLUMNS = ("status", "path", "renamed_from")
_MAX_FOLDED_LINES = 60
_MAX_LINES = 4 * _MAX_FOLDED_LINES
# The largest `limit` that a call may name. A script has it always: it can't find files in folders with counts.
_MAX_LIMIT = 5000


def describe_status(git: Git, repository: Repository, path: RepositoryPath, limit: int, cancel: CancelToken) -> Answer:
    """Return the state in one answer: each file, or the folders with their counts if more than `limit` files differ."""
    layout = git.layout(repository)
    if layout.work_tree is None:
        return _describe_bare(git, repository, layout, cancel)
    with explained_failures(git, repository, None, cancel):
        status = read_status(git, repository, cancel, path, layout)
    if not status.entries:
        refuse_missing_path(git, repository, path, (), cancel)
    facts = _describe_state(status, path)
    facts += describe_submodules(git, layout)
    disbelieved = git.describe_disbelieved(repository)
    if disbelieved:
        facts.append(disbelieved)
    if is_answering_script():
        limit = _MAX_LIMIT
    if len(status.entries) <= limit:
        table = partial(Table, _COLUMNS, [entry.values for entry in status.entries])
        return Answer(facts, [entry.line for entry in status.entries], table=table)
    advice = "name a folder as `path`"
    if len(status.entries) <= _MAX_LIMIT:
        advice += f", or a `limit` of {len(status.entries)},"
    facts.append(f"folded: {advice} for the files")
    return Answer(facts, _fold(status.entries, path))


def _describe_state(status: Status, path: RepositoryPath) -> list[str]:
    counts = count_kinds(status.entries)
    facts = [status.branch, *status.in_progress, describe_counts(counts) or _describe_clean(path)]
    is_rebasing = any(operation.startswith("rebase") for operation in status.in_progress)
    if "in conflict" in counts and is_rebasing:
        facts.append("there rev=`:2` is the new base and `:3` the commit put on it")
    if status.stashes:
        facts.append(count(status.stashes, "stash"))
    return facts


def _describe_bare(git: Git, repository: Repository, layout: Layout, cancel: CancelToken) -> Answer:
    arguments = ["symbolic-ref", "--short", "HEAD"]
    head = git.run(repository, arguments, cancel, exit_codes=(0, 1, 128)).text.strip()
    configured = ""
    if layout.git_dir != repository.path:
        configured = " by `core.bare` or `core.worktree`"
    fact = f"bare repository{configured}, HEAD is {escape_line_breaks(head) or 'detached'}"
    return Answer([fact, "there is no work tree here"])


def _describe_clean(path: RepositoryPath) -> str:
    return f"{path.display} is clean" if path.text else "clean"


def _fold(entries: Sequence[StatusEntry], path: RepositoryPath) -> list[str]:
    """Return a line for each folder, opened as deep as there is room for."""
    top = b"" if path.is_glob else os.fsencode(path.text).strip(b"/")
    if top:
        top += b"/"
    groups = _group_by_name(entries, top)
    while _open_largest_folder(groups):
        pass
    lines = [_describe_group(name, group) for name, group in sorted(groups.items())]
    if len(lines) > _MAX_LINES:
        return [*lines[:_MAX_LINES], f"… {len(lines)} lines in all"]
    return lines


def _describe_group(name: bytes, group: Sequence[StatusEntry]) -> str:
    if len(group) == 1 and not name.endswith(b"/"):
        return group[0].line
    return f"{quote_path(name)} {describe_counts(count_kinds(group))}"


def _open_largest_folder(groups: dict[bytes, list[StatusEntry]]) -> bool:
    """Replace the largest folder that leaves room by what is in it; False if none does."""
    for name, group in sorted(groups.items(), key=lambda item: -len(item[1])):
        if not name.endswith(b"/") or len(group) < 2:
            continue
        subgroups = _group_by_name(group, name)
        if len(groups) + len(subgroups) - 1 <= _MAX_FOLDED_LINES:
            del groups[name]
            groups |= subgroups
            return True
    return False


def _group_by_name(entries: Sequence[StatusEntry], folder: bytes) -> dict[bytes, list[StatusEntry]]:
    """Group entries by the file or folder of `folder` in which they are; the name of a folder ends in a slash."""
    groups: dict[bytes, list[StatusEntry]] = {}
    for entry in entries:
        name, slash, _ = entry.path[len(folder) :].partition(b"/")
        groups.setdefault(folder + name + slash, []).append(entry)
    return groups
