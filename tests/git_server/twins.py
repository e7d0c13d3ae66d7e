"""Random acts by the writing tools and by plain git in a twin of the repository.

After an act both have the same files, index, refs, logs and configuration;
a refusal leaves what was there before; and the calls that an answer names as its undo lead back to the same files,
index, refs, configuration and stashes.
"""

from __future__ import annotations

import hashlib
import os
import random
import re
import shutil
import stat
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from git_server.made import GIT
from git_server.serving import Asking, serving
from git_server.states import ENDS, Planted, edit, plant, writable_worlds
from git_server.test_writes import calls_back
from mcp_git.engine.program import git_binary
from mcp_git.path_quoting import quote_path, unquote_path
from proofs.tally import Tally

_DATE = "1800000000 +0000"
_CUTS = ["-c", "commit.cleanup=scissors"]
_LASTING = {"COMMIT_EDITMSG", "ORIG_HEAD", "index", "AUTO_MERGE", "FETCH_HEAD"}
_IN_ANY = [end for end in ENDS if end.__name__ not in ("bisecting",)]


class Twins:
    """One repository twice.

    Attributes:
        ours, theirs: changed by a tool, and by git.
    """

    def __init__(self, ours: Path, theirs: Path, asking: Asking, chance: random.Random) -> None:
        self.ours, self.theirs, self.asking, self.chance = ours, theirs, asking, chance
        self.differences: list[str] = []
        self.tally: Counter[str] = Counter()

    def git(self, place: Path, *words: str, given: bytes = b"") -> tuple[int, bytes, bytes]:
        import subprocess

        environment = {
            "PATH": os.environ["PATH"], "HOME": str(place.parent), "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C.UTF-8",
            "GIT_CONFIG_GLOBAL": os.devnull, "GIT_AUTHOR_DATE": _DATE, "GIT_COMMITTER_DATE": _DATE, "GIT_EDITOR": ":",
        }  # fmt: skip
        if words[0] in ("status", "diff", "ls-files", "for-each-ref", "config", "rev-parse", "stash"):
            environment["GIT_OPTIONAL_LOCKS"] = "0"
        done = subprocess.run([GIT, *words], cwd=place, env=environment, input=given, capture_output=True, check=False)
        return done.returncode, done.stdout, done.stderr

    # How a repository is

    def state(self, place: Path) -> dict[str, Any]:
        """What both have to have alike."""
        git_dir = self._git_dir(place)
        common = (git_dir / "commondir").exists()
        logs = {str(path.relative_to(git_dir)): _log(path) for path in (git_dir / "logs").rglob("*") if path.is_file()}
        return {
            "files": _files(place),
            "index": self.git(place, "ls-files", "--stage", "-t", "-v", "-z")[1],
            "changes": self.git(place, "status", "--porcelain=v2", "-z", "--ignore-submodules=dirty")[1],
            "refs": self.git(place, "for-each-ref", "--format=%(refname) %(objectname) %(symref)")[1],
            "HEAD": (git_dir / "HEAD").read_bytes(),
            "stashes": self.git(place, "stash", "list", "--format=%H %gs")[1],
            "config": self.git(place, "config", "--local", "--list")[1] if not common else b"",
            "doing": sorted(
                path.name
                for path in git_dir.iterdir()
                if path.name.endswith("_HEAD") or "rebase" in path.name or path.name == "sequencer"
            ),
            "logs": logs,
        }

    def _git_dir(self, place: Path) -> Path:
        return Path(os.fsdecode(self.git(place, "rev-parse", "--absolute-git-dir")[1]).rstrip("\n"))

    # Acts

    def act(self) -> tuple[str, dict[str, Any], Sequence[str], bytes]:
        """A tool with its arguments, and what a person types for it."""
        chance = self.chance
        tracked = self._paths("ls-files", "-z")
        other = self._paths("ls-files", "-z", "--others", "--exclude-standard")
        branches = self._texts("for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads")
        tags = self._texts("tag")
        rev = chance.choice(["HEAD", "HEAD~1", "HEAD~2", "nothing", "theirs", "long", "@{1}", *branches[:4], *tags[:2]])
        paths = chance.choice([["."], *[[path] for path in chance.sample([*tracked, *other, "nothing.txt"], 1)]])
        named = [quote_path(os.fsencode(path)) for path in paths]
        dashed = ["--", *[path if path == "." else f":(literal){path}" for path in paths]]
        name = chance.choice(["fresh", "v900", "a..b", *branches[:1], *tags[:1]])
        staged = {"paths": named} if chance.random() < 0.5 else {}
        known = [*branches, *tags, "nothing"]  # which mean the same wherever HEAD is
        into = {"into": chance.choice(known)} if rev in known and chance.random() < 0.5 else {}
        match chance.randrange(21):
            case 0 | 1:
                return "stage_files", {"paths": named}, ["add", "--all", *dashed], b""
            case 2:
                return "stage_files", {"paths": named, "unstage": True}, ["reset", "--quiet", *dashed], b""
            case 3 | 4:
                every, amend = chance.random() < 0.5, chance.random() < 0.3
                words = ["commit", "--cleanup=whitespace", *(["--all"] * every), *(["--amend"] * amend), "--file=-"]
                arguments = {"message": "An act\n\n# body", "all_tracked": every, "amend": amend, **staged}
                return "create_commit", arguments, words, b"An act\n\n# body"
            case 5:
                switch = chance.random() < 0.5
                words = ["switch", "--no-track", "-c"] if switch else ["branch", "--no-track"]
                return "create_branch", {"name": name, "rev": rev, "switch": switch}, [*words, name, rev], b""
            case 20:
                which = chance.choice([*branches, "nothing"])
                new = chance.choice([name, f"{which}/new", which.partition("/")[0]])
                return "create_branch", {"name": new, "rename": which}, ["branch", "--move", which, new], b""
            case 6:
                message = chance.choice(["", "A tag"])
                words = ["tag", *(["--annotate", "--message", message] if message else []), name, rev]
                return "create_tag", {"name": name, "rev": rev, "message": message}, words, b""
            case 7:
                kind = chance.choice(["branch", "tag"])
                which = chance.choice([*(branches if kind == "branch" else tags), "nothing"])
                force = chance.random() < 0.6
                words = ["tag", "--delete"] if kind == "tag" else ["branch", "-D" if force else "-d"]
                return "delete_ref", {"name": which, "kind": kind, "force": force}, [*words, which], b""
            case 8 | 9:
                is_branch = rev in branches
                return "run_switch", {"rev": rev}, ["switch", "--no-guess", *(["--detach"] * (not is_branch)), rev], b""
            case 10:
                words = ["restore", f"--source={rev}", "--staged", "--worktree", *dashed]
                return "run_restore", {"paths": named, "rev": rev}, words, b""
            case 11:
                untracked = chance.random() < 0.4
                words = ["stash", "push", *(["--include-untracked"] * untracked), "--message", "aside"]
                return "run_stash", {"message": "aside", "untracked": untracked}, words, b""
            case 12 | 13:
                action, index = chance.choice(["pop", "apply", "drop"]), chance.random() < 0.3
                which = chance.choice(["stash@{0}", "stash@{1}"])
                words = ["stash", action, *(["--index"] * (index and action != "drop")), which]
                return "run_stash", {"action": action, "rev": which, "index": index}, words, b""
            case 14:
                squash, joined = chance.random() < 0.3, chance.random() < 0.3
                given = {"squash": True} if squash else {"message": "Both"} if joined else {}
                way = ["--squash"] if squash else ["--no-ff", "--message=Both"] if joined else []
                return "run_merge", {"rev": rev, **given, **into}, ["merge", "--no-edit", *way, rev], b""
            case 15:
                return "run_rebase", {"rev": rev}, [*self._cuts(f"{rev}..HEAD"), "rebase", rev], b""
            case 16:
                revert = chance.random() < 0.5
                words = ["revert", "--no-edit", rev] if revert else ["cherry-pick", rev]
                words = [*self._cuts("--no-walk", rev), *words]
                return "revert_commit" if revert else "run_cherry_pick", {"rev": rev, **into}, words, b""
            case 17:
                action = chance.choice(["continue", "skip", "abort"])
                given = staged if action == "continue" else {}
                words = [self._doing(), f"--{action}"]
                message = self._git_dir(self.theirs) / "MERGE_MSG"
                if message.exists() and re.search(rb"(?m)^# -+ >8 -+$", message.read_bytes()):
                    words = [*_CUTS, *(["commit"] if words == ["cherry-pick", "--continue"] else words)]
                return "continue_operation", {"action": action, **given}, words, b""
            case _:
                mode = chance.choice(["soft", "mixed", "keep", "hard"])
                return "run_reset", {"rev": rev, "mode": mode}, ["reset", "--quiet", f"--{mode}", rev, "--"], b""

    def _cuts(self, *span: str) -> list[str]:
        """The options with which lines with `#` stay, where a message has one."""
        return _CUTS if self.git(self.ours, "log", "--max-count=1", "--format=%H", "--grep=^#", *span, "--")[1] else []

    def _doing(self) -> str:
        said = self.git(self.theirs, "status")[1].decode("utf-8", "replace")
        for word, pattern in (("am", "am session"), ("rebase", "rebas"), ("cherry-pick", "herry-pick"),
                              ("revert", "evert"), ("merge", "merg")):  # fmt: skip
            if re.search(
                rf"(?:in progress|currently|middle of|still|have unmerged).*{pattern}|{pattern}.*in progress", said
            ):
                return word
        return "merge"

    def _paths(self, *words: str) -> list[str]:
        return [os.fsdecode(item) for item in self.git(self.ours, *words)[1].split(b"\0") if item]

    def _texts(self, *words: str) -> list[str]:
        return self.git(self.ours, *words)[1].decode().split("\n")[:-1]

    async def once(self) -> None:
        """One act in both, and its undo in ours."""
        if self.git(self.ours, "status", "--porcelain")[0]:
            return  # Git itself stumbles, as over some sparse indexes.
        tool, arguments, words, given = self.act()
        what = f"{tool} {arguments}"
        before, whole = self.state(self.ours), _whole(self._git_dir(self.ours))
        answer = await self.asking(tool, **arguments)
        after = self.state(self.ours)
        self.tally["acts"] += 1
        assert "inside the server" not in answer, (what, answer)
        if "git can't tell" in answer:
            if self.git(self.ours, "status")[0] == 0:
                self.differ(what, f"plain git can: {answer}")
            self.again()
            return
        code, _, said = 0, b"", b""
        if tool in ("create_commit", "continue_operation") and arguments.get("paths"):
            named = [path if path == "." else f":(literal){unquote_path(path)}" for path in arguments["paths"]]
            code, _, said = self.git(self.theirs, "add", "--all", "--", *named)
        into = arguments.get("into", "")
        if into and self.git(self.theirs, "symbolic-ref", "--quiet", "HEAD")[1].decode() != f"refs/heads/{into}\n":
            code, _, said = self.git(self.theirs, "switch", "--no-guess", "--no-overwrite-ignore", into)
        if code == 0 and tool == "create_commit" and arguments.get("paths") and not arguments["all_tracked"]:
            only = [
                *words,
                "--",
                *[path if path == "." else f":(literal){unquote_path(path)}" for path in arguments["paths"]],
            ]
            code, _, said = self.git(self.theirs, *only, given=given)
            if b"cannot do a partial commit" in said:
                code, _, said = self.git(self.theirs, *words, given=given)
        elif code == 0:
            code, _, said = self.git(self.theirs, *words, given=given)
        theirs = self.state(self.theirs)
        if answer.startswith("failed: "):
            self.tally["refused"] += 1
            part = "after a part of it was done" in answer
            if into and not part:
                before, after = _there_and_back(before), _there_and_back(after)
            if _lasting(after) != _lasting(theirs if part else before) or (part and after == before):
                self.differ(what, f"refused, and changed: {_apart(before, after)}; {answer}")
            kept = {name for name, data in _whole(self._git_dir(self.ours)).items() if whole.get(name) != data}
            by_git = _whole(self._git_dir(self.theirs))
            left = {name for name in kept if name not in _LASTING and by_git.get(name) is None}
            if calls_back(answer):
                left = {name for name in left if not name.startswith("objects/")}  # what is to be brought back
            if left:
                self.differ(what, f"refused, and left {sorted(left)[:5]}; {answer}")
            if code == 0 and theirs != before and not re.search(_OWN_REFUSALS, answer):
                self.differ(what, f"refused, git does it: {answer}")
        elif after != theirs:
            self.differ(what, f"{_apart(after, theirs)}; {answer[:200]!r}; git: {code} {said[-150:]!r}")
        if calls_back(answer):
            await self.undo(what, answer, before)
        self.again()

    async def undo(self, what: str, answer: str, before: Mapping[str, Any]) -> None:
        ways = calls_back(answer)
        if not ways or "(to before it began)" in answer:
            return
        self.tally["undone"] += 1
        for tool, arguments in ways:
            said = await self.asking(tool, **arguments)
            if said.startswith("failed: "):
                if tool == "run_stash" and self.git(self.theirs, "stash", "pop", "--index")[0]:
                    return  # Nor does git bring every stash back.
                if "File name too long" in said or f"unable to create file {'x' * 99}" in said:
                    return  # Nor does git leave a commit with such a name where no file was written of it.
                self.differ(what, f"its undo {tool} {arguments} is refused: {said}")
                return
        after = self.state(self.ours)
        # A file that is left out, or taken as it is, loses that mark where git itself writes it.
        marked = {item.partition(b"\t")[2] for item in before["index"].split(b"\0") if item[:1] in b"Ssh"}
        was, now = (_brought_back(state, answer, marked) for state in (before, after))
        if was != now:
            apart = _apart(was, now)
            self.differ(what, f"undone by {ways}, not as before: {apart}; {answer[:300]!r}")

    def again(self) -> None:
        """Both as the twin is now, so that the next act begins alike."""
        if self.chance.random() < 0.5:
            edit(Planted(self.theirs, self.chance), 2)
        # Twice, so that the index of neither knows when its files were changed.
        for source, target in ((self.theirs, self.ours), (self.ours, self.theirs)):
            for entry in os.scandir(os.fsencode(target)):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path)
                else:
                    os.unlink(entry.path)
            shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
        for place in (self.ours, self.theirs):
            self.git(place, "update-index", "-q", "--refresh")

    def differ(self, what: str, how: str) -> None:
        self.differences.append(f"{what}: {how}")


