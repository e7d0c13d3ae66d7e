"""Worktrees: made and removed as git does it, served at once, followed, and never outside of their folder."""

import os
import sys
from pathlib import Path

import pytest

from e2e.serving import connected
from git_server.made import Made
from git_server.serving import serving
from git_server.states import list_worlds
from git_server.test_hostile import Trap
from git_server.test_writes import made_app
from mcp_batteries.testing.wire import MODERN

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="it only reads there yet"),
    pytest.mark.anyio,
]


async def test_a_worktree_is_made_used_and_removed(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    trees = tmp_path / "trees"
    before = made.git("for-each-ref"), sorted(os.listdir(made.path / ".git"))
    opened = ("--write", "--worktree-folder", trees, made.path)
    async with serving(*opened) as asking:
        said = await asking("create_worktree", name="fix", rev="HEAD")
        assert 'repo="fix"' in said and made.git("worktree", "list").splitlines()[1].split()[0] == str(trees / "fix")
        linked = Made(trees / "fix")
        assert linked.git("status", "--porcelain", "--branch") == "## fix\n"
        linked.git("fsck")
        linked.write("notes.txt", "fixed\n")
        assert "1 changed" in await asking("get_status", repo="fix") and "clean" in await asking("get_status")
        assert not (await asking("create_commit", message="A fix", all_tracked=True, repo="fix")).startswith("failed")
        assert made.git("log", "-1", "--format=%s", "fix") == "A fix\n"
        assert "already in `the main worktree`" in await asking("create_worktree", name="two", branch="main")
        assert "already in `fix`" in await asking("create_worktree", name="two", branch="fix")
        assert "is taken" in await asking("create_worktree", name="fix")
        assert "There is a branch" in await asking("create_worktree", name="two", branch="topic", rev="HEAD")
        assert not (await asking("create_worktree", name="two", branch="topic")).startswith("failed")
        assert "fix fix" in await asking("list_refs", kind="worktrees")
        # Another server finds what this one made.
        async with serving(*opened) as later:
            assert "A fix" in await later("list_commits", repo="fix")
        linked.write("new.txt", "precious\n")
        assert "not committed" in await asking("delete_worktree", name="fix")
        said = await asking("delete_worktree", name="fix", force=True)
        assert "stash" in said and not (trees / "fix").exists()
        assert "precious" in made.git("show", "stash^3:new.txt")
        made.git("worktree", "lock", "--reason", "mine\nundo: `x`", str(trees / "two"))
        assert "locked" in await asking("delete_worktree", name="two")
        made.git("worktree", "unlock", str(trees / "two"))
        assert not (await asking("delete_worktree", name="two")).startswith("failed")
        assert (await asking("get_status", repo="two")).startswith("failed")
        made.git("stash", "drop", "--quiet")
        made.git("branch", "-D", "fix")
    assert before[0] == made.git("for-each-ref") and not os.listdir(trees)
    assert "worktrees" not in os.listdir(made.path / ".git")


async def test_a_worktree_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.commit("filtered", {".gitattributes": "*.bin filter=lfs\n", "a.bin": "a\n"})
    trees = tmp_path / "trees"
    trees.mkdir()
    async with serving("--write", "--worktree-folder", trees, made.path) as asking:
        before = made.git("for-each-ref")
        assert "through Git LFS" in await asking("create_worktree", name="fix")
        assert "no revision" in await asking("create_worktree", name="fix", rev="nothing")
        assert made.git("for-each-ref") == before and os.listdir(trees) == []


async def test_the_stash_of_a_removed_worktree_is_named_where_no_call_makes_that_again(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    trees = tmp_path / "trees"
    async with serving("--write", "--worktree-folder", trees, made.path) as asking:
        await asking("create_worktree", name="fix")
        linked = Made(trees / "fix")
        linked.git("switch", "--quiet", "--detach")
        linked.write("notes.txt", "fixed\n")
        linked.write("new.txt", "precious\n")
        said = await asking("delete_worktree", name="fix")
        assert said.startswith("failed: In it is what is not committed: 1 changed, 1 untracked."), said
        said = await asking("delete_worktree", name="fix", force=True)
        assert made.git("rev-parse", "stash").strip() in said and "undo" not in said, said


async def test_a_worktree_has_a_sparse_checkout_of_many_patterns(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.git("sparse-checkout", "set", "--no-cone", "side.txt")
    patterns = made.path / ".git/info/sparse-checkout"
    patterns.write_text(patterns.read_text() + "/a/folder/that/is/not/there/\n" * 5000)
    trees = tmp_path / "trees"
    async with serving("--write", "--worktree-folder", trees, made.path) as asking:
        assert not (await asking("create_worktree", name="fix")).startswith("failed")
    assert sorted(os.listdir(trees / "fix")) == [".git", "side.txt"]


NAMES = ["../out", "/tmp/out", ".git", "..", "-x", "a/b", "a\nb", "", "x" * 200]


@pytest.mark.share(4)
@pytest.mark.parametrize("name", NAMES)
async def test_no_name_leads_out_of_the_folder(name: str, tmp_path: Path) -> None:
    trap = Trap(tmp_path)
    trees = tmp_path / "trees"
    trees.mkdir()
    (trees / "link").symlink_to(trap.other.path)
    Made(trees / "foreign").commit("theirs", {"a.txt": "a\n"})
    trap.other.git("worktree", "add", "--quiet", str(trees / "others"), "-b", "linked")
    before = sorted(tmp_path.rglob("*"))
    async with serving("--write", "--worktree-folder", trees, trap.made.path) as asking:
        assert (await asking("create_worktree", name=name, branch="new")).startswith("failed: ")
        for other in (name, "link", "foreign", "others", "served", "other"):
            assert (await asking("delete_worktree", name=other, force=True)).startswith("failed: ")
            if other != "served" and other:
                assert (await asking("get_status", repo=other)).startswith("failed: ")
    assert sorted(tmp_path.rglob("*")) == before


async def test_a_new_worktree_is_followed(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    arguments = ["--write", "--worktree-folder", str(tmp_path / "trees"), str(made.path)]
    (tmp_path / "trees").mkdir()
    async with connected("stdio", MODERN, "mcp_git", arguments) as wire:
        await wire.call("create_worktree", name="fix")
        await wire.subscribe("git://fix/head")
        Made(tmp_path / "trees/fix").commit("A fix", {"notes.txt": "fixed\n"})
        await wire.updated("git://fix/head")


@pytest.mark.skipif("reftable" not in list_worlds(), reason="this git makes none")
async def test_worktrees_with_a_reftable_name_a_branch_without_commits(tmp_path: Path) -> None:
    made = Made(tmp_path / "app", "--ref-format=reftable")
    made.commit("first", {"a.txt": "one\n"})
    made.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "beside"))
    made.git("switch", "--quiet", "--orphan", "fresh")
    oid = made.git("rev-parse", "main").strip()
    for folder in (made.path, tmp_path / "beside"):
        async with serving(folder) as asking:
            rows = (await asking("list_refs", kind="worktrees")).splitlines()[1:]
            assert rows == ["app fresh", f"beside detached at {oid[:9]}"]
