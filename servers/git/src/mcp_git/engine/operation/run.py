"""Makes changes: one command of git each, and an answer with what happened, what is left to do and how to undo it."""

from __future__ import annotations

import functools
import os
import re
import threading
from collections.abc import Callable, Collection, Sequence

from mcp_batteries.errors import Conflict, Invalid, Problem, Refused, quote
from mcp_batteries.limits import Stop
from mcp_git.engine.history.diff import read_conflict_sides
from mcp_git.engine.operation.on_branch import run_on_branch
from mcp_git.engine.operation.operation import INSPECTION_SECONDS, Operation, refuse_in_progress
from mcp_git.engine.operation.undo import (
    Snapshot,
    describe_remaining_files,
    list_staged_since,
    refuse_overwriting_untracked,
    save_index,
    take_snapshot,
)
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.output import clip, split_lines
from mcp_git.engine.program.revisions import explain_failure, find_hash
from mcp_git.engine.work_tree.filters import refuse_filters
from mcp_git.engine.work_tree.status import Status, is_conflict, read_status
from mcp_git.git_config import TRUE_VALUES
from mcp_git.models import Answer, count
from mcp_git.path_quoting import escape_line_breaks, quote_path
from mcp_git.policy import Policy, Repository, WritableRepository
from mcp_git.repository_paths import Layout, read_small_file
from mcp_git.tool_calls import format_call

__all__ = ["OperationRunner"]

_MOST_LISTED = 20
_ROW = 120
_HASH = 12
_MOST_NAMES = 50_000
"""Bytes of names that one command is given."""
_ASIDE = re.compile(r"^(?:hint|warning|<stdin>):|is not a valid attribute name")
_MOVES = {
    "pathspec .* did not match": "`get_status` has the files that changed, `list_files` those of a commit.",
    "branch named .* already exists": "Choose another name, or go to that one with `run_switch`.",
    "tag .* already exists": "Choose another name.",
    "is not fully merged": "Set `force` to delete it all the same.",
    "(?:checked out|used by worktree) at": "It is in another worktree, which `list_refs` with kind=worktrees names: "
    "work there, or go to another branch there.",
    "is now empty": "`run_step` with action=skip leaves it out.",
    "(?:branch|tag) '.*' not found": "`list_refs` has those there are.",
    "No valid patches|patch fragment without header": "Send a unified diff, with its `---`, `+++` and `@@` lines.",
    "empty commit message": "`create_commit` with a `message` ends it too.",
    "into an empty head": "Leave out the `message`: there is no commit yet to merge with.",
    "patch (?:does not apply|failed)": "Make it from what `read_diff` shows now.",
}
"""What to do next, by what git says."""
_SHELL = re.compile(
    r"^(?:fatal|error): | If you are sure you want to delete it, run '[^']*'| If you wish to commit it anyway, use: .*"
)
"""What git says to somebody in a shell."""
_SIDES = {
    "DD": "deleted by both", "AU": "added by us", "UD": "deleted by them", "UA": "added by them", "DU": "deleted by us",
    "AA": "added by both",
}  # fmt: skip
"""What the two letters of a conflict say, in git's words; `UU` is the usual one."""
_NO_NEWS = {"commit", "switch"}
"""What makes one commit with the caller's own subject, or none: others tell the commits that HEAD has gained."""
_GOES_ON = {"--continue", "--skip", "--abort"}
"""Which end what is under way as they are meant to, like a commit."""
_ONLY_REFS = {"branch", "tag"}
"""Commands that never look at the work tree."""
_MARKS = ["-e", "^<<<<<<< ", "-e", "^>>>>>>> "]


