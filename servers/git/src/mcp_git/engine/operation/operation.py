"""A change: one command of git with everything that belongs to it, and the states in which no change may run."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mcp_batteries.errors import Conflict, Refused, quote
from mcp_git.engine.operation.undo import UndoKind
from mcp_git.policy import Revision
from mcp_git.repository_paths import Layout, read_small_file

__all__ = ["INSPECTION_SECONDS", "Operation", "refuse_in_progress", "refuse_program_steps"]

INSPECTION_SECONDS = 10.0
"""Seconds, once a change was stopped, for a look at what came of it."""
_STEPS = frozenset({"pick", "p", "drop", "d", "fixup", "f", "squash", "s", "noop"})
"""Of a rebase under way: nothing else is continued, since a list that somebody else wrote can run programs."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A command that changes something.

    Attributes:
        words: the command.
        given: what it reads.
        named: the revision that it was given, to explain a failure.
        undo: the calls that lead back, where they are known before.
        back: how to find them otherwise, or what has to follow them.
        files: whether it writes or reads files as a commit has them.
        loses: whose uncommitted changes may go, by path.
        source: from what files are written, whatever lies there.
        moves: a ref without whose move nothing happened.
        brings: files that it makes and git does not know.
        then: what follows the command, and is told.
        first: commands that stage something before it, each with what it reads; taken back where it fails.
        resolves: paths whose files it takes for resolved if they are in conflict.
        refreshed: whether it takes a file for changed that was only written again, unless the index knows better.
        into: the branch to be on first; its last word is `named`, as HEAD is before.
        home: the call that leads back from that branch.
        way: options of git itself, before the command.
    """

    arguments: Sequence[str]
    stdin: bytes = b""
    revision: Revision | None = None
    undo_calls: Sequence[str] | None = None
    undo_kind: UndoKind = "keep"
    touches_files: bool = True
    overwritten_paths: Sequence[str] = ()
    source: Revision | None = None
    moved_ref: str = ""
    created_files: Sequence[str] = ()
    after: Callable[[], Sequence[str]] = tuple
    stage_first: Sequence[tuple[Sequence[str], bytes]] = ()
    resolved_paths: Sequence[str] = ()
    refreshes_index: bool = False
    on_branch: Revision | None = None
    return_calls: Sequence[str] = ()
    git_options: Sequence[str] = ()


def refuse_in_progress(doing: Sequence[str]) -> None:
    """Return if nothing is under way.

    Raises:
        Conflict: something is, of which `doing` tells.
    """
    if doing:
        fix = "End that first." if doing[0].startswith("bisect") else "End that first, with `run_step`."
        raise Conflict(f"There is a {doing[0]} here.", fix)


def refuse_program_steps(layout: Layout) -> None:
    """Return if what a rebase under way has still to do is only made of commits.

    Raises:
        Refused: it would run something.
    """
    path = os.path.join(layout.git_dir, "rebase-merge", "git-rebase-todo")
    todo = read_small_file(path)
    if todo is None and os.path.lexists(path):
        raise Refused("The rebase under way has more steps than are looked at here.", "Use `git` itself for it.")
    for line in (todo or "").splitlines():
        word = line.split()[0] if line.strip() else "#"
        if not word.startswith("#") and word not in _STEPS:
            raise Refused(f"The rebase under way has the step {quote(word)}, which is not done here.", "Abort it.")
