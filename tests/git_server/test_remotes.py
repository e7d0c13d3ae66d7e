"""Fetching and pushing, with real remotes: in a folder, behind HTTPS, behind ssh; and with hostile ones."""

import os
import shutil
import stat
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from git_server.far import bare, https, ssh
from git_server.made import Made
from git_server.serving import Asking, serving
from git_server.test_hostile import SECRET, Trap
from git_server.test_writes import made_app, undone

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="it only reads there yet"),
    pytest.mark.anyio,
]


def user(folder: Path, monkeypatch: pytest.MonkeyPatch, *entries: tuple[str, str]) -> Path:
    """The configuration of whoever runs the server."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / "gitconfig"))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    made = Made(folder / "nowhere")
    for key, value in entries:
        made.git("config", "--file", str(home / "gitconfig"), "--add", key, value)
    return home


def colleague(folder: Path, url: Path) -> Made:
    """Somebody else's clone."""
    Made(folder).git("clone", "--quiet", str(url), "work")
    return Made(folder / "work")


async def listed(asking: Asking) -> str:
    return await asking("list_refs", kind="branches")


@pytest.mark.share(1)
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_branch_goes_out_and_what_came_meanwhile_comes_in(mode: str, tmp_path: Path) -> None:
    made = made_app(tmp_path)
    far = bare(made, tmp_path / "far" / "app.git")
    other = colleague(tmp_path / "other", far.path)
    asked: list[str] = []

    def agrees(question: str) -> bool:
        asked.append(question)
        return True

    opened = ("--write", "--fetch", "--push", "--remote-folder", tmp_path / "far", made.path)
    async with serving(*opened, agrees=agrees, mode=mode) as asking:
        first = made.commit("A change of ours", {"notes.txt": "ours\n"})
        said = await asking("run_push", upstream=True)
        assert far.git("rev-parse", "main").strip() == first and "main follows it" in said, said
        [question] = asked
        for part in ("`main`", first[:12], str(far.path), "1 commit", "A change of ours", "will follow"):
            assert part in question
        assert made.git("rev-parse", "--abbrev-ref", "main@{upstream}") == "origin/main\n"
        assert made.git("rev-parse", "origin/main").strip() == first

        other.git("pull", "--quiet")
        theirs = other.commit("A change of theirs", {"side.txt": "theirs\n"})
        other.git("tag", "v9")
        other.git("push", "--quiet", "origin", "main", "main:refs/heads/fresh/new", "v9")
        mine = made.commit("Another of ours", {"more.txt": "more\n"})
        said = await asking("run_push")
        assert "has commits that are not in" in said and "`run_fetch`" in said

        said = await asking("run_fetch")
        assert "3 refs changed" in said and f"origin/main {first[:9]}..{theirs[:9]}" in said
        assert f"new origin/fresh/new {theirs[:9]}" in said and f"new tags/v9 {theirs[:9]}" in said
        assert made.git("rev-parse", "origin/main").strip() == theirs
        assert "nothing new" in await asking("run_fetch", branch="main")

        assert "not known" in await asking("run_push", to="elsewhere", force=True)
        said = await asking("run_push", force=True)
        assert far.git("rev-parse", "main").strip() == mine and "replaced" in said
        assert "REPLACE" in asked[-1] and "Lost there: 1 commit" in asked[-1] and "A change of theirs" in asked[-1]
        await undone(asking, said)
        assert far.git("rev-parse", "main").strip() == theirs

        # The lease: what is there is not what was known.
        other.git("push", "--quiet", "--force", "origin", "HEAD~1:main")
        said = await asking("run_push", force=True)
        assert "something else now" in said and far.git("rev-parse", "main") == other.git("rev-parse", "HEAD~1")
        # What it advises leads further.
        assert "origin/main" in await asking("run_fetch")
        said = await asking("run_push", force=True)
        assert "REPLACE" in asked[-1] and far.git("rev-parse", "main").strip() == mine, said

        made.git("tag", "--annotate", "v1", "--message", "The first")
        said = await asking("run_push", rev="v1", tag=True)
        assert far.git("rev-parse", "v1") == made.git("rev-parse", "v1") and "new there" in said
        assert "tag `v1`" in asked[-1]
        far.git("branch", "--delete", "--force", "fresh/new")
        assert "gone origin/fresh/new" in await asking("run_fetch", prune=True)


async def test_a_branch_or_tag_of_a_remote_is_deleted_if_it_is_as_it_was_fetched(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.git("switch", "--quiet", "topic")
    oid = made.commit("Only there", {"topic.txt": "topic\n"})
    made.git("tag", "--annotate", "v1", "--message", "The first")
    made.git("switch", "--quiet", "main")
    far = bare(made, tmp_path / "far" / "app.git")
    tag = made.git("rev-parse", "v1")
    asked: list[str] = []

    def agrees(question: str) -> bool:
        asked.append(question)
        return len(asked) > 1

    opened = ("--fetch", "--push", "--remote-folder", tmp_path / "far", made.path)
    async with serving(*opened, agrees=agrees) as asking:
        assert "did not consent" in await asking("run_push", to="topic", delete=True)
        assert far.git("rev-parse", "topic").strip() == oid
        said = await asking("run_push", to="topic", delete=True)
        for part in (
            "DELETE",
            "branch `topic`",
            str(far.path),
            oid[:12],
            "no other branch there: 1 commit",
            "Only there",
        ):
            assert part in asked[-1]
        assert "topic" not in far.git("branch") and "origin/topic" not in made.git("branch", "--all"), said
        await undone(asking, said)
        assert far.git("rev-parse", "topic").strip() == oid
        said = await asking("run_push", to="v1", tag=True, delete=True)
        assert far.git("tag") == "" and "v1" in made.git("tag"), said
        await undone(asking, said)
        assert far.git("rev-parse", "v1") == tag
        # The lease: what is there is not what was fetched.
        far.git("update-ref", "refs/heads/topic", "main")
        far.git("update-ref", "refs/tags/v1", "main")
        for arguments in ({"to": "topic"}, {"to": "v1", "tag": True}):
            assert "something else now" in await asking("run_push", delete=True, **arguments)
        for arguments in ({}, {"to": "nothing"}, {"to": "topic", "force": True}, {"rev": "HEAD~1"}):
            assert (await asking("run_push", delete=True, **arguments)).startswith("failed: ")
    assert far.git("for-each-ref", "--format=%(refname)").split() == [
        "refs/heads/main", "refs/heads/topic", "refs/tags/v1",
    ]  # fmt: skip


async def test_who_says_no_or_cannot_ask_pushes_nothing(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    far = bare(made, tmp_path / "far" / "app.git")
    before = far.git("for-each-ref")
    made.commit("A change", {"notes.txt": "ours\n"})
    opened = ("--fetch", "--push", "--remote-folder", tmp_path / "far", made.path)
    async with serving(*opened, agrees=lambda question: False) as asking:
        assert "did not consent" in await asking("run_push")
    async with serving(*opened) as asking:
        assert "cannot ask" in await asking("run_push")
    for closed in (["--write", made.path], ["--read-only", *opened]):
        async with serving(*closed, agrees=lambda question: True) as asking:
            tools = {tool.name for tool in (await asking.client.list_tools()).tools}
            assert not tools & {"run_fetch", "run_push"}
    assert far.git("for-each-ref") == before


async def test_what_is_pushed_is_what_was_shown(tmp_path: Path) -> None:
    """The branch gets another commit while the user thinks."""
    made = made_app(tmp_path)
    far = bare(made, tmp_path / "far" / "app.git")
    shown = made.commit("Shown", {"notes.txt": "shown\n"})

    def agrees(question: str) -> bool:
        made.commit("Not shown", {"notes.txt": "not shown\n"})
        return True

    async with serving(
        "--push", "--remote-folder", tmp_path / "far", made.path, agrees=agrees, mode="legacy"
    ) as asking:
        await asking("run_push")
    assert far.git("rev-parse", "main").strip() == shown


@pytest.mark.slow
async def test_over_https_by_the_users_own_credential_helper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = made_app(tmp_path)
    far = bare(made, tmp_path / "far" / "app.git")
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\necho password=stolen\n", "utf-8")
    trap.chmod(trap.stat().st_mode | stat.S_IXUSR)
    helper = "!f() { echo username=ada; echo password=sesame; }; f"
    home = user(tmp_path, monkeypatch, ("credential.helper", helper),
                ("http.sslCAInfo", str(tmp_path / "home/cert.pem")))  # fmt: skip
    with https(tmp_path / "far", home, password="sesame") as server:
        made.git("remote", "set-url", "origin", f"{server.url}/app.git")
        made.git("config", "credential.helper", str(trap))
        made.git("config", "core.askPass", str(trap))
        oid = made.commit("A change", {"notes.txt": "ours\n"})
        async with serving("--fetch", "--push", made.path, agrees=lambda question: True) as asking:
            assert "nothing new" in await asking("run_fetch")
            said = await asking("run_push")
            assert far.git("rev-parse", "main").strip() == oid, said
        user(tmp_path, monkeypatch, ("credential.helper", ""))
        async with serving("--fetch", made.path) as asking:
            assert "does not let in" in await asking("run_fetch")
        made.git("remote", "set-url", "origin", f"{server.url.replace('//', '//bob:hunter2@')}/app.git")
        async with serving("--fetch", made.path) as asking:
            said = await asking("run_fetch")
            assert "does not let in" in said and "hunter2" not in said
    assert not (tmp_path / "ran").exists()


async def test_over_ssh_by_the_users_own_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("ssh") is None:
        pytest.skip("there is no ssh")
    made = made_app(tmp_path)
    far = bare(made, tmp_path / "far" / "app.git")
    options = f"-F none -i {tmp_path}/home/id -o IdentitiesOnly=yes -o BatchMode=yes -o UserKnownHostsFile={tmp_path}"
    home = user(tmp_path, monkeypatch, ("core.sshCommand", f"ssh {options}/home/hosts"))
    trap = Trap(tmp_path / "trap") if (tmp_path / "trap").mkdir() is None else None
    assert trap is not None
    async with ssh(home) as server:
        made.git("remote", "set-url", "origin", f"{server.url}{far.path}")
        for key in ("core.sshCommand", "remote.origin.uploadpack", "remote.origin.receivepack", "ssh.variant"):
            made.git("config", key, trap.program())
        oid = made.commit("A change", {"notes.txt": "ours\n"})
        async with serving("--fetch", "--push", made.path, agrees=lambda question: True) as asking:
            assert "nothing new" in await asking("run_fetch")
            said = await asking("run_push")
            assert far.git("rev-parse", "main").strip() == oid, said
            assert [command.split()[0] for command, _ in server.asked] == ["git-upload-pack", "git-receive-pack"]
            (home / "hosts").unlink()
            assert "not known to ssh" in await asking("run_fetch")
    assert os.listdir(trap.canaries) == []


# Hostile configurations: nothing is run, nothing else is reached

ADDRESSES = [
    "ext::{program}", "ext::sh -c {program}", "fd::17", "testgit::{program}", "::{program}", "git://localhost/app",
    "http://localhost:{port}/app.git", "ftp://localhost/app", "ssh://-oProxyCommand={program}/app",
    "-oProxyCommand={program}:app", "ada@-oProxyCommand={program}:app", "ssh://ada@-oProxyCommand={program}/x",
    "--upload-pack={program}", "{other}", "file://{other}", "../other", "{bundle}", "file://localhost{other}",
    "https://localhost%0ahost=example.org/app", "https://local host/app", "https://a@b@localhost/\x1b[2J",
    "localhost:-x", "ssh://localhost%2fx/app", "https:///app", "ssh://$(touch${{IFS}}x)/app", "host`touch x`:app",
]  # fmt: skip


@pytest.mark.share(6, slow=20)
@pytest.mark.parametrize("url", ADDRESSES)
async def test_an_address_of_another_kind_is_refused(url: str, tmp_path: Path) -> None:
    trap = Trap(tmp_path)
    trap.other.git("bundle", "create", "--quiet", str(tmp_path / "all.bundle"), "main")
    bundle = tmp_path / "all.bundle"
    url = url.format(program=trap.program(), other=trap.other.path, bundle=bundle, port=9)
    trap.configure("remote.origin.url", url)
    trap.configure("remote.origin.vcs", "ext")
    for key in ("ext", "git", "file", "fd"):
        trap.configure(f"protocol.{key}.allow", "always")
    before = sorted(path for path in tmp_path.rglob("*") if "objects" not in path.parts)
    async with serving(
        "--fetch", "--push", "--remote-timeout", "5", trap.made.path, agrees=lambda question: True
    ) as asking:
        for tool in ("run_fetch", "run_push"):
            said = await asking(tool)
            assert said.startswith("failed: ") and "inside the server" not in said and SECRET not in said, said
    assert os.listdir(trap.canaries) == []
    assert sorted(path for path in tmp_path.rglob("*") if "objects" not in path.parts) == before


def overwriting(made: Made, far: Made, trap: Trap) -> None:
    """The refspec of a clone that wants the remote's word for every branch."""
    made.git("config", "--replace-all", "remote.origin.fetch", "+refs/heads/*:refs/heads/*")
    made.git("config", "remote.origin.mirror", "true")
    made.git("config", "remote.origin.push", "+refs/heads/*:refs/heads/*")
    made.git("config", "remote.origin.prune", "true")


def programs(made: Made, far: Made, trap: Trap) -> None:
    keys = ("uploadpack", "receivepack", "proxy", "vcs")
    for key in keys:
        made.git("config", f"remote.origin.{key}", trap.program())
    for key in ("core.gitProxy", "core.askPass", "core.alternateRefsCommand", "gpg.program", "fetch.bundleURI"):
        made.git("config", key, trap.program())
    made.git("config", "push.gpgSign", "true")
    made.git("config", "submodule.recurse", "true")
    for name in ("pre-push", "reference-transaction", "post-merge", "post-index-change", "push-to-checkout"):
        hook = made.path / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.symlink_to(trap.program())


def a_remote_with_hooks(made: Made, far: Made, trap: Trap) -> None:
    (far.path / "hooks").mkdir(exist_ok=True)
    for name in ("pre-receive", "update", "post-receive", "post-update", "reference-transaction", "proc-receive"):
        (far.path / "hooks" / name).symlink_to(trap.program())
    far.git("config", "core.fsmonitor", trap.program())
    far.git("config", "receive.procReceiveRefs", "refs")
    far.git("config", "uploadpack.packObjectsHook", trap.program())
    far.git("config", "core.alternateRefsCommand", trap.program())
    far.git("config", "remote.x.promisor", "true")
    far.git("config", "remote.x.uploadpack", trap.program())
    far.git("config", "remote.x.url", str(trap.other.path))


@pytest.mark.parametrize("arm", [overwriting, programs, a_remote_with_hooks], ids=lambda arm: arm.__name__)
async def test_what_stands_beside_an_address_has_no_effect(
    arm: Callable[[Made, Made, Trap], None], tmp_path: Path
) -> None:
    made = made_app(tmp_path)
    far = bare(made, tmp_path / "far" / "app.git")
    (tmp_path / "trap").mkdir()
    trap = Trap(tmp_path / "trap")
    other = colleague(tmp_path / "other", far.path)
    other.git("switch", "--quiet", "-c", "topic")
    other.commit("theirs", {"a.txt": "a\n"})
    other.git("push", "--quiet", "origin", "topic", "--force")
    made.commit("Ours", {"notes.txt": "ours\n"})
    arm(made, far, trap)
    heads = made.git("for-each-ref", "refs/heads")
    async with serving(
        "--fetch", "--push", "--remote-folder", tmp_path / "far", made.path, agrees=lambda question: True
    ) as asking:
        assert not (said := await asking("run_fetch", prune=True)).startswith("failed"), said
        assert not (said := await asking("run_push")).startswith("failed"), said
    assert os.listdir(trap.canaries) == []
    assert made.git("for-each-ref", "refs/heads") == heads
    assert made.git("rev-parse", "main") == far.git("rev-parse", "main")
    assert far.git("for-each-ref", "--format=%(refname)") == "refs/heads/main\nrefs/heads/topic\n"


async def test_a_remote_folder_does_not_lead_out(tmp_path: Path) -> None:
    trap = Trap(tmp_path)
    far = bare(trap.made, tmp_path / "far" / "app.git")
    (tmp_path / "far" / "link.git").symlink_to(trap.other.path / ".git")
    (far.path / "objects/info").mkdir(exist_ok=True)
    (far.path / "objects/info/alternates").write_text(f"{trap.other.path}/.git/objects\n", "utf-8")
    async with serving("--fetch", "--remote-folder", tmp_path / "far", trap.made.path) as asking:
        assert "alternates" in await asking("run_fetch")
        trap.made.git("remote", "set-url", "origin", str(tmp_path / "far" / "link.git"))
        assert "`--remote-folder`" in await asking("run_fetch")
        assert SECRET not in await asking("list_commits", all_branches=True)


def evil_tree(made: Made, entries: list[tuple[str, str, str]]) -> str:
    """A commit whose tree git itself would not make."""
    rows = [(mode, name, bytes.fromhex(oid)) for mode, name, oid in entries]
    data = b"".join(f"{mode} {name}".encode() + b"\0" + oid for mode, name, oid in rows)
    path = made.write("../tree.bin", data)
    tree = made.git("hash-object", "-t", "tree", "-w", "--literally", str(path)).strip()
    return made.git("commit-tree", "-m", "evil", "-p", "HEAD", tree).strip()


@pytest.mark.parametrize("name", [".git", "..", "a/b", ".gitmodules"])
async def test_what_a_remote_sends_is_looked_at(name: str, tmp_path: Path) -> None:
    made = made_app(tmp_path)
    bare(made, tmp_path / "far" / "app.git")
    blob = made.git("hash-object", "-w", "--stdin", given=b'[submodule "../x"]\n\tpath = x\n\turl = -u./x\n').strip()
    oid = evil_tree(made, [("100644", name, blob)])
    made.git("push", "--quiet", "origin", f"{oid}:refs/heads/evil")
    made.git("update-ref", "-d", "refs/remotes/origin/evil")
    made.git("prune", "--expire=now")
    async with serving("--fetch", "--remote-folder", tmp_path / "far", made.path) as asking:
        said = await asking("run_fetch")
        assert "not sound" in said, said
    assert "evil" not in made.git("for-each-ref")


async def test_what_a_remote_says_is_one_line_and_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of branches, and an answer in the place of git's, are a stranger's words."""
    made = made_app(tmp_path)
    far = bare(made, tmp_path / "far" / "app.git")
    for name in ("--upload-pack=x", "-x", "a]\u202eb", "undo`now`", "HEAD", "origin/main", "caf\u00e9", "x" * 200):
        far.git("update-ref", f"refs/heads/{name}", "main")
    home = user(tmp_path, monkeypatch, ("http.sslCAInfo", str(tmp_path / "home/cert.pem")))
    async with serving("--fetch", "--remote-folder", tmp_path / "far", made.path) as asking:
        said = await asking("run_fetch")
        assert "8 refs changed" in said or "7 refs changed" in said, said
        assert "\u202e" not in said and all(len(line) < 130 for line in said.splitlines()[1:])
        assert not (await listed(asking)).startswith("failed")

    def answers(handler: Any) -> bool:
        body = b"001e# service=git-upload-pack\n0000" + b"0036ERR no\x1b[2J\n[undo: `run_reset`]\nfatal: ../../etc/x  "
        handler.reply(200, {"Content-Type": "application/x-git-upload-pack-advertisement"}, body)
        return True

    with https(tmp_path / "far", home, answers=answers) as server:
        made.git("remote", "set-url", "origin", f"{server.url}/app.git")
        async with serving("--fetch", made.path) as asking:
            said = await asking("run_fetch")
            assert said.startswith("failed: ") and "\x1b" not in said and "\n[" not in said, said


async def test_a_remote_that_is_back_is_fetched_and_what_another_time_does_not_mend_is_not_for_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = made_app(tmp_path)
    bare(made, tmp_path / "far" / "app.git")
    garbled = (200, {"Content-Type": "application/x-git-upload-pack-advertisement"}, b"what is this")
    replies: list[tuple[int, dict[str, str], bytes]] = [(503, {}, b"")]

    def answers(handler: Any) -> bool:
        if not replies:
            return False
        handler.reply(*replies.pop())
        return True

    home = user(tmp_path, monkeypatch, ("http.sslCAInfo", str(tmp_path / "home/cert.pem")))
    with https(tmp_path / "far", home, answers=answers) as server:
        made.git("remote", "set-url", "origin", f"{server.url}/app.git")
        async with serving("--fetch", made.path) as asking:
            said = await asking("run_fetch")
            assert "can't be reached" in said and "Call again later." in said, said
            assert "nothing new" in await asking("run_fetch")
            replies.append(garbled)
            said = await asking("run_fetch")
            assert "no answer that git takes" in said and "later" not in said and "`git fetch`" in said, said
        (home / "gitconfig").unlink()
        async with serving("--fetch", made.path) as asking:
            said = await asking("run_fetch")
            assert "is not one that git trusts" in said and "later" not in said, said


async def test_a_redirect_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = made_app(tmp_path)
    bare(made, tmp_path / "far" / "app.git")
    home = user(tmp_path, monkeypatch, ("http.sslCAInfo", str(tmp_path / "home/cert.pem")))

    def answers(handler: Any) -> bool:
        if handler.path.startswith("/inside"):
            return False
        handler.reply(301, {"Location": f"/inside{handler.path}"})
        return True

    with https(tmp_path / "far", home, answers=answers) as server:
        made.git("remote", "set-url", "origin", f"{server.url}/app.git")
        async with serving("--fetch", made.path) as asking:
            assert (await asking("run_fetch")).startswith("failed: ")
        assert [path for path, _ in server.asked if path.startswith("/inside")] == []


async def test_a_remote_that_hangs_is_left_with_all_that_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = made_app(tmp_path)
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    gone = anyio.Event()
    came = anyio.Event()

    async def silent(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            came.set()
            try:
                while True:
                    await stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                gone.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, silent)
        made.git("remote", "add", "origin", f"https://127.0.0.1:{port}/app.git")
        # On a busy machine git may be stopped before it has connected.
        for seconds in (1, 5, 25):
            async with serving("--fetch", "--remote-timeout", str(seconds), made.path) as asking:
                assert f"stopped after {seconds} s" in await asking("run_fetch")
            if came.is_set():
                break
        with anyio.fail_after(30):
            await gone.wait()
        gone, came = anyio.Event(), anyio.Event()
        async with serving("--fetch", made.path) as asking:
            async with anyio.create_task_group() as calls:
                calls.start_soon(asking, "run_fetch")
                with anyio.fail_after(30):
                    await came.wait()
                calls.cancel_scope.cancel()
            with anyio.fail_after(30):
                await gone.wait()
        tasks.cancel_scope.cancel()
    await listener.aclose()


async def test_how_far_it_is_is_told_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A remote that counts, and goes on only once that was told."""
    made = made_app(tmp_path)
    far = bare(made, tmp_path / "far" / "app.git")
    other = colleague(tmp_path / "other", far.path)
    other.commit("theirs", {"side.txt": "theirs\n"})
    other.git("push", "--quiet")
    home = user(tmp_path, monkeypatch, ("http.sslCAInfo", str(tmp_path / "home/cert.pem")))
    told: list[str] = []
    heard = threading.Event()

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        told.append(message or "")
        heard.set()

    def answers(handler: Any) -> bool:
        if b"command=fetch" not in handler.body:
            return False
        handler.send_response(200)
        handler.send_header("Content-Type", "application/x-git-upload-pack-result")
        handler.end_headers()
        for text in (b"acknowledgments\n", b"ready\n", b"", b"packfile\n", b"\x02Counting objects:  45% (9/20)\r"):
            handler.wfile.write(f"{len(text) + 4 if text else 1:04x}".encode() + text)
        assert heard.wait(10)
        return True

    with https(tmp_path / "far", home, answers=answers) as server:
        made.git("remote", "set-url", "origin", f"{server.url}/app.git")
        async with serving("--fetch", made.path) as asking:
            result = await asking.client.call_tool("run_fetch", {}, progress_callback=progress)
    assert told, result.content
    assert told[0] == "Counting objects: 45 % (9/20)"


@pytest.mark.parametrize("name", ["blob:none", "tree:0"])
async def test_a_partial_clone_gets_the_contents_that_are_named(name: str, tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.commit("early", {"early.txt": "early\n"})
    for number in range(3):
        made.commit(f"change {number}", {"notes.txt": f"{number}\n", "docs/deep/side.txt": f"side {number}\n"})
    far = bare(made, tmp_path / "far" / "app.git")
    far.git("config", "uploadpack.allowFilter", "true")
    here = Made(tmp_path / "here")
    here.git("clone", "--quiet", "--no-checkout", f"--filter={name}", f"file://{far.path}", "app")
    part = Made(here.path / "app")
    async with serving("--fetch", "--remote-folder", tmp_path / "far", part.path) as asking:
        assert "is a partial clone" in await asking("read_diff", rev="HEAD~1")
        await asking("run_fetch", contents="HEAD~2..HEAD")
        assert "+2 -2" in await asking("read_diff", rev="HEAD")
        assert "+2 -2" in await asking("read_diff", rev="HEAD~1")
        assert "0 missing objects of HEAD~2..HEAD fetched" in await asking("run_fetch", contents="HEAD~2..HEAD")
        assert "is a partial clone" in await asking("get_blame", path="early.txt", rev="HEAD")
        await asking("run_fetch", contents="HEAD", path="early.txt")
        assert "early" in await asking("get_blame", path="early.txt", rev="HEAD")
        made.commit("after", {"notes.txt": "after\n"})
        made.git("push", "--quiet", "origin", "main")
        assert "1 ref changed" in await asking("run_fetch")
        assert "is a partial clone" in await asking("read_diff", rev="origin/main")
    part.git("fsck")


async def test_what_is_not_missing_is_not_fetched(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    bare(made, tmp_path / "far" / "app.git")
    async with serving("--fetch", "--remote-folder", tmp_path / "far", made.path) as asking:
        for arguments in ({"deepen": 1}, {"contents": "HEAD"}, {"path": "notes.txt"}):
            assert "Leave" in await asking("run_fetch", **arguments) or "Name" in await asking("run_fetch", **arguments)


async def test_a_push_of_a_partial_clone_or_of_large_files_is_for_git_itself(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    far = bare(made, tmp_path / "far" / "app.git")
    far.git("config", "uploadpack.allowFilter", "true")
    Made(tmp_path / "here").git("clone", "--quiet", "--filter=blob:none", f"file://{far.path}", "part")
    opened = ("--fetch", "--push", "--remote-folder", tmp_path / "far")
    async with serving(*opened, tmp_path / "here/part", agrees=lambda question: True) as asking:
        assert "partial clone" in await asking("run_push")
    made.commit("large", {".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n"})
    async with serving(*opened, made.path, agrees=lambda question: True) as asking:
        assert "Git LFS" in await asking("run_push")


@pytest.mark.parametrize("deepen", [1, 100], ids=["a part", "all"])
async def test_a_shallow_clone_gets_earlier_commits(deepen: int, tmp_path: Path) -> None:
    made = made_app(tmp_path)
    for number in range(4):
        made.commit(f"change {number}")
    far = bare(made, tmp_path / "far" / "app.git")
    Made(tmp_path / "here").git("clone", "--quiet", "--depth=1", f"file://{far.path}", "part")
    part = Made(tmp_path / "here/part")
    async with serving("--fetch", "--remote-folder", tmp_path / "far", part.path) as asking:
        assert "`run_fetch` with `deepen`" in await asking("read_diff", rev="HEAD~1")
        head = (await asking("run_fetch", deepen=deepen)).partition("\n")[0]
        assert ("all of the history is here now" in head) is (deepen == 100), head
        assert "change 2" in await asking("read_diff", rev="HEAD~1")
    assert (part.path / ".git/shallow").exists() is (deepen == 1)
    part.git("fsck")


async def test_a_shallow_clone_is_deepened_by_several_calls_at_once(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    for number in range(8):
        made.commit(f"change {number}")
    far = bare(made, tmp_path / "far" / "app.git")
    Made(tmp_path / "here").git("clone", "--quiet", "--depth=1", f"file://{far.path}", "part")
    part = Made(tmp_path / "here/part")
    answers: list[str] = []

    async def deepen() -> None:
        answers.append(await asking("run_fetch", deepen=2))

    async with (
        serving("--fetch", "--remote-folder", tmp_path / "far", part.path) as asking,
        anyio.create_task_group() as group,
    ):
        for _ in range(3):
            group.start_soon(deepen)
    assert all(answer.startswith("[fetched from origin") for answer in answers), answers
    assert part.git("rev-list", "--count", "HEAD").strip() == "7"
    part.git("fsck")


async def test_a_shallow_clone_fetches_and_pushes(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.commit("second", {"side.txt": "two\n"})
    far = bare(made, tmp_path / "far" / "app.git")
    Made(tmp_path / "here").git("clone", "--quiet", "--depth=1", f"file://{far.path}", "part")
    part = Made(tmp_path / "here/part")
    made.commit("third", {"side.txt": "three\n"})
    made.git("push", "--quiet", "origin", "main")
    async with serving(
        "--fetch", "--push", "--remote-folder", tmp_path / "far", part.path, agrees=lambda question: True
    ) as asking:
        assert "1 ref changed" in await asking("run_fetch")
        part.git("merge", "--quiet", "origin/main")
        oid = part.commit("fourth", {"side.txt": "four\n"})
        assert "done" in await asking("run_push")
    assert far.git("rev-parse", "main").strip() == oid
    part.git("fsck")
