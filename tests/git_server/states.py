"""Random repositories in random states, made by plain git: what people, tools and accidents leave."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from git_server.made import GIT, Made

__all__ = ["ENDS", "WORLDS", "Planted", "World", "edit", "list_worlds", "plant", "writable_worlds"]

NAMES = [
    b"a.txt", b"b.txt", b"b c.txt", "Ü 中.txt".encode(), b"d/e.txt", b"d/f g.txt", b"d/deep/er.txt", b"x/y.md",
    b"-dash", b":colon",
    b"*star", b"[br]", b'"quoted"', b"back\\slash", b"tab\tname", b"line\nend", b"bytes\xff\xfe", b"end ",
    b"sep\xe2\x80\xa8name", b"nel\xc2\x85name", b"ff\x0cname", b"HEAD", b"main", b"d/HEAD", b".hidden/x", b"~tilde^",
]  # fmt: skip
WORDS = [
    "one",
    "two",
    "three",
    "four",
    "needle",
    "Needle",
    "né",
    "x=1",
    "(a)",
    "",
    "tab\there",
    "ff\x0chere",
    "nel\x85",
]
_SUBJECTS = [
    "Add a word",
    "Fix: a \u2028 separator",
    "ff\x0cin it",
    "nel\x85in it",
    "é中",
    "-dash",
    "  spaced  ",
    "x" * 120,
]
_BRANCHES = ["topic", "fix", "caf\u00e9", "a/b", "x@y"]
_PEOPLE = [("Ada Lovelace", "ada@example.org"), ("Grace Hopper", "grace@example.org"), ("A. L.", "ada@old.example.org")]
_MAILMAP = "Ada Lovelace <ada@example.org> <ada@old.example.org>\n"
_ATTRIBUTES = ["*.txt text=auto\n", "*.md text eol=crlf\n", "*.txt -text\n", "*.md binary\n",
               "a.txt -diff\nb.txt whitespace=cr-at-eol\n", "*.txt working-tree-encoding=UTF-8\n", "d/* ident\n",
               "*.txt diff=python merge=union\n"]  # fmt: skip


class Planted(Made):
    """A repository that grows by chance.

    Attributes:
        told: what it is made of, for a report.
    """

    def __init__(self, path: Path, chance: random.Random, *words: str) -> None:
        super().__init__(path, *words)
        self.chance = chance
        self.clock = 1_700_000_000
        self.told: list[str] = list(words)

    def tried(self, *words: str, given: bytes | None = None) -> bool:
        """Run git, which may refuse."""
        self.clock += self.chance.randrange(0, 40_000)
        name, address = self.chance.choice(_PEOPLE)
        zone = self.chance.choice(["+0000", "-0800", "+0530"])
        date = f"{self.clock} {zone}"
        try:
            self.git(*words, given=given, GIT_AUTHOR_NAME=name, GIT_AUTHOR_EMAIL=address, GIT_AUTHOR_DATE=date,
                     GIT_COMMITTER_DATE=date, GIT_EDITOR=":", GIT_ALLOW_PROTOCOL="file")  # fmt: skip
        except AssertionError:
            return False
        return True

    def branches(self) -> list[str]:
        return self.git("for-each-ref", "--format=%(refname:short)", "refs/heads").split()

    def tracked(self) -> list[bytes]:
        listed = self.git("ls-files", "-z").encode("utf-8", "surrogateescape")
        return sorted({name for name in listed.split(b"\0") if name and os.path.lexists(self.at(name))})

    def at(self, name: bytes) -> bytes:
        return os.path.join(os.fsencode(self.path), name)

    def git(self, *words: str, given: bytes | None = None, **variables: str) -> str:
        return super().git(*words, given=given, **variables)


def text(chance: random.Random) -> bytes:
    kind = chance.random()
    if kind < 0.06:
        return b""
    if kind < 0.12:
        return bytes(chance.randrange(256) for _ in range(60)) + b"\0"
    if kind < 0.16:
        return b"latin \xe9\xff\nmore\n"
    lines = [" ".join(chance.choices(WORDS, k=chance.randrange(1, 4))) for _ in range(chance.randrange(1, 30))]
    return (chance.choice(["\n", "\n", "\n", "\r\n"]).join(lines) + chance.choice(["\n", "\n", ""])).encode()


def edit(made: Planted, number: int = 3) -> None:
    """Some files come, change, go, move, become executable, links, folders, or nothing but other lines' ends."""
    chance = made.chance
    for _ in range(chance.randrange(1, number + 1)):
        tracked = made.tracked()
        name = chance.choice(tracked) if tracked and chance.random() < 0.6 else chance.choice(NAMES)
        path = made.at(name)
        kind = chance.random()
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if os.path.isdir(path) and not os.path.islink(path):
                if chance.random() < 0.3 and not os.path.exists(os.path.join(path, b".git")):
                    shutil.rmtree(path)
                continue
            if kind < 0.1 and os.path.lexists(path):
                os.unlink(path)
            elif kind < 0.2 and os.path.lexists(path):
                other = made.at(chance.choice(NAMES))
                os.makedirs(os.path.dirname(other), exist_ok=True)
                os.replace(path, other)
            elif kind < 0.28:
                if os.path.lexists(path):
                    os.unlink(path)
                os.symlink(chance.choice([b"a.txt", b"nowhere", b"/etc/hostname", b"d"]), path)
            elif kind < 0.34 and os.path.isfile(path):
                os.chmod(path, 0o755 if os.stat(path).st_mode & 0o111 == 0 else 0o644)
            elif kind < 0.5 and os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as file:
                    lines = file.read().split(b"\n")
                for _ in range(chance.randrange(1, 4)):
                    at = chance.randrange(len(lines) + 1)
                    lines[at : at + chance.randrange(2)] = [chance.choice(WORDS).encode()]
                with open(path, "wb") as file:
                    file.write(b"\n".join(lines))
            else:
                if os.path.islink(path):
                    os.unlink(path)
                with open(path, "wb") as file:
                    file.write(text(chance))
        except (FileExistsError, NotADirectoryError, IsADirectoryError, OSError):
            continue


