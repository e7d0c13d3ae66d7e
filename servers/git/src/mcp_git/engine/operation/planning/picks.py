"""Plans merges, rebases, cherry-picks and reverts, and the steps that end them."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Literal

from mcp_batteries.errors import Conflict, quote
from mcp_git import git_config
from mcp_git.engine.operation.conflicts import is_at_or_below, list_conflicts
from mcp_git.engine.operation.operation import CommitOperation, GitInput, PickOperation, refuse_program_steps
from mcp_git.engine.operation.planning.planner import OperationPlanner
from mcp_git.engine.operation.side_choice import SideChoice, plan_choice
from mcp_git.engine.undo.later_state import branch_of
from mcp_git.engine.undo.undo_kind import BEFORE_IT_BEGAN, HASH_LENGTH, UndoKind
from mcp_git.engine.work_tree.in_progress import (
    find_operations_in_progress,
    find_start,
    find_unmade_commit,
    has_sequence,
    list_sequence_options,
)
from mcp_git.engine.work_tree.status import Status
from mcp_git.engine.work_tree.status_reader import read_status
from mcp_git.path_quoting import quote_path
from mcp_git.policy import Range, Revision, RevisionList, parse_ref
from mcp_git.repository_paths import Layout, read_small_file
from mcp_git.tool_calls import format_call

__all__ = ["PickPlanner"]

_HASH = re.compile("[0-9a-f]{7,64}")
# Below this line nothing of a message counts; what is above is kept as it is, lines with `#` too.
_SCISSORS = re.compile(r"(?m)^. -+ >8 -+$")
# Lets git write that line at a conflict, and heed it; otherwise it takes lines with `#` for its own remarks.
_SCISSORS_OPTIONS = ["-c", "commit.cleanup=scissors"]
_NO_CHOICE = SideChoice()


class PickPlanner(OperationPlanner):
    """Plans what brings commits to a branch."""

    def merge(
        self, revision: Revision, *, message: str = "", squash: bool = False, on_branch: Revision | None = None
    ) -> PickOperation:
        """Plan to merge a revision.

        Args:
            message: of the merge commit, which there is then in any case.
            squash: whether what it brings is only staged.
        """
        arguments = ["merge", "--quiet", "--no-edit", "--no-verify", "--no-gpg-sign", "--no-autostash"]
        # So that after a conflict lines of a message with `#` are told from git's own.
        arguments.append("--cleanup=scissors")
        if squash:
            arguments.append("--squash")
        if message:
            # `merge` reads no message from a pipe, and leaves one unsaid where it only has to move the branch.
            arguments += ["--no-ff", f"--message={message}"]
        return PickOperation(
            [*arguments, revision.text],
            revision=revision,
            undo_kind=UndoKind.FILES if squash else UndoKind.KEEP,
            overwritten_paths=["."],
            on_branch=self._shorten_branch(on_branch),
        )

    def rebase(self, revision: Revision) -> PickOperation:
        """Plan to put the commits of the current branch on top of a revision."""
        arguments = ["rebase", "--quiet", "--no-verify", "--no-gpg-sign", "--no-autostash", "--no-autosquash"]
        return self.pick(arguments, revision, [f"{revision.text}..HEAD"])

    def pull(self, upstream: Revision) -> PickOperation:
        """Plan to bring what the current branch follows, by a merge or, where both have parted, as is configured.

        Raises:
            Conflict: a merge is configured not to be, or a rebase of another kind is asked for.
        """
        key, value = self._find_pull_setting()
        if not key or not self._has_parted(upstream):
            return self.merge(upstream)
        if value in git_config.TRUE_VALUES:
            return replace(self.rebase(upstream), after=lambda: [f"a rebase, as {quote(key)} asks"])
        raise Conflict(
            f"Both sides have commits of their own, and {quote(key)} of the configuration asks for no merge.",
            f"To rebase pass rebase=true; {format_call('run_merge', rev=upstream.text)} merges all the same.",
        )

    def pick(
        self,
        arguments: Sequence[str],
        revision: Revision | Range | RevisionList,
        span: Sequence[str],
        on_branch: Revision | None = None,
        mainline: int | None = None,
    ) -> PickOperation:
        """Plan to make commits once more; after a conflict too, lines of their messages that begin with `#` stay.

        Args:
            span: which commits.
            mainline: the parent, from 1 on, from which a merge commit differs.

        Raises:
            Conflict: one of several is a merge, at which git would stop half-way.
        """
        if isinstance(revision, RevisionList) and mainline is None:
            self._refuse_merges(revision)
        search = ["log", "--max-count=1", "--format=%H", "--grep=^#", *span, "--"]
        git_options: Sequence[str] = ()
        if self.git.run(self.repository, search, self.cancel, exit_codes=(0, 128)).stdout:
            git_options = _SCISSORS_OPTIONS
        base = self._find_hash(f"{revision.text}^{{commit}}") if arguments[0] == "rebase" else ""
        options = [f"--mainline={mainline}"] if mainline else []
        return PickOperation(
            [*arguments, *options, *revision.arguments],
            revision=revision,
            # Git itself keeps them, but where it fails half-way a call that leads back writes all files again.
            overwritten_paths=["."],
            on_branch=self._shorten_branch(on_branch),
            git_options=git_options,
            base=base,
            mainline=mainline or 1,
        )

    def step(
        self,
        action: Literal["continue", "skip", "abort"],
        stage_first: Sequence[GitInput] = (),
        resolved_paths: Sequence[str] = (),
        choice: SideChoice = _NO_CHOICE,
    ) -> CommitOperation:
        """Plan to continue, skip or abort what is in progress.

        Args:
            stage_first: to continue: the commands that stage what is resolved.
            resolved_paths: what they stage.
            choice: of other files in conflict, which side is taken.
        """
        layout = self.git.layout(self.repository)
        command = self._find_command_in_progress(layout)
        unmade_pick = self._list_unmade_pick(layout, command)
        if action == "abort":
            if unmade_pick:
                self._refuse_losing_staged(layout)
            return CommitOperation([command, "--abort"], undo_calls=tuple)
        refuse_program_steps(layout)
        chosen_paths: Sequence[str] = ()
        if not choice.is_empty:
            status = read_status(self.git, self.repository, self.cancel, layout=layout)
            sides = choice.find_sides(status)
            chosen_paths = list(sides)
            stage_first = [*plan_choice(self.git, self.repository, layout, sides, self.cancel), *stage_first]
            resolved_paths = _list_other_conflicts(status, resolved_paths, sides)
        start = find_start(layout) or read_status(self.git, self.repository, self.cancel).oid
        undo_calls = [format_call("run_reset", rev=start[:HASH_LENGTH]).with_remark(BEFORE_IT_BEGAN)]
        arguments = [command, f"--{action}"]
        if action == "skip" and unmade_pick:
            # Git passes over it, and unlike `--skip` takes nothing out of the index.
            arguments = [command, "--continue"]
            unmade_pick = ()
        git_options: Sequence[str] = ()
        if _has_scissors(layout):
            git_options = _SCISSORS_OPTIONS
            if action == "continue" and _is_single_pick(layout, command):
                # `--continue` cleans the message its own way.
                arguments = ["commit", "--quiet", "--no-verify", "--no-gpg-sign"]
        return CommitOperation(
            arguments,
            undo_calls=lambda: undo_calls,
            stage_first=stage_first,
            chosen_paths=chosen_paths,
            resolved_paths=resolved_paths,
            unmade_pick=unmade_pick,
            git_options=git_options,
            base=_find_rebase_base(layout),
            start=start,
        )

    def _find_pull_setting(self) -> tuple[str, str]:
        """Return the key by which a pull is to be no merge, and its value; empty if there is none."""
        entries = self.git.read_unheeded_configuration(self.repository)
        # Only this one goes before a rebase that is asked for.
        if entries.get("pull.ff", "").lower() == "only":
            return "pull.ff", "only"
        branch = branch_of(read_status(self.git, self.repository, self.cancel))
        keys = [key for key in (f"branch.{branch}.rebase", "pull.rebase") if key in entries]
        value = entries[keys[0]].lower() if keys else "false"
        if value not in git_config.FALSE_VALUES:
            return keys[0], value
        if "pull.ff" not in entries and entries.get("merge.ff", "").lower() == "only":
            return "merge.ff", "only"
        return "", ""

    def _has_parted(self, upstream: Revision) -> bool:
        """Whether both the current branch and another one have commits of their own."""
        arguments = ["rev-list", "--left-right", "--count", f"HEAD...{upstream.text}", "--"]
        output = self.git.run(self.repository, arguments, self.cancel, exit_codes=(0, 128))
        return bool(output.text) and "0" not in output.text.split()

    def _find_command_in_progress(self, layout: Layout) -> str:
        """Return the command that is in progress, such as `rebase`.

        Raises:
            Conflict: none is, or a bisect.
        """
        in_progress = find_operations_in_progress(self.git, self.repository, layout, self.cancel)
        if not in_progress:
            raise Conflict("Nothing is `under way` in this repository.", "`get_status` has its state.")
        if in_progress[0].startswith("bisect"):
            raise Conflict("A bisect is under way, which no tool here ends.", "The user can: `git bisect reset`.")
        return in_progress[0].split(" ")[0]

    def _list_unmade_pick(self, layout: Layout, command: str) -> Sequence[str]:
        """Return the command that makes the commit which `--continue` would pass over; none if there is no such."""
        commit = ""
        if command in ("cherry-pick", "revert"):
            commit = find_unmade_commit(self.git, self.repository, layout, self.cancel)
        if not commit:
            return ()
        return [command, "--no-gpg-sign", *list_sequence_options(layout), commit]

    def _refuse_losing_staged(self, layout: Layout) -> None:
        """Check that nothing is staged where git stands before a commit: it is no part of a pick, and would be lost.

        Raises:
            Conflict: something is.
        """
        staged = read_status(self.git, self.repository, self.cancel, layout=layout).list_staged()
        if staged:
            raise Conflict(
                f"{quote(quote_path(staged[0]))} is staged, and would be lost for good.",
                "Nothing was changed. Unstage it with `stage_files`, or put it aside with `run_stash`.",
            )

    def _refuse_merges(self, commits: RevisionList) -> None:
        arguments = ["rev-list", "--no-walk=unsorted", "--merges", *commits.arguments, "--"]
        merges = self.git.run(self.repository, arguments, self.cancel, exit_codes=(0, 128)).text.split()
        if merges:
            raise Conflict(
                f"{quote(merges[0][:HASH_LENGTH])} is a merge.",
                "Nothing was changed. Pass `mainline`: 1 for what it brought to its first parent; or leave it out.",
            )

    def _shorten_branch(self, branch: Revision | None) -> Revision | None:
        return branch and parse_ref(self._shorten_ref(branch.text, "heads"))


def _list_other_conflicts(status: Status, paths: Sequence[str], chosen: Collection[str]) -> list[str]:
    """Return the files in conflict that are not chosen, all of them at or below some paths.

    Raises:
        Conflict: one of them is not, so that nothing could go on.
    """
    folders = [os.fsencode(path).rstrip(b"/") for path in paths]
    others = [path for path in list_conflicts(status) if os.fsdecode(path) not in chosen]
    for path in others:
        if not is_at_or_below(path, folders):
            raise Conflict(
                f"{quote(quote_path(path))} is still in conflict.",
                "Nothing was changed. Name it too, in `paths`, `ours`, `theirs` or `both`.",
            )
    return [os.fsdecode(path) for path in others]


def _find_rebase_base(layout: Layout) -> str:
    """Return the commit on which a rebase in progress puts others; empty if there is none."""
    text = (read_small_file(os.path.join(layout.git_dir, "rebase-merge", "onto")) or "").strip()
    return text if _HASH.fullmatch(text) else ""


def _has_scissors(layout: Layout) -> bool:
    """Whether the message of the commit at hand has the line below which nothing counts."""
    message = read_small_file(os.path.join(layout.git_dir, "MERGE_MSG")) or ""
    return _SCISSORS.search(message) is not None


def _is_single_pick(layout: Layout, command: str) -> bool:
    """Whether a cherry-pick of one commit is in progress."""
    return command == "cherry-pick" and not has_sequence(layout)
