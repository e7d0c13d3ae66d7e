"""Repositories of every kind: each is read, says what it is, and is afterwards as it was, to the last byte."""

import os
import re
import shutil
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from git_server.made import Made
from git_server.serving import everything, serving
from mcp_git.engine.program.git_binary import GitBinary, GitFailed

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="links need a right, and names a file system"),
    pytest.mark.anyio,
]


def usual(folder: Path, *words: str) -> Made:
    made = Made(folder / "app", *words)
    made.commit("first", {"notes.txt": "one\n", "in/side.txt": "side\n"})
    made.commit("second", {"notes.txt": "one\ntwo\n"})
    made.write("notes.txt", "one\ntwo\nthree\n")
    return made


def sha256(folder: Path) -> Made:
    return usual(folder, "--object-format=sha256")


def bare(folder: Path) -> Made:
    usual(folder).git("clone", "--quiet", "--bare", ".", str(folder / "bare.git"))
    return Made(folder / "bare.git")


def shallow(folder: Path) -> Made:
    made = usual(folder)
    made.git("clone", "--quiet", "--depth=1", f"file://{made.path}", str(folder / "shallow"))
    return Made(folder / "shallow")


def partial(folder: Path) -> Made:
    """What is missing would come from a remote that can be reached, and must not."""
    made = usual(folder)
    made.git("config", "uploadpack.allowFilter", "true")
    made.git("clone", "--quiet", "--filter=blob:none", f"file://{made.path}", str(folder / "partial"))
    return Made(folder / "partial")


def sparse(folder: Path) -> Made:
    made = usual(folder)
    made.git("sparse-checkout", "set", "--sparse-index", "other")
    return made


def with_submodule(folder: Path) -> Made:
    made = usual(folder)
    inner = Made(made.path / "inner")
    inner.commit("inside", {"a.txt": "the inside\n"})
    made.git("add", "inner")
    made.write(".gitmodules", '[submodule "inner"]\n\tpath = inner\n\turl = ../../../etc\n\tupdate = !touch x\n')
    return made


def separate(folder: Path) -> Made:
    """A `.git` file that leads to a folder which is inside."""
    made = usual(folder)
    made.git("init", "--quiet", f"--separate-git-dir={made.path}/hidden")
    return made


def unborn(folder: Path) -> Made:
    made = Made(folder / "app")
    made.write("notes.txt", "one\ntwo\nthree\n")
    made.git("add", "notes.txt")
    return made


def detached(folder: Path) -> Made:
    made = usual(folder)
    made.git("stash", "--quiet")
    made.git("switch", "--quiet", "--detach", "HEAD~1")
    return made


def packed(folder: Path) -> Made:
    made = usual(folder)
    made.git("gc", "--quiet", "--aggressive")
    made.git("pack-refs", "--all")
    made.git("commit-graph", "write", "--reachable")
    made.git("multi-pack-index", "write")
    made.git("update-index", "--split-index", "--index-version=4")
    return made


def replaced(folder: Path) -> Made:
    made = usual(folder)
    made.git("replace", "HEAD", "HEAD~1")
    made.git("notes", "add", "--message", "a note", "HEAD")
    return made


def broken_refs(folder: Path) -> Made:
    made = usual(folder)
    for name, text in (("empty", ""), ("loop", "ref: refs/heads/loop\n"), ("none", "0" * 40 + "\n"),
                       ("out", "ref: ../../../etc/passwd\n"), ("gone", "1" * 40 + "\n"), ("text", "x\n")):  # fmt: skip
        (made.path / ".git/refs/heads" / name).write_text(text, "utf-8")
    return made


def broken_head(folder: Path) -> Made:
    made = usual(folder)
    (made.path / ".git/HEAD").write_text("ref: refs/heads/../../../../etc/passwd\n", "utf-8")
    return made