def commit(made: Planted) -> None:
    edit(made)
    made.tried("add", "--all")
    body = made.chance.choice(["", "", "\n\nA body.\n\nSigned-off-by: x\n", "\n\n# no comment\n"])
    said = made.chance.choice(_SUBJECTS) + f" {made.chance.randrange(100)}{body}"
    made.tried("commit", "--quiet", "--allow-empty", "--cleanup=verbatim", "--file=-", given=said.encode())


def branch(made: Planted) -> None:
    name = f"{made.chance.choice(_BRANCHES)}{made.chance.randrange(20)}"
    made.tried("switch", "--quiet", "--create", name, made.chance.choice(["HEAD", "HEAD~1"]))
    commit(made)


def go(made: Planted) -> None:
    made.tried("switch", "--quiet", made.chance.choice(made.branches() or ["main"]))


def merge(made: Planted) -> None:
    others = made.chance.sample(made.branches(), k=min(len(made.branches()), made.chance.choice([1, 1, 1, 2, 3])))
    if not made.tried("merge", "--quiet", "--no-edit", made.chance.choice(["--no-ff", "--ff"]), *others):
        made.tried("add", "--all")
        made.tried("commit", "--quiet", "--no-edit")
        made.tried("merge", "--abort")


def tag(made: Planted) -> None:
    name = f"v{made.chance.randrange(30)}"
    target = made.chance.choice(["HEAD", "HEAD", "HEAD~1", "HEAD^{tree}", "HEAD:a.txt", *made.git("tag").split()[:1]])
    message = ["--annotate", "--message", made.chance.choice(_SUBJECTS)] * (made.chance.random() < 0.6)
    made.tried("tag", *message, name, target)


def note(made: Planted) -> None:
    made.tried("notes", "add", "--force", "--message", "A note\nof two lines", made.chance.choice(["HEAD", "HEAD~1"]))


