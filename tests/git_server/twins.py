"""Random acts by the writing tools and by plain git in a twin of the repository.

After an act both have the same files, index, refs, logs and configuration;
a refusal leaves what was there before; and the calls that an answer names as its undo lead back to the same files,
index, refs, configuration and stashes.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from git_server.serving import Asking, serving
from git_server.states import ENDS, Planted, edit, plant, writable_worlds
from git_server.test_writes import calls_back
from git_server.twin_acts import ACT_DATE, Act, ActMaker, GitRun, literal_pathspecs, run_git
from git_server.twin_states import (
    LASTING_FILES,
    State,
    describe_difference,
    hash_git_dir,
    promised_by_undo,
    read_state,
    without_moves,
    without_notes,
)
from mcp_git.engine.program import git_binary
from mcp_git.path_quoting import unquote_path
from proofs.tally import Tally

_IN_ANY = [end for end in ENDS if end.__name__ not in ("bisecting",)]
_STAGING_TOOLS = ("create_commit", "continue_operation")


@dataclass(frozen=True)
class Outcome:
    """One act, and how the twins are around it.

    Attributes:
        answer: the tool's.
        before, after: the repository of the tools.
        kept: the hashes of all that git kept there before.
        theirs: the repository of plain git after the act.
        git: what came of its last command.
    """

    act: Act
    answer: str
    before: State
    after: State
    kept: dict[str, bytes]
    theirs: State
    git: GitRun

    @property
    def is_refused(self) -> bool:
        return self.answer.startswith("failed: ")

    @property
    def is_done_in_part(self) -> bool:
        return "after a part of it was done" in self.answer


class Twins:
    """One repository twice.

    Attributes:
        ours, theirs: changed by a tool, and by git.
    """

    def __init__(self, ours: Path, theirs: Path, asking: Asking, chance: random.Random) -> None:
        self.ours = ours
        self.theirs = theirs
        self.asking = asking
        self.chance = chance
        self.acts = ActMaker(ours, theirs, chance)
        self.differences: list[str] = []
        self.tally: Counter[str] = Counter()

    async def once(self) -> None:
        """Do one act in both, and undo it in ours."""
        if run_git(self.ours, "status", "--porcelain").code:
            return  # Git itself stumbles, as over some sparse indexes.
        act = self.acts.draw()
        before = read_state(self.ours)
        kept = hash_git_dir(self.ours)
        answer = await self.asking(act.tool, **act.arguments)
        after = read_state(self.ours)
        self.tally["acts"] += 1
        assert "inside the server" not in answer, (str(act), answer)
        if "git can't tell" in answer:
            if run_git(self.ours, "status").code == 0:
                self._differ(act, f"plain git can: {answer}")
            self._begin_alike()
            return
        git = self._act_by_git(act)
        if b"ambiguous object name" in git.error:
            # Here a name that is a branch and a tag is the tag to every tool.
            self._begin_alike()
            return
        if git.code < 0:
            # Git itself has crashed, and left its lock.
            _replace_folder(self.ours, self.theirs)
            self._begin_alike()
            return
        outcome = Outcome(act, answer, before, after, kept, read_state(self.theirs), git)
        if outcome.is_refused:
            self._judge_refusal(outcome)
        elif after != outcome.theirs:
            difference = describe_difference(after, outcome.theirs)
            self._differ(act, f"{difference}; {answer[:200]!r}; git: {git.code} {git.error[-150:]!r}")
        if calls_back(answer):
            await self._undo(act, answer, before)
        self._begin_alike()

    def _act_by_git(self, act: Act) -> GitRun:
        """Do in the twin what a person would type: stage, go to the branch, then the act itself."""
        git = GitRun(0)
        pathspecs = self._paths_to_stage(act)
        if pathspecs:
            git = run_git(self.theirs, "add", "--all", "--", *pathspecs)
        branch = act.arguments.get("into", "")
        if branch and self._current_ref() != f"refs/heads/{branch}\n":
            git = run_git(self.theirs, "switch", "--no-guess", "--no-overwrite-ignore", branch)
        if git.code:
            return git
        if act.tool == "create_commit" and pathspecs and not act.arguments["all_tracked"]:
            git = run_git(self.theirs, *act.words, "--", *pathspecs, stdin=act.stdin)
            if pathspecs != ["."] or b"cannot do a partial commit" not in git.error:
                return git
        return run_git(self.theirs, *act.words, stdin=act.stdin)

    def _paths_to_stage(self, act: Act) -> list[str]:
        """Return what a tool stages before it commits, as git takes it."""
        if act.tool not in _STAGING_TOOLS:
            return []
        paths = act.arguments.get("paths", ())
        return literal_pathspecs([path if path == "." else unquote_path(path) for path in paths])

    def _current_ref(self) -> str:
        return run_git(self.theirs, "symbolic-ref", "--quiet", "HEAD").output.decode()

    def _judge_refusal(self, outcome: Outcome) -> None:
        """Check that a refused act left what was there, or what git leaves of a part, and that git refuses it too."""
        self.tally["refused"] += 1
        act = outcome.act
        if self._has_changed(outcome):
            difference = describe_difference(*self._before_and_after(outcome))
            self._differ(act, f"refused, and changed: {difference}; {outcome.answer}")
        leftovers = self._find_leftovers(outcome)
        if leftovers:
            self._differ(act, f"refused, and left {sorted(leftovers)[:5]}; {outcome.answer}")
        is_done_by_git = outcome.git.code == 0 and outcome.theirs != self._before_and_after(outcome)[0]
        if is_done_by_git and not re.search(_OWN_REFUSALS, outcome.answer):
            self._differ(act, f"refused, git does it: {outcome.answer}")

    def _before_and_after(self, outcome: Outcome) -> tuple[State, State]:
        """Return both states of ours as far as a refusal leaves them alike."""
        if outcome.act.arguments.get("into") and not outcome.is_done_in_part:
            return without_moves(outcome.before), without_moves(outcome.after)
        return outcome.before, outcome.after

    def _has_changed(self, outcome: Outcome) -> bool:
        """Return whether a refused act left something else than it should."""
        before, after = self._before_and_after(outcome)
        if outcome.is_done_in_part:
            return without_notes(after) != without_notes(outcome.theirs) or after == before
        return without_notes(after) != without_notes(before)

    def _find_leftovers(self, outcome: Outcome) -> set[str]:
        """Return the files of git that a refused act left, and that git's own refusal does not leave."""
        by_git = hash_git_dir(self.theirs)
        leftovers: set[str] = set()
        for name, content in hash_git_dir(self.ours).items():
            is_new = outcome.kept.get(name) != content
            # An object is what the undo brings back.
            is_wanted = name.startswith("objects/") and bool(calls_back(outcome.answer))
            if is_new and name not in LASTING_FILES and name not in by_git and not is_wanted:
                leftovers.add(name)
        return leftovers

    async def _undo(self, act: Act, answer: str, before: State) -> None:
        """Make the calls that an answer names as its undo, and check that they lead back."""
        calls = calls_back(answer)
        if "(to before it began)" in answer:
            return
        self.tally["undone"] += 1
        for tool, arguments in calls:
            refusal = await self.asking(tool, **arguments)
            if refusal.startswith("failed: "):
                is_announced = "\nno undo while the untracked " in answer
                if not is_announced and not self._is_refused_by_git(tool, refusal):
                    self._differ(act, f"its undo {tool} {arguments} is refused: {refusal}")
                return
        marked = _find_marked(before["index"])
        promised = promised_by_undo(before, answer, marked)
        actual = promised_by_undo(read_state(self.ours), answer, marked)
        if promised != actual:
            difference = describe_difference(promised, actual)
            self._differ(act, f"undone by {calls}, not as before: {difference}; {answer[:300]!r}")

    def _is_refused_by_git(self, tool: str, refusal: str) -> bool:
        """Return whether git could not do either what an undo can't do."""
        if tool == "run_stash" and run_git(self.theirs, "stash", "pop", "--index").code:
            return True
        # Git leaves no commit with such a name where no file was written of it.
        return "File name too long" in refusal or f"unable to create file {'x' * 99}" in refusal

    def _begin_alike(self) -> None:
        """Make both as the twin is now, so that the next act begins alike."""
        if self.chance.random() < 0.5:
            edit(Planted(self.theirs, self.chance), 2)
        # Twice, so that the index of neither knows when its files were changed.
        for source, target in ((self.theirs, self.ours), (self.ours, self.theirs)):
            _replace_folder(source, target)
        for place in (self.ours, self.theirs):
            run_git(place, "update-index", "-q", "--really-refresh")

    def _differ(self, act: Act, difference: str) -> None:
        self.differences.append(f"{act}: {difference}")


def _find_marked(index: bytes) -> Collection[bytes]:
    """Return the files that are left out or taken as they are: they lose that mark where git itself writes them."""
    return {entry.partition(b"\t")[2] for entry in index.split(b"\0") if entry[:1] in b"Ssh"}


def _replace_folder(source: Path, target: Path) -> None:
    """Fill a folder with what another one has."""
    for entry in os.scandir(os.fsencode(target)):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)
    shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)


def _long(made: Planted) -> None:
    """A commit with a name that no file can have, beside files that can be written: what takes it fails half-way."""
    if not made.tried("rev-parse", "--verify", "HEAD"):
        return
    oid = made.git("hash-object", "-w", "--stdin", given=b"written\n").strip()
    entries = "".join(f"100644 blob {oid}\t{name}\n" for name in ("a.txt", "x" * 300, "zz.txt"))
    tree = made.git("mktree", given=entries.encode()).strip()
    made.tried("tag", "long", made.git("commit-tree", "-p", "HEAD", "-m", "long", tree).strip())


_OWN_REFUSALS = (
    "untracked, and would be overwritten|is ignored here|"
    "go through a filter|nothing to stash|keeps for itself|marks of a conflict|"
    "does not come along|under way here|no way leads back|This is a partial clone|Another worktree is on the branch|"
    "under way is not made yet|no stash could bring back both|^failed: `name` and `rename` are both"
)


async def acted(folder: Path, world: str, seed: int, number: int, acts: int) -> Twins:
    """One repository of a world and its twin, after so many acts."""
    chance = random.Random(f"{seed} {number}")
    made = plant(folder / "one" / "app", chance, world, _IN_ANY)
    made.told = [f"{world} {seed} {number}", *made.told]
    _long(made)
    # A copy of a linked worktree would point to the repository of the first one.
    place = made.path if (made.path / ".git").is_dir() else folder / "one" / "app"
    twin = folder / "two" / place.name
    twin.parent.mkdir()
    shutil.copytree(place, twin, symlinks=True)
    async with serving("--write", place) as asking:
        twins = Twins(place, twin, asking, chance)
        run_git(twins.theirs, "update-index", "-q", "--really-refresh")
        for _ in range(acts):
            await twins.once()
    twins.differences = [f"{' '.join(made.told)}: {each}" for each in twins.differences]
    return twins


async def differences(acts: int, seed: int = 0, worlds: Sequence[str] = ()) -> tuple[Counter[str], list[str]]:
    """How many acts were made, and what differed; ten with each repository, one world after the other."""
    worlds = worlds or writable_worlds()
    tally, found = Counter[str](), list[str]()
    kept, git_binary.PASSED_VARIABLES = (
        git_binary.PASSED_VARIABLES,
        (*git_binary.PASSED_VARIABLES, "GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"),
    )
    os.environ.update(GIT_AUTHOR_DATE=ACT_DATE, GIT_COMMITTER_DATE=ACT_DATE)
    try:
        for number in range(-(-acts // 10)):
            world = worlds[number % len(worlds)]
            with tempfile.TemporaryDirectory() as folder:
                twins = await acted(Path(folder), world, seed, number, min(10, acts - number * 10))
            tally += twins.tally
            tally[f"acts in the world `{world}`"] += twins.tally["acts"]
            found += twins.differences
            for line in twins.differences:
                print(line, file=sys.stderr, flush=True)
    finally:
        git_binary.PASSED_VARIABLES = kept
        for name in ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"):
            del os.environ[name]
    return tally, found


async def prove(count: int, seed: int, worlds: Sequence[str] = ()) -> Tally:
    """Do so many acts twice, by the tools and by git."""
    return Tally.of(*await differences(count, seed, worlds))
