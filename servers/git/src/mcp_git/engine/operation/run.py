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
    refuse_overwriting_hidden_changes,
    refuse_overwriting_skipped,
)
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
from mcp_git.engine.operation.untracked_files import (
    refuse_overwriting_ignored,
    refuse_overwriting_ignored_in_steps,
    refuse_overwriting_ignored_on_reset,
    refuse_overwriting_untracked,
    refuse_removing_untracked,
    refuse_torn_stash,
)
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.revisions import explained_missing_contents
from mcp_git.engine.undo.earlier_state import Snapshot
from mcp_git.engine.undo.expectation import refuse_changed_since
from mcp_git.engine.undo.index_backup import IndexBackup
from mcp_git.engine.undo.snapshot import take_snapshot
from mcp_git.engine.work_tree.content_check import ContentCheck
from mcp_git.engine.work_tree.in_progress import (
    find_picked_commits,
    find_start,
    find_unmade_commit,
    has_sequence,
    list_remaining_commits,
)
from mcp_git.engine.work_tree.status import Status
from mcp_git.engine.work_tree.status_reader import read_status
from mcp_git.models import Answer
from mcp_git.policy import Expectation, Range, Repository, Revision, RevisionList, WritableRepository
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


def _refuse_contents_of_add(check: ContentCheck, arguments: Sequence[str]) -> None:
    if arguments[0] == "add":
        check.refuse_staging(arguments[arguments.index("--") + 1 :])


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


def _list_sides(operation: PickOperation) -> Sequence[Sequence[str]]:
    """Return the commits before and after each change that a cherry-pick or a revert makes once more."""
    match operation.revision:
        case Range(start=start, end=end):
            sides = [[start.text, end.text]]
        case Revision(text=text):
            sides = [[f"{text}^{operation.mainline}", text]]
        case RevisionList(items=items):
            sides = [[f"{item.text}^{operation.mainline}", item.text] for item in items]
        case None:
            return []
    if operation.command == "revert":
        return [side[::-1] for side in sides]
    return sides


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
        self._refuse_losing_files()
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

    def _refuse_losing_files(self) -> None:
        """Check that files go through no filter and are here, and none that git does not know would be overwritten."""
        operation = self.operation
        self._refuse_contents(ContentCheck(self.git, self.repository, self.layout, self.cancel))
        if isinstance(operation, FileOperation) and operation.source is not None:
            self._refuse_overwriting(operation.source, operation.overwritten_paths, even_same_content=False)
        elif isinstance(operation.revision, Revision) and self._checks_out_commit() and self._is_sparse_checkout():
            self._refuse_overwriting(operation.revision, ["."], even_same_content=True)
        for comparison in self._compare_with_brought():
            refuse_overwriting_ignored(self.git, self.repository, self.layout, comparison, self.cancel)
        commits = self._list_repeated_commits()
        if commits:
            is_reverse = operation.command == "revert"
            refuse_overwriting_ignored_in_steps(
                self.git, self.repository, self.layout, commits, is_reverse, self.cancel
            )
        if operation.arguments[-1] in ("--skip", "--abort"):
            refuse_overwriting_ignored_on_reset(
                self.git, self.repository, self.layout, self._find_reset_target(), self.cancel
            )
        if self._resets_files():
            refuse_removing_untracked(self.git, self.repository, self.cancel)
        if paths := self._list_rewritten_paths():
            refuse_overwriting_hidden_changes(self.git, self.repository, self.layout, paths, self.cancel)
        if isinstance(operation, FileOperation) and operation.source is not None:
            written = operation.overwritten_paths
            refuse_overwriting_skipped(self.git, self.repository, self.layout, operation.source, written, self.cancel)
        if operation.command == "stash" and "--include-untracked" in operation.arguments:
            refuse_torn_stash(self.git, self.repository, self.layout, self._list_stash_paths(), self.cancel)

    def _refuse_contents(self, check: ContentCheck) -> None:
        operation = self.operation
        for step in operation.steps:
            _refuse_contents_of_add(check, step.arguments)
        revision = operation.revision.text if operation.revision else "HEAD"
        match operation.command:
            case _ if operation.arguments[-1] == "--abort":
                check.refuse_restoring("HEAD", ["."])
                check.refuse_writing("HEAD", "ORIG_HEAD")
            case "rebase" | "cherry-pick" | "revert" if operation.ends_in_progress:
                check.refuse_any()
            case "merge" if operation.ends_in_progress:
                pass
            case "commit" if "--all" in operation.arguments:
                check.refuse_staging(["."], with_untracked=False)
            case "restore":
                check.refuse_restoring(revision, operation.overwritten_paths)
            case "reset" if "--hard" in operation.arguments:
                check.refuse_restoring(revision, ["."])
            case "reset" if "--keep" in operation.arguments:
                check.refuse_writing("HEAD", revision)
            case "switch" | "rebase":
                check.refuse_writing("HEAD", revision)
            case "merge":
                check.refuse_writing("HEAD", revision, from_merge_base=True)
            case "cherry-pick" | "revert" if isinstance(operation, PickOperation):
                self._refuse_contents_of_pick(check, operation)
            case "stash":
                self._refuse_contents_of_stash(check, revision)
            case _:
                pass

    def _compare_with_brought(self) -> Sequence[Sequence[str]]:
        """Return the arguments of each `diff-tree` that says which files commits bring."""
        operation = self.operation
        revision = operation.revision
        if revision is None or operation.ends_in_progress:
            return []
        match operation.command:
            case "cherry-pick" | "revert" if isinstance(operation, PickOperation):
                return _list_sides(operation)
            case "reset" if "--keep" in operation.arguments:
                return [["HEAD", revision.text]]
            case "switch" | "rebase":
                return [["HEAD", revision.text]]
            case "merge":
                return [["--merge-base", "HEAD", revision.text]]
            case "stash" if operation.arguments[1] in ("apply", "pop"):
                return [[f"{revision.text}^1", revision.text]]
            case _:
                return []

    def _list_repeated_commits(self) -> str:
        """Return the hashes of the commits that are made once more, or undone, one after the other; a line each."""
        operation = self.operation
        revision = operation.revision
        match operation.command:
            case _ if operation.arguments[-1] in ("--continue", "--skip"):
                remaining = list_remaining_commits(self.layout)
                if isinstance(operation, CommitOperation):
                    remaining += operation.unmade_pick[-1:]
                if not remaining:
                    return ""
                span = ["--no-walk=unsorted", *remaining]
            case _ if revision is None:
                return ""
            case "cherry-pick" | "revert" if isinstance(revision, Range):
                span = [revision.text]
            case "cherry-pick" | "revert":
                span = ["--no-walk", *revision.arguments]
            case "rebase":
                span = [f"{revision.text}..HEAD"]
            case _:
                return ""
        arguments = ["rev-list", "--no-merges", *span, "--"]
        return self.git.run(self.repository, arguments, self.cancel, exit_codes=(0, 128)).text

    def _find_reset_target(self) -> str:
        """Return the commit to which git resets the files where what is in progress is aborted, or a commit skipped."""
        if self.operation.arguments[-1] == "--skip":
            return "HEAD"
        return find_start(self.layout) or "HEAD"

    def _refuse_contents_of_pick(self, check: ContentCheck, operation: PickOperation) -> None:
        for before, after in _list_sides(operation):
            check.refuse_writing(before, after)

    def _refuse_contents_of_stash(self, check: ContentCheck, revision: str) -> None:
        match self.operation.arguments[1]:
            case "push":
                with_untracked = "--include-untracked" in self.operation.arguments
                check.refuse_staging(self._list_stash_paths(), with_untracked=with_untracked)
            case "apply" | "pop":
                check.refuse_writing(f"{revision}^1", revision)
                if isinstance(self.operation, FileOperation) and self.operation.created_files:
                    check.refuse_any(f"{revision}^3")
            case _:
                pass

    def _list_stash_paths(self) -> Sequence[str]:
        """Return whose changes a stash puts aside."""
        arguments = list(self.operation.arguments)
        if "--" not in arguments:
            return ["."]
        return arguments[arguments.index("--") + 1 :]

    def _resets_files(self) -> bool:
        """Whether git itself makes a hard reset as a part of the command."""
        match self.operation.arguments:
            case ["stash", "push", *others]:
                return "--" not in others
            case ["rebase", "--abort" | "--skip"]:
                return True
            case _:
                return False

    def _list_rewritten_paths(self) -> Sequence[str]:
        """Return below which paths git writes all files that differ, those too that it was told to overlook."""
        operation = self.operation
        if self._resets_files():
            return ["."]
        if operation.command == "stash" and operation.arguments[1] == "push":
            return self._list_stash_paths()
        if isinstance(operation, FileOperation) and operation.source is not None:
            return operation.overwritten_paths
        return []

    def _refuse_overwriting(self, source: Revision, paths: Sequence[str], *, even_same_content: bool) -> None:
        refuse_overwriting_untracked(
            self.git, self.repository, self.layout, source, paths, self.cancel, even_same_content=even_same_content
        )

    def _checks_out_commit(self) -> bool:
        """Whether files of the named commit come: in a sparse checkout git takes untracked ones there for these."""
        if self.operation.command == "reset":
            return "--keep" in self.operation.arguments
        return self.operation.command in ("switch", "merge", "rebase")

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
            if self.operation.goes_on:
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