def replace(made: Planted) -> None:
    made.tried("replace", "--force", "HEAD~1", "HEAD~2")


def submodule(made: Planted) -> None:
    inner = made.path / f"sub{made.chance.randrange(3)}"
    if not inner.exists():
        Made(inner).commit("inside", {"in.txt": "in\n"})
    else:
        Made(inner).commit("more inside", {"in.txt": f"{made.clock}\n"})
    made.tried("add", "--all")
    made.tried("commit", "--quiet", "--message", "A submodule")


def stash(made: Planted) -> None:
    edit(made)
    if made.chance.random() < 0.5:
        made.tried("add", "--all")
        edit(made, 1)
    untracked = ["--include-untracked"] * (made.chance.random() < 0.4)
    made.tried("stash", "push", "--quiet", *untracked, *(["--message", "set aside"] * (made.chance.random() < 0.5)))


def unrelated(made: Planted) -> None:
    """A history of its own, brought in."""
    name = f"apart{made.chance.randrange(9)}"
    at = made.branches()
    if name in at or not made.tried("switch", "--quiet", "--orphan", name):
        return
    made.write(f"{name}.txt", f"{name}\n")
    made.tried("add", "--all")
    made.tried("commit", "--quiet", "--message", "A beginning")
    made.tried("switch", "--quiet", made.chance.choice(at or [name]))
    if not made.tried("merge", "--quiet", "--no-edit", "--allow-unrelated-histories", name):
        made.tried("merge", "--abort")


def octopus(made: Planted) -> None:
    """Three branches that agree, merged at once."""
    names = [f"arm{made.chance.randrange(99)}" for _ in range(3)]
    for name in names:
        made.tried("branch", name)
    for name in names:
        made.tried("switch", "--quiet", name)
        made.write(f"{name}.txt", f"{name}\n")
        made.tried("add", "--all")
        made.tried("commit", "--quiet", "--message", name)
    made.tried("switch", "--quiet", made.chance.choice(names))
    made.tried("merge", "--quiet", "--no-edit", *names)


def large(made: Planted) -> None:
    """Files of many lines, or of a long one."""
    word = made.chance.choice(["x", "needle ", "\u00e9", "\r"])
    end = made.chance.choice(["\n", "", "\n\n"])
    made.write("large.txt", f"{word * made.chance.randrange(1, 60)}\n" * made.chance.randrange(1, 3000) + end)
    made.write("long.txt", word * made.chance.randrange(1, 90_000) + end)
    commit(made)


def any_bytes(made: Planted) -> None:
    """Names of bytes by chance."""
    for _ in range(3):
        name = bytes(made.chance.choice([*range(1, 47), *range(48, 256)]) for _ in range(made.chance.randrange(1, 9)))
        try:
            with open(made.at(name), "wb") as file:
                file.write(text(made.chance))
        except OSError:
            continue
    commit(made)


def attributes(made: Planted) -> None:
    _dotfile(made, ".gitattributes", made.chance.choice(_ATTRIBUTES))


def people(made: Planted) -> None:
    _dotfile(made, ".mailmap", _MAILMAP)


def ignore(made: Planted) -> None:
    _dotfile(made, ".gitignore", made.chance.choice(["*.md\n", "d/\n!d/e.txt\n", "/x\n.hidden\n"]))


def _dotfile(made: Planted, name: str, text: str) -> None:
    if not (made.path / name).is_dir():  # an earlier act may have made it one
        made.write(name, text)
    commit(made)


def pick(made: Planted) -> None:
    if not made.tried(made.chance.choice(["cherry-pick", "revert"]), made.chance.choice(["HEAD~1", *made.branches()])):
        made.tried(made.chance.choice(["cherry-pick", "revert"]), "--abort")
        made.tried("reset", "--quiet", "--hard")


def back(made: Planted) -> None:
    made.tried("reset", "--quiet", "--hard", made.chance.choice(["HEAD~1", "HEAD~2", "HEAD@{1}"]))