def _long(made: Planted) -> None:
    """A commit with a name that no file can have, beside files that can be written: what takes it fails half-way."""
    if not made.tried("rev-parse", "--verify", "HEAD"):
        return
    oid = made.git("hash-object", "-w", "--stdin", given=b"written\n").strip()
    entries = "".join(f"100644 blob {oid}\t{name}\n" for name in ("a.txt", "x" * 300, "zz.txt"))
    tree = made.git("mktree", given=entries.encode()).strip()
    made.tried("tag", "long", made.git("commit-tree", "-p", "HEAD", "-m", "long", tree).strip())


_OWN_REFUSALS = (
    "untracked, and would be overwritten|go through a filter|nothing to stash|keeps for itself|marks of a conflict|"
    "does not come along|under way here|no way leads back|This is a partial clone|Another worktree is on the branch"
)


def _files(place: Path) -> dict[str, tuple[int, bytes]]:
    found: dict[str, tuple[int, bytes]] = {}
    for above, folders, names in os.walk(os.fsencode(place)):
        folders[:] = [name for name in folders if name != b".git"]
        for name in [*names, *(each for each in folders if os.path.islink(os.path.join(above, each)))]:
            path = os.path.join(above, name)
            if name == b".git":
                continue
            mode = os.lstat(path).st_mode
            data = os.readlink(path) if stat.S_ISLNK(mode) else Path(os.fsdecode(path)).read_bytes()
            found[os.fsdecode(os.path.relpath(path, os.fsencode(place)))] = (mode & 0o170100, data)
    return found