class OperationRunner:
    """Makes changes, of one repository one at a time; every method blocks."""

    def __init__(self, git: Git, policy: Policy) -> None:
        self._git, self._policy = git, policy
        self._turns: dict[str, threading.Lock] = {}

    def run(
        self, changeable: WritableRepository, prepare: Callable[[Repository, Stop], Operation], stop: Stop
    ) -> Answer:
        """Make the change that `prepare` says, once it is this one's turn.

        Raises:
            Conflict: the repository is not in the state for it.
            Problem: git refused.
        """
        repository = changeable.repository
        with self._turns.setdefault(repository.name, threading.Lock()):
            layout = self._git.layout(repository, writes=True)
            if layout.work_tree is None:
                raise Refused("A bare repository has no work tree, so it is only read.", "Serve a clone of it.")
            change = prepare(repository, stop)
            if change.arguments[0] not in _ONLY_REFS:
                self._git.refuse_to_enter(layout)
            make = functools.partial(self._made, repository, layout, stop=stop)
            if change.on_branch is None:
                return make(change)
            return run_on_branch(self._git, repository, layout, change, change.on_branch, make, stop)

    def _made(self, repository: Repository, layout: Layout, change: Operation, stop: Stop) -> Answer:
        if change.touches_files:
            refuse_filters(self._git, repository, layout, stop)
        if change.source is not None:
            refuse_overwriting_untracked(self._git, repository, layout, change.source, change.overwritten_paths, stop)
        elif change.revision is not None and _brings(change.arguments) and self._is_sparse(repository):
            refuse_overwriting_untracked(self._git, repository, layout, change.revision, ["."], stop, alike=True)
        with take_snapshot(self._git, repository, layout, bool(change.overwritten_paths), stop) as was:
            if change.arguments[0] == "switch":
                # Newer gits refuse it too, but look for what is under way in the common directory.
                refuse_in_progress([what for what in was.status.in_progress if not what.startswith("bisect")])
            self._refuse_markers(repository, _conflicts(was.status), change.resolved_paths, stop)
            was_at = find_hash(self._git, repository, change.moved_ref, stop) if change.moved_ref else ""
            picked = self._picked(repository, layout, stop)
            os.makedirs(os.path.join(layout.common_dir, "logs"), exist_ok=True)
            if change.refreshes_index:
                words = ["update-index", "-q", "--refresh"]
                self._git.run(repository, words, stop, exit_codes=(0, 1, 128), writes=True)
            unstage = save_index(layout) if change.stage_first else lambda: None
            try:
                for words, given in [*change.stage_first, ([*change.git_options, *change.arguments], change.stdin)]:
                    self._git.run(repository, words, stop, stdin=given, writes=True)
            except GitFailed as failure:
                # That it stopped at a conflict is an answer, not a failure.
                now = read_status(self._git, repository, stop, layout=layout)
                begun = now.oid == was.status.oid and now.in_progress[:1] != was.status.in_progress[:1]
                at = self._picked(repository, layout, stop)
                if begun and _is_empty(at, now):
                    self._git.run(repository, [change.arguments[0], "--quit"], Stop(INSPECTION_SECONDS), writes=True)
                    where = quote(change.on_branch.text if change.on_branch else "HEAD")
                    fix = "Nothing was changed, and nothing is left to do."
                    raise Conflict(f"{where} has what this commit changes already.", fix) from None
                stopped = now.in_progress != was.status.in_progress or at != picked
                if not stopped and not _conflicts(now, was.status):
                    if now.oid == was.status.oid:
                        unstage()
                    raise self._problem(failure, repository, layout, change, was, stop) from None
            except BaseException:
                if change.stage_first:
                    now = read_status(self._git, repository, Stop(INSPECTION_SECONDS), layout=layout)
                    if (now.oid, now.in_progress) == (was.status.oid, was.status.in_progress):
                        unstage()
                raise
            if change.moved_ref and find_hash(self._git, repository, change.moved_ref, stop) == was_at:
                raise self._nothing(change)
            try:
                return self._told(repository, layout, change, was, picked, stop)
            except Problem as failure:
                return Answer(["done", f"git can't tell the state now: {failure}"])

    def _told(
        self,
        repository: Repository,
        layout: Layout,
        change: Operation,
        was: Snapshot,
        picked: Sequence[str],
        stop: Stop,
    ) -> Answer:
        after = read_status(self._git, repository, stop, layout=layout)
        doing, at = after.in_progress, self._picked(repository, layout, stop)
        facts = [after.branch, *doing]
        lines: list[str] = []
        same = (after.oid, doing, after.entries) == (was.status.oid, was.status.in_progress, was.status.entries)
        facts += ["already up to date"] * (
            same and change.arguments[0] == "merge" and change.arguments[-1] not in _GOES_ON
        )
        if after.oid != was.status.oid and after.oid[:1] != "(" and change.arguments[0] not in _NO_NEWS:
            span = [f"{was.status.oid}..{after.oid}"] if was.head else [after.oid]
            words = ["log", "--format=%h %s", f"--max-count={_MOST_LISTED}", *span, "--"]
            made = split_lines(self._git.run(repository, words, stop))
            lines += [clip(escape_line_breaks(line), _ROW) for line in made]
        conflicts = _conflicts(after)
        if conflicts:
            facts.append(f"{len(conflicts):,} in conflict")
            met = _conflicts(after, was.status)
            sides = read_conflict_sides(self._git, repository, met[:_MOST_LISTED], stop) if met else {}
            letters = {path: letters for letters, path, _ in after.entries}
            for path in conflicts[:_MOST_LISTED]:
                how = f" ({_SIDES[letters[path]]})" if letters[path] in _SIDES else ""
                lines += [f"conflict: {quote_path(path)}{how}", *sides.get(quote_path(path), ())]
        numbers = len(after.entries) - len(conflicts)
        facts.append(count(numbers, "other file") + " not committed" if numbers else "nothing else uncommitted")
        lines += change.after()
        if change.arguments[0] != "commit" and change.arguments[-1] not in _GOES_ON:
            now = {what.split(" ")[0] for what in doing}
            lost = [what for what in was.status.in_progress if what.split(" ")[0] not in now]
            moved = any(one and one != other for one, other in zip(picked, at, strict=True))
            lost += ["at which commit it stands"] * (moved and not lost)
            lines += [f"not brought back by an undo: {what}" for what in lost]
        if unmarked := _intended(was.status) - _intended(after):
            names = ", ".join(sorted(map(quote_path, unmarked))[:_MOST_LISTED])
            lines.append(clip(f"no undo brings back the mark `--intent-to-add` of {names}", 2 * _ROW))
        if change.arguments[:2] == ["stash", "push"] and (gone := sorted(_added_and_gone(was.status))):
            lines.append(f"the undo brings back these files, which were staged and then deleted: {', '.join(gone)}")
        if doing:
            empty = _is_empty(at, after)
            facts += ["nothing of the commit at hand is left"] * empty
            facts.append(f"go on with `run_step`: {'skip' if empty else 'continue'} or abort")
            lines += [f"then {way} leads back" for way in change.return_calls]
        if not doing or change.undo_kind in ("index", "files"):
            if change.undo_kind == "index":
                was.store(layout)  # to be compared with
            ways = self._ways_back(repository, change, was, after, stop)
            if any(tree and tree in way for tree in (was.index_tree, was.files_tree) for way in ways):
                was.store(layout)
            if change.created_files and ways:
                staged, left = self._brought(repository, layout, change, after, stop)
                ways = [*staged, *ways]
                lines += [describe_remaining_files(left)] * bool(left)
            lines += [f"undo: {way}" for way in [*ways, *change.return_calls]]
        return Answer(facts, lines)

    def _ways_back(
        self, repository: Repository, change: Operation, was: Snapshot, after: Status, stop: Stop
    ) -> Sequence[str]:
        if change.undo_kind == "index":
            return was.undo_calls("index", after, list_staged_since(self._git, repository, was, stop))
        ways = was.undo_calls(change.undo_kind, after, change.overwritten_paths or (".",))
        if change.undo_calls is not None:
            if not ways or not change.undo_calls or change.undo_kind != "carried":
                return change.undo_calls
            # What was staged as it is here, and changed since, is in the way of going back; `ways` have it.
            first = (
                [format_call("run_reset", rev=after.oid[:_HASH], mode="hard")]
                if was.index_tree and was.files_tree
                else []
            )
            return [*first, *change.undo_calls, *ways]
        if was.status.in_progress and change.undo_kind in ("soft", "commit all"):
            return [f"{format_call('run_reset', rev=was.head, mode='keep')} (to before it began)"]
        return ways

    def _brought(
        self, repository: Repository, layout: Layout, change: Operation, after: Status, stop: Stop
    ) -> tuple[list[str], list[str]]:
        """The call with which files that it made go too, since a restore takes away what is staged; and which stay."""
        brings = {os.fsencode(name) for name in change.created_files}
        # More fit into no command, and would hardly be told one by one.
        found = self._untracked(repository, brings, stop) if sum(map(len, brings)) < _MOST_NAMES else []
        new = dict.fromkeys(found)
        if len(new) > _MOST_LISTED:
            folders = [path for letters, path, _ in after.entries if letters == "??" and path.endswith(b"/")]
            # Somebody else's file in a folder, seen before the change or not, is not taken away with it.
            others = [path for path in self._untracked(repository, folders, stop) if path not in brings]
            folders = [folder for folder in folders if not any(path.startswith(folder) for path in others)]
            new = {next((folder for folder in folders if path.startswith(folder)), path): None for path in found}
        if len(new) > _MOST_LISTED:
            new, found = {}, []
        top = os.fsencode(layout.work_tree or "")
        left = [path for path in sorted(brings.difference(found)) if os.path.lexists(os.path.join(top, path))]
        return [format_call("edit_index", paths=[*map(quote_path, new)])] * bool(new), [*map(quote_path, left)]

    def _untracked(self, repository: Repository, paths: Collection[bytes], stop: Stop) -> list[bytes]:
        """The files at `paths` and below that git neither knows nor ignores."""
        words = ["ls-files", "-z", "--others", "--exclude-standard", "--", *map(os.fsdecode, paths)]
        return self._git.run(repository, words, stop).stdout.split(b"\0")[:-1] if paths else []

    def _is_sparse(self, repository: Repository) -> bool:
        return (
            dict(self._git.read_allowed_configuration(repository)).get("core.sparsecheckout", "").lower() in TRUE_VALUES
        )

    def _picked(self, repository: Repository, layout: Layout, stop: Stop) -> list[str]:
        """The commit at which a cherry-pick or revert stands, if it does; between two of several it stands at none."""
        names = ("CHERRY_PICK_HEAD", "REVERT_HEAD")
        if layout.has_reftable:
            return [find_hash(self._git, repository, name, stop) for name in names]
        return [read_small_file(os.path.join(layout.git_dir, name)) or "" for name in names]

    def _refuse_markers(
        self, repository: Repository, conflicts: Sequence[bytes], paths: Sequence[str], stop: Stop
    ) -> None:
        """Return if no file in conflict that `paths` name still has the marks of both sides in it.

        Raises:
            Conflict: one has.
        """
        named = [os.fsencode(path).rstrip(b"/") for path in paths]
        files = [
            os.fsdecode(file)
            for file in conflicts
            if any(path == b"." or file == path or file.startswith(path + b"/") for path in named)
        ]
        if not files:
            return
        words = ["grep", "-l", "-z", "-I", "--no-color", "--all-match", *_MARKS, "--", *files]
        if marked := self._git.run(repository, words, stop, exit_codes=(0, 1)).stdout.split(b"\0")[:-1]:
            more = f" and {len(marked) - 1:,} more" if len(marked) > 1 else ""
            raise Conflict(
                f"{quote(quote_path(marked[0]))}{more} still has the marks of a conflict, such as `<<<<<<<`.",
                "Nothing was changed. Resolve it first; where they are meant, stage it with `edit_index`.",
            )

    def _problem(
        self, failure: GitFailed, repository: Repository, layout: Layout, change: Operation, was: Snapshot, stop: Stop
    ) -> Problem:
        said = failure.stderr
        with take_snapshot(self._git, repository, layout, bool(change.overwritten_paths), stop) as now:
            if (now.status, now.index_tree, now.files_tree) != (was.status, was.index_tree, was.files_tree):
                return self._half_done(failure, layout, change, was, now)
        if failure.is_in_nested_repository:
            return failure
        if "tell me who you are" in said or "auto-detection is disabled" in said:
            return Refused(
                "Git knows no `user.name` and `user.email` to commit as.", "The operator can set them: `git config`."
            )
        if "index.lock" in said or "Unable to create" in said:
            return Conflict("Another `git` is at work in this repository.", "Call again when it is done.")
        told = explain_failure(failure, self._git, repository, change.revision, stop)
        if not isinstance(told, Invalid):
            return told
        words = " ".join(line.strip() for line in said.splitlines() if line and not _ASIDE.search(line))
        if not words:
            return self._nothing(change)
        words = _SHELL.sub("", words).rstrip(".")
        move = next((move for sign, move in _MOVES.items() if re.search(sign, words)), "")
        if re.search(f"(?i)cannot delete branch '{re.escape(was.status.head)}'", words):
            move = "Go to another branch with `run_switch` first."
        return Conflict(f"git: `{escape_line_breaks(words)[:400]}`.", f"Nothing was changed. {move}".rstrip())

    @staticmethod
    def _half_done(failure: GitFailed, layout: Layout, change: Operation, was: Snapshot, now: Snapshot) -> Conflict:
        """What is left when git failed in the middle; only where the files were kept does a call lead back."""
        ways = (
            was.undo_calls("hard" if now.status.oid != was.status.oid else "files", now.status)
            if change.overwritten_paths
            else []
        )
        if ways:
            was.store(layout)
        lines = [f"\nundo: {way}" for way in [*ways, *change.return_calls]]
        known = {path for _, path, _ in was.status.entries}
        if new := [
            quote_path(path) for letters, path, _ in now.status.entries if letters == "??" and path not in known
        ]:
            lines.append(f"\n{describe_remaining_files(sorted(new))}")
        return Conflict(f"{failure}, after a part of it was done.", f"`get_status` shows what.{''.join(lines)}")

    @staticmethod
    def _nothing(change: Operation) -> Conflict:
        commits = change.arguments[0] == "commit"
        fix = "Name what to stage in `paths`, or set `all_tracked`." if commits else "See `get_status`."
        if change.arguments[-1] == "--continue":
            fix = "Nothing was changed. `run_step` with action=skip leaves it out."
        return Conflict(f"git found nothing to {change.arguments[0]}.", fix)