def remote(made: Planted) -> None:
    made.tried("remote", "add", "origin", "https://me:hunter2@example.org/app.git")
    made.tried("update-ref", "refs/remotes/origin/main", made.chance.choice(["HEAD", "HEAD~1"]))
    made.tried("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    made.tried("branch", "--set-upstream-to", "origin/main")


GROWTH = [commit, commit, commit, commit, branch, branch, go, go, merge, merge, tag, note, replace, submodule, stash,
          attributes, people, ignore, pick, back, remote, unrelated, octopus, large, any_bytes]  # fmt: skip


# How it is left


def clean(made: Planted) -> None:
    made.tried("reset", "--quiet", "--hard")


def dirty(made: Planted) -> None:
    for _ in range(made.chance.randrange(1, 4)):
        edit(made)
        if made.chance.random() < 0.5:
            made.tried("add", made.chance.choice(["--all", "--update"]))


def flags(made: Planted) -> None:
    dirty(made)
    files = made.tracked()
    for words in (["update-index", "--assume-unchanged"], ["update-index", "--skip-worktree"]):
        if files:
            made.tried(*words, "--", os.fsdecode(made.chance.choice(files)))
    made.write("intended.txt", "intended\n")
    made.tried("add", "--intent-to-add", "intended.txt")
    edit(made)


def detached(made: Planted) -> None:
    made.tried("reset", "--quiet", "--hard")
    made.tried("switch", "--quiet", "--detach", made.chance.choice(["HEAD", "HEAD~1", "HEAD~2"]))
    edit(made)


def orphan(made: Planted) -> None:
    made.tried("switch", "--quiet", "--orphan", "fresh")
    edit(made)
    made.tried("add", "--all")


def _sides(made: Planted) -> None:
    """Two branches that disagree about many files in every way."""
    made.tried("reset", "--quiet", "--hard")
    made.tried("clean", "--quiet", "-dfx")
    ground = {f"c{number}.txt": "".join(f"{number} line {line}\n" for line in range(12)) for number in range(7)}
    made.tried("switch", "--quiet", "--force-create", "ours")
    for name, content in ground.items():
        made.write(name, content)
    made.tried("add", "--all")
    made.tried("commit", "--quiet", "--message", "ground")
    made.tried("switch", "--quiet", "--force-create", "theirs")
    for _ in range(2):
        _side(made, "theirs")
    made.tried("switch", "--quiet", "ours")
    for _ in range(2):
        _side(made, "ours")


def _side(made: Planted, word: str) -> None:
    for number in range(7):
        path = made.path / f"c{number}.txt"
        match made.chance.randrange(8):
            case 0 if path.is_file():
                path.unlink()
            case 1 if path.is_file():
                path.rename(made.path / f"{word}{number}.txt")
            case 2 | 3 | 4 if path.is_file():
                path.write_text(path.read_text().replace("line 5", f"{word} 5").replace("line 9", f"{word} 9"))
            case 5:
                made.write(f"both{number}.txt", f"{word}\n" * 3)
            case 6 if path.is_file():
                path.unlink()
                made.write(f"c{number}.txt/inner.txt", f"{word}\n")
            case 7 if path.is_file():
                path.unlink()
                path.symlink_to(word)
            case _:
                made.write(f"{word}.txt", f"{made.clock}\n")
    made.tried("add", "--all")
    made.tried("commit", "--quiet", "--allow-empty", "--message", f"{word} again")


def merging(made: Planted) -> None:
    _sides(made)
    made.tried("merge", "--quiet", "theirs")


def rebasing(made: Planted) -> None:
    _sides(made)
    made.tried("rebase", "--quiet", made.chance.choice(["--merge", "--apply"]), "theirs")


def picking(made: Planted) -> None:
    _sides(made)
    made.tried("cherry-pick", "ours..theirs")


def picked_one_of_several(made: Planted) -> None:
    picking(made)
    made.tried("add", "--all")
    made.tried("commit", "--quiet", "--no-edit", "--allow-empty")


def reverting(made: Planted) -> None:
    _sides(made)
    made.tried("revert", "--no-edit", "theirs")


def mailing(made: Planted) -> None:
    _sides(made)
    patch = made.git("format-patch", "--stdout", "ours..theirs")
    made.tried("am", "--quiet", given=patch.encode("utf-8", "replace"))


def popping(made: Planted) -> None:
    _sides(made)
    made.tried("switch", "--quiet", "theirs")
    _side(made, "stashed")
    made.tried("reset", "--quiet", "--soft", "HEAD~1")
    made.tried("stash", "push", "--quiet")
    made.tried("switch", "--quiet", "ours")
    made.tried("stash", "pop")


def bisecting(made: Planted) -> None:
    made.tried("reset", "--quiet", "--hard")
    made.tried("bisect", "start", "HEAD", "HEAD~3")


def editing(made: Planted) -> None:
    """In the middle of a rebase, at a step that was to be edited, perhaps with more begun inside of it."""
    _sides(made)
    made.tried("-c", "sequence.editor=sed -i s/^pick/edit/", "rebase", "-i", "ours~1")
    if made.chance.random() < 0.5:
        edit(made)
    if made.chance.random() < 0.3:
        made.tried("cherry-pick", "theirs")
    if made.chance.random() < 0.2:
        made.tried("bisect", "start", "HEAD", "HEAD~1")


def inside_submodules(made: Planted) -> None:
    """What is under a submodule differs."""
    clean(made)
    for inner in sorted(made.path.glob("sub[0-9]")):
        if (inner / ".git").exists():
            Made(inner).write(made.chance.choice(["in.txt", "new.txt"]), f"{made.clock}\n")
            if made.chance.random() < 0.5:
                Made(inner).commit("ahead")
    if made.chance.random() < 0.3:
        dirty(made)


ENDS: Sequence[Callable[[Planted], None]] = [
    clean, dirty, dirty, flags, detached, orphan, merging, rebasing, picking, picked_one_of_several, reverting, mailing,
    popping, bisecting, editing, inside_submodules,
]  # fmt: skip


# In which form it is kept


def whole(made: Planted) -> Planted:
    return made


def packed(made: Planted) -> Planted:
    made.tried("gc", "--quiet")
    made.tried("commit-graph", "write", "--reachable", "--changed-paths")
    made.tried("update-index", made.chance.choice(["--split-index", "--index-version=4", "--untracked-cache"]))
    return made


def grafted(made: Planted) -> Planted:
    made.path.joinpath(".git/info").mkdir(exist_ok=True)
    commits = made.git("rev-list", "--max-count=6", "--all").split()
    if len(commits) > 2:
        made.path.joinpath(".git/info/grafts").write_text(f"{commits[1]} {commits[-1]}\n")
    return made


def sparse(made: Planted) -> Planted:
    made.tried("sparse-checkout", "set", *made.chance.choice([["--cone"], ["--cone", "--sparse-index"]]), "d", "x")
    if made.chance.random() < 0.5 and not made.path.joinpath("b.txt").exists():
        made.path.joinpath("b.txt").write_text("here although it is left out\n")
    return made


def worktree(made: Planted) -> Planted:
    beside = made.path.parent / f"{made.path.name}-beside"
    if not made.tried("worktree", "add", "--quiet", "-b", "beside", str(beside)):
        return made
    made.tried("worktree", "add", "--quiet", "--detach", str(beside) + "2", "HEAD~1")
    return made if made.chance.random() < 0.5 else _as(beside, made)


def shallow(made: Planted) -> Planted:
    made.tried("clone", "--quiet", "--depth=2", "--no-single-branch", f"file://{made.path}", f"{made.path}-shallow")
    return _as(Path(f"{made.path}-shallow"), made, edit)


def bare_by_configuration(made: Planted) -> Planted:
    """With work trees beside it alone, as some keep them."""
    made = worktree(made)
    made.git("config", "core.bare", "true")
    return made


def partial(made: Planted) -> Planted:
    made.git("config", "uploadpack.allowFilter", "true")
    made.tried("clone", "--quiet", "--filter=blob:none", f"file://{made.path}", f"{made.path}-partial")
    return _as(Path(f"{made.path}-partial"), made, edit)


def bare(made: Planted) -> Planted:
    made.tried("clone", "--quiet", "--mirror", str(made.path), f"{made.path}.git")
    return _as(Path(f"{made.path}.git"), made)


def _configure(made: Planted) -> None:
    made.git("config", "user.name", "Grace Hopper")
    made.git("config", "user.email", "grace@example.org")
    made.git("config", "advice.detachedHead", "false")


def _as(path: Path, made: Planted, then: Callable[[Planted], None] | None = None) -> Planted:
    if not path.exists():
        return made
    other = Planted(path, made.chance)
    other.clock, other.told = made.clock, made.told
    _configure(other)
    if then:
        then(other)
    return other


# In which world it stands


@dataclass(frozen=True)
class World:
    """One way to keep a repository that changes what git and a server find in it.

    Attributes:
        words: what `git init` is told.
        forms: one of these keeps it at the end.
        begin: makes what is there before anything grows.
        is_writable: whether a change can be made in it.
    """

    words: Sequence[str] = ()
    forms: Sequence[Callable[[Planted], Planted]] = (whole,)
    begin: Callable[[Planted], None] | None = None
    is_writable: bool = True


def nested(made: Planted) -> None:
    """A submodule as `git submodule add` leaves it, with its objects inside the repository around it."""
    source = Planted(Path(f"{made.path}-library"), made.chance, *made.told)
    commit(source)
    commit(source)
    commit(made)
    made.tried("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", f"file://{source.path}", "library")
    made.tried("commit", "--quiet", "--message", "A library")
    inner = Planted(made.path / "library", made.chance)
    if made.chance.random() < 0.5:
        commit(inner)
        made.tried("commit", "--quiet", "--all", "--message", "A newer library")
    if made.chance.random() < 0.5:
        edit(inner)


WORLDS = {
    "plain": World(forms=[whole, packed, grafted]),
    "worktrees": World(forms=[worktree]),
    "sparse": World(forms=[sparse]),
    "shallow": World(forms=[shallow]),
    "partial": World(forms=[partial]),
    "bare": World(forms=[bare, bare_by_configuration], is_writable=False),
    "submodule": World(forms=[whole, packed], begin=nested),
    "sha256": World(["--object-format=sha256"], [whole, packed, sparse, worktree]),
    "reftable": World(["--ref-format=reftable"], [whole, packed, sparse, worktree]),
}


@cache
def list_worlds() -> list[str]:
    """Return the names of the worlds that the git of this machine can make; 2.45 is the first with reftable."""
    version = subprocess.run([GIT, "version"], capture_output=True, text=True, check=True).stdout
    numbers = version.split()[2].split(".")
    can_reftable = (int(numbers[0]), int(numbers[1])) >= (2, 45)
    return [name for name in WORLDS if can_reftable or name != "reftable"]


def writable_worlds() -> list[str]:
    """Return those of `list_worlds` in which a change can be made."""
    return [name for name in list_worlds() if WORLDS[name].is_writable]


def plant(path: Path, chance: random.Random, world: str, ends: Sequence[Callable[[Planted], None]] = ENDS) -> Planted:
    """A repository of up to some thirty acts in a world, left in one of `ends`."""
    made = Planted(path, chance, *WORLDS[world].words)
    _configure(made)
    if chance.random() < 0.2:
        made.git("config", "core.autocrlf", chance.choice(["true", "input"]))
    begin = WORLDS[world].begin
    if begin is not None:
        begin(made)
    acts = [chance.choice(GROWTH) for _ in range(chance.randrange(6, 28))]
    for act in (commit, commit, *acts):
        act(made)
    end, form = chance.choice(ends), chance.choice(WORLDS[world].forms)
    end(made)
    made.told += [end.__name__, form.__name__]
    return form(made)
