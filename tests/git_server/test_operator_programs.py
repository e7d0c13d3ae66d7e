"""Hooks run and commits are signed where the operator says so, as plain git would do it, and nowhere else."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from git_server.made import Made
from git_server.serving import serving
from git_server.test_writes import made_app
from mcp_batteries.settings import load
from mcp_git.engine.program.git import Git
from mcp_git.policy import Policy
from mcp_git.settings import Settings

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="it only reads there yet"),
]

KEYGEN = shutil.which("ssh-keygen")


def signer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the user have a key, and sign with it."""
    assert KEYGEN is not None
    home = folder / "home"
    home.mkdir()
    key = home / "key"
    subprocess.run([KEYGEN, "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    (home / "gitconfig").write_text(
        f"[user]\n\tname = Grace\n\temail = grace@home\n\tsigningKey = {key}.pub\n[gpg]\n\tformat = ssh\n"
        "[commit]\n\tgpgSign = true\n[tag]\n\tgpgSign = true\n"
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / "gitconfig"))


def is_signed(made: Made, name: str) -> bool:
    return "BEGIN SSH SIGNATURE" in made.git("cat-file", "-p", name)


@pytest.mark.skipif(KEYGEN is None, reason="there is no ssh-keygen here")
async def test_commits_and_tags_are_signed_as_the_users_configuration_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = made_app(tmp_path)
    made.git("switch", "--quiet", "topic")
    made.commit("theirs", {"theirs.txt": "theirs\n"})
    made.git("switch", "--quiet", "main")
    made.commit("ours", {"ours.txt": "ours\n"})
    signer(tmp_path, monkeypatch)
    trace = tmp_path / "trace"
    evil = made.write("evil.sh", f"#!/bin/sh\ntouch {trace}\n")
    evil.chmod(0o755)
    made.git("config", "gpg.ssh.program", str(evil))
    changes = [
        ("create_commit", {"message": "x", "paths": ["evil.sh"]}),
        ("run_merge", {"rev": "topic"}),
        ("revert_commit", {"rev": "HEAD", "mainline": 1}),
        ("create_commit", {"message": "y", "amend": True}),
    ]
    async with serving("--write", "--sign", made.path) as asking:
        for tool, arguments in changes:
            answer = await asking(tool, **arguments)
            assert is_signed(made, "HEAD") and "not signed" not in answer, answer
        await asking("create_tag", name="v1", message="One")
        assert is_signed(made, "v1")
    async with serving("--write", made.path) as asking:
        assert "not signed" in await asking("create_commit", message="z", amend=True)
    assert not is_signed(made, "HEAD") and not trace.exists()


async def test_a_key_that_can_not_be_used_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = made_app(tmp_path)
    path = tmp_path / "gitconfig"
    path.write_text(
        "[user]\n\tname = G\n\temail = g@x\n\tsigningKey = /no/key\n[gpg]\n\tformat = ssh\n[commit]\n\tgpgSign\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(path))
    made.write("notes.txt", "changed\n")
    async with serving("--write", "--sign", made.path) as asking:
        answer = await asking("create_commit", message="x", all_tracked=True)
    assert answer.startswith("failed: git: ") and "Nothing was changed" in answer


def hooked(made: Made, trace: Path, folder: str) -> None:
    refusal = "! grep -q BAD notes.txt || { echo no BAD here; exit 1; }"
    for name, text in {
        "pre-commit": f'echo "pre $HOME $GIT_CONFIG_COUNT" >> {trace}\n{refusal}',
        "commit-msg": 'echo >> "$1"; echo "Signed-off-by: the hook" >> "$1"',
        "post-checkout": f"echo out >> {trace}",
    }.items():
        made.write(f"{folder}/{name}", f"#!/bin/sh\n{text}\n").chmod(0o755)


@pytest.mark.parametrize("folder", [".git/hooks", "tools/hooks"])
async def test_hooks_run_where_the_operator_says_so(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = made_app(tmp_path)
    trace = tmp_path / "trace"
    hooked(made, trace, folder)
    if folder != ".git/hooks":
        made.git("config", "core.hooksPath", folder)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    made.write("notes.txt", "changed\n")
    async with serving("--write", made.path) as asking:
        assert "not run here" in await asking("create_commit", message="without", all_tracked=True)
    assert not trace.exists()
    made.write("notes.txt", "again\n")
    async with serving("--write", "--hooks", made.path) as asking:
        answer = await asking("create_commit", message="with", all_tracked=True)
        assert "not run here" not in answer and trace.read_text().startswith(f"pre {tmp_path / 'home'} ")
        assert "Signed-off-by: the hook" in made.git("log", "-1", "--format=%B")
        await asking("run_switch", rev="topic")
        assert trace.read_text().endswith("out\n")
        await asking("run_switch", rev="main")
        made.write("notes.txt", "BAD\n")
        assert "no BAD here" in await asking("create_commit", message="bad", all_tracked=True)
    assert made.git("log", "-1", "--format=%s").strip() == "with"


@pytest.mark.parametrize(
    ("name", "mode", "hooks_path", "are_there"),
    [
        (".git/hooks/pre-commit", 0o755, "", True),
        (".git/hooks/pre-commit", 0o644, "", False),
        (".git/hooks/pre-commit.sample", 0o755, "", False),
        (".git/hooks/pre-commit", 0o755, "tools", False),
        ("tools/pre-commit", 0o755, "tools", True),
        ("tools/pre-commit", 0o755, "/dev/null", False),
    ],
)
async def test_git_is_free_only_where_a_hook_is_set_up(
    name: str, mode: int, hooks_path: str, are_there: bool, tmp_path: Path
) -> None:
    made = made_app(tmp_path)
    shutil.rmtree(made.path / ".git/hooks", ignore_errors=True)
    made.write(name, "#!/bin/sh\n").chmod(mode)
    if hooks_path:
        made.git("config", "core.hooksPath", hooks_path)
    settings = load(Settings, ["--write", "--hooks", str(made.path)])
    policy = Policy(settings)
    assert Git(policy).find_programs(policy.repositories["app"]).are_run_by("commit") is are_there


@pytest.mark.parametrize("value", ["%(prefix)/hooks", ":(optional)tools", ":(optional)nowhere", "~/hooks", "tools"])
async def test_hooks_are_those_that_git_finds(value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Versions of git know different beginnings of a path."""
    made = made_app(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for folder in (made.path / ".git/hooks", made.path / "tools", tmp_path / "hooks"):
        folder.mkdir(exist_ok=True)
        hook = folder / "post-commit"
        hook.write_text(f"#!/bin/sh\necho {folder.parent.name}/{folder.name} >> {tmp_path}/trace\n")
        hook.chmod(0o755)
    made.git("config", "core.hooksPath", value)
    made.git("commit", "--quiet", "--allow-empty", "--message=by git")
    trace = tmp_path / "trace"
    by_git = trace.read_text() if trace.exists() else ""
    made.write("notes.txt", "changed\n")
    async with serving("--write", "--hooks", made.path) as asking:
        assert not (await asking("create_commit", message="by us", all_tracked=True)).startswith("failed")
    assert (trace.read_text() if trace.exists() else "") == 2 * by_git


async def test_paths_and_messages_that_are_called_like_an_option_stay_what_they_are(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.write("--no-verify", "x\n")
    made.write("other.txt", "x\n")
    async with serving("--write", "--hooks", "--sign", made.path) as asking:
        await asking("stage_files", paths=["--no-verify"])
        assert made.git("status", "--porcelain") == "A  --no-verify\n?? other.txt\n"
        await asking("run_stash", message="--no-sign")
        assert "--no-sign" in made.git("stash", "list")
