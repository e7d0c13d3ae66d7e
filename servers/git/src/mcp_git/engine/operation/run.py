"""Makes changes: one command of git each, and an answer with what happened, what is left to do and how to undo it."""

from __future__ import annotations

import functools
import os
import re
import threading
from collections.abc import Callable, Collection, Sequence

from mcp_batteries.errors import Conflict, Invalid, Problem, Refused, quote
from mcp_batteries.limits import Stop
from mcp_git.engine.history.diff import both_sides
from mcp_git.engine.operation.on_branch import made_on
from mcp_git.engine.operation.operation import TO_LOOK, Change, refuse_under_way
from mcp_git.engine.operation.undo import Before, before, kept_index, refuse_overwriting, staged_since, stays
from mcp_git.engine.program.git import Failed, Git
from mcp_git.engine.program.output import clip, lines_of
from mcp_git.engine.program.revisions import explained, oid
from mcp_git.engine.work_tree.filters import refuse_filters
from mcp_git.engine.work_tree.status import State, is_conflict, look
from mcp_git.git_config import TRUE
from mcp_git.models import Answer, counted
from mcp_git.path_quoting import one_line, shown
from mcp_git.policy import Changeable, Policy, Repository
from mcp_git.repository_paths import Layout, small_file
from mcp_git.tool_calls import call