def missing_objects(folder: Path) -> Made:
    made = usual(folder)
    oid = made.git("rev-parse", "HEAD~1:notes.txt").strip()
    (made.path / ".git/objects" / oid[:2] / oid[2:]).unlink()
    return made


def garbage(folder: Path) -> Made:
    made = usual(folder)
    for oid in (made.git("rev-parse", name).strip() for name in ("HEAD:notes.txt", "HEAD~1")):
        path = made.path / ".git/objects" / oid[:2] / oid[2:]
        path.chmod(0o644)
        path.write_bytes(b"\x78\x01garbage")
    return made


def garbage_index(folder: Path) -> Made:
    made = usual(folder)
    (made.path / ".git/index").write_bytes(b"DIRC\0\0\0\2\xff\xff\xff\xff" + os.urandom(200))
    return made


KINDS = [
    usual, sha256, bare, shallow, partial, sparse, with_submodule, separate, unborn, detached, packed, replaced,
    broken_refs, broken_head, missing_objects, garbage, garbage_index,
]  # fmt: skip
READ = {"unborn": "no commits yet", "broken_head": "", "garbage": "", "missing_objects": "second", "shallow": "second"}
"""What an answer has of each, if not the first commit."""


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file() and not path.is_symlink()}


@pytest.mark.share(2)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
async def test_every_kind_is_read_and_left_as_it_was(kind: Callable[[Path], Made], tmp_path: Path) -> None:
    made = kind(tmp_path)
    before = contents(tmp_path)
    async with serving(made.path) as asking:
        said = await everything(asking)
    told = re.sub(r"(?m)^origin .*|clone: from .*", "", said)  # an address of the repository's own
    assert "inside the server" not in said and str(tmp_path) not in told and "root:" not in said
    assert READ.get(kind.__name__, "first") in said
    assert contents(tmp_path) == before


async def test_the_configuration_says_where_the_work_tree_is(tmp_path: Path) -> None:
    made = usual(tmp_path)
    made.git("worktree", "add", "--quiet", str(tmp_path / "beside"))
    async with serving("--write", made.path) as asking, serving(tmp_path / "beside") as beside:
        for key, value, here in (
            ("worktree", "../../app", True),
            ("worktree", str(tmp_path), False),
            ("bare", "yes", False),
        ):
            made.git("config", f"core.{key}", value)
            said = await asking("get_status")
            assert ("1 changed" in said, "bare repository by `core.bare`" in said) == (here, not here)
            assert ("one" in await asking("read_diff")) is here and "second" in await asking("list_commits")
            assert "; clean]" in await beside("get_status")
            if not here:
                assert "no work tree" in await asking("run_restore", paths=["notes.txt"])
            made.git("config", "--unset-all", f"core.{key}")
    assert (made.path / "notes.txt").read_text("utf-8") == "one\ntwo\nthree\n"


CONFLICTS: dict[str, tuple[dict[str, str | None], dict[str, str | None]]] = {
    "UU": ({"a.txt": "ours\n"}, {"a.txt": "theirs\n"}),
    "AA": ({"new.txt": "ours\n"}, {"new.txt": "theirs\n"}),
    "DU": ({"a.txt": None}, {"a.txt": "theirs\n"}),
    "UD": ({"a.txt": "ours\n"}, {"a.txt": None}),
    "folder and file": ({"a.txt": None, "a.txt/in.txt": "ours\n"}, {"a.txt": "theirs\n"}),
    "renamed twice": ({"a.txt": None, "one.txt": "ground\n" * 9}, {"a.txt": None, "two.txt": "ground\n" * 9}),
}


def put(made: Made, files: dict[str, str | None]) -> None:
    for name, text in files.items():
        if text is None:
            (made.path / name).unlink()
        else:
            made.write(name, text)


