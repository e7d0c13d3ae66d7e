"""Runs operations, of one repository one at a time: checks, snapshot, command, and what a failure leaves behind."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TypeVar

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Conflict, Problem, Refused
from mcp_git import git_config
from mcp_git.engine.operation.conflicts import (
    is_empty_pick,
    list_conflicts,
    list_new_conflicts,
    refuse_conflict_marks,
    refuse_unresolved,
    stage_conflicts_outside,
)
from mcp_git.engine.operation.failures import (
    explain_half_done,
    explain_operation_failure,
    is_same_state,
    join_message,
    nothing_to_do,
)
from mcp_git.engine.operation.hidden_changes import (
    refuse_failing_merge,
)
from mcp_git.engine.operation.loss_check import LossCheck
from mcp_git.engine.operation.on_branch import run_on_branch
from mcp_git.engine.operation.operation import (
    INSPECTION_SECONDS,
    CommitOperation,
    FileOperation,
    GitInput,
    Operation,
    PickOperation,
    RefOperation,
    refuse_amending_another,
    refuse_in_progress,
)
from mcp_git.engine.operation.planning.planner import OperationPlanner
from mcp_git.engine.operation.report import FinishedOperation, report_operation
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.revisions import explained_missing_contents
from mcp_git.engine.undo.earlier_state import Snapshot
from mcp_git.engine.undo.expectation import refuse_changed_since
from mcp_git.engine.undo.index_backup import IndexBackup
from mcp_git.engine.undo.snapshot import take_snapshot
from mcp_git.engine.work_tree.in_progress import (
    find_picked_commits,
    find_unmade_commit,
    has_sequence,
)
from mcp_git.engine.work_tree.status import Status
from mcp_git.engine.work_tree.status_reader import read_status
from mcp_git.models import Answer
from mcp_git.policy import Expectation, Repository, Revision, WritableRepository
from mcp_git.repository_paths import Layout

__all__ = ["OperationRunner"]

AnyPlanner = TypeVar("AnyPlanner", bound=OperationPlanner)

# Git also ends as if all were well where it could not write a file. That it keeps no hash of a folder of which a
# partial clone lacks a file, outside of a sparse checkout, harms nothing.
_WARNING = re.compile(r"(?m)^(?:warning|error(?!: invalid object )): (.*\S)")
_MAX_WARNINGS = 5
# Commands that never look at the work tree.
_REF_COMMANDS = frozenset({"branch", "tag"})


class OperationRunner:
    """Runs operations, of one repository one at a time; every method blocks."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._locks: dict[str, threading.Lock] = {}

    def run(
        self,
        writable: WritableRepository,
        operation: Operation,
        cancel: CancelToken,
        only_if: Expectation | None = None,
        paths: Sequence[str] = (".",),
    ) -> Answer:
        """Run an operation, once it is this one's turn; as `plan_and_run`."""
        return self.plan_and_run(writable, OperationPlanner, lambda _: operation, cancel, only_if, paths)

    def plan_and_run(
        self,
        writable: WritableRepository,
        planner_type: type[AnyPlanner],
        plan: Callable[[AnyPlanner], Operation],
        cancel: CancelToken,
        only_if: Expectation | None = None,
        paths: Sequence[str] = (".",),
    ) -> Answer:
        """Run the operation that `plan` makes of how the repository is once it is this one's turn.

        Args:
            planner_type: the planner that `plan` asks.
            only_if: what must still be so.
            paths: what of the files and of the index that is about.

        Raises:
            Conflict: `only_if` holds no longer, or the repository is not in the state for it.
            Problem: git refused.
        """
        repository = writable.repository
        with (
            self._locks.setdefault(repository.name, threading.Lock()),
            explained_missing_contents(self._git, repository),
        ):
            layout = self._git.layout(repository, writes=True)
            if layout.work_tree is None:
                raise Refused("A bare repository has no work tree, so it is only read.", "Serve a clone of it.")
            if only_if is not None:
                refuse_changed_since(self._git, repository, only_if, paths, cancel)
            operation = plan(planner_type(self._git, repository, cancel))
            if operation.command not in _REF_COMMANDS:
                self._git.refuse_to_enter(layout, operation.command)

            def run_at_head(operation: Operation) -> Answer:
                return _Run(self._git, repository, layout, operation, cancel).run()

            if isinstance(operation, PickOperation) and operation.on_branch is not None:
                return run_on_branch(self._git, repository, layout, operation, operation.on_branch, run_at_head, cancel)
            return run_at_head(operation)


def _without_sparse_index(step: GitInput) -> Sequence[str]:
    """Return the arguments of a step, so that git compares no sparse index with a commit.

    Git fails an assertion, and leaves its lock, where a folder that has one entry there is a file in the commit.
    """
    if step.command == "reset" and "--mixed" in step.arguments:
        return ["-c", "index.sparse=false", *step.arguments]
    return step.arguments


def _refuse_losing_first_files(status: Status) -> None:
    """Check that nothing is staged where there is no commit yet: no call leads back to such a state.

    Raises:
        Conflict: something is.
    """
    if not status.has_commit and any(entry.letters != "??" for entry in status.entries):
        raise Conflict(
            "`HEAD` has no commit yet, so what is staged would be lost for good.",
            "Nothing was changed. Commit it, or take it out of the index: `stage_files` with unstage=true.",
        )


def _refuse_losing_start(status: Status) -> None:
    """Check that there is a commit to which git could go back from several picks.

    It notes another one otherwise, and an abort would lead there.

    Raises:
        Conflict: there is none.
    """
    if not status.has_commit:
        raise Conflict(
            "`HEAD` has no commit yet, so git could not go back from several picks.",
            "Nothing was changed. Pick the first one alone, then the others.",
        )


@dataclass
class _Run:
    """One operation as it runs, where HEAD is."""

    git: Git
    repository: Repository
    layout: Layout
    operation: Operation
    cancel: CancelToken
    _warnings: list[str] = field(default_factory=list[str])
    _left_out: dict[str, str] = field(default_factory=dict[str, str])

    def run(self) -> Answer:
        LossCheck(self.git, self.repository, self.layout, self.operation, self.cancel).refuse()
        keeps_files = bool(self.operation.overwritten_paths)
        status = read_status(self.git, self.repository, self.cancel, layout=self.layout)
        with take_snapshot(self.git, self.repository, self.layout, status, keeps_files, self.cancel) as before:
            self._refuse_wrong_state(before.status)
            ref_before = self._find_moved_ref()
            picked_commits = self._find_picked_commits()
            os.makedirs(os.path.join(self.layout.common_dir, "logs"), exist_ok=True)
            if isinstance(self.operation, FileOperation) and self.operation.refreshes_index:
                self._refresh_index()
            self._left_out |= dict.fromkeys(self._list_passed_merges(), "a merge")
            self._run_steps(before, picked_commits)
            if ref_before is not None and self._find_moved_ref() == ref_before:
                raise nothing_to_do(self.operation)
            return self._report(before, picked_commits)

    def _report(self, before: Snapshot, picked_commits: Sequence[str]) -> Answer:
        finished = FinishedOperation(self.operation, before, picked_commits, self._left_out, self._warnings)
        try:
            return report_operation(self.git, self.repository, self.layout, finished, self.cancel)
        except Problem as problem:
            return Answer(["done", f"git can't tell the state now: {problem}"])

    def _is_sparse_checkout(self) -> bool:
        return git_config.is_sparse_checkout(self.git.read_allowed_configuration(self.repository))

    def _refuse_wrong_state(self, status: Status) -> None:
        operations = [phrase for phrase in status.in_progress if not phrase.startswith("bisect")]
        if self.operation.command == "switch":
            # Newer gits refuse it too, but look for what is in progress in the common directory, which is ours.
            refuse_in_progress(operations)
        if isinstance(self.operation, PickOperation) and self.operation.is_of_several:
            # Git would refuse most of these too, but first begin a list that comes to light at the end of the other.
            refuse_in_progress(operations)
            _refuse_losing_start(status)
        if isinstance(self.operation, FileOperation) and self.operation.source is not None:
            _refuse_losing_first_files(status)
        if "--amend" in self.operation.arguments:
            refuse_amending_another(self.layout, status.in_progress)
        if self.operation.command == "merge" and isinstance(self.operation.revision, Revision):
            refuse_failing_merge(self.git, self.repository, self.layout, status, self.operation.revision, self.cancel)
        if isinstance(self.operation, CommitOperation):
            refuse_conflict_marks(self.git, self.repository, status, self.operation.resolved_paths, self.cancel)
            if self.operation.is_continuation:
                refuse_unresolved(status, [*self.operation.resolved_paths, *self.operation.chosen_paths])

    def _find_moved_ref(self) -> str | None:
        """Return the hash of the ref without whose move nothing happened; None if there is none."""
        if isinstance(self.operation, RefOperation) and self.operation.moved_ref:
            return self.git.find_hash(self.repository, self.operation.moved_ref, self.cancel)
        return None

    def _find_picked_commits(self) -> Sequence[str]:
        return find_picked_commits(self.git, self.repository, self.layout, self.cancel)

    def _list_passed_merges(self) -> Sequence[str]:
        """Return the merges of a range of which the other commits are picked or reverted."""
        operation = self.operation
        if "--no-merges" not in operation.arguments or operation.revision is None:
            return []
        arguments = ["rev-list", "--merges", *operation.revision.arguments, "--"]
        return self.git.run(self.repository, arguments, self.cancel, exit_codes=(0, 128)).text.split()

    def _refresh_index(self) -> None:
        arguments = ["update-index", "-q", "--refresh"]
        self.git.run(self.repository, arguments, self.cancel, exit_codes=(0, 1, 128), writes=True)

    def _run_steps(self, before: Snapshot, picked_commits: Sequence[str]) -> None:
        """Run the commands of the operation; that git stopped at a conflict is an answer, not a failure.

        Raises:
            Problem: git refused, and what was staged before is no longer.
        """
        backup = None
        if isinstance(self.operation, CommitOperation) and self.operation.is_taken_back:
            backup = IndexBackup(self.layout)
        try:
            cancel = self.cancel
            for step in self._list_steps(before.status):
                self._run_step(step, cancel)
                if isinstance(self.operation, RefOperation):
                    # The branch is renamed, so HEAD has to follow even if the call was cancelled meanwhile.
                    cancel = CancelToken(INSPECTION_SECONDS)
        except GitFailed as first_failure:
            failure = self._leave_out_empty_picks(first_failure, before.status, picked_commits)
            self._end_refused_sequence(before.status)
            now = read_status(self.git, self.repository, self.cancel, layout=self.layout)
            if failure is None:
                return
            if self._has_stopped(before.status, now, picked_commits):
                self._explain_stop(failure, now)
                return
            if backup is not None and now.oid == before.status.oid:
                backup.restore()
            raise self._explain_failure(failure, before) from None
        except BaseException:
            if backup is not None:
                self._restore_index(backup, before.status)
            raise

    def _list_steps(self, before: Status) -> Sequence[GitInput]:
        """Return what git runs, one after the other."""
        conflicts = list_conflicts(before)
        if not conflicts or not self._is_sparse_checkout():
            return self.operation.steps
        steps: list[GitInput] = []
        for step in self.operation.steps:
            if step.command in ("add", "rm"):
                steps += [GitInput(arguments) for arguments in stage_conflicts_outside(step.arguments, conflicts)]
            else:
                steps.append(step)
        return steps

    def _run_step(self, step: GitInput, cancel: CancelToken) -> None:
        programs = self.git.find_programs(self.repository)
        with ExitStack() as folders:
            common_dir = ""
            if step.hides_worktrees:
                common_dir = folders.enter_context(self.git.hide_worktrees(self.repository))
            output = self.git.run(
                self.repository,
                _without_sparse_index(step),
                cancel,
                stdin=step.stdin,
                writes=True,
                common_dir=common_dir,
                runs_programs=programs.are_run_by(step.command),
            )
        self._warnings += _WARNING.findall(output.stderr)[:_MAX_WARNINGS]

    def _restore_index(self, backup: IndexBackup, before: Status) -> None:
        """Put the index back after the operation was stopped, unless it got further than that."""
        now = read_status(self.git, self.repository, CancelToken(INSPECTION_SECONDS), layout=self.layout)
        if now.oid == before.oid and now.in_progress == before.in_progress:
            backup.restore()

    def _explain_failure(self, failure: GitFailed, before: Snapshot) -> Problem:
        keeps_files = bool(self.operation.overwritten_paths)
        status = read_status(self.git, self.repository, self.cancel, layout=self.layout)
        with take_snapshot(self.git, self.repository, self.layout, status, keeps_files, self.cancel) as now:
            if not is_same_state(now, before):
                return explain_half_done(failure, self.layout, self.operation, before, now)
        branch = before.status.head
        return explain_operation_failure(failure, self.git, self.repository, self.operation, branch, self.cancel)

    def _leave_out_empty_picks(
        self, failure: GitFailed, before: Status, picked_before: Sequence[str]
    ) -> GitFailed | None:
        """Go on past the commits of a cherry-pick or revert that change nothing here.

        Git stops at each. What was under way before is another's, unless it is what is continued.

        Returns:
            What git fails with where it stops for another reason; None if it came to its end.
        """
        operation = self.operation
        if not isinstance(operation, CommitOperation | PickOperation):
            return failure
        others = [phrase for phrase in before.in_progress if not phrase.startswith("bisect")]
        if others and not operation.ends_in_progress:
            return failure
        while empty_picks := self._find_empty_picks(failure, picked_before):
            self._left_out |= dict.fromkeys(empty_picks, "it changes nothing here")
            picked_before = self._find_picked_commits()
            action = "--skip" if has_sequence(self.layout) else "--quit"
            try:
                self._run_step(GitInput([*operation.git_options, operation.command, action]), self.cancel)
                return None
            except GitFailed as next_failure:
                failure = next_failure
        return failure

    def _find_empty_picks(self, failure: GitFailed, picked_before: Sequence[str]) -> Sequence[str]:
        """Return the commit at which git stopped as it changes nothing here; none if it stopped for another reason."""
        picked = self._find_picked_commits()
        if picked != picked_before and self._stands_at_empty_pick(picked):
            return [oid for oid in picked if oid]
        # Of such a revert git keeps no note beside its list, and its errors tell nothing.
        if self.operation.command != "revert" or join_message(failure.stderr):
            return []
        unmade_commit = find_unmade_commit(self.git, self.repository, self.layout, self.cancel)
        if unmade_commit in self._left_out or not self._stands_at_empty_pick([unmade_commit]):
            return []
        return [unmade_commit]

    def _end_refused_sequence(self, before: Status) -> None:
        """End a cherry-pick or revert of several commits of which git refused the first: it would stay under way."""
        operation = self.operation
        if not isinstance(operation, PickOperation) or not operation.is_of_several or not has_sequence(self.layout):
            return
        is_refused = bool(find_unmade_commit(self.git, self.repository, self.layout, self.cancel))
        now = read_status(self.git, self.repository, self.cancel, layout=self.layout)
        if is_refused and (now.oid, now.entries) == (before.oid, before.entries):
            self._run_step(GitInput([operation.command, "--quit"]), CancelToken(INSPECTION_SECONDS))

    def _stands_at_empty_pick(self, picked_commits: Sequence[str]) -> bool:
        return is_empty_pick(picked_commits, read_status(self.git, self.repository, self.cancel, layout=self.layout))

    def _explain_stop(self, failure: GitFailed, now: Status) -> None:
        """Note why git stopped, where no conflict says it."""
        is_empty = is_empty_pick(self._find_picked_commits(), now)
        message = join_message(failure.stderr)
        if message and not is_empty and not list_conflicts(now):
            self._warnings.append(message)

    def _has_stopped(self, before: Status, now: Status, picked_commits: Sequence[str]) -> bool:
        """Whether git stopped at a conflict, or at another commit."""
        if now.in_progress != before.in_progress or self._find_picked_commits() != picked_commits:
            return True
        return bool(list_new_conflicts(now, before))
