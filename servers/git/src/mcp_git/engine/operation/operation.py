"""Operations: commands of git with everything that belongs to them, and the states in which none may run."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mcp_batteries.errors import Conflict, Refused, quote
from mcp_git.engine.undo.undo_kind import UndoKind
from mcp_git.policy import Range, Revision, RevisionList
from mcp_git.repository_paths import Layout, read_small_file
from mcp_git.tool_calls import ToolCall

__all__ = [
    "INSPECTION_SECONDS",
    "CommitOperation",
    "FileOperation",
    "GitInput",
    "Operation",
    "PickOperation",
    "RefOperation",
    "refuse_amending_another",
    "refuse_in_progress",
    "refuse_program_steps",
]

# How long the state may be looked at once an operation was stopped.
INSPECTION_SECONDS = 10.0

# The steps of a rebase that are continued; others can run programs, and the list may be somebody else's.
_COMMIT_STEPS = frozenset({"pick", "p", "drop", "d", "fixup", "f", "squash", "s", "noop"})


class GitInput(NamedTuple):
    """The arguments of a command, behind options of git itself, and what it reads.

    Attributes:
        hides_worktrees: whether it is to find no HEAD but that of this work tree.
    """

    arguments: Sequence[str]
    stdin: bytes = b""
    hides_worktrees: bool = False

    @property
    def command(self) -> str:
        """The name of the command."""
        arguments = iter(self.arguments)
        for argument in arguments:
            if argument != "-c":
                return argument
            next(arguments)
        return ""


@dataclass(frozen=True)
class Operation:
    """A command that changes something; its kinds have what only they need.

    Attributes:
        revision: what it was given, to explain a failure.
        undo_calls: returns the calls that lead back, once it is done; None where `undo_kind` finds them.
        undo_kind: how to find them otherwise, or what has to follow them.
        overwritten_paths: whose uncommitted changes may go.
        after: what follows the command; returns lines of the answer.
    """

    arguments: Sequence[str]
    stdin: bytes = b""
    revision: Revision | Range | RevisionList | None = None
    undo_calls: Callable[[], Sequence[ToolCall]] | None = None
    undo_kind: UndoKind = UndoKind.KEEP
    overwritten_paths: Sequence[str] = ()
    after: Callable[[], Sequence[str]] = tuple

    @property
    def command(self) -> str:
        return self.arguments[0]

    @property
    def steps(self) -> Sequence[GitInput]:
        """What git runs, one after the other."""
        return [GitInput(self.arguments, self.stdin)]

    @property
    def ends_in_progress(self) -> bool:
        """Whether it ends an operation in progress as that is meant to end, like a commit."""
        return self.arguments[-1] in ("--continue", "--skip", "--abort")


@dataclass(frozen=True)
class RefOperation(Operation):
    """Creates, moves or deletes names of commits: branches, tags, stashes.

    Attributes:
        moved_ref: a ref without whose move nothing happened.
        hides_worktrees: whether the command is to find no HEAD but that of this work tree.
        next_steps: commands that follow it.
    """

    moved_ref: str = ""
    hides_worktrees: bool = False
    next_steps: Sequence[GitInput] = ()

    @property
    def steps(self) -> Sequence[GitInput]:
        return [GitInput(self.arguments, self.stdin, self.hides_worktrees), *self.next_steps]


@dataclass(frozen=True)
class FileOperation(Operation):
    """Writes files of the work tree.

    Attributes:
        source: from what they are written, whatever lies there.
        created_files: those that it makes and git does not know; an undo stages them first.
        refreshes_index: whether it takes a file for changed that was only written again, unless the index knows better.
        next_steps: commands that follow it.
    """

    source: Revision | None = None
    created_files: Sequence[str] = ()
    refreshes_index: bool = False
    next_steps: Sequence[GitInput] = ()

    @property
    def steps(self) -> Sequence[GitInput]:
        return [GitInput(self.arguments, self.stdin), *self.next_steps]


@dataclass(frozen=True)
class CommitOperation(Operation):
    """Makes a commit, or goes on with what is in progress.

    Attributes:
        stage_first: commands that stage something before it. They are taken back where it fails, if HEAD and the
            operation in progress stay as before.
        chosen_paths: files in conflict that these commands also write, as one side has them. Where it fails they stay
            so, and all stays staged: with the index of before they would pass for files that nobody touched.
        resolved_paths: paths whose files it takes for resolved if they are in conflict.
        unmade_pick: the command that makes the commit which `--continue` would pass over.
        git_options: options of git itself, before the command.
        base: the commit on which a rebase in progress puts others, so that what it has is no news; empty otherwise.
        start: the commit at which what is in progress began; empty for other operations.
    """

    stage_first: Sequence[GitInput] = ()
    chosen_paths: Sequence[str] = ()
    resolved_paths: Sequence[str] = ()
    unmade_pick: Sequence[str] = ()
    git_options: Sequence[str] = ()
    base: str = ""
    start: str = ""

    @property
    def is_taken_back(self) -> bool:
        """Whether what it staged is taken back where it fails."""
        return bool(self.stage_first) and not self.chosen_paths

    @property
    def is_continuation(self) -> bool:
        """Whether it continues an operation in progress, with the commit at which that stopped."""
        return bool(self.start) and "--skip" not in self.arguments

    @property
    def is_of_paths(self) -> bool:
        """Whether it commits single paths, and leaves staged what else is."""
        return "--" in self.arguments

    @property
    def steps(self) -> Sequence[GitInput]:
        steps = list(self.stage_first)
        if self.unmade_pick:
            steps.append(GitInput([*self.git_options, *self.unmade_pick]))
        return [*steps, GitInput([*self.git_options, *self.arguments], self.stdin)]


@dataclass(frozen=True)
class PickOperation(Operation):
    """Brings commits to a branch: a merge, rebase, cherry-pick or revert.

    Attributes:
        on_branch: the branch to be on first; its last arguments are `revision`, as HEAD is before. HEAD goes back if
            it fails and changes nothing.
        return_calls: the calls that lead back from that branch.
        git_options: options of git itself, before the command.
        base: the commit on which a rebase puts others, so that what it has is no news; empty for other operations.
        mainline: the parent from which a merge commit that is picked or reverted differs.
    """

    on_branch: Revision | None = None
    return_calls: Sequence[ToolCall] = ()
    git_options: Sequence[str] = ()
    base: str = ""
    mainline: int = 1

    @property
    def is_of_several(self) -> bool:
        """Whether git keeps a list of the commits, so that it can stop between two of them."""
        return isinstance(self.revision, Range | RevisionList)

    @property
    def steps(self) -> Sequence[GitInput]:
        return [GitInput([*self.git_options, *self.arguments], self.stdin)]


def refuse_in_progress(operations: Sequence[str]) -> None:
    """Check that no operation is in progress.

    Raises:
        Conflict: one is, of which `operations` tells.
    """
    if not operations:
        return
    fix = "End that first, with `continue_operation`."
    if operations[0].startswith("bisect"):
        fix = "End that first."
    raise Conflict(f"There is a {operations[0]} here.", fix)


def refuse_amending_another(layout: Layout, operations: Sequence[str]) -> None:
    """Check that no operation has stopped before its commit: HEAD is then the commit before, which git would amend.

    Raises:
        Conflict: one has.
    """
    names = [phrase.split(" ")[0] for phrase in operations if not phrase.startswith("bisect")]
    if not names or os.path.lexists(os.path.join(layout.git_dir, "rebase-merge", "amend")):
        return
    # Git keeps the message there until the commit is made.
    is_to_come = os.path.lexists(os.path.join(layout.git_dir, "MERGE_MSG"))
    if is_to_come or os.path.lexists(os.path.join(layout.git_dir, "rebase-apply")):
        raise Conflict(
            f"The commit of the {names[0]} under way is not made yet, so `amend` would change the one before.",
            "`continue_operation` makes it.",
        )


def refuse_program_steps(layout: Layout) -> None:
    """Check that what a rebase in progress has still to do is only made of commits.

    Raises:
        Refused: it would run something.
    """
    path = os.path.join(layout.git_dir, "rebase-merge", "git-rebase-todo")
    todo = read_small_file(path)
    if todo is None and os.path.lexists(path):
        raise Refused("The rebase under way has more steps than are looked at here.", "Use `git` itself for it.")
    for line in filter(str.strip, (todo or "").splitlines()):
        step = line.split()[0]
        if not step.startswith("#") and step not in _COMMIT_STEPS:
            raise Refused(f"The rebase under way has the step {quote(step)}, which is not done here.", "Abort it.")