def _brings(words: Sequence[str]) -> bool:
    """Whether files of a commit come that is named; in a sparse checkout git takes untracked ones there for these."""
    return words[0] in ("switch", "merge", "rebase") or (words[0] == "reset" and "--keep" in words)


def _conflicts(state: Status, before: Status | None = None) -> list[bytes]:
    """The files in conflict; with `before` the new ones, which at another commit are all."""
    found = [path for letters, path, _ in state.entries if is_conflict(letters)]
    known = _conflicts(before) if before and before.oid == state.oid else []
    return [path for path in found if path not in known]


def _intended(state: Status) -> set[bytes]:
    """What is only meant to be added, which trees can't say."""
    return {path for letters, path, _ in state.entries if letters == " A"}


def _is_empty(picked: Sequence[str], state: Status) -> bool:
    """Whether a cherry-pick or revert stands at a commit of which nothing is staged, so that it can't continue."""
    stands = state.in_progress[:1] in (["cherry-pick under way"], ["revert under way"]) and any(picked)
    return stands and all(letters[0] in " ?" for letters, _, _ in state.entries)


def _added_and_gone(state: Status) -> set[str]:
    """What is staged as new and was deleted again, which a stash does not say."""
    return {quote_path(path) for letters, path, _ in state.entries if letters == "AD"}
