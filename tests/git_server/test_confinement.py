"""Repositories inside a served repository, with a configuration of their own that names programs: none runs.

Git enters such a repository by a child of itself, which reads that configuration. Each program would leave a canary.
"""

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from git_server.conftest import forbid_sandbox, skip_without_sandbox
from git_server.made import GIT, Made
from git_server.serving import Asking, every_change, everything, gates, serving
from git_server.test_hostile import Trap
from mcp_batteries.cli.check import check
from mcp_batteries.processes.sandbox import NoSandbox, find_sandbox
from mcp_batteries.program import program_of
from mcp_batteries.settings import load
from mcp_git.engine.program.git import Git
from mcp_git.policy import Policy
from mcp_git.server import confinement
from mcp_git.settings import Settings

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="the canaries are shell scripts, and nothing is changed there"
)


@dataclass
class Nested:
    """A repository in the work tree of a trap's repository."""

    trap: Trap
    made: Made

    def configure(self, key: str, value: str) -> None:
        self.made.git("config", key, value)

    def attributes(self, text: str) -> None:
        path = self.made.path / ".git/info/attributes"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
        # Of the same size, so that only its contents tell whether it has changed.
        self.made.write("data.bin", "other\n")


def fsmonitor(nested: Nested) -> None:
    nested.configure("core.fsmonitor", nested.trap.program())


def fsmonitor_by_the_shell(nested: Nested) -> None:
    nested.configure("core.fsmonitor", f"sh -c 'touch {nested.trap.canaries}/ran; exit 1' --")


def fsmonitor_of_an_included_file(nested: Nested) -> None:
    included = nested.trap.folder / "included"
    included.write_text(f"[core]\n\tfsmonitor = {nested.trap.program()}\n", "utf-8")
    nested.configure("include.path", str(included))


def fsmonitor_in_the_work_tree(nested: Nested) -> None:
    """The program is part of what is served, as it is of what may be read."""
    program = nested.trap.made.path / "sub/monitor"
    shutil.copy2(nested.trap.program(), program)
    nested.configure("core.fsmonitor", str(program))


def clean_filter(nested: Nested) -> None:
    nested.attributes("*.bin filter=evil\n")
    nested.configure("filter.evil.clean", nested.trap.program())


def required_filter(nested: Nested) -> None:
    clean_filter(nested)
    nested.configure("filter.evil.required", "true")


def filter_process(nested: Nested) -> None:
    nested.attributes("*.bin filter=evil\n")
    nested.configure("filter.evil.process", nested.trap.program())


def smudge_filter(nested: Nested) -> None:
    nested.attributes("*.bin filter=evil\n")
    nested.configure("filter.evil.smudge", nested.trap.program())


def hooks(nested: Nested) -> None:
    program = nested.trap.program()
    for name in ("post-index-change", "pre-commit", "post-checkout", "post-merge", "reference-transaction"):
        path = nested.made.path / ".git/hooks" / name
        path.parent.mkdir(exist_ok=True)
        path.symlink_to(program)


def diff_programs(nested: Nested) -> None:
    nested.attributes("*.bin diff=evil\n*.txt diff=evil\n")
    for key in ("diff.external", "diff.evil.command", "diff.evil.textconv"):
        nested.configure(key, nested.trap.program())


def merge_driver(nested: Nested) -> None:
    nested.attributes("* merge=evil\n")
    nested.configure("merge.evil.driver", nested.trap.program())


def other_programs(nested: Nested) -> None:
    program = nested.trap.program()
    for key in ("core.pager", "core.editor", "core.sshCommand", "gpg.program", "core.askPass", "sequence.editor"):
        nested.configure(key, program)
    nested.configure("alias.status", f"!{program}")
    nested.configure("commit.gpgSign", "true")


ADD, STATUS, CHECKOUT, COMMIT, DIFF = (
    ("add", "sub"), ("-C", "sub", "status"), ("-C", "sub", "checkout", "--force", "HEAD~1"),
    ("-C", "sub", "commit", "--quiet", "--all", "-m", "x"), ("-C", "sub", "diff"),
)  # fmt: skip
RUNNING: dict[Callable[[Nested], None], Sequence[str]] = {
    fsmonitor: ("status",),
    fsmonitor_by_the_shell: ("status",),
    fsmonitor_of_an_included_file: ("status",),
    fsmonitor_in_the_work_tree: ("status",),
    clean_filter: ("status",),
    required_filter: ("status",),
    filter_process: ("status",),
    smudge_filter: CHECKOUT,
    hooks: COMMIT,
    diff_programs: DIFF,
    merge_driver: ("-C", "sub", "merge", "--quiet", "--no-edit", "other"),
    other_programs: COMMIT,
}
"""With what plain git runs the program: in the repository above, or in the nested one."""


def submodule(trap: Trap) -> Made:
    """A repository of which the one above has the commit."""
    made = _two_commits(trap.made.path / "sub")
    trap.made.git("add", "sub")
    trap.made.git("commit", "--quiet", "-m", "with sub")
    trap.made.git("commit", "--quiet", "--allow-empty", "-m", "after it")
    return made


def submodule_that_asks_to_be_entered(trap: Trap) -> Made:
    """What `.gitmodules` says of a submodule goes before what is configured for all."""
    made = submodule(trap)
    text = '[submodule "sub"]\n\tpath = sub\n\turl = ./sub\n\tignore = none\n'
    trap.made.write(".gitmodules", text)
    trap.made.git("add", ".gitmodules")
    return made


def unknown_repository(trap: Trap) -> Made:
    """A repository of which the one above knows nothing yet."""
    return _two_commits(trap.made.path / "sub")


def bare_files(trap: Trap) -> Made:
    """As few files as whoever may write files into the folder needs; with commits, so that plain git shows it too."""
    made = _two_commits(trap.made.path / "sub")
    for name in ("description", "hooks", "info", "logs", "branches", "COMMIT_EDITMSG"):
        path = made.path / ".git" / name
        if path.is_dir():
            shutil.rmtree(path)
        elif path.exists():
            path.unlink()
    return made


NESTED = [submodule, submodule_that_asks_to_be_entered, unknown_repository, bare_files]


def _two_commits(path: Path) -> Made:
    made = Made(path)
    made.commit("inside", {"a.txt": "one\n", "data.bin": "bytes\n"})
    made.git("branch", "other")
    made.commit("inside too", {"a.txt": "one\ntwo\n", "data.bin": "bytez\n"})
    made.git("switch", "--quiet", "other")
    made.commit("inside elsewhere", {"a.txt": "three\n", "data.bin": "bytey\n"})
    made.git("switch", "--quiet", "main")
    made.write("a.txt", "four\n")
    return made


@pytest.mark.share(1, slow=4)
@pytest.mark.anyio
@pytest.mark.diagonal
@pytest.mark.parametrize("nest", NESTED, ids=lambda nest: nest.__name__)
@pytest.mark.parametrize("arm", RUNNING, ids=lambda arm: arm.__name__)
async def test_nothing_in_a_nested_repository_is_run(
    arm: Callable[[Nested], None], nest: Callable[[Trap], Made], tmp_path: Path, is_confined: bool
) -> None:
    trap = Trap(tmp_path)
    arm(Nested(trap, nest(trap)))
    options = gates(tmp_path)
    async with serving(*options, trap.made.path, agrees=lambda message: True) as asking:
        said = await everything(asking)
        # What is new is a submodule then, which the next call enters.
        said += await asking("create_commit", message="with a repository", paths=["."])
        said += await asking("stage_files", paths=["sub"])
        said += await every_change(asking) + await _inside(asking)
    assert os.listdir(trap.canaries) == []
    assert "first" in said and "failed inside" not in said
    if not is_confined:
        assert "is a repository of its own, and no sandbox keeps git inside" in said


@pytest.mark.anyio
@pytest.mark.parametrize("arm", [fsmonitor, fsmonitor_by_the_shell, clean_filter], ids=lambda arm: arm.__name__)
async def test_nothing_in_a_nested_repository_is_run_where_commits_are_signed(
    arm: Callable[[Nested], None], tmp_path: Path
) -> None:
    trap = Trap(tmp_path)
    arm(Nested(trap, submodule_that_asks_to_be_entered(trap)))
    async with serving(*gates(tmp_path), "--sign", trap.made.path, agrees=lambda message: True) as asking:
        said = await asking("stage_files", paths=["sub"])
        said += await asking("create_commit", message="it alone", paths=["sub"])
        said += await asking("create_commit", message="all", all_tracked=True)
        said += await every_change(asking)
    assert os.listdir(trap.canaries) == [], said
    assert "`sub` is a repository of its own" in said and "without --sign" in said


async def _inside(asking: Asking) -> str:
    """What is said of names in the nested repository."""
    said = [
        await asking("read_diff", path="sub"),
        await asking("stage_files", paths=["sub"], unstage=True),
        await asking("run_restore", paths=["sub"]),
        await asking("create_commit", message="it alone", paths=["sub"]),
        await asking("list_commits", path="sub"),
        await asking("get_blame", path="sub/a.txt"),
        await asking("stage_files", paths=["sub/a.txt"]),
        await asking("run_restore", paths=["sub/a.txt"]),
        await asking("create_commit", message="inside", paths=["sub/a.txt"]),
    ]
    return "\n".join(said)


@pytest.mark.share(4)
@pytest.mark.parametrize("arm", RUNNING, ids=lambda arm: arm.__name__)
def test_plain_git_runs_it(arm: Callable[[Nested], None], tmp_path: Path) -> None:
    trap = Trap(tmp_path)
    made = submodule_that_asks_to_be_entered(trap)
    if arm is merge_driver:
        made.git("checkout", "--quiet", "--force")
    arm(Nested(trap, made))
    with suppress(AssertionError):  # What ran fails.
        trap.made.git(*RUNNING[arm])
    assert os.listdir(trap.canaries) == ["ran"], "the case is not armed"


# What the answers say


@pytest.fixture
def _needs_sandbox() -> None:
    skip_without_sandbox()


@pytest.mark.anyio
@pytest.mark.usefixtures("_needs_sandbox")
async def test_a_submodule_is_staged_without_its_programs(tmp_path: Path) -> None:
    trap = Trap(tmp_path)
    made = submodule(trap)
    fsmonitor(Nested(trap, made))
    made.git("-c", "core.fsmonitor=false", "commit", "--quiet", "--all", "-m", "inside again")
    now = made.git("rev-parse", "HEAD").strip()
    async with serving("--write", trap.made.path) as asking:
        assert "sub" in await asking("get_status")
        said = await asking("stage_files", paths=["sub"])
        assert not said.startswith("failed"), said
        assert now in trap.made.git("ls-files", "--stage", "sub")
        assert "Subproject commit" in await asking("read_diff", only="staged")
    assert os.listdir(trap.canaries) == []


@pytest.mark.anyio
@pytest.mark.usefixtures("_needs_sandbox")
async def test_a_nested_repository_that_needs_a_program_is_an_error_that_says_so(tmp_path: Path) -> None:
    trap = Trap(tmp_path)
    made = submodule_that_asks_to_be_entered(trap)
    required_filter(Nested(trap, made))
    async with serving("--write", trap.made.path) as asking:
        said = await asking("create_commit", message="all", paths=["."])
    assert said.startswith("failed: ") and "`sub`" in said and "Use `git` itself" in said, said
    assert str(tmp_path) not in said
    assert "sub" not in trap.made.git("diff", "--cached", "--name-only", "--ignore-submodules=all")
    assert os.listdir(trap.canaries) == []


@pytest.mark.anyio
async def test_a_repository_around_another_is_read_and_gets_refs_without_a_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid_sandbox(monkeypatch)
    trap = Trap(tmp_path)
    submodule(trap)
    async with serving("--write", trap.made.path) as asking:
        assert "second" in await asking("list_commits")
        assert not (await asking("create_branch", name="side")).startswith("failed")
        said = await asking("stage_files", paths=["notes.txt"])
        assert said.startswith("failed: ") and "`sub`" in said and "--check" in said, said
        shutil.rmtree(trap.made.path / "sub")
        assert not (await asking("stage_files", paths=["notes.txt"])).startswith("failed")


@pytest.mark.share(2)
@pytest.mark.anyio
@pytest.mark.parametrize("is_link", [False, True])
async def test_the_commit_of_a_submodule_elsewhere_is_not_told(
    is_link: bool, tmp_path: Path, is_confined: bool
) -> None:
    trap = Trap(tmp_path)
    submodule(trap)
    theirs = trap.other.git("rev-parse", "HEAD").strip()
    dot_git = trap.made.path / "sub/.git"
    shutil.rmtree(dot_git)
    if is_link:
        dot_git.symlink_to(trap.other.path / ".git")
    else:
        dot_git.write_text(f"gitdir: {trap.other.path}/.git\n", "utf-8")
    assert theirs in trap.made.git("diff", "--submodule=short", "sub")
    async with serving(*gates(tmp_path / "gates"), trap.made.path) as asking:
        said = await everything(asking) + await asking("stage_files", paths=["sub"]) + await everything(asking)
    assert theirs[:7] not in said
    assert is_confined or "`sub` is a repository of its own" in said


@pytest.mark.slow
@pytest.mark.process
def test_check_says_what_confines_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Made(tmp_path / "app")
    made.commit("first", {"a.txt": "one\n"})
    settings = load(Settings, ["--check", str(made.path)])
    with suppress(NoSandbox):
        assert find_sandbox().name in confinement(settings) and "--hooks" not in confinement(settings)
        opened = load(Settings, ["--write", "--hooks", "--sign", *settings.repositories])
        assert "nothing confines (--hooks)" in confinement(opened) and "(--sign)" in confinement(opened)
    forbid_sandbox(monkeypatch)
    assert check(program_of("mcp_git"), settings) == 0
    assert "sandbox" in (said := capsys.readouterr().out) and "none: the test has none" in said


@pytest.mark.anyio
async def test_a_git_that_a_script_chooses_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_confined: bool
) -> None:
    """As managers of versions put one on the path."""
    made = Made(tmp_path / "app")
    made.commit("first", {"a.txt": "one\n"})
    shim = tmp_path / "shims/git"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec {GIT} "$@"\n', "utf-8")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(shim.parent), os.environ["PATH"]]))
    git = Git(Policy(load(Settings, [str(made.path)])))
    assert (git.binary.program == str(shim)) is not is_confined
    async with serving(made.path) as asking:
        assert "first" in await asking("list_commits")


# The kernel alone

COMMANDS: Sequence[Sequence[str]] = [
    ["-c", "alias.evil=!{program}", "evil"],
    ["-c", "alias.evil=!touch {canary}", "evil"],
    ["-c", "core.fsmonitor={program}", "status"],
    ["-c", "core.fsmonitor=touch {canary};", "status"],
    ["-c", "core.hooksPath={hooks}", "commit", "--allow-empty", "-m", "x"],
    ["-c", "core.editor={program}", "commit", "--allow-empty"],
    ["-c", "diff.external={program}", "diff", "--ext-diff", "HEAD~1"],
    ["-c", "diff.evil.command={program}", "diff", "--ext-diff", "HEAD~1"],
    ["-c", "diff.evil.textconv={program}", "diff", "--textconv", "HEAD~1"],
    ["-c", "diff.evil.textconv={program}", "log", "-p", "--textconv"],
    ["-c", "diff.evil.textconv={program}", "blame", "--textconv", "notes.txt"],
    ["-c", "filter.evil.clean={program}", "add", "notes.txt"],
    ["-c", "filter.evil.process={program}", "add", "notes.txt"],
    ["-c", "filter.evil.smudge={program}", "checkout", "--force", "HEAD~1", "notes.txt"],
    ["-c", "merge.evil.driver={program} %A", "cherry-pick", "side"],
    ["-c", "gpg.program={program}", "commit", "--allow-empty", "-S", "-m", "x"],
    ["-c", "sequence.editor={program}", "rebase", "-i", "HEAD~1"],
    ["rebase", "--exec", "{program}", "HEAD~1"],
    ["bisect", "run", "{program}"],
    ["grep", "--open-files-in-pager={program}", "one"],
    ["difftool", "--extcmd={program}", "--no-prompt", "HEAD~1"],
    ["mergetool", "--tool=evil"],
    ["submodule", "foreach", "{program}"],
    ["filter-branch", "--tree-filter", "{program}", "HEAD"],
    ["-c", "interactive.diffFilter={program}", "-c", "add.interactive.useBuiltin=true", "add", "-p"],
    ["ls-remote", "--upload-pack={program}", "{folder}"],
    ["ls-remote", "ext::{program}"],
    ["-c", "credential.helper={program}", "credential", "fill"],
    ["-c", "core.sshCommand={program}", "ls-remote", "ssh://localhost/x"],
    ["--exec-path={folder}/programs", "evil"],
    ["-c", "trailer.evil.command={program}", "interpret-trailers", "--trailer", "evil=x"],
    ["-c", "tar.evil.command={program}", "archive", "--format=evil", "HEAD"],
    ["maintenance", "run", "--task=prefetch"],
]
"""Ways to have git itself run a program, each of which the server refuses to ask for."""


@pytest.mark.usefixtures("_needs_sandbox")
@pytest.mark.parametrize("commands", [COMMANDS[:8], pytest.param(COMMANDS[8:], marks=pytest.mark.weekly)], ids=len)
def test_the_kernel_lets_git_run_nothing(commands: Sequence[Sequence[str]], tmp_path: Path) -> None:
    trap = Trap(tmp_path)
    trap.made.git("branch", "side", "HEAD~1")
    program = trap.program()
    programs = tmp_path / "programs"
    programs.mkdir()
    shutil.copy2(program, programs / "git-evil")
    hooks_folder = tmp_path / "hooks"
    hooks_folder.mkdir()
    for name in ("pre-commit", "commit-msg", "post-commit", "reference-transaction"):
        shutil.copy2(program, hooks_folder / name)
    trap.made.write(".git/info/attributes", "notes.txt diff=evil filter=evil merge=evil\n")
    values = {
        "program": program, "canary": f"{trap.canaries}/ran", "hooks": str(hooks_folder), "folder": str(tmp_path),
    }  # fmt: skip
    git, run = _engine(trap)
    ran_by_plain_git = 0
    for command in commands:
        words = [word.format(**values) for word in command]
        run(words)
        assert os.listdir(trap.canaries) == [], words
        with suppress(AssertionError):
            trap.made.git(*words)
        ran_by_plain_git += bool(os.listdir(trap.canaries))
        shutil.rmtree(trap.canaries)
        trap.canaries.mkdir()
        trap.made.git("reset", "--quiet", "--hard", "ORIG_HEAD" if "rebase" in words else "HEAD")
        trap.made.write("notes.txt", "one\ntwo\nthree\n")
    assert ran_by_plain_git >= len(commands) // 2, "too few of the commands run anything"
    assert git.binary.confinements is not None


@pytest.mark.usefixtures("_needs_sandbox")
def test_the_kernel_lets_git_read_and_write_nothing_else(tmp_path: Path) -> None:
    trap = Trap(tmp_path)
    _, run = _engine(trap)
    secret = "the secret"
    for words in (
        ["diff", "--no-index", "--", os.devnull, str(trap.outside)],
        ["hash-object", "-w", str(trap.outside)],
        ["config", "--file", str(trap.outside), "--list"],
        ["apply", str(trap.outside)],
        ["commit", "--allow-empty", "-F", str(trap.outside)],
        [f"--git-dir={trap.other.path}/.git", "log"],
        ["-c", f"include.path={trap.outside}", "log"],
        ["config", "--file", str(tmp_path / "new"), "a.b", "c"],
        ["log", f"--output={tmp_path}/new"],
        ["bundle", "create", str(tmp_path / "new"), "HEAD"],
        ["clone", "--quiet", ".", str(tmp_path / "new")],
    ):
        said = run(words)
        assert secret not in said, words
        assert not (tmp_path / "new").exists() or os.listdir(tmp_path / "new") == [], words
    assert secret not in trap.made.git("cat-file", "--batch", "--batch-all-objects")
    # Plain git does what was asked for.
    assert secret in trap.made.git(f"--git-dir={trap.other.path}/.git", "log")
    trap.made.git("hash-object", "-w", str(trap.outside))
    assert secret in trap.made.git("cat-file", "--batch", "--batch-all-objects")
    trap.made.git("config", "--file", str(tmp_path / "new"), "a.b", "c")
    assert (tmp_path / "new").exists()


def _engine(trap: Trap) -> tuple[Git, Callable[[Sequence[str]], str]]:
    """The engine of a server that may change the repository, and a way to have it run any command at all."""
    from mcp_batteries.concurrency.cancellation import CancelToken
    from mcp_batteries.errors import Problem

    policy = Policy(load(Settings, ["--write", str(trap.made.path)]))
    git = Git(policy)
    repository = policy.repository("")

    def run(words: Sequence[str]) -> str:
        try:
            return git.run(repository, words, CancelToken(10), writes=True).text
        except Problem as problem:
            return str(problem) + getattr(problem, "said", "")

    return git, run
