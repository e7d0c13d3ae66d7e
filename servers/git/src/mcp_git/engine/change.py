"""Changes: one command of git each, and an answer that says what happened, what is left to do and the way back."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from mcp_batteries.errors import Conflict, Invalid, Problem, Refused, quote
from mcp_batteries.limits import Stop
from mcp_git.engine.program import Failed, Git
from mcp_git.engine.runs import clip, explained
from mcp_git.engine.status import State, look, under_way
from mcp_git.layout import small_file
from mcp_git.models import Answer, counted
from mcp_git.names import one_line, shown
from mcp_git.policy import Changeable, Policy, Repository, Revision

__all__ = ["Change", "Changes", "refuse_filters"]

_STEPS = frozenset({"pick", "p", "drop", "d", "fixup", "f", "squash", "s", "noop"})
"""Of a rebase under way: nothing else is continued, since a list that somebody else wrote can run programs."""
_MOST_LISTED = 20
_ROW = 120


@dataclass(frozen=True, slots=True)
class Change:
    """A command that changes something.

    Attributes:
        words: the command.
        given: what it reads.
        named: the revision that it was given, to explain a failure.
        undo: the way back, where it is another than a reset to where HEAD was; empty where there is none.
        keeps: what such a reset leaves as it is: `keep` local changes only, `soft` all files.
        files: whether it writes or reads files as a commit has them.
        loses: whether uncommitted changes may go, which are then kept as a stash that has no name.
    """

    words: Sequence[str]
    given: bytes = b""
    named: Revision | None = None
    undo: str | None = None
    keeps: Literal["keep", "soft"] = "keep"
    files: bool = True
    loses: bool = False


class Changes:
    """Makes changes, of one repository one at a time; every method blocks."""

    def __init__(self, git: Git, policy: Policy) -> None:
        self._git, self._policy = git, policy
        self._turns: dict[str, threading.Lock] = {}

    def make(self, changeable: Changeable, prepare: Callable[[Repository, Stop], Change], stop: Stop) -> Answer:
        """Make the change that `prepare` says, once it is this one's turn.

        Raises:
            Conflict: the repository is not in the state for it.
            Problem: git refused.
        """
        repository = changeable.repository
        with self._turns.setdefault(repository.name, threading.Lock()):
            layout = self._policy.layout(repository, changes=True)
            if layout.work_tree is None:
                raise Refused("A bare repository has no work tree, so it is only read.", "Serve a clone of it.")
            change = prepare(repository, stop)
            if change.files:
                refuse_filters(self._git, repository, stop)
            before, kept = look(self._git, repository, stop), ""
            if change.loses and any(letters != "??" for letters, _, _ in before.entries) and before.oid[:1] != "(":
                kept = self._git.run(repository, ["stash", "create"], stop, changes=True).text.strip()
            os.makedirs(os.path.join(layout.common_dir, "logs"), exist_ok=True)
            doing = under_way(layout.git_dir)
            try:
                self._git.run(repository, change.words, stop, given=change.given, changes=True)
            except Failed as failure:
                # That it stopped at a conflict is an answer, not a failure.
                begun = under_way(layout.git_dir) != doing
                if not begun and not self._conflicts(look(self._git, repository, stop), before):
                    raise self._problem(failure, repository, change, stop) from None
            return self._told(repository, layout.git_dir, change, before, kept, stop)

    def _told(
        self, repository: Repository, git_dir: str, change: Change, before: State, kept: str, stop: Stop
    ) -> Answer:
        after = look(self._git, repository, stop)
        doing = under_way(git_dir)
        facts = [after.branch, *doing]
        lines: list[str] = []
        new = after.oid != before.oid and after.oid[:1] != "("
        if new:
            span = [after.oid] if before.oid[:1] == "(" else [f"{before.oid}..{after.oid}"]
            words = ["log", "--format=%h %s", f"--max-count={_MOST_LISTED}", *span, "--"]
            made = self._git.run(repository, words, stop).text.splitlines()
            lines += [clip(one_line(line), _ROW) for line in made]
        conflicts = self._conflicts(after)
        if conflicts:
            facts.append(f"{len(conflicts):,} in conflict")
            lines += [f"conflict: {shown(path)}" for path in conflicts[:_MOST_LISTED]]
        numbers = len(after.entries) - len(conflicts)
        facts.append(counted(numbers, "other file") + " not committed" if numbers else "nothing else uncommitted")
        if doing:
            facts.append("go on with `run_step`: continue or abort")
        else:
            lines += [f"undo: {way}" for way in _ways_back(change, before, kept, new)]
        return Answer(facts, lines)

    @staticmethod
    def _conflicts(state: State, before: State | None = None) -> list[bytes]:
        found = [path for letters, path, _ in state.entries if "U" in letters or letters in ("AA", "DD")]
        known = Changes._conflicts(before) if before else []
        return [path for path in found if path not in known]

    def steps_are_harmless(self, repository: Repository) -> None:
        """Return if what a rebase under way has still to do is only made of commits.

        Raises:
            Refused: it would run something.
        """
        layout = self._policy.layout(repository, changes=True)
        todo = small_file(os.path.join(layout.git_dir, "rebase-merge", "git-rebase-todo"))
        for line in (todo or "").splitlines():
            if (word := line.split(" ")[0]) and not word.startswith("#") and word not in _STEPS:
                raise Refused(f"The rebase under way has the step {quote(word)}, which is not done here.", "Abort it.")

    def _problem(self, failure: Failed, repository: Repository, change: Change, stop: Stop) -> Problem:
        said = failure.said
        if "tell me who you are" in said or "auto-detection is disabled" in said:
            return Refused(
                "Git knows no `user.name` and `user.email` to commit as.", "The operator can set them: `git config`."
            )
        if "index.lock" in said or "Unable to create" in said:
            return Conflict("Another `git` is at work in this repository.", "Call again when it is done.")
        told = explained(failure, self._git, repository, change.named, stop)
        if not isinstance(told, Invalid):
            return told
        words = " ".join(line.strip() for line in said.splitlines() if line and not line.startswith("hint:"))
        if not words:
            commits = change.words[0] == "commit"
            fix = "Stage files with `edit_index`, or set `all_tracked`." if commits else "See `get_status`."
            return Conflict(f"git found nothing to {change.words[0]}.", fix)
        return Conflict(f"git: `{one_line(re.sub(r'^(fatal|error): ', '', words))[:400]}`.", "Nothing was changed.")


def refuse_filters(git: Git, repository: Repository, stop: Stop, tree: str = "") -> None:
    """Return if no file of the repository is to go through a filter: without it what is stored would be wrong.

    Args:
        tree: looked through instead of what lies in the index and the work tree.

    Raises:
        Refused: one is.
    """
    for where in [tree] if tree else ["--cached", "--untracked"]:
        words = ["grep", "-l", "--no-color", *([] if tree else [where]), "-E", "-e", "(^|[[:space:]])filter="]
        words += [*([where] if tree else []), "--", ":(top,glob)**/.gitattributes"]
        if git.run(repository, words, stop, fine=(0, 1), literal=False).out:
            raise Refused(
                "Files of this repository go through a filter (`filter=` in `.gitattributes`), such as Git LFS, "
                "and none is run here.",
                "Use `git` itself for this change.",
            )


def _ways_back(change: Change, before: State, kept: str, new: bool) -> list[str]:
    ways: list[str] = []
    if change.undo:
        ways.append(change.undo)
    elif change.undo is None and new and before.oid[:1] != "(":
        ways.append(f'`run_reset` with rev="{before.oid[:12]}", mode="{change.keeps}"')
    if kept:
        ways.append(f'for what was not committed, `run_stash` with action="apply", rev="{kept[:12]}"')
    return ways
