"""Repositories made to run programs or to read outside: none does, and plain git shows that each could.

A case arms a repository. What it would run makes a file in a folder of canaries; what it would read is a file with a
secret in it. The server is then asked everything it can be asked, and plain git the one thing that the case is about.
"""

import base64
import hashlib
import json
import os
import shutil
import stat
import struct
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from git_server.conftest import skip_without_sandbox
from git_server.made import GIT, Made
from git_server.serving import every_change, everything, gates, serving
from mcp_git.repository_paths import Layout

SECRET = "the secret of another"
pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="the canaries are shell scripts, and links need a right"
)


class Trap:
    """A repository to be armed, a program that leaves a canary, a file and a repository beside."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.canaries = folder / "canaries"
        self.canaries.mkdir()
        self.outside = folder / "outside.txt"
        self.outside.write_text(f"{SECRET}\n", "utf-8")
        self.other = Made(folder / "other")
        self.other.commit(SECRET, {"notes.txt": f"{SECRET}\n"})
        self.made = Made(folder / "served")
        self.made.commit("first", {"notes.txt": "one\n", "data.bin": "bytes\n"})
        self.made.commit("second", {"notes.txt": "one\ntwo\n"})
        self.made.write("notes.txt", "one\ntwo\nthree\n")
        self.made.write("data.bin", "other\n")  # as long as before: only its content tells

    def program(self, name: str = "ran") -> str:
        """A program that leaves a canary and fails, or passes on what it reads."""
        path = self.folder / f"{name}.sh"
        path.write_text(f"#!/bin/sh\ntouch '{self.canaries}/{name}'\nexit 1\n", "utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    @property
    def dot_git(self) -> Path:
        return self.made.path / ".git"

    def configure(self, key: str, value: str) -> None:
        self.made.git("config", key, value)

    def attributes(self, text: str) -> None:
        self.made.write(".gitattributes", text)

    def hook(self, name: str) -> None:
        path = self.dot_git / "hooks" / name
        path.parent.mkdir(exist_ok=True)
        path.symlink_to(self.program())


def fsmonitor(trap: Trap) -> None:
    trap.configure("core.fsmonitor", trap.program())


def included(trap: Trap) -> None:
    other = trap.folder / "included"
    other.write_text(f"[core]\n\tfsmonitor = {trap.program()}\n", "utf-8")
    trap.configure("include.path", str(other))


def included_for_this_folder(trap: Trap) -> None:
    other = trap.folder / "included"
    other.write_text(f"[core]\n\tfsmonitor = {trap.program()}\n", "utf-8")
    trap.configure(f"includeIf.gitdir:{trap.dot_git}.path", str(other))


def worktree_configuration(trap: Trap) -> None:
    trap.configure("extensions.worktreeConfig", "true")
    trap.made.git("config", "--worktree", "core.fsmonitor", trap.program())


def hook_after_the_index(trap: Trap) -> None:
    trap.hook("post-index-change")


def hooks_elsewhere(trap: Trap) -> None:
    folder = trap.folder / "hooks"
    folder.mkdir()
    (folder / "post-index-change").symlink_to(trap.program())
    trap.configure("core.hooksPath", str(folder))


def clean_filter(trap: Trap) -> None:
    trap.attributes("*.bin filter=evil\n")
    trap.configure("filter.evil.clean", trap.program())


def process_filter(trap: Trap) -> None:
    trap.attributes("*.bin filter=evil\n")
    trap.configure("filter.evil.process", trap.program())
    trap.configure("filter.evil.required", "true")


def textconv(trap: Trap) -> None:
    trap.attributes("*.txt diff=evil\n")
    trap.configure("diff.evil.textconv", trap.program())


def diff_driver(trap: Trap) -> None:
    trap.attributes("*.txt diff=evil\n")
    trap.configure("diff.evil.command", trap.program())


def attributes_in_the_git_directory(trap: Trap) -> None:
    (trap.dot_git / "info").mkdir(exist_ok=True)
    (trap.dot_git / "info/attributes").write_text("*.txt diff=evil\n", "utf-8")
    trap.configure("diff.evil.textconv", trap.program())


def external_diff(trap: Trap) -> None:
    trap.configure("diff.external", trap.program())


def signature_program(trap: Trap) -> None:
    trap.configure("log.showSignature", "true")
    trap.configure("gpg.program", trap.program())
    text = trap.made.git("cat-file", "commit", "HEAD")
    head, message = text.split("\n\n", 1)
    signed = f"{head}\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\n{message}"
    oid = trap.made.git("hash-object", "-t", "commit", "-w", "--stdin", given=signed.encode()).strip()
    trap.made.git("update-ref", "HEAD", oid)


def submodule_of_its_own(trap: Trap) -> None:
    inner = Made(trap.made.path / "inner")
    inner.commit("inside", {"a.txt": "one\n"})
    trap.made.git("add", "inner")
    inner.git("config", "core.fsmonitor", trap.program())


def missing_object(trap: Trap) -> None:
    trap.configure("core.repositoryFormatVersion", "1")
    trap.configure("extensions.partialClone", "far")
    trap.configure("remote.far.promisor", "true")
    trap.configure("remote.far.url", f"ext::{trap.program()}")
    trap.configure("protocol.ext.allow", "always")
    oid = trap.made.git("rev-parse", "HEAD~1:notes.txt").strip()
    (trap.dot_git / "objects" / oid[:2] / oid[2:]).unlink()


STATUS, DIFF, SHOW = ("status",), ("diff",), ("show", "HEAD")
RUNNING: dict[Callable[[Trap], None], Sequence[str]] = {
    fsmonitor: STATUS,
    included: STATUS,
    included_for_this_folder: STATUS,
    worktree_configuration: STATUS,
    hook_after_the_index: STATUS,
    hooks_elsewhere: STATUS,
    clean_filter: STATUS,
    process_filter: DIFF,
    textconv: DIFF,
    diff_driver: DIFF,
    attributes_in_the_git_directory: DIFF,
    external_diff: DIFF,
    signature_program: SHOW,
    submodule_of_its_own: STATUS,
    missing_object: SHOW,
}


@pytest.mark.share(1, slow=5)
@pytest.mark.anyio
@pytest.mark.diagonal
@pytest.mark.parametrize("arm", RUNNING, ids=lambda arm: arm.__name__)
async def test_nothing_in_a_repository_is_run(arm: Callable[[Trap], None], tmp_path: Path, is_confined: bool) -> None:
    trap = Trap(tmp_path)
    arm(trap)
    armed = tmp_path / "armed"
    shutil.copytree(trap.made.path, armed, symlinks=True)
    async with serving(*gates(tmp_path), trap.made.path, agrees=lambda message: True) as asking:
        said = await everything(asking)
        changed = await every_change(asking) + await everything(asking)
    assert os.listdir(trap.canaries) == []
    assert "first" in said and "three" in said and "failed inside" not in said + changed
    shutil.rmtree(trap.made.path)
    armed.rename(trap.made.path)
    with suppress(AssertionError):  # What ran fails.
        trap.made.git(*RUNNING[arm])
    assert os.listdir(trap.canaries) == ["ran"], "the case is not armed"


@pytest.mark.share(3)
@pytest.mark.anyio
@pytest.mark.parametrize("name", ["GIT_EXTERNAL_DIFF", "GIT_CONFIG_COUNT", "GIT_DIR", "GIT_PROXY_COMMAND", "PATH"])
async def test_the_environment_of_the_host_does_not_reach_git(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trap = Trap(tmp_path)
    program = trap.program("git")
    match name:
        case "GIT_CONFIG_COUNT":
            for key, value in (("COUNT", "1"), ("KEY_0", "diff.external"), ("VALUE_0", program)):
                monkeypatch.setenv(f"GIT_CONFIG_{key}", value)
        case "GIT_DIR":
            monkeypatch.setenv(name, str(trap.other.path / ".git"))
        case "PATH":
            # A repository that brings a `git` along, and a path that leads there.
            inside = trap.made.path / "bin"
            inside.mkdir()
            (inside / "git").symlink_to(program)
            monkeypatch.setenv(name, os.pathsep.join([str(inside), "bin", ".", os.environ["PATH"]]))
            monkeypatch.chdir(trap.made.path)
        case _:
            monkeypatch.setenv(name, program)
    async with serving(trap.made.path) as asking:
        said = await everything(asking)
    assert os.listdir(trap.canaries) == []
    assert "second" in said and SECRET not in said


def names_outside(trap: Trap) -> None:
    """An index that was not made by git: its first entry is moved out of the work tree."""
    index = trap.dot_git / "index"
    data = index.read_bytes()
    head, entry = data[:12], data[12 : 12 + 62]
    name = b"../outside.txt"
    entry = entry[:60] + struct.pack(">H", len(name)) + name
    body = head[:8] + struct.pack(">I", 1) + entry + b"\0" * (8 - len(entry) % 8)
    index.write_bytes(body + hashlib.sha1(body).digest())


def pointer_to_another(trap: Trap) -> None:
    trap.dot_git.rename(trap.folder / "own")
    trap.dot_git.write_text(f"gitdir: {trap.other.path}/.git\n", "utf-8")


def link_to_another(trap: Trap) -> None:
    trap.dot_git.rename(trap.folder / "own")
    trap.dot_git.symlink_to(trap.other.path / ".git")


def common_directory_of_another(trap: Trap) -> None:
    (trap.dot_git / "commondir").write_text(f"{trap.other.path}/.git\n", "utf-8")
    (trap.dot_git / "HEAD").write_text("ref: refs/heads/main\n", "utf-8")


def worktree_of_another(trap: Trap) -> None:
    """A pointer to where another repository keeps a worktree, which names a folder of its own."""
    trap.other.git("worktree", "add", "--quiet", str(trap.folder / "linked"), "-b", "linked")
    trap.dot_git.rename(trap.folder / "own")
    trap.dot_git.write_text(f"gitdir: {trap.other.path}/.git/worktrees/linked\n", "utf-8")


def objects_of_another(trap: Trap) -> None:
    oid = trap.other.git("rev-parse", "HEAD").strip()
    (trap.dot_git / "objects/info").mkdir(exist_ok=True)
    (trap.dot_git / "objects/info/alternates").write_text(f"{trap.other.path}/.git/objects\n", "utf-8")
    (trap.dot_git / "refs/heads/theirs").write_text(f"{oid}\n", "utf-8")


def objects_of_another_in_quotes(trap: Trap) -> None:
    """Git takes the escapes apart; by its letters the name is one inside."""
    objects_of_another(trap)
    escaped = f"{trap.other.path}/.git/objects".replace("/", "\\057")
    (trap.dot_git / "objects/info/alternates").write_text(f'"{escaped}"\n', "utf-8")


def objects_of_another_behind_much(trap: Trap) -> None:
    objects_of_another(trap)
    path = trap.dot_git / "objects/info/alternates"
    path.write_text("# nothing\n" * 10_000 + path.read_text("utf-8"), "utf-8")


def objects_of_another_in_one_line(trap: Trap) -> None:
    """What ends a line for Python and not for git: two names inside, and one that leads out."""
    objects_of_another(trap)
    (trap.made.path / "\x0bx").mkdir()
    outside = f"{trap.made.path}/\x0bx/../../{trap.other.path.name}/.git/objects"
    (trap.dot_git / "objects/info/alternates").write_text(f"{outside}\n", "utf-8")


def linked_objects(trap: Trap) -> None:
    (trap.dot_git / "objects").rename(trap.folder / "own")
    (trap.dot_git / "objects").symlink_to(trap.other.path / ".git/objects")
    (trap.dot_git / "refs/heads/main").write_text(trap.other.git("rev-parse", "HEAD"), "utf-8")


def linked_folders_of_objects(trap: Trap) -> None:
    theirs = trap.other.path / ".git/objects"
    for folder in theirs.glob("??"):
        own = trap.dot_git / "objects" / folder.name
        if own.is_dir():
            own.rename(trap.folder / f"own-{folder.name}")
        own.symlink_to(folder)
    (trap.dot_git / "refs/heads/main").write_text(trap.other.git("rev-parse", "HEAD"), "utf-8")


def linked_object_files(trap: Trap) -> None:
    theirs = trap.other.path / ".git/objects"
    for file in theirs.glob("??/*"):
        own = trap.dot_git / "objects" / file.parent.name
        own.mkdir(exist_ok=True)
        (own / file.name).symlink_to(file)
    (trap.dot_git / "refs/heads/main").write_text(trap.other.git("rev-parse", "HEAD"), "utf-8")


def _pack_theirs(trap: Trap) -> None:
    trap.other.git("repack", "-a", "-d", "-q")
    (trap.dot_git / "refs/heads/main").write_text(trap.other.git("rev-parse", "HEAD"), "utf-8")


def linked_folder_of_packs(trap: Trap) -> None:
    _pack_theirs(trap)
    (trap.dot_git / "objects/pack").rename(trap.folder / "own")
    (trap.dot_git / "objects/pack").symlink_to(trap.other.path / ".git/objects/pack")


def linked_packs(trap: Trap) -> None:
    _pack_theirs(trap)
    for file in (trap.other.path / ".git/objects/pack").iterdir():
        (trap.dot_git / "objects/pack" / file.name).symlink_to(file)


def linked_list_of_alternates(trap: Trap) -> None:
    objects_of_another(trap)
    path = trap.dot_git / "objects/info/alternates"
    path.rename(trap.folder / "alternates")
    path.symlink_to(trap.folder / "alternates")


def _link_logs(trap: Trap, name: str) -> None:
    """Their logs in the place of ours; both know a branch of the same name."""
    own = trap.dot_git / name
    own.rename(trap.folder / "own")
    own.symlink_to(trap.other.path / ".git" / name)
    # Git shows of a log what it has the commits of.
    shutil.copytree(trap.other.path / ".git/objects", trap.dot_git / "objects", dirs_exist_ok=True)


def linked_logs(trap: Trap) -> None:
    _link_logs(trap, "logs")


def linked_log_of_head(trap: Trap) -> None:
    _link_logs(trap, "logs/HEAD")


def linked_logs_of_branches(trap: Trap) -> None:
    _link_logs(trap, "logs/refs/heads")


def linked_log_of_a_branch(trap: Trap) -> None:
    _link_logs(trap, "logs/refs/heads/main")


def linked_refs(trap: Trap) -> None:
    (trap.dot_git / "refs/heads").rename(trap.folder / "own")
    (trap.dot_git / "refs/heads").symlink_to(trap.folder / "names")
    (trap.folder / "names").mkdir()
    (trap.folder / "names" / SECRET.replace(" ", "-")).write_bytes((trap.folder / "own/main").read_bytes())


def pipe(trap: Trap) -> None:
    (trap.dot_git / "packed-refs").unlink(missing_ok=True)
    os.mkfifo(trap.dot_git / "packed-refs")


def unknown_format(trap: Trap) -> None:
    trap.configure("core.repositoryFormatVersion", "1")
    trap.configure("extensions.fromTheFuture", "true")


LEADING: dict[Callable[[Trap], None], Sequence[str] | None] = {
    names_outside: DIFF,
    pointer_to_another: SHOW,
    link_to_another: SHOW,
    common_directory_of_another: SHOW,
    worktree_of_another: SHOW,
    objects_of_another: ("show", "theirs"),
    objects_of_another_in_quotes: ("show", "theirs"),
    objects_of_another_behind_much: ("show", "theirs"),
    objects_of_another_in_one_line: ("show", "theirs"),
    linked_objects: SHOW,
    linked_folders_of_objects: SHOW,
    linked_object_files: SHOW,
    linked_folder_of_packs: SHOW,
    linked_packs: SHOW,
    linked_list_of_alternates: ("show", "theirs"),
    linked_logs: ("reflog",),
    linked_log_of_head: ("reflog",),
    linked_logs_of_branches: ("reflog", "main"),
    linked_log_of_a_branch: ("reflog", "main"),
    linked_refs: None,
    pipe: None,
    unknown_format: None,
}
"""With what plain git shows the secret; None where it shows none, or does not end."""


@pytest.mark.share(3, slow=7)
@pytest.mark.anyio
@pytest.mark.diagonal
@pytest.mark.parametrize("arm", LEADING, ids=lambda arm: arm.__name__)
async def test_what_leads_outside_is_refused_and_says_so(
    arm: Callable[[Trap], None], tmp_path: Path, is_confined: bool
) -> None:
    trap = Trap(tmp_path)
    arm(trap)
    beside = _fingerprint(trap)
    async with serving(*gates(tmp_path / "gates"), trap.made.path, agrees=lambda message: True) as asking:
        status = await asking("get_status")
        said = await everything(asking)
        said += await asking("list_refs", kind="reflog", name="main")
        said += await every_change(asking)
    assert status.startswith("failed: ") and "`" in status, status
    assert SECRET not in said and SECRET.replace(" ", "-") not in said and str(tmp_path) not in said
    assert _fingerprint(trap) == beside, "something was written outside"
    if (words := LEADING[arm]) is not None:
        assert SECRET in trap.made.git(*words), "the case is not armed"


def _fingerprint(trap: Trap) -> dict[str, bytes]:
    """What the files beside the served repository hold."""
    files = [trap.outside, *(path for path in trap.other.path.rglob("*") if path.is_file())]
    return {str(path): path.read_bytes() for path in files}


_HANG = {pipe}
"""Cases in which git waits for ever, and reads nothing."""


@pytest.mark.share(2, slow=6)
@pytest.mark.anyio
@pytest.mark.parametrize("arm", [arm for arm in LEADING if arm not in _HANG], ids=lambda arm: arm.__name__)
async def test_the_kernel_alone_keeps_git_from_what_leads_outside(
    arm: Callable[[Trap], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if no look at the repository were there: what changes between the look and the run is the same."""
    skip_without_sandbox()
    trap = Trap(tmp_path)
    async with serving(trap.made.path) as asking:
        assert "first" in await asking("list_commits")  # configured and looked at, before the case is armed
        arm(trap)
        repository = os.path.realpath(trap.made.path)
        layout = Layout(repository, f"{repository}/.git", f"{repository}/.git")
        monkeypatch.setattr("mcp_git.policy.repositories.find_layout", lambda folder, served: layout)
        monkeypatch.setattr("mcp_git.engine.program.git.refuse_links_below", lambda layout: None)
        monkeypatch.setattr(
            "mcp_git.engine.program.private_git_dir.PrivateGitDirs._refuse_index_outside", lambda *arguments: None
        )
        said = await everything(asking)
        said += await asking("list_refs", kind="reflog", name="main")
        said += "".join([await asking("read_file", path="notes.txt", rev=rev) for rev in ("main", "theirs")])
    assert SECRET not in said and SECRET.replace(" ", "-") not in said


@pytest.mark.anyio
async def test_a_linked_worktree_and_shared_objects_are_served_where_both_sides_agree(tmp_path: Path) -> None:
    made = Made(tmp_path / "main")
    made.commit("first", {"notes.txt": "one\n"})
    made.git("worktree", "add", "--quiet", str(tmp_path / "linked"), "-b", "linked")
    async with serving(tmp_path / "linked") as asking:
        assert "first" in await asking("list_commits")
        assert (await asking("get_status")).startswith("[linked ")
        assert "linked linked" in await asking("list_refs", kind="worktrees")
    Made(tmp_path / "main").git("clone", "--quiet", "--shared", str(made.path), str(tmp_path / "shared"))
    async with serving(tmp_path / "shared") as asking:
        assert "alternates" in await asking("get_status")
    async with serving(tmp_path / "shared", made.path) as asking:
        assert "first" in await asking("list_commits", repo="shared")


@pytest.mark.anyio
async def test_a_link_in_the_work_tree_is_a_link(tmp_path: Path) -> None:
    trap = Trap(tmp_path)
    (trap.made.path / "notes.txt").unlink()
    (trap.made.path / "notes.txt").symlink_to(trap.outside)
    (trap.made.path / "folder").symlink_to(trap.other.path)
    async with serving(trap.made.path) as asking:
        said = await everything(asking)
        assert SECRET not in said + await asking("read_diff", path="folder/notes.txt")
        assert SECRET not in await asking("get_blame", path="folder/notes.txt")


@pytest.mark.anyio
async def test_a_folder_that_was_replaced_is_not_served(tmp_path: Path) -> None:
    trap = Trap(tmp_path)
    async with serving(trap.made.path) as asking:
        trap.made.path.rename(tmp_path / "moved")
        trap.other.path.rename(trap.made.path)
        said = await everything(asking)
    assert SECRET not in said and "moved or replaced" in said


# Arguments

OPTIONS = [
    "--output={canary}", "-O{canary}", "--ext-diff", "--textconv", "--no-index", "--upload-pack={program}",
    "--open-files-in-pager={program}", "--exec={program}", "--output={canary}..HEAD", "HEAD..--output={canary}", "--",
    "-S", "--contents={secret}", "{secret}", "../outside.txt", ":(top,exclude)x", ":/x", "@{{{secret}", "HEAD:{secret}",
    "\x00", "--git-dir={other}", "{other}", "file://{secret}",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.anyio
async def test_no_argument_is_an_option_or_leads_outside(tmp_path: Path) -> None:
    """Each of them in the place of each text that any tool takes (CVE-2025-68144: options in the words of a diff).

    `git_init` (CVE-2025-68143) is not there at all.
    """
    trap = Trap(tmp_path)
    given = {
        "canary": str(trap.canaries / "written"), "program": trap.program(), "secret": str(trap.outside),
        "other": str(trap.other.path),
    }  # fmt: skip
    before = sorted(tmp_path.rglob("*"))
    async with serving(trap.made.path) as asking:
        tools = (await asking.client.list_tools()).tools
        tried = 0
        for tool in tools:
            needed: dict[str, Any] = {
                "path": "notes.txt",
                "one": "HEAD",
                "pattern": "one",
                "calls": [{"get_status": {}}],
            }
            properties = tool.input_schema["properties"]
            needed = {name: needed[name] for name in tool.input_schema.get("required", [])}
            for name, schema in properties.items():
                if "string" not in json.dumps(schema) or "enum" in schema or name == "uris":
                    continue
                for option in OPTIONS:
                    said = await asking(tool.name, **{**needed, name: option.format(**given)})
                    assert SECRET not in said and "failed inside" not in said, (tool.name, name, option, said)
                    tried += 1
        assert tried > 300
    assert os.listdir(trap.canaries) == []
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.anyio
async def test_a_cursor_that_was_made_by_hand_holds_no_option(tmp_path: Path) -> None:
    """Whoever reads the code can sign one."""
    from mcp_batteries.cursors import Cursor

    trap = Trap(tmp_path)
    async with serving(trap.made.path) as asking:
        option = f"--output={trap.canaries}/x"
        positions: list[Any] = [
            [0, 0, [option]], [0, 0, ["HEAD", "-Ox"]], [-1, 0, []], ["x", 0, []], [0], None, {"a": 1},
        ]  # fmt: skip
        for position in positions:
            said = await asking("list_commits", cursor=Cursor.encode("log", position, ["HEAD", ""]))
            assert said.startswith("failed: ") and "cursor" in said and "inside" not in said, said
    assert os.listdir(trap.canaries) == []


@pytest.mark.anyio
async def test_another_repository_is_not_reached_by_its_path(tmp_path: Path) -> None:
    """CVE-2025-68145: the path of a repository as an argument."""
    trap = Trap(tmp_path)
    async with serving(trap.made.path) as asking:
        for name in (str(trap.other.path), "../other", "other", "served/../other", base64.b64encode(b"other").decode()):
            said = await asking("list_commits", repo=name)
            assert said.startswith("failed: ") and SECRET not in said
        assert "There is no tool" in await _missing(asking)


async def _missing(asking: Any) -> str:
    from mcp.shared.exceptions import MCPError

    with pytest.raises(MCPError) as caught:
        await asking("git_init", repo_path="/tmp")
    return caught.value.error.message


# Names

NAMES = [
    b"-x", b"--output=x", b"two\nlines", b"tab\there", b'quo"te', b"caf\xe9", "caf\u00e9".encode(), b" spaces ",
    b":(top)x", b"back\\slash", b"*", b"\xe2\x80\xae.txt", b"[a]", b"a -> b",
]  # fmt: skip


@pytest.mark.share(5)
@pytest.mark.anyio
@pytest.mark.parametrize("name", NAMES, ids=repr)
async def test_any_name_is_one_line_and_can_be_given_back(name: bytes, tmp_path: Path) -> None:
    made = Made(tmp_path / "served")
    file = os.fsencode(made.path) + b"/" + name
    for text in (b"one\n", b"one\ntwo\n"):
        with open(file, "wb") as opened:
            opened.write(text)
        made.commit("a commit")
    with open(file, "ab") as opened:
        opened.write(b"three\n")
    async with serving(made.path) as asking:
        [line] = (await asking("get_status")).splitlines()[1:]
        assert line.startswith(" M ") and len((await asking("list_files")).splitlines()) == 2
        shown = line[3:]
        assert "+three" in await asking("read_diff", path=shown)
        assert (await asking("read_file", path=shown)).endswith("\none\ntwo\n")
        assert "3: three" in await asking("get_blame", path=shown)
        assert (await asking("list_commits", path=shown)).count("a commit") == 2
        assert f"{shown}:2:two" in await asking("search_text", pattern="two", path=shown)


def test_git_is_there() -> None:
    assert Path(GIT).is_absolute()