def _log(path: Path) -> list[bytes]:
    """Each line without the shortened hashes that git writes at its own length."""
    return [
        line.partition(b"> ")[0].rpartition(b" ")[0][:130] + line.partition(b"\t")[2]
        for line in path.read_bytes().split(b"\n")
    ]


def _whole(git_dir: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(git_dir)): hashlib.sha1(path.read_bytes()).digest()
        for path in git_dir.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


def _lasting(state: Mapping[str, Any]) -> dict[str, Any]:
    """A state without the notes that a git leaves which failed."""
    return {**state, "doing": [name for name in state["doing"] if name not in _LASTING]}


def _there_and_back(state: Mapping[str, Any]) -> dict[str, Any]:
    """What a change that is refused on another branch leaves alike: `HEAD` went there and back."""
    files = {name: (mode, data.replace(b"\r\n", b"\n")) for name, (mode, data) in state["files"].items()}
    return {**_lasting(state), "logs": {}, "files": files}


def _brought_back(state: Mapping[str, Any], answer: str, marked: Collection[bytes]) -> dict[str, Any]:
    """What an undo promises."""
    kept = {name: state[name] for name in ("files", "index", "refs", "HEAD", "stashes", "config", "doing", "changes")}
    if "not that they were in conflict" in answer:
        kept = {name: kept[name] for name in ("files", "refs", "HEAD", "config")}
    if "not brought back by an undo" in answer:
        kept.pop("doing", None)
    # Git's note of where HEAD was is written once more by what leads back.
    if "doing" in kept:
        kept["doing"] = [name for name in kept["doing"] if name not in _LASTING]
    if "as the first of the stashes" in answer:
        kept["stashes"] = sorted(kept["stashes"].split(b"\n"))
        kept["refs"] = b"\n".join(line for line in kept["refs"].split(b"\n") if not line.startswith(b"refs/stash "))
    # Line ends are those that git would write.
    kept["files"] = {name: (mode, data.replace(b"\r\n", b"\n")) for name, (mode, data) in kept["files"].items()}
    if new := re.search(r"(?m)^new files, which stay: (.*)$", answer):
        for name in new[1].split(", "):
            kept["files"].pop(unquote_path(name), None)
    if gone := re.search(r"(?m)^the undo brings back these files, which [^:]*: (.*)$", answer):
        for name in gone[1].split(", "):
            kept["files"].pop(unquote_path(name), None)
            kept["changes"] = re.sub(
                rb"1 A. (N\.\.\. \d+ \d+) \d+ (\S+ \S+ %s\0)" % re.escape(os.fsencode(unquote_path(name))),
                rb"1 AX \1 \2", kept["changes"],
            )  # fmt: skip
    # What was meant to be added can't be meant again: it is untracked then.
    for name in map(os.fsdecode, marked):
        kept["files"].pop(name, None)
    meant = [*marked] + [
        item.split(b" ", 8)[8]
        for item in state["changes"].split(b"\0")
        if re.match(rb"1 \.A |1 \.D N\.\.\. \d+ \d+ 0+ (\w+) \1 intended", item)
    ]
    for name in {"index", "changes"} & kept.keys():
        items = (
            item
            for item in kept[name].split(b"\0")
            if not any(item.endswith((b"\t" + each, b" " + each)) for each in meant)
        )
        kept[name] = b"\0".join(item for item in items if not item.startswith(b"? "))
    return kept


def _apart(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    found: list[str] = []
    for name, value in one.items():
        if value == other[name]:
            continue
        if isinstance(value, bytes):
            ends = [set(re.split(rb"[\n\0]", data)) for data in (value, other[name])]
            found.append(f"{name} {sorted(ends[0] - ends[1])[:3]} / {sorted(ends[1] - ends[0])[:3]}"[:400])
        else:
            both: list[Any] = [value, other[name]]
            sides: list[list[Any]] = [list(side.items()) if hasattr(side, "items") else side for side in both]
            only = [[item for item in side if item not in sides[1 - at]][:2] for at, side in enumerate(sides)]
            found.append(f"{name} {only[0]} / {only[1]}"[:400])
    return "; ".join(found)


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
        twins.git(twins.theirs, "update-index", "-q", "--refresh")
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
    os.environ.update(GIT_AUTHOR_DATE=_DATE, GIT_COMMITTER_DATE=_DATE)
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
