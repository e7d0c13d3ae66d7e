"""Branches are renamed, files moved and remotes pulled, and each answer leads back."""

import sys
from pathlib import Path
from typing import Any

import pytest

from git_server.far import bare
from git_server.made import Made
from git_server.serving import serving
from git_server.test_writes import made_app, state, undone
from mcp_git.engine.program.git import Git

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="it only reads there yet"),
]


@pytest.mark.parametrize("new", ["area/new", "{branch}/new"])
@pytest.mark.parametrize("branch", ["main", "topic"], ids=["the current one", "another"])
async def test_a_branch_is_renamed_with_its_reflog_and_upstream(branch: str, new: str, tmp_path: Path) -> None:
    new = new.format(branch=branch)
    made = made_app(tmp_path)
    made.commit("second")
    bare(made, tmp_path / "far.git")
    made.git("branch", f"--set-upstream-to=origin/{branch}", branch)
    before = state(made)
    moves = made.git("reflog", "show", "--format=%gs", branch)
    async with serving("--write", made.path) as asking:
        answer = await asking("create_branch", name=new, rename=branch)
        assert not answer.startswith("failed"), answer
        assert made.git("branch", "--list", branch) == ""
        assert made.git("rev-parse", "--abbrev-ref", f"{new}@{{upstream}}").strip() == f"origin/{branch}"
        assert made.git("reflog", "show", "--format=%gs", new).endswith(moves)
        assert made.git("branch", "--show-current").strip() == (new if branch == "main" else "main")
        await undone(asking, answer)
    assert state(made) == before
    made.git("fsck")


async def test_a_branch_is_not_renamed_to_the_name_that_it_has(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    async with serving("--write", made.path) as asking:
        answer = await asking("create_branch", name="topic", rename="topic")
    assert answer.startswith("failed: `name` and `rename` are both"), answer


async def test_head_follows_a_renamed_branch_though_the_call_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = made_app(tmp_path)
    run = Git.run

    def cancel_after_rename(git: Git, repository: Any, arguments: Any, cancel: Any, **options: Any) -> Any:
        output = run(git, repository, arguments, cancel, **options)
        if arguments[0] == "branch":
            cancel.set()
        return output

    monkeypatch.setattr(Git, "run", cancel_after_rename)
    async with serving("--write", made.path) as asking:
        await asking("create_branch", name="new", rename="main")
    assert made.git("branch", "--list", "main") == ""
    assert made.git("branch", "--show-current").strip() == "new"


async def test_a_worktree_renames_its_branch_and_no_other_notices(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    beside = tmp_path / "beside"
    made.git("worktree", "add", "--quiet", str(beside), "topic")
    async with serving("--write", beside) as asking:
        answer = await asking("create_branch", name="topic/new", rename="topic")
        assert not answer.startswith("failed"), answer
        assert made.git("branch", "--show-current").strip() == "main"
        assert made.git("-C", str(beside), "branch", "--show-current").strip() == "topic/new"
        assert made.git("worktree", "list").count("[topic/new]") == 1
        await undone(asking, answer)
    assert made.git("-C", str(beside), "branch", "--show-current").strip() == "topic"


async def test_a_branch_in_use_elsewhere_or_under_that_name_is_not_renamed(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.git("branch", "third")
    made.git("worktree", "add", "--quiet", str(tmp_path / "beside"), "topic")
    before = state(made)
    refused = {
        "Another worktree is on the branch `topic`": {"name": "new", "rename": "topic"},
        "There is no branch `nothing`": {"name": "new", "rename": "nothing"},
        "branch named 'third' already exists": {"name": "third", "rename": "main"},
        "stays where it is": {"name": "new", "rename": "third", "switch": True},
    }
    async with serving("--write", made.path) as asking:
        for words, arguments in refused.items():
            answer = await asking("create_branch", **arguments)
            assert answer.startswith("failed") and words in answer, answer
    assert state(made) == before


async def test_a_path_is_moved_and_staged_and_nothing_else(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.commit("folder", {"docs/a.txt": "a\n"})
    made.write("notes.txt", "changed\n")
    made.write("untracked.txt", "u\n")
    (made.path / "link").symlink_to(tmp_path)
    before = state(made)
    async with serving("--write", made.path) as asking:
        answer = await asking("move_path", path="docs", to="manual")
        assert made.git("status", "--porcelain", "docs", "manual") == "R  docs/a.txt -> manual/a.txt\n"
        assert made.git("status", "--porcelain", "notes.txt") == " M notes.txt\n"
        await undone(asking, answer)
        assert state(made) == before
        refused = {
            "destination exists": ("docs/a.txt", "side.txt"),
            "to=`docs/notes.txt`": ("notes.txt", "docs"),
            "not under version control": ("untracked.txt", "new.txt"),
            "make it first": ("side.txt", "no/folder.txt"),
            "A link leads to": ("side.txt", "link/side.txt"),
        }
        for words, (path, to) in refused.items():
            answer = await asking("move_path", path=path, to=to)
            assert answer.startswith("failed") and words in answer, answer
    assert state(made) == before and not (tmp_path / "side.txt").exists()


@pytest.mark.parametrize("rebase", [False, True], ids=["merge", "rebase"])
async def test_a_pull_fetches_and_brings_what_came(rebase: bool, tmp_path: Path) -> None:
    made = made_app(tmp_path)
    bare(made, tmp_path / "far" / "app.git")
    made.git("branch", "--set-upstream-to=origin/main", "main")
    other = Made(tmp_path / "colleague")
    other.git("pull", "--quiet", str(tmp_path / "far" / "app.git"), "main")
    other.commit("theirs", {"theirs.txt": "theirs\n"})
    other.git("push", "--quiet", str(tmp_path / "far" / "app.git"), "HEAD:main")
    made.commit("ours", {"ours.txt": "ours\n"})
    before = state(made)
    opened = ("--write", "--fetch", "--remote-folder", tmp_path / "far")
    async with serving(*opened, made.path) as asking:
        answer = await asking("git_pull", rebase=rebase)
        assert "1 ref changed" in answer and (made.path / "theirs.txt").exists(), answer
        assert (made.git("rev-list", "--merges", "HEAD") == "") is rebase
        await undone(asking, answer)
        assert state(made)[1:] == before[1:]
        made.commit("in the way", {"theirs.txt": "ours\n"})
        answer = await asking("run_pull", rebase=rebase)
        assert "1 in conflict" in answer and "conflict: theirs.txt (added by both)" in answer, answer
        await asking("continue_operation", action="abort")
        made.git("branch", "--unset-upstream")
        assert "`main` follows no branch" in await asking("run_pull")
    async with serving("--write", made.path) as asking:
        assert "run_pull" not in {tool.name for tool in (await asking.client.list_tools()).tools}
