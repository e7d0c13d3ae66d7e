"""Worktrees: made and removed in the operator's folder for them, as `git worktree` does it.

That command itself would write the folder of ours that it takes for the common directory into the worktree's `.git`.
What it writes is four small files (gitrepository-layout), and the files of the commit are then put there by git.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import ExitStack, suppress

from mcp_batteries.errors import Conflict, Invalid, Refused, Unavailable, quote, reason
from mcp_batteries.limits import Stop
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.revisions import explain_failure, find_hash, head_has_commit
from mcp_git.engine.work_tree.filters import refuse_filters
from mcp_git.engine.work_tree.in_progress import find_operations_in_progress
from mcp_git.engine.work_tree.status import read_status
from mcp_git.models import Answer, count
from mcp_git.path_quoting import escape_line_breaks
from mcp_git.policy import NewName, NewWorktree, Policy, RemovableWorktree, Repository, Revision, WritableRepository
from mcp_git.repository_paths import Layout, read_small_file
from mcp_git.tool_calls import format_call

__all__ = ["Worktrees"]


class Worktrees:
    """Makes and removes worktrees; every method blocks."""

    def __init__(self, git: Git, policy: Policy) -> None:
        self._git, self._policy = git, policy

    def create(
        self, changeable: WritableRepository, new: NewWorktree, branch: NewName, start: Revision | None, stop: Stop
    ) -> Answer:
        """Make a worktree for a branch, which is made as well if it is not there.

        Raises:
            Conflict: the branch is in another worktree.
            Problem: git refused.
        """
        repository = changeable.repository
        layout = self._git.layout(repository, writes=True)
        if layout.has_reftable:
            raise Refused("Where refs are in a reftable no worktree is made here.", "The user can: `git worktree add`.")
        ref = f"refs/heads/{branch.text}"
        there = bool(find_hash(self._git, repository, ref, stop))
        if there and start is not None:
            raise Invalid(f"There is a branch {quote(branch.text)} already.", "Leave `rev` out, or name another.")
        if not there and start is None and not head_has_commit(self._git, repository, stop):
            raise Conflict("`HEAD` has no commit yet.", "`create_commit` first.")
        if holder := _holder(layout, ref):
            raise Conflict(f"The branch {quote(branch.text)} is already in {quote(holder)}.", "Use that, or another.")
        with ExitStack() as undo:
            if not there:
                words = ["branch", "--no-track", branch.text, start.text if start else "HEAD"]
                try:
                    self._git.run(repository, words, stop, writes=True)
                except GitFailed as failure:
                    raise explain_failure(failure, self._git, repository, start, stop) from None
                undo.callback(self._forget_branch, repository, branch)
            refuse_filters(self._git, repository, layout, stop, ref)
            try:
                linked = self._link(layout, new, ref, undo)
            except OSError as error:
                raise Unavailable(
                    f"The worktree can't be made: {reason(error)}.", "The operator can mend it."
                ) from None
            self._git.run(linked, ["reset", "--hard", "--quiet", "--no-recurse-submodules"], stop, writes=True)
            undo.pop_all()
        state = read_status(self._git, linked, stop)
        facts = [f"worktree {new.name}: {state.branch}", f'use it as repo="{new.name}"']
        ways = [format_call("delete_worktree", name=new.name)]
        if not there:
            ways.append(format_call("delete_ref", name=branch.text, force=True, repo=repository.name))
        return Answer(facts, [f"undo: {way}" for way in ways])

    def _link(self, layout: Layout, new: NewWorktree, ref: str, undo: ExitStack) -> Repository:
        os.makedirs(os.path.dirname(new.path), exist_ok=True)
        os.mkdir(new.path)
        undo.callback(shutil.rmtree, new.path, ignore_errors=True)
        above = os.path.join(layout.common_dir, "worktrees")
        os.makedirs(above, exist_ok=True)
        number, git_dir = 0, os.path.join(above, new.name)
        while os.path.lexists(git_dir):
            number += 1
            git_dir = os.path.join(above, f"{new.name}{number}")
        os.mkdir(git_dir)
        undo.callback(shutil.rmtree, git_dir, ignore_errors=True)
        dot_git = os.path.join(new.path, ".git")
        for path, text in (
            (os.path.join(git_dir, "gitdir"), dot_git),
            (os.path.join(git_dir, "commondir"), "../.."),
            (os.path.join(git_dir, "HEAD"), f"ref: {ref}"),
            (dot_git, f"gitdir: {os.path.realpath(git_dir)}"),
        ):
            with open(path, "x", encoding="utf-8", errors="surrogateescape") as file:
                file.write(f"{text}\n")
        linked = self._policy.adopt(new.name)
        if linked is None:
            raise Unavailable(f"The worktree {quote(new.name)} can't be served.", "The log of the server says why.")
        undo.callback(self._policy.repositories.pop, new.name, None)
        return linked

    def _forget_branch(self, repository: Repository, branch: NewName) -> None:
        with suppress(GitFailed):
            self._git.run(repository, ["branch", "--quiet", "-D", branch.text], Stop(10), writes=True)

    def delete(self, linked: RemovableWorktree, force: bool, stop: Stop) -> Answer:
        """Remove a worktree; its branch stays, and with `force` what is not committed becomes a stash.

        Raises:
            Conflict: something in it would be lost, or is under way.
            Refused: it is locked, or holds submodules.
        """
        repository = linked.repository
        layout = self._git.layout(repository, writes=True)
        if layout.git_dir == layout.common_dir or layout.work_tree is None:
            raise Refused(f"{quote(repository.name)} is a repository, not a worktree of one.", "It stays.")
        if (why := read_small_file(os.path.join(layout.git_dir, "locked"))) is not None:
            raise Refused(
                f"It is locked: {quote(escape_line_breaks(why))}.", "The user can unlock it: `git worktree unlock`."
            )
        if doing := find_operations_in_progress(self._git, repository, layout, stop):
            raise Conflict(f"In it a {doing[0]}.", "`run_step` with `abort` there, first.")
        self._refuse_submodules(repository, layout.work_tree, stop)
        self._git.refuse_to_enter(layout)
        state = read_status(self._git, repository, stop)
        lines = [f"undo: {format_call('create_worktree', name=repository.name, branch=state.head)}"]
        if state.entries:
            number = count(len(state.entries), "file")
            if not force:
                raise Conflict(f"{number} in it is not committed.", "Commit, or `force`, which makes a stash of it.")
            words = ["stash", "push", "--quiet", "--include-untracked", "--message", f"worktree {repository.name}"]
            self._git.run(repository, words, stop, writes=True)
            lines.append(f"undo: {format_call('run_stash', action='pop', index=True, repo=repository.name)}")
        try:
            shutil.rmtree(self._git.layout(repository).work_tree or layout.work_tree)
            shutil.rmtree(layout.git_dir)
        except OSError as error:
            raise Unavailable(f"It can't be removed: {reason(error)}.", "The user can remove the rest.") from None
        with suppress(OSError):
            os.rmdir(os.path.dirname(layout.git_dir))
        self._policy.forget(linked)
        at = f"it was {state.branch}"
        return Answer([f"removed the worktree {repository.name}", at], lines if state.head != "(detached)" else [])

    def _refuse_submodules(self, repository: Repository, top: str, stop: Stop) -> None:
        listed = self._git.run(repository, ["ls-files", "--stage", "-z"], stop).stdout
        for path in re.findall(rb"(?:^|\0)160000 [^\t]*\t([^\0]+)", listed):
            if os.path.lexists(os.path.join(os.fsencode(top), path, b".git")):
                raise Refused("It holds submodules with repositories of their own.", "The user can remove it.")


def _holder(layout: Layout, ref: str) -> str:
    """The name of the worktree in which a branch is, or in which a rebase will come back to it."""
    above = os.path.join(layout.common_dir, "worktrees")
    places = [layout.common_dir, *(os.path.join(above, name) for name in _names(above))]
    for place in places:
        heads = (read_small_file(os.path.join(place, name)) for name in ("HEAD", "rebase-merge/head-name"))
        if any(head is not None and head.removeprefix("ref: ").strip() == ref for head in heads):
            return "the main worktree" if place == layout.common_dir else os.path.basename(place)
    return ""


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []
