"""Worktrees: made and removed in the operator's folder for them, as `git worktree` does it.

That command itself would write the folder of ours that it takes for the common directory into the worktree's `.git`.
What it writes is four small files (gitrepository-layout), and the files of the commit are then put there by git.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import ExitStack, suppress

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Conflict, Invalid, Refused, Unavailable, describe_os_error, quote
from mcp_git import git_config
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.revisions import explained_failures, explained_missing_contents, head_has_commit
from mcp_git.engine.work_tree.content_check import ContentCheck
from mcp_git.engine.work_tree.in_progress import find_operations_in_progress
from mcp_git.engine.work_tree.overlooked_files import list_overlooked, list_overlooked_changes
from mcp_git.engine.work_tree.status import Status, count_kinds, describe_counts
from mcp_git.engine.work_tree.status_reader import read_status
from mcp_git.models import Answer, count
from mcp_git.path_quoting import escape_line_breaks, quote_path
from mcp_git.policy import (
    HEAD,
    NewName,
    NewWorktree,
    Policy,
    RemovableWorktree,
    Repository,
    Revision,
    WritableRepository,
    expect,
)
from mcp_git.repository_paths import Layout, find_nested_repository, read_small_file
from mcp_git.tool_calls import format_call

__all__ = ["Worktrees"]

# Of a sparse checkout, which has a line or two for each folder.
_MAX_PATTERNS_BYTES = 64 * 1024 * 1024


class Worktrees:
    """Makes and removes worktrees; every method blocks."""

    def __init__(self, git: Git, policy: Policy) -> None:
        self._git = git
        self._policy = policy

    def create(
        self,
        writable: WritableRepository,
        new: NewWorktree,
        branch: NewName,
        start: Revision | None,
        cancel: CancelToken,
    ) -> Answer:
        """Make a worktree for a branch, which is made as well if it is not there.

        Raises:
            Conflict: the branch is in another worktree.
            Problem: git refused.
        """
        repository = writable.repository
        layout = self._git.layout(repository, writes=True)
        if layout.has_reftable:
            raise Refused("Where refs are in a reftable no worktree is made here.", "The user can: `git worktree add`.")
        ref = f"refs/heads/{branch.text}"
        branch_exists = bool(self._git.find_hash(repository, ref, cancel))
        self._refuse_wrong_start(repository, branch, branch_exists, start, cancel)
        holder = _find_holder(layout, ref)
        if holder:
            raise Conflict(f"The branch {quote(branch.text)} is already in {quote(holder)}.", "Use that, or another.")
        undo_calls = [format_call("delete_worktree", name=new.name)]
        with ExitStack() as undo:
            if not branch_exists:
                self._create_branch(repository, branch, start, cancel)
                undo.callback(self._forget_branch, repository, branch)
                expectation = expect(ref=self._git.find_hash(repository, ref, cancel))
                delete = format_call("delete_ref", name=branch.text, force=True, repo=repository.name)
                undo_calls.append(delete.expecting(expectation.text))
            ContentCheck(self._git, repository, layout, cancel).refuse_any(ref)
            linked = self._link(repository, layout, new, ref, undo)
            with explained_missing_contents(self._git, repository):
                self._git.run(linked, ["reset", "--hard", "--quiet", "--no-recurse-submodules"], cancel, writes=True)
            undo.pop_all()
        status = read_status(self._git, linked, cancel)
        facts = [f"worktree {new.name}: {status.branch}", f'use it as repo="{new.name}"']
        return Answer(facts, [f"undo: {undo_call}" for undo_call in undo_calls])

    def _refuse_wrong_start(
        self, repository: Repository, branch: NewName, branch_exists: bool, start: Revision | None, cancel: CancelToken
    ) -> None:
        """Check that a branch that exists has no other start, and one that does not has a commit to start from."""
        if branch_exists and start is not None:
            raise Invalid(f"There is a branch {quote(branch.text)} already.", "Leave `rev` out, or name another.")
        if not branch_exists and start is None and not head_has_commit(self._git, repository, cancel):
            raise Conflict("`HEAD` has no commit yet.", "`create_commit` first.")

    def _create_branch(
        self, repository: Repository, branch: NewName, start: Revision | None, cancel: CancelToken
    ) -> None:
        arguments = ["branch", "--no-track", branch.text, (start or HEAD).text]
        with explained_failures(self._git, repository, start, cancel):
            self._git.run(repository, arguments, cancel, writes=True)

    def _link(self, repository: Repository, layout: Layout, new: NewWorktree, ref: str, undo: ExitStack) -> Repository:
        """Make a folder a worktree of a branch, with a sparse checkout if the repository has one, and serve it."""
        entries = self._git.read_allowed_configuration(repository)
        try:
            git_dir = _write_links(layout, new, ref, undo)
            if git_config.is_sparse_checkout(entries):
                _copy_sparse_checkout(layout, git_dir, entries)
        except OSError as error:
            raise Unavailable(
                f"The worktree can't be made: {describe_os_error(error)}.", "The operator can mend it."
            ) from None
        linked = self._policy.adopt(new.name)
        if linked is None:
            raise Unavailable(f"The worktree {quote(new.name)} can't be served.", "The log of the server says why.")
        undo.callback(self._policy.repositories.pop, new.name, None)
        return linked

    def _forget_branch(self, repository: Repository, branch: NewName) -> None:
        with suppress(GitFailed):
            self._git.run(repository, ["branch", "--quiet", "-D", branch.text], CancelToken(10), writes=True)

    def delete(self, linked: RemovableWorktree, force: bool, cancel: CancelToken) -> Answer:
        """Remove a worktree; its branch stays, and with `force` what is not committed becomes a stash.

        Raises:
            Conflict: something in it would be lost, or is under way.
            Refused: it is locked, or holds another repository.
        """
        repository = linked.repository
        layout = self._git.layout(repository, writes=True)
        if layout.git_dir == layout.common_dir or layout.work_tree is None:
            raise Refused(f"{quote(repository.name)} is a repository, not a worktree of one.", "It stays.")
        self._refuse_busy(repository, layout, cancel)
        status = read_status(self._git, repository, cancel)
        self._refuse_losing(repository, layout, status, cancel)
        undo_calls = [format_call("create_worktree", name=repository.name, branch=status.head)]
        facts = [f"removed the worktree {repository.name}", f"it was {status.branch}"]
        if status.entries:
            if not force:
                message = f"In it is what is not committed: {describe_counts(count_kinds(status.entries))}."
                raise Conflict(message, "Commit, or `force`, which makes a stash of it.")
            stash = self._stash(repository, cancel)
            facts.append(f"what was not committed is the stash {stash}")
            undo_calls.append(format_call("run_stash", action="pop", rev=stash, index=True, repo=repository.name))
        _remove_folders(self._git.layout(repository).work_tree or layout.work_tree, layout.git_dir)
        self._policy.forget(linked)
        if status.is_detached:
            return Answer(facts)  # A worktree is made for a branch, so no call makes this one again.
        return Answer(facts, [f"undo: {undo_call}" for undo_call in undo_calls])

    def _refuse_busy(self, repository: Repository, layout: Layout, cancel: CancelToken) -> None:
        """Check that a worktree is not locked, nothing is in progress in it, and it holds no other repository."""
        lock_reason = read_small_file(os.path.join(layout.git_dir, "locked"))
        if lock_reason is not None:
            reason = f": {quote(escape_line_breaks(lock_reason))}" if lock_reason else ""
            raise Refused(f"It is locked{reason}.", "The user can unlock it: `git worktree unlock`.")
        in_progress = find_operations_in_progress(self._git, repository, layout, cancel)
        if in_progress:
            fix = "`continue_operation` with `abort` there, first."
            if in_progress[0].startswith("bisect"):
                fix = "The user can end it: `git bisect reset`."
            raise Conflict(f"It has a {in_progress[0]}.", fix)
        nested = find_nested_repository(layout)
        if nested:
            raise Refused(f"In it {quote(nested)} is a repository of its own.", "The user can remove it.")
        self._git.refuse_to_enter(layout, "worktree")

    def _refuse_losing(self, repository: Repository, layout: Layout, status: Status, cancel: CancelToken) -> None:
        """Check that nothing in a worktree would be lost for good: no commit, and no change that a stash passes over.

        Raises:
            Conflict: something would.
        """
        if status.is_detached:
            only_here = ["rev-list", "--count", "HEAD", "--not", "--branches", "--tags", "--remotes"]
            commit_count = int(self._git.run(repository, only_here, cancel).text)
            if commit_count:
                message = f"HEAD there is detached, and its last {count(commit_count, 'commit')} would be lost."
                raise Conflict(message, "`create_branch` there, first.")
        overlooked = list_overlooked(self._git, repository, ["."], cancel)
        changed = list_overlooked_changes(self._git, repository, layout, overlooked, cancel)
        if changed:
            name = quote(quote_path(os.fsencode(changed[0])))
            raise Conflict(
                f"{name} in it is marked `--skip-worktree` or `--assume-unchanged`: no stash would have its changes.",
                "The user can unmark it: `git update-index`.",
            )

    def _stash(self, repository: Repository, cancel: CancelToken) -> str:
        """Put aside what is not committed in a worktree, and return the stash.

        Raises:
            Conflict: git can't.
        """
        arguments = ["stash", "push", "--quiet", "--include-untracked", "--message", f"worktree {repository.name}"]
        earlier = self._git.find_hash(repository, "refs/stash", cancel)
        with suppress(GitFailed):
            self._git.run(repository, arguments, cancel, writes=True)
        stash = self._git.find_hash(repository, "refs/stash", cancel)
        if stash == earlier:
            message = "Git can't stash what is not committed in it."
            raise Conflict(message, "`stage_files` it there, or commit it, first.")
        return stash


def _choose_git_dir(layout: Layout, name: str) -> str:
    """Return a path for the git directory of a worktree, with a number if its name is taken."""
    parent = os.path.join(layout.common_dir, "worktrees")
    os.makedirs(parent, exist_ok=True)
    git_dir = os.path.join(parent, name)
    number = 0
    while os.path.lexists(git_dir):
        number += 1
        git_dir = os.path.join(parent, f"{name}{number}")
    return git_dir


def _write_links(layout: Layout, new: NewWorktree, ref: str, undo: ExitStack) -> str:
    """Write the files that make a folder a worktree of a branch, and return its git directory."""
    os.makedirs(os.path.dirname(new.path), exist_ok=True)
    os.mkdir(new.path)
    undo.callback(shutil.rmtree, new.path, ignore_errors=True)
    git_dir = _choose_git_dir(layout, new.name)
    os.mkdir(git_dir)
    undo.callback(shutil.rmtree, git_dir, ignore_errors=True)
    dot_git = os.path.join(new.path, ".git")
    _write_line(os.path.join(git_dir, "gitdir"), dot_git)
    _write_line(os.path.join(git_dir, "commondir"), "../..")
    _write_line(os.path.join(git_dir, "HEAD"), f"ref: {ref}")
    _write_line(dot_git, f"gitdir: {os.path.realpath(git_dir)}")
    return git_dir


def _copy_sparse_checkout(layout: Layout, git_dir: str, entries: Sequence[git_config.Entry]) -> None:
    """Let a new worktree have the files that the one at hand has, as `git worktree add` does."""
    path = os.path.join(layout.git_dir, "info", "sparse-checkout")
    patterns = read_small_file(path, max_bytes=_MAX_PATTERNS_BYTES)
    if patterns is None:
        return
    os.mkdir(os.path.join(git_dir, "info"))
    _write_line(os.path.join(git_dir, "info", "sparse-checkout"), patterns)
    if os.path.isfile(os.path.join(layout.git_dir, "config.worktree")):
        text = git_config.format_entries(git_config.select_sparse_entries(entries))
        _write_line(os.path.join(git_dir, "config.worktree"), text)


def _remove_folders(work_tree: str, git_dir: str) -> None:
    """Remove a worktree with its git directory, and the folder of these if it was the last one."""
    try:
        shutil.rmtree(work_tree)
        shutil.rmtree(git_dir)
    except OSError as error:
        raise Unavailable(
            f"It can't be removed: {describe_os_error(error)}.", "The user can remove the rest."
        ) from None
    with suppress(OSError):
        os.rmdir(os.path.dirname(git_dir))


def _write_line(path: str, line: str) -> None:
    with open(path, "x", encoding="utf-8", errors="surrogateescape") as file:
        file.write(f"{line}\n")


def _find_holder(layout: Layout, ref: str) -> str:
    """Return the name of the worktree in which a branch is, or in which a rebase will come back to it."""
    if _leads_to(layout.common_dir, ref):
        return "the main worktree"
    parent = os.path.join(layout.common_dir, "worktrees")
    for name in _list_names(parent):
        if _leads_to(os.path.join(parent, name), ref):
            return name
    return ""


def _leads_to(git_dir: str, ref: str) -> bool:
    """Whether HEAD of a worktree is a branch, or will be once a rebase ends."""
    heads = [read_small_file(os.path.join(git_dir, name)) for name in ("HEAD", "rebase-merge/head-name")]
    return ref in [head.removeprefix("ref: ").strip() for head in heads if head]


def _list_names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []
