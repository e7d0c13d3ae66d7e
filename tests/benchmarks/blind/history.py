"""Repositories of tasks: how they are made, and compared with what should be left of them."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from beside_shell import Place

from blind.ends import answer_faults, folder_faults

HOUR = 3600
_START = 1_735_689_600
"""2025-01-01 in UTC."""
_NEW = 1_767_225_600
"""2026-01-01 in UTC: what was committed later is the agent's."""
_VARIABLES = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "PAGER": "cat"}
_PREPARED = "2025-12-20T12:00:00+0000"
_OPERATIONS = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "BISECT_LOG")
_COMMIT_FORMAT = "%H%x00%P%x00%T%x00%an <%ae>%x00%ct%x00%B%x1e"


@dataclass
class History:
    """A repository in the making: the stream that `git fast-import` reads.

    Attributes:
        tips: the number of the last commit, by branch.
        seconds: when the next commit is made, since 1970.
    """

    tips: dict[str, int] = field(default_factory=dict[str, int])
    seconds: int = _START
    _files: dict[int, dict[str, str]] = field(default_factory=dict[int, dict[str, str]])
    _forks: dict[str, int] = field(default_factory=dict[str, int])
    _stream: list[str] = field(default_factory=list[str])

    def commit(
        self,
        branch: str,
        message: str,
        changes: Mapping[str, str | None],
        author: str,
        *,
        merged: str = "",
        written: str = "",
    ) -> int:
        """Add a commit that gives files new text, or none, and return its number.

        Args:
            author: like `Ana Ruiz <ana@example.org>`.
            merged: the branch whose tip is the second parent.
            written: the author's time as Git stores it; by default when the commit is made.
        """
        number = len(self._files) + 1
        self.seconds += HOUR
        made = f"{self.seconds} +0000"
        lines = [f"commit refs/heads/{branch}", f"mark :{number}", f"author {author} {written or made}"]
        lines += [f"committer {author} {made}", _data(message)]
        files = dict(self.files(branch)) if branch in self.tips else {}
        if branch in self.tips:
            lines.append(f"from :{self.tips[branch]}")
        if merged:
            lines.append(f"merge :{self.tips[merged]}")
        for path, text in changes.items():
            if text is None:
                lines.append(f"D {path}")
                del files[path]
            else:
                lines += [f"M 100644 inline {path}", _data(text)]
                files[path] = text
        self._stream += [*lines, ""]
        self._files[number] = files
        self.tips[branch] = number
        return number

    def merge(self, branch: str, merged: str, author: str, message: str = "") -> int:
        """Merge a branch into another; a file that it changed since it was forked becomes as it is there."""
        base = self._files[self._forks[merged]]
        theirs = self.files(merged)
        changes: dict[str, str | None] = {path: text for path, text in theirs.items() if base.get(path) != text}
        changes |= dict.fromkeys(base.keys() - theirs.keys())
        return self.commit(branch, message or f"Merge branch '{merged}'", changes, author, merged=merged)

    def fork(self, branch: str, source: str) -> None:
        """Begin a branch at the tip of another."""
        self.tips[branch] = self._forks[branch] = self.tips[source]
        self._stream += [f"reset refs/heads/{branch}", f"from :{self.tips[source]}", ""]

    def point(self, ref: str, commit: int) -> None:
        """Make a ref such as `refs/tags/v1.0.0` at a commit."""
        self._stream += [f"reset {ref}", f"from :{commit}", ""]

    def files(self, branch: str) -> Mapping[str, str]:
        """Return the text of each file at the tip of a branch."""
        return self._files[self.tips[branch]]

    @cached_property
    def hashes(self) -> Mapping[int, str]:
        """The commits' hashes by number, of those made so far."""
        with tempfile.TemporaryDirectory() as folder:
            return self.make(Path(folder, "repository"))

    def make(self, folder: Path) -> Mapping[int, str]:
        """Make the repository with `main` checked out; return the commits' hashes by number."""
        folder.mkdir(parents=True)
        _git(folder, "init", "--quiet", "--initial-branch=main")
        # What lasts a minute need not reach the disk.
        for name, value in (("user.name", "Ana Ruiz"), ("user.email", "ana@shop.example"), ("core.fsync", "none")):
            _git(folder, "config", name, value)
        marks = folder / ".git/marks"
        _git(folder, "fast-import", "--quiet", f"--export-marks={marks}", data="\n".join(self._stream))
        _git(folder, "reset", "--quiet", "--hard", "main")
        hashes = dict(line[1:].split() for line in marks.read_text().splitlines())
        marks.unlink()
        return {int(number): commit for number, commit in hashes.items()}


def _data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}"


def _git(folder: Path, *words: str, data: str = "") -> str:
    environment = {**os.environ, **_VARIABLES}
    done = subprocess.run(
        ["git", *words], cwd=folder, env=environment, input=data, check=True, capture_output=True, text=True
    )
    return done.stdout


@dataclass(frozen=True)
class World:
    """A task's repository, and the right answer.

    Attributes:
        prepare: a script that makes what no history holds, such as changes that are not committed.
        solve: a script that brings about the right end.
        wrong: scripts that each bring about a wrong end instead.
    """

    history: History
    answer: str
    wrong_answers: Sequence[str]
    prepare: str = ""
    solve: str = ""
    wrong: Sequence[str] = ()

    @cached_property
    def end(self) -> tuple[Mapping[str, str], Mapping[str, bytes]]:
        """What the right end leaves: refs and the like, and files by path."""
        folder = Path(tempfile.mkdtemp(prefix="right"))
        try:
            place = make(folder, self)
            run(place, self.solve)
            return _state(place.folder), _work_tree(place.folder)
        finally:
            shutil.rmtree(folder)


def make(folder: Path, world: World) -> Place:
    """Make the world in a folder, with a server for its history and one for its files."""
    repository = folder / "shop"
    world.history.make(repository)
    python = [sys.executable, "-m"]
    servers = {"git": [*python, "mcp_git", "--write", str(repository)], "fs": [*python, "mcp_fs", str(repository)]}
    state = {"XDG_STATE_HOME": str(folder / "state"), "XDG_CACHE_HOME": str(folder / "cache")}
    place = Place(repository, servers, {**state, **_VARIABLES})
    dates = f"export GIT_AUTHOR_DATE={_PREPARED} GIT_COMMITTER_DATE={_PREPARED}"
    run(place, f"{dates}\n{world.prepare}")
    return place


def run(place: Place, script: str) -> None:
    """Run a script of bash in the place.

    Raises:
        RuntimeError: one of its commands failed.
    """
    said = place.shell(f"set -eo pipefail\n{{ {script or ':'}\n}} >&2\necho DONE")
    if not said.startswith("DONE"):
        raise RuntimeError(said)


def faults(place: Place, answer: str, world: World) -> list[str]:
    """Compare an answer and a repository with the right answer and what the right end leaves of another one."""
    expected, files = world.end
    actual = _state(place.folder)
    found = answer_faults(answer, world.answer)
    for name in sorted(expected.keys() | actual.keys()):
        if actual.get(name) != expected.get(name):
            found.append(f"{name} is {actual.get(name, 'missing')}, not {expected.get(name, 'there')}")
    return found + folder_faults(place.folder, {**files, **_inner(place.folder)})


def _work_tree(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    named = {str(path.relative_to(folder)): path for path in paths}
    return {name: path.read_bytes() for name, path in named.items() if not name.startswith(".git/")}


def _inner(folder: Path) -> dict[str, bytes]:
    """Return Git's own files as they are, since `_state` compares what they mean."""
    paths = (path for path in (folder / ".git").rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def _state(folder: Path) -> dict[str, str]:
    """Return where each ref and stash is, by the content of commits, and what is under way.

    Hashes of new commits depend on the time, and the words of a merge on who made it, so neither counts. What is staged
    doesn't count either.
    """
    commits = _contents(folder)
    state = {"HEAD": _git(folder, "rev-parse", "--symbolic-full-name", "HEAD").strip()}
    refs = _git(folder, "for-each-ref", "--format=%(refname) %(objectname) %(*objectname)")
    for line in refs.splitlines():
        name, commit, *peeled = line.split()
        if name != "refs/stash":
            state[name] = commits[peeled[0] if peeled else commit]
    for number, line in enumerate(_git(folder, "stash", "list", "--format=%H %gs").splitlines()):
        commit, _, subject = line.partition(" ")
        state[f"stash {number}"] = f"{subject}: {_stash_content(folder, commit, commits)}"
    state["under way"] = " ".join(name for name in _OPERATIONS if (folder / ".git" / name).exists())
    state["work trees"] = str(len(_git(folder, "worktree", "list").splitlines()))
    return state


def _contents(folder: Path) -> dict[str, str]:
    """Return by hash what each commit holds and comes from, with its subject for readers."""
    contents: dict[str, str] = {}
    log = _git(folder, "log", "--all", "--topo-order", "--reverse", f"--format={_COMMIT_FORMAT}")
    for entry in log.split("\x1e"):
        if not entry.strip():
            continue
        commit, parents, tree, author, seconds, message = entry.strip("\n").split("\0")
        origins = [contents[parent] for parent in parents.split()]
        if len(origins) > 1 and int(seconds) >= _NEW:
            message = "a merge"
        digest = hashlib.sha256("\0".join([tree, author, message.strip(), *origins]).encode()).hexdigest()
        contents[commit] = f"{digest[:12]} {message.strip().partition(chr(10))[0]!r}"
    return contents


def _stash_content(folder: Path, commit: str, commits: Mapping[str, str]) -> str:
    parents = _git(folder, "rev-parse", f"{commit}^@").split()
    trees = [_git(folder, "rev-parse", f"{item}^{{tree}}").strip() for item in [commit, *parents[2:]]]
    return " ".join([commits[parents[0]], *trees])