__all__ = ["Changes"]

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
            layout = self._git.layout(repository, changes=True)
            if layout.work_tree is None:
                raise Refused("A bare repository has no work tree, so it is only read.", "Serve a clone of it.")
            change = prepare(repository, stop)
            if change.words[0] not in _ONLY_REFS:
                self._git.refuse_to_enter(layout)
            make = functools.partial(self._made, repository, layout, stop=stop)
            if change.into is None:
                return make(change)
            return made_on(self._git, repository, layout, change, change.into, make, stop)

    def _made(self, repository: Repository, layout: Layout, change: Change, stop: Stop) -> Answer:
        if change.files:
            refuse_filters(self._git, repository, layout, stop)
        if change.source is not None:
            refuse_overwriting(self._git, repository, layout, change.source, change.loses, stop)
        elif change.named is not None and _brings(change.words) and self._is_sparse(repository):
            refuse_overwriting(self._git, repository, layout, change.named, ["."], stop, alike=True)
        with before(self._git, repository, layout, bool(change.loses), stop) as was:
            if change.words[0] == "switch":
                # Newer gits refuse it too, but look for what is under way in the common directory.
                refuse_under_way([what for what in was.state.doing if not what.startswith("bisect")])
            self._refuse_markers(repository, _conflicts(was.state), change.resolves, stop)
            was_at = oid(self._git, repository, change.moves, stop) if change.moves else ""
            picked = self._picked(repository, layout, stop)
            os.makedirs(os.path.join(layout.common_dir, "logs"), exist_ok=True)
            if change.refreshed:
                words = ["update-index", "-q", "--refresh"]
                self._git.run(repository, words, stop, fine=(0, 1, 128), changes=True)
            unstage = kept_index(layout) if change.first else lambda: None
            try:
                for words, given in [*change.first, ([*change.way, *change.words], change.given)]:
                    self._git.run(repository, words, stop, given=given, changes=True)
            except Failed as failure:
                # That it stopped at a conflict is an answer, not a failure.
                now = look(self._git, repository, stop, layout=layout)
                begun = now.oid == was.state.oid and now.doing[:1] != was.state.doing[:1]
                at = self._picked(repository, layout, stop)
                if begun and _is_empty(at, now):
                    self._git.run(repository, [change.words[0], "--quit"], Stop(TO_LOOK), changes=True)
                    where = quote(change.into.text if change.into else "HEAD")
                    fix = "Nothing was changed, and nothing is left to do."
                    raise Conflict(f"{where} has what this commit changes already.", fix) from None
                stopped = now.doing != was.state.doing or at != picked
                if not stopped and not _conflicts(now, was.state):
                    if now.oid == was.state.oid:
                        unstage()
                    raise self._problem(failure, repository, layout, change, was, stop) from None
            except BaseException:
                if change.first:
                    now = look(self._git, repository, Stop(TO_LOOK), layout=layout)
                    if (now.oid, now.doing) == (was.state.oid, was.state.doing):
                        unstage()
                raise
            if change.moves and oid(self._git, repository, change.moves, stop) == was_at:
                raise self._nothing(change)
            try:
                return self._told(repository, layout, change, was, picked, stop)
            except Problem as failure:
                return Answer(["done", f"git can't tell the state now: {failure}"])

    def _told(
        self,
        repository: Repository,
        layout: Layout,
        change: Change,
        was: Before,
        picked: Sequence[str],
        stop: Stop,
    ) -> Answer:
        after = look(self._git, repository, stop, layout=layout)
        doing, at = after.doing, self._picked(repository, layout, stop)
        facts = [after.branch, *doing]
        lines: list[str] = []
        same = (after.oid, doing, after.entries) == (was.state.oid, was.state.doing, was.state.entries)
        facts += ["already up to date"] * (same and change.words[0] == "merge" and change.words[-1] not in _GOES_ON)
        if after.oid != was.state.oid and after.oid[:1] != "(" and change.words[0] not in _NO_NEWS:
            span = [f"{was.state.oid}..{after.oid}"] if was.head else [after.oid]
            words = ["log", "--format=%h %s", f"--max-count={_MOST_LISTED}", *span, "--"]
            made = lines_of(self._git.run(repository, words, stop))
            lines += [clip(one_line(line), _ROW) for line in made]
        conflicts = _conflicts(after)
        if conflicts:
            facts.append(f"{len(conflicts):,} in conflict")
            met = _conflicts(after, was.state)
            sides = both_sides(self._git, repository, met[:_MOST_LISTED], stop) if met else {}
            letters = {path: letters for letters, path, _ in after.entries}
            for path in conflicts[:_MOST_LISTED]:
                how = f" ({_SIDES[letters[path]]})" if letters[path] in _SIDES else ""
                lines += [f"conflict: {shown(path)}{how}", *sides.get(shown(path), ())]
        numbers = len(after.entries) - len(conflicts)
        facts.append(counted(numbers, "other file") + " not committed" if numbers else "nothing else uncommitted")
        lines += change.then()
        if change.words[0] != "commit" and change.words[-1] not in _GOES_ON:
            now = {what.split(" ")[0] for what in doing}
            lost = [what for what in was.state.doing if what.split(" ")[0] not in now]
            moved = any(one and one != other for one, other in zip(picked, at, strict=True))
            lost += ["at which commit it stands"] * (moved and not lost)
            lines += [f"not brought back by an undo: {what}" for what in lost]
        if unmarked := _intended(was.state) - _intended(after):
            names = ", ".join(sorted(map(shown, unmarked))[:_MOST_LISTED])
            lines.append(clip(f"no undo brings back the mark `--intent-to-add` of {names}", 2 * _ROW))
        if change.words[:2] == ["stash", "push"] and (gone := sorted(_added_and_gone(was.state))):
            lines.append(f"the undo brings back these files, which were staged and then deleted: {', '.join(gone)}")
        if doing:
            empty = _is_empty(at, after)
            facts += ["nothing of the commit at hand is left"] * empty
            facts.append(f"go on with `run_step`: {'skip' if empty else 'continue'} or abort")
            lines += [f"then {way} leads back" for way in change.home]
        if not doing or change.back in ("index", "files"):
            if change.back == "index":
                was.keep(layout)  # to be compared with
            ways = self._ways_back(repository, change, was, after, stop)
            if any(tree and tree in way for tree in (was.index, was.files) for way in ways):
                was.keep(layout)
            if change.brings and ways:
                staged, left = self._brought(repository, layout, change, after, stop)
                ways = [*staged, *ways]
                lines += [stays(left)] * bool(left)
            lines += [f"undo: {way}" for way in [*ways, *change.home]]
        return Answer(facts, lines)

    def _ways_back(
        self, repository: Repository, change: Change, was: Before, after: State, stop: Stop
    ) -> Sequence[str]:
        if change.back == "index":
            return was.ways("index", after, staged_since(self._git, repository, was, stop))
        ways = was.ways(change.back, after, change.loses or (".",))
        if change.undo is not None:
            if not ways or not change.undo or change.back != "carried":
                return change.undo
            # What was staged as it is here, and changed since, is in the way of going back; `ways` have it.
            first = [call("run_reset", rev=after.oid[:_HASH], mode="hard")] if was.index and was.files else []
            return [*first, *change.undo, *ways]
        if was.state.doing and change.back in ("soft", "commit all"):
            return [f"{call('run_reset', rev=was.head, mode='keep')} (to before it began)"]
        return ways

    def _brought(
        self, repository: Repository, layout: Layout, change: Change, after: State, stop: Stop
    ) -> tuple[list[str], list[str]]:
        """The call with which files that it made go too, since a restore takes away what is staged; and which stay."""
        brings = {os.fsencode(name) for name in change.brings}
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
        return [call("edit_index", paths=[*map(shown, new)])] * bool(new), [*map(shown, left)]

    def _untracked(self, repository: Repository, paths: Collection[bytes], stop: Stop) -> list[bytes]:
        """The files at `paths` and below that git neither knows nor ignores."""
        words = ["ls-files", "-z", "--others", "--exclude-standard", "--", *map(os.fsdecode, paths)]
        return self._git.run(repository, words, stop).out.split(b"\0")[:-1] if paths else []

    def _is_sparse(self, repository: Repository) -> bool:
        return dict(self._git.configuration(repository)).get("core.sparsecheckout", "").lower() in TRUE

    def _picked(self, repository: Repository, layout: Layout, stop: Stop) -> list[str]:
        """The commit at which a cherry-pick or revert stands, if it does; between two of several it stands at none."""
        names = ("CHERRY_PICK_HEAD", "REVERT_HEAD")
        if layout.has_reftable:
            return [oid(self._git, repository, name, stop) for name in names]
        return [small_file(os.path.join(layout.git_dir, name)) or "" for name in names]

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
        if marked := self._git.run(repository, words, stop, fine=(0, 1)).out.split(b"\0")[:-1]:
            more = f" and {len(marked) - 1:,} more" if len(marked) > 1 else ""
            raise Conflict(
                f"{quote(shown(marked[0]))}{more} still has the marks of a conflict, such as `<<<<<<<`.",
                "Nothing was changed. Resolve it first; where they are meant, stage it with `edit_index`.",
            )

    def _problem(
        self, failure: Failed, repository: Repository, layout: Layout, change: Change, was: Before, stop: Stop
    ) -> Problem:
        said = failure.said
        with before(self._git, repository, layout, bool(change.loses), stop) as now:
            if (now.state, now.index, now.files) != (was.state, was.index, was.files):
                return self._half_done(failure, layout, change, was, now)
        if failure.nested:
            return failure
        if "tell me who you are" in said or "auto-detection is disabled" in said:
            return Refused(
                "Git knows no `user.name` and `user.email` to commit as.", "The operator can set them: `git config`."
            )
        if "index.lock" in said or "Unable to create" in said:
            return Conflict("Another `git` is at work in this repository.", "Call again when it is done.")
        told = explained(failure, self._git, repository, change.named, stop)
        if not isinstance(told, Invalid):
            return told
        words = " ".join(line.strip() for line in said.splitlines() if line and not _ASIDE.search(line))
        if not words:
            return self._nothing(change)
        words = _SHELL.sub("", words).rstrip(".")
        move = next((move for sign, move in _MOVES.items() if re.search(sign, words)), "")
        if re.search(f"(?i)cannot delete branch '{re.escape(was.state.head)}'", words):
            move = "Go to another branch with `run_switch` first."
        return Conflict(f"git: `{one_line(words)[:400]}`.", f"Nothing was changed. {move}".rstrip())

    @staticmethod
    def _half_done(failure: Failed, layout: Layout, change: Change, was: Before, now: Before) -> Conflict:
        """What is left when git failed in the middle; only where the files were kept does a call lead back."""
        ways = was.ways("hard" if now.state.oid != was.state.oid else "files", now.state) if change.loses else []
        if ways:
            was.keep(layout)
        lines = [f"\nundo: {way}" for way in [*ways, *change.home]]
        known = {path for _, path, _ in was.state.entries}
        if new := [shown(path) for letters, path, _ in now.state.entries if letters == "??" and path not in known]:
            lines.append(f"\n{stays(sorted(new))}")
        return Conflict(f"{failure}, after a part of it was done.", f"`get_status` shows what.{''.join(lines)}")

    @staticmethod
    def _nothing(change: Change) -> Conflict:
        commits = change.words[0] == "commit"
        fix = "Name what to stage in `paths`, or set `all_tracked`." if commits else "See `get_status`."
        if change.words[-1] == "--continue":
            fix = "Nothing was changed. `run_step` with action=skip leaves it out."
        return Conflict(f"git found nothing to {change.words[0]}.", fix)


def _brings(words: Sequence[str]) -> bool:
    """Whether files of a commit come that is named; in a sparse checkout git takes untracked ones there for these."""
    return words[0] in ("switch", "merge", "rebase") or (words[0] == "reset" and "--keep" in words)


def _conflicts(state: State, before: State | None = None) -> list[bytes]:
    """The files in conflict; with `before` the new ones, which at another commit are all."""
    found = [path for letters, path, _ in state.entries if is_conflict(letters)]
    known = _conflicts(before) if before and before.oid == state.oid else []
    return [path for path in found if path not in known]


def _intended(state: State) -> set[bytes]:
    """What is only meant to be added, which trees can't say."""
    return {path for letters, path, _ in state.entries if letters == " A"}


def _is_empty(picked: Sequence[str], state: State) -> bool:
    """Whether a cherry-pick or revert stands at a commit of which nothing is staged, so that it can't continue."""
    stands = state.doing[:1] in (["cherry-pick under way"], ["revert under way"]) and any(picked)
    return stands and all(letters[0] in " ?" for letters, _, _ in state.entries)


def _added_and_gone(state: State) -> set[str]:
    """What is staged as new and was deleted again, which a stash does not say."""
    return {shown(path) for letters, path, _ in state.entries if letters == "AD"}
