"""What an operation would lose or could not read, looked at before git begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_git import git_config
from mcp_git.engine.operation.hidden_changes import refuse_overwriting_hidden_changes, refuse_overwriting_skipped
from mcp_git.engine.operation.operation import CommitOperation, FileOperation, Operation, PickOperation
from mcp_git.engine.operation.untracked_files import (
    refuse_overwriting_ignored,
    refuse_overwriting_ignored_in_steps,
    refuse_overwriting_ignored_on_reset,
    refuse_overwriting_untracked,
    refuse_removing_untracked,
    refuse_torn_stash,
)
from mcp_git.engine.program.git import Git
from mcp_git.engine.work_tree.content_check import ContentCheck
from mcp_git.engine.work_tree.in_progress import find_start, list_remaining_commits
from mcp_git.policy import Range, Repository, Revision, RevisionList
from mcp_git.repository_paths import Layout

__all__ = ["LossCheck"]


@dataclass(frozen=True, slots=True)
class LossCheck:
    """Looks at what one operation reads and writes, where HEAD is."""

    git: Git
    repository: Repository
    layout: Layout
    operation: Operation
    cancel: CancelToken

    def refuse(self) -> None:
        """Check that files go through no filter and are here, and none that git does not know would be overwritten."""
        self._refuse_contents()
        self._refuse_overwriting_untracked()
        self._refuse_overwriting_ignored()
        if self._resets_files():
            refuse_removing_untracked(self.git, self.repository, self.cancel)
        self._refuse_overwriting_hidden_changes()
        if self.operation.command == "stash" and "--include-untracked" in self.operation.arguments:
            refuse_torn_stash(self.git, self.repository, self.layout, self._list_stash_paths(), self.cancel)

    def _refuse_contents(self) -> None:
        """Check that no file is filtered, or lacks its contents, that git would read or write."""
        check = ContentCheck(self.git, self.repository, self.layout, self.cancel)
        operation = self.operation
        for step in operation.steps:
            if step.arguments[0] == "add":
                check.refuse_staging(_list_paths(step.arguments))
        if operation.ends_in_progress:
            self._refuse_contents_of_end(check)
            return
        revision = operation.revision.text if operation.revision else "HEAD"
        match operation.command:
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
                for before, after in _list_sides(operation):
                    check.refuse_writing(before, after)
            case "stash":
                self._refuse_contents_of_stash(check, revision)
            case _:
                pass

    def _refuse_contents_of_end(self, check: ContentCheck) -> None:
        """Check what git writes when an operation in progress is continued or aborted, or a commit skipped."""
        if self.operation.arguments[-1] == "--abort":
            check.refuse_restoring("HEAD", ["."])
            check.refuse_writing("HEAD", "ORIG_HEAD")
        elif self.operation.command in ("rebase", "cherry-pick", "revert"):
            check.refuse_any()

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

    def _refuse_overwriting_untracked(self) -> None:
        """Check that no untracked file lies where one of a commit comes."""
        revision = self.operation.revision
        source = self._find_source()
        if source is not None:
            paths = self.operation.overwritten_paths
            refuse_overwriting_untracked(
                self.git, self.repository, self.layout, source, paths, self.cancel, even_same_content=False
            )
        elif isinstance(revision, Revision) and self._checks_out_commit() and self._is_sparse_checkout():
            refuse_overwriting_untracked(
                self.git, self.repository, self.layout, revision, ["."], self.cancel, even_same_content=True
            )

    def _refuse_overwriting_ignored(self) -> None:
        """Check that no ignored file lies where one of a commit comes, at the end or on the way there."""
        for comparison in self._compare_with_brought():
            refuse_overwriting_ignored(self.git, self.repository, self.layout, comparison, self.cancel)
        commits = self._list_repeated_commits()
        if commits:
            is_reverse = self.operation.command == "revert"
            refuse_overwriting_ignored_in_steps(
                self.git, self.repository, self.layout, commits, is_reverse, self.cancel
            )
        if self.operation.arguments[-1] in ("--skip", "--abort"):
            refuse_overwriting_ignored_on_reset(
                self.git, self.repository, self.layout, self._find_reset_target(), self.cancel
            )

    def _refuse_overwriting_hidden_changes(self) -> None:
        """Check that no file has changes that git was told to overlook, and would overwrite."""
        paths = self._list_rewritten_paths()
        if paths:
            refuse_overwriting_hidden_changes(self.git, self.repository, self.layout, paths, self.cancel)
        source = self._find_source()
        if source is not None:
            paths = self.operation.overwritten_paths
            refuse_overwriting_skipped(self.git, self.repository, self.layout, source, paths, self.cancel)

    def _find_source(self) -> Revision | None:
        """Return from what files are written, whatever lies there; None if none are."""
        return self.operation.source if isinstance(self.operation, FileOperation) else None

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
        span = self._select_repeated_commits()
        if not span:
            return ""
        arguments = ["rev-list", "--no-merges", *span, "--"]
        return self.git.run(self.repository, arguments, self.cancel, exit_codes=(0, 128)).text

    def _select_repeated_commits(self) -> Sequence[str]:
        """Return the arguments by which `rev-list` finds these commits; none if there are none."""
        operation = self.operation
        revision = operation.revision
        if operation.arguments[-1] in ("--continue", "--skip"):
            return self._select_remaining_commits()
        match operation.command, revision:
            case "cherry-pick" | "revert", Range():
                return [revision.text]
            case "cherry-pick" | "revert", Revision() | RevisionList():
                return ["--no-walk", *revision.arguments]
            case "rebase", Revision():
                return [f"{revision.text}..HEAD"]
            case _:
                return []

    def _select_remaining_commits(self) -> Sequence[str]:
        """Return the same for an operation in progress."""
        remaining = list_remaining_commits(self.layout)
        if isinstance(self.operation, CommitOperation):
            remaining += self.operation.unmade_pick[-1:]
        if not remaining:
            return []
        return ["--no-walk=unsorted", *remaining]

    def _find_reset_target(self) -> str:
        """Return the commit to which git resets the files where what is in progress is aborted, or a commit skipped."""
        if self.operation.arguments[-1] == "--skip":
            return "HEAD"
        return find_start(self.layout) or "HEAD"

    def _list_stash_paths(self) -> Sequence[str]:
        """Return whose changes a stash puts aside."""
        if "--" not in self.operation.arguments:
            return ["."]
        return _list_paths(self.operation.arguments)

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
        if self._resets_files():
            return ["."]
        if self.operation.command == "stash" and self.operation.arguments[1] == "push":
            return self._list_stash_paths()
        if self._find_source() is not None:
            return self.operation.overwritten_paths
        return []

    def _checks_out_commit(self) -> bool:
        """Whether files of the named commit come: in a sparse checkout git takes untracked ones there for these."""
        if self.operation.command == "reset":
            return "--keep" in self.operation.arguments
        return self.operation.command in ("switch", "merge", "rebase")

    def _is_sparse_checkout(self) -> bool:
        return git_config.is_sparse_checkout(self.git.read_allowed_configuration(self.repository))


def _list_paths(arguments: Sequence[str]) -> Sequence[str]:
    """Return the paths of a command."""
    return arguments[arguments.index("--") + 1 :]


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