@pytest.mark.share(2)
@pytest.mark.parametrize("kind", CONFLICTS)
async def test_a_conflict_of_every_kind_is_told_and_given_up(kind: str, tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    made.commit("ground", {"a.txt": "ground\n" * 9, "b.txt": "b\n"})
    ours, theirs = CONFLICTS[kind]
    made.git("switch", "--quiet", "--create", "theirs")
    put(made, theirs)
    made.commit("their word")
    made.git("switch", "--quiet", "main")
    put(made, ours)
    made.commit("our word")
    head = made.git("rev-parse", "HEAD")
    async with serving("--write", made.path) as asking:
        assert "in conflict" in await asking("run_merge", rev="theirs")
        said = await everything(asking, "b.txt")
        assert "in conflict" in said and "inside the server" not in said
        for part in ("all", "unstaged", "staged"):
            assert not (await asking("read_diff", only=part)).startswith("failed")
        assert not (await asking("continue_operation", action="abort")).startswith("failed")
    assert made.git("rev-parse", "HEAD") == head and made.git("status", "--porcelain") == ""


async def test_every_byte_of_a_name(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    names = [bytes([byte]) + b"x" for byte in range(1, 256) if byte != 0x2F]
    for name in names:
        with open(os.fsencode(made.path) + b"/" + name, "wb") as file:
            file.write(name)
    async with serving(made.path) as asking:
        status = (await asking("get_status", limit=300)).splitlines()[1:]
        assert len(status) == len(names) and all(line.startswith("?? ") for line in status)
        made.commit("all")
        listed = (await asking("list_files", limit=300)).splitlines()[1:]
        assert len(listed) == len(names)
        for line in listed[::7]:
            shown = line.partition(" ")[2]
            assert (await asking("read_file", path=shown)).startswith("["), shown


@pytest.mark.slow
async def test_a_repository_that_changes_under_the_reads(tmp_path: Path) -> None:
    """Somebody commits, repacks, switches and forgets branches; each answer is one of a state that was there."""
    made = usual(tmp_path)
    over = threading.Event()

    def change() -> None:
        number = 0
        while not over.is_set():
            number += 1
            made.git("switch", "--quiet", "--create", f"branch{number}")
            made.commit(f"number {number}", {f"new{number}.txt": "new\n", "notes.txt": f"{number}\n" * 50})
            made.git(*(["repack", "--quiet", "-a", "-d"] if number % 3 == 0 else ["pack-refs", "--all"]))
            if number > 1:
                made.git("branch", "--quiet", "-D", f"branch{number - 1}")

    thread = threading.Thread(target=change)
    thread.start()
    try:
        async with serving(made.path) as asking:
            for _ in range(3):
                said = await everything(asking)
                assert "inside the server" not in said and str(tmp_path) not in said
                # Its page always reaches the first commit, however many there are meanwhile elsewhere.
                assert "first" in await asking("list_commits", rev="main")
    finally:
        over.set()
        thread.join()


async def test_a_configuration_that_is_replaced_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel lets git read the file that was there when it started, not the one that took its name since."""
    made = usual(tmp_path)
    read = GitBinary.run_config
    replaced: list[str] = []

    def replace_first(self: GitBinary, arguments: Sequence[str], path: str, *, writes: bool = False) -> bytes:
        if not replaced and "--list" in arguments:
            replaced.append(path)
            shutil.copy(path, f"{path}.new")
            os.replace(f"{path}.new", path)
            raise GitFailed("fatal: unable to access: Permission denied", 128)
        return read(self, arguments, path, writes=writes)

    monkeypatch.setattr(GitBinary, "run_config", replace_first)
    async with serving(made.path) as asking:
        assert "first" in await asking("list_commits")
    assert replaced


async def test_a_password_in_a_reflog_is_not_shown(tmp_path: Path) -> None:
    made = usual(tmp_path)
    made.git("update-ref", "-m", "pull https://ada:hunter2@example.org/app: Fast-forward", "HEAD", "HEAD~1")
    async with serving(made.path) as asking:
        said = await asking("list_refs", kind="reflog")
    assert "https://…@example.org/app: Fast-forward" in said and "hunter2" not in said
