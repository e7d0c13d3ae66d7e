"""Changes: what they do, how they stop, and that the way back which an answer names leads back."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from git_server.made import GIT, Made
from git_server.serving import Asking, everything, serving
from git_server.test_hostile import Trap
from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Unavailable
from mcp_git.engine.program import git_binary
from mcp_git.engine.program.git import Git
from mcp_git.engine.program.process import Command, open_unnamed_file, start, terminate
from mcp_git.policy import Repository

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it only reads there yet")


def made_app(folder: Path) -> Made:
    made = Made(folder / "app")
    made.git("config", "user.name", "Grace Hopper")
    made.git("config", "user.email", "grace@example.org")
    made.commit("first", {"notes.txt": "".join(f"line {number}\n" for number in range(30)), "side.txt": "side\n"})
    made.git("branch", "topic")
    return made


_GIVEN = re.compile(r'(\w+)=(true|false|\[[^\n]*?"\]|"(?:[^"\\]|\\.)*")')


def calls_back(answer: str) -> list[tuple[str, dict[str, Any]]]:
    """The calls that an answer names as its undo."""
    ways = re.findall(r"(?m)^undo: `(\w+)` with (.*)$", answer)
    return [(tool, {name: json.loads(value) for name, value in _GIVEN.findall(given)}) for tool, given in ways]


async def undone(asking: Asking, answer: str) -> None:
    """Do what an answer says would undo it."""
    assert calls_back(answer), answer
    for tool, arguments in calls_back(answer):
        said = await asking(tool, **arguments)
        assert not said.startswith("failed"), (tool, arguments, said)


def state(made: Made) -> tuple[str, ...]:
    words = (
        ["status", "--porcelain", "-b"],
        ["rev-parse", "HEAD"],
        ["for-each-ref", "refs/heads", "refs/tags"],
        ["diff"],
    )
    return tuple(made.git(*word) for word in words)


@pytest.mark.anyio
async def test_a_change_is_made_and_its_way_back_leads_back(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.git("switch", "--quiet", "topic")
    picked = made.commit("a word of the topic", {"topic.txt": "topic\n"})
    made.git("switch", "--quiet", "main")
    made.commit("second", {"side.txt": "more\n"})
    calls: list[tuple[str, dict[str, Any]]] = [
        ("create_commit", {"message": "A commit\n\n# with a body", "all_tracked": True}),
        ("run_merge", {"rev": "topic"}),
        ("run_merge", {"rev": "topic", "message": "Both\n\n# of them"}),
        ("run_rebase", {"rev": "topic"}),
        ("run_cherry_pick", {"rev": picked[:10]}),
        ("revert_commit", {"rev": "HEAD"}),
        ("run_reset", {"rev": "HEAD~1"}),
        ("create_branch", {"name": "new"}),
        ("create_tag", {"name": "v1", "message": "The first"}),
        ("run_switch", {"rev": "topic"}),
        ("run_switch", {"rev": "HEAD~1"}),
        ("delete_ref", {"name": "topic", "force": True}),
    ]
    async with serving("--write", made.path) as asking:
        for tool, arguments in calls:
            if tool == "create_commit":
                made.write("notes.txt", "changed\n")
            before = state(made)
            answer = await asking(tool, **arguments)
            assert not answer.startswith("failed"), (tool, answer)
            assert state(made) != before, (tool, answer)
            await undone(asking, answer)
            if tool == "create_commit":
                assert (
                    made.git("log", "-1", "--format=%an %B", "HEAD@{1}") == "Grace Hopper A commit\n\n# with a body\n\n"
                )
                made.git("reset", "--quiet", "--hard")
                continue
            assert state(made) == before, (tool, answer)


@pytest.mark.anyio
async def test_a_way_back_holds_when_more_has_happened_and_none_is_named_where_there_is_none(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    made.git("config", "user.name", "Grace Hopper")
    made.git("config", "user.email", "grace@example.org")
    made.write("a.txt", "one\n")
    async with serving("--write", made.path) as asking:
        await asking("stage_files", paths=["a.txt"])
        assert "undo" not in await asking("create_commit", message="first")
        first = made.git("rev-parse", "HEAD")
        answers: list[str] = []
        for text in ("two\n", "three\n"):
            made.write("a.txt", text)
            answers.append(await asking("create_commit", message=text, all_tracked=True))
        [(tool, arguments)] = calls_back(answers[0])
        assert "HEAD is no longer" in await asking(tool, **arguments)  # it would take away the second commit as well
        for answer in reversed(answers):
            await undone(asking, answer)
        assert made.git("rev-parse", "HEAD") == first and (made.path / "a.txt").read_text() == "three\n"
        made.git("reset", "--quiet", "--hard")
        made.git("switch", "--quiet", "--create", "side")
        made.commit("on side", {"a.txt": "side\n"})
        made.git("switch", "--quiet", "main")
        made.commit("on main", {"a.txt": "main\n"})
        assert "in conflict" in await asking("run_merge", rev="side")
        assert "undo" not in await asking("continue_operation", action="abort")


@pytest.mark.anyio
async def test_what_is_not_committed_names_the_new_files_that_it_does_not_show(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    async with serving("--write", made.path) as asking:
        assert await asking("read_diff") == "[uncommitted changes; no changes]\n"
        for number in range(7):
            made.write(f"new/{number}.txt" if number < 2 else f"{number}.txt", "new\n")
        made.write(".gitignore", "6.txt\n")
        head = (await asking("read_diff")).partition("\n")[0]
        assert head == (
            "[uncommitted changes; no changes; 6 untracked not shown: .gitignore, 2.txt, 3.txt, 4.txt, 5.txt, ...]"
        )
        assert (await asking("read_diff", path="new")).endswith("1 untracked not shown: new/]\n")
        assert "untracked" not in await asking("read_diff", only="staged")
        assert "untracked" not in await asking("read_diff", rev="HEAD")
        await asking("stage_files", paths=["."])
        assert "untracked" not in await asking("read_diff")


@pytest.mark.anyio
async def test_files_and_single_hunks_are_staged(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.write(
        "notes.txt", (made.path / "notes.txt").read_text().replace("line 1\n", "LINE 1\n").replace("line 28", "LINE 28")
    )
    made.write("new.txt", "new\n")
    async with serving("--write", made.path) as asking:
        shown = await asking("read_diff", path="notes.txt", only="unstaged")
        head, _, second = re.split(r"(?m)^(?=@@)", shown[shown.index("--- a/") :])
        assert not (await asking("stage_files", patch=head + second)).startswith("failed")
        assert "+LINE 28" in made.git("diff", "--cached") and "+LINE 1\n" not in made.git("diff", "--cached")
        assert not (await asking("stage_files", patch=head + second, unstage=True)).startswith("failed")
        assert made.git("diff", "--cached") == ""
        await asking("stage_files", paths=["."])
        assert made.git("status", "--porcelain") == "A  new.txt\nM  notes.txt\n"
        await asking("stage_files", paths=["new.txt"], unstage=True)
        assert made.git("status", "--porcelain") == "M  notes.txt\n?? new.txt\n"
        assert "failed: " in await asking("stage_files", patch="not a patch")
        assert "failed: " in await asking("stage_files", paths=["missing.txt"])


@pytest.mark.anyio
async def test_what_was_not_committed_can_be_brought_back(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.write("side.txt", "precious\n")
    before = made.git("diff")
    async with serving("--write", made.path) as asking:
        for tool, arguments in (
            ("run_restore", {"paths": ["side.txt"]}),
            ("run_reset", {"rev": "HEAD", "mode": "hard"}),
        ):
            answer = await asking(tool, **arguments)
            assert made.git("diff") == "", answer
            await undone(asking, answer)
            assert made.git("diff") == before, tool
        for untracked in (False, True):
            made.write("new/*.txt", "new\n")
            answer = await asking("run_stash", message="for later", untracked=untracked)
            assert made.git("diff") == "" and "for later" in made.git("stash", "list")
            assert (made.path / "new").exists() != untracked
            await undone(asking, answer)
            assert made.git("diff") == before and made.git("stash", "list") == ""
            assert (made.path / "new/*.txt").read_text() == "new\n"


@pytest.mark.share(2)
@pytest.mark.anyio
@pytest.mark.parametrize("tool", ["run_merge", "run_rebase", "run_cherry_pick"])
async def test_a_conflict_stops_is_solved_or_given_up(tool: str, tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.git("switch", "--quiet", "topic")
    made.commit("their word", {"side.txt": "theirs\n"})
    made.git("switch", "--quiet", "main")
    made.commit("our word", {"side.txt": "ours\n"})
    async with serving("--write", made.path) as asking:
        before = state(made)
        answer = await asking(tool, rev="topic")
        assert "1 in conflict" in answer and "`continue_operation`" in answer
        sides = ["++<<<<<<< ", " +ours" if tool != "run_rebase" else " +theirs", "++=======", "+ ", "++>>>>>>> "]
        shown = answer.partition("conflict: side.txt\n@@@")[2].splitlines()[1:6]
        assert all(line.startswith(start) for line, start in zip(shown, sides, strict=True)), answer
        assert "failed: " in await asking("continue_operation", action="continue")
        assert not (await asking("continue_operation", action="abort")).startswith("failed")
        assert state(made) == before
        await asking(tool, rev="topic")
        made.write("side.txt", "both\n")
        await asking("stage_files", paths=["side.txt"])
        answer = await asking("continue_operation", action="continue")
        assert "under way" not in answer and made.git("status", "--porcelain") == "", answer
        assert "both" in made.git("show", "HEAD:side.txt")
        assert "`under way`" in await asking("continue_operation", action="abort")


HOOKS = (
    "pre-commit", "commit-msg", "prepare-commit-msg", "post-commit", "post-checkout", "post-merge", "pre-merge-commit",
    "pre-rebase", "post-rewrite", "reference-transaction", "post-index-change", "applypatch-msg",
)  # fmt: skip


def signing(trap: Trap) -> None:
    trap.configure("commit.gpgSign", "true")
    trap.configure("tag.gpgSign", "true")
    trap.configure("gpg.program", trap.program())


def editors(trap: Trap) -> None:
    for key in ("core.editor", "sequence.editor"):
        trap.configure(key, trap.program())


def merge_driver(trap: Trap) -> None:
    (trap.dot_git / "info").mkdir(exist_ok=True)
    (trap.dot_git / "info/attributes").write_text("*.txt merge=evil\n", "utf-8")
    trap.configure("merge.evil.driver", trap.program())


def every_hook(trap: Trap) -> None:
    for name in HOOKS:
        trap.hook(name)


@pytest.mark.share(1)
@pytest.mark.anyio
@pytest.mark.parametrize("arm", [every_hook, signing, editors, merge_driver], ids=lambda arm: arm.__name__)
async def test_a_change_runs_nothing_either(arm: Callable[[Trap], None], tmp_path: Path) -> None:
    trap = Trap(tmp_path)
    made = trap.made
    for key, value in (("name", "Ada"), ("email", "ada@example.org")):
        trap.configure(f"user.{key}", value)
    made.git("branch", "topic", "HEAD~1")
    arm(trap)
    async with serving("--write", made.path) as asking:
        assert not (await asking("create_commit", message="all", all_tracked=True)).startswith("failed")
        await asking("run_switch", rev="topic")
        made.write("notes.txt", "theirs\n")
        for tool, arguments in (
            ("stage_files", {"paths": ["."]}), ("create_commit", {"message": "theirs"}), ("run_merge", {"rev": "main"}),
            ("continue_operation", {"action": "abort"}), ("run_rebase", {"rev": "main"}),
            ("continue_operation", {"action": "abort"}),
            ("create_tag", {"name": "v1", "message": "one"}), ("run_stash", {}), ("run_switch", {"rev": "main"}),
            ("revert_commit", {"rev": "HEAD"}), ("create_commit", {"message": "x", "amend": True}),
        ):  # fmt: skip
            said = await asking(tool, **arguments)
            assert "inside the server" not in said and os.listdir(trap.canaries) == [], (tool, said)
    plainly: list[Callable[[], str]] = [
        lambda: made.git("commit", "--allow-empty", "--edit", "--message", "x"),
        lambda: made.commit("ours", {"notes.txt": "ours\n"}),
        lambda: made.git("merge", "topic"),
    ]
    for plain in plainly:
        with suppress(AssertionError):  # What ran fails.
            plain()
    assert os.listdir(trap.canaries) == ["ran"], "the case is not armed"


@pytest.mark.share(2)
@pytest.mark.anyio
@pytest.mark.parametrize("before", ["", " ", "\t", "# nothing\n" * 8_000], ids=range(4))
async def test_a_list_of_steps_that_somebody_else_wrote_is_not_followed(before: str, tmp_path: Path) -> None:
    trap = Trap(tmp_path)
    made = trap.made
    made.git("reset", "--quiet", "--hard")
    made.git("switch", "--quiet", "--create", "topic", "HEAD~1")
    made.commit("theirs", {"notes.txt": "theirs\n"})
    with pytest.raises(AssertionError):
        made.git("rebase", "main")
    todo = trap.dot_git / "rebase-merge/git-rebase-todo"
    todo.write_text(f"{before}exec {trap.program()}\n", "utf-8")
    made.write("notes.txt", "both\n")
    async with serving("--write", made.path) as asking:
        await asking("stage_files", paths=["notes.txt"])
        for action in ("continue", "skip"):
            said = await asking("continue_operation", action=action)
            assert "`exec`" in said or "more steps than are looked at" in said
        assert os.listdir(trap.canaries) == []
    with pytest.raises(AssertionError):
        made.git("-c", "core.editor=true", "rebase", "--continue")
    assert os.listdir(trap.canaries) == ["ran"], "the case is not armed"


@pytest.mark.anyio
@pytest.mark.parametrize(
    "name", ["COMMIT_EDITMSG", "logs/HEAD", "logs/refs/heads/main", "ORIG_HEAD", "index", "MERGE_MSG"]
)
async def test_a_change_does_not_write_through_a_link(name: str, tmp_path: Path) -> None:
    trap = Trap(tmp_path)
    for key, value in (("name", "Ada"), ("email", "ada@example.org")):
        trap.configure(f"user.{key}", value)
    (trap.dot_git / name).unlink(missing_ok=True)
    (trap.dot_git / name).symlink_to(trap.outside)
    before = trap.outside.read_bytes()
    async with serving("--write", trap.made.path) as asking:
        said = await asking("create_commit", message="echo owned", all_tracked=True)
        assert said.startswith("failed: ") and "is a link" in said
        for tool in ("stage_files", "run_restore"):
            assert "is a link" in await asking(tool, paths=["."])
        assert "is a link" in await asking("run_stash")
    assert trap.outside.read_bytes() == before


@pytest.mark.anyio
async def test_paths_outside_and_filters_are_refused(tmp_path: Path) -> None:
    """CVE-2026-27735: a file outside that is staged is read by whoever reads the index."""
    trap = Trap(tmp_path)
    async with serving("--write", trap.made.path) as asking:
        for path in ("../outside.txt", str(trap.outside), "a/../../outside.txt", ".git/config"):
            assert (await asking("stage_files", paths=[path])).startswith("failed: ")
        (trap.made.path / "link").symlink_to(trap.folder)
        assert (await asking("stage_files", paths=["link/outside.txt"])).startswith("failed: ")
        assert "outside" not in trap.made.git("ls-files")
        for tool, name in (
            ("create_branch", "-D"),
            ("create_tag", "--force"),
            ("create_branch", "HEAD"),
            ("create_tag", "a..b"),
        ):
            assert (await asking(tool, name=name)).startswith("failed: ")
        trap.attributes("*.bin filter=lfs diff=lfs merge=lfs -text\n")
        for tool, arguments in (("stage_files", {"paths": ["."]}), ("run_stash", {"untracked": True})):
            assert "`data.bin` would go through Git LFS" in await asking(tool, **arguments)


@pytest.mark.anyio
async def test_what_is_configured_for_a_branch_goes_and_comes_with_it(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.git("remote", "add", "origin", "https://example.org/app.git")
    made.git("update-ref", "refs/remotes/origin/topic", "HEAD")
    made.git("branch", "--set-upstream-to", "origin/topic", "topic")
    before = made.git("config", "--local", "--list")
    async with serving("--write", made.path) as asking:
        said = await asking("delete_ref", name="topic")
        assert "branch.topic" not in made.git("config", "--local", "--list"), said
        await undone(asking, said)
        assert made.git("config", "--local", "--list") == before
        made.git("config", "branch.topic.description", "a word")
        said = await asking("delete_ref", name="topic", force=True)
        assert "forgotten: branch.topic.description" in said
        assert "no branch `origin/none`" in await asking("create_branch", name="new", upstream="origin/none")


@pytest.mark.anyio
async def test_a_branch_of_another_worktree_stays_there(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.git("worktree", "add", "--quiet", str(tmp_path / "beside"), "topic")
    async with serving("--write", made.path, tmp_path / "beside") as asking:
        assert (await asking("run_switch", rev="topic", repo="app")).startswith("failed: ")
        assert (await asking("run_switch", rev="main", repo="beside")).startswith("failed: ")
        for repo, name in (("app", "topic"), ("app", "main"), ("beside", "main"), ("beside", "topic")):
            assert (await asking("delete_ref", name=name, force=True, repo=repo)).startswith("failed: "), (repo, name)


@pytest.mark.anyio
async def test_a_file_that_git_does_not_know_is_not_overwritten(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.commit("with", {"kept.txt": "committed\n", "in/deep.txt": "committed\n"})
    made.git("rm", "--quiet", "kept.txt", "in/deep.txt")
    made.commit("without", {".gitignore": "kept.txt\n"})
    made.write("kept.txt", "precious\n")
    made.write("in", "precious\n")
    async with serving("--write", made.path) as asking:
        for tool, arguments in (
            ("run_restore", {"paths": ["kept.txt"], "rev": "HEAD~1"}),
            ("run_restore", {"paths": ["in"], "rev": "HEAD~1"}),
            ("run_reset", {"rev": "HEAD~1", "mode": "hard"}),
        ):
            assert "is untracked, and would be overwritten" in await asking(tool, **arguments)
    assert (made.path / "kept.txt").read_text() == (made.path / "in").read_text() == "precious\n"


@pytest.mark.anyio
async def test_who_owns_a_repository_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git refuses what belongs to somebody else, unless it is told where it is and reads nothing of it unasked."""
    made = made_app(tmp_path)
    made.git("worktree", "add", "--quiet", str(tmp_path / "beside"), "topic")
    monkeypatch.setattr(
        git_binary, "PASSED_VARIABLES", (*git_binary.PASSED_VARIABLES, "GIT_TEST_ASSUME_DIFFERENT_OWNER")
    )
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    for place in (made, Made(tmp_path / "beside")):
        with pytest.raises(AssertionError, match="dubious ownership"):
            place.git("status", GIT_TEST_ASSUME_DIFFERENT_OWNER="1")
        async with serving("--write", "--worktree-folder", tmp_path / "trees", place.path) as asking:
            said = await everything(asking)
            assert "first" in said and "dubious" not in said and "inside the server" not in said
            place.write("notes.txt", "changed\n")
            assert not (await asking("create_commit", message="mine", all_tracked=True)).startswith("failed")
            name = f"new-{place.path.name}"
            assert not (await asking("create_worktree", name=name)).startswith("failed")
            assert "mine" in await asking("list_commits", repo=name)


@pytest.mark.anyio
@pytest.mark.parametrize("content", ["new\n", "mine\n"])
async def test_an_untracked_file_is_in_the_way_of_a_sparse_checkout_too(tmp_path: Path, content: str) -> None:
    """Git takes it for the one that is to come, which the way back takes away."""
    made = made_app(tmp_path)
    made.git("switch", "--quiet", "topic")
    made.commit("brings", {"out/new.txt": "new\n"})
    made.git("switch", "--quiet", "main")
    made.git("sparse-checkout", "set", "--cone", "in")
    made.write("out/new.txt", content)
    async with serving("--write", made.path) as asking:
        for tool, arguments in (
            ("run_switch", {"rev": "topic"}),
            ("run_switch", {"rev": "topic~0"}),
            ("create_branch", {"name": "more", "rev": "topic", "switch": True}),
            ("run_merge", {"rev": "topic"}),
            ("run_merge", {"rev": "main", "into": "topic"}),
            ("run_rebase", {"rev": "topic"}),
            ("run_reset", {"rev": "topic", "mode": "keep"}),
        ):
            before = made.git("status", "--porcelain=v2", "--branch")
            said = await asking(tool, **arguments)
            assert said.startswith("failed: `out/new.txt` is untracked"), (tool, arguments, said)
            assert made.git("status", "--porcelain=v2", "--branch") == before
        assert not (await asking("run_reset", rev="topic", mode="mixed")).startswith("failed")
    assert (made.path / "out/new.txt").read_text() == content


@pytest.mark.anyio
async def test_nobody_leaves_what_is_under_way(tmp_path: Path) -> None:
    """Also where git looks for it in the common directory, which is ours."""
    made = made_app(tmp_path)
    made.commit("mine", {"notes.txt": "mine\n"})
    made.git("switch", "--quiet", "topic")
    made.commit("theirs", {"notes.txt": "theirs\n"})
    begun = {"run_rebase": "rebase", "run_merge": "merge", "run_cherry_pick": "cherry-pick"}
    async with serving("--write", made.path) as asking:
        for tool, what in begun.items():
            assert "in conflict" in await asking(tool, rev="main")
            made.write("notes.txt", "both\n")
            assert not (await asking("stage_files", paths=["."])).startswith("failed")
            for switch, arguments in (
                ("run_switch", {"rev": "main"}),
                ("create_branch", {"name": "new", "switch": True}),
            ):
                said = await asking(switch, **arguments)
                assert said.startswith(f"failed: There is a {what} under way") and "`continue_operation`" in said
            assert not (await asking("continue_operation", action="abort")).startswith("failed")


@pytest.mark.anyio
async def test_no_call_is_named_that_would_end_a_bisect(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    for number in range(3):
        made.commit(f"commit {number}", {"notes.txt": f"{number}\n"})
    made.git("bisect", "start", "HEAD", "HEAD~3")
    async with serving("--write", made.path) as asking:
        answer = await asking("run_switch", rev="main")
        assert "bisect under way" in answer and "continue_operation" not in answer, answer


@pytest.mark.anyio
async def test_a_reftable_is_read_and_changed_where_git_knows_it(tmp_path: Path) -> None:
    said = subprocess.run([GIT, "version"], capture_output=True, text=True, check=True).stdout
    if tuple(map(int, re.findall(r"\d+", said)[:2])) < (2, 45):
        made = Made(tmp_path / "app")
        made.commit("first", {"notes.txt": "one\n"})
        for key, value in (("core.repositoryFormatVersion", "1"), ("extensions.refStorage", "reftable")):
            made.git("config", key, value)
        async with serving(made.path) as asking:
            said = await asking("get_status")
            assert "reftable" in said and "2.45" in said
        return
    made = Made(tmp_path / "app", "--ref-format=reftable")
    made.git("config", "user.name", "Grace Hopper")
    made.git("config", "user.email", "grace@example.org")
    made.commit("first", {"notes.txt": "one\n"})
    made.git("branch", "topic")
    made.git("worktree", "add", "--quiet", str(tmp_path / "beside"), "topic")
    made.commit("second", {"notes.txt": "two\n"})
    Made(tmp_path / "beside").commit("theirs", {"notes.txt": "three\n"})
    async with serving("--write", "--worktree-folder", tmp_path / "trees", made.path, tmp_path / "beside") as asking:
        assert "second" in await asking("list_commits", repo="app")
        assert (await asking("list_refs", kind="worktrees", repo="app")).splitlines()[1:] == [
            "app main",
            "beside topic",
        ]
        assert "in conflict" in await asking("run_cherry_pick", rev="topic", repo="app")
        assert "cherry-pick under way" in await asking("get_status", repo="app")
        assert not (await asking("continue_operation", action="abort", repo="app")).startswith("failed")
        Made(tmp_path / "beside").git("commit", "--quiet", "--allow-empty", "--message", "nothing")
        assert "left out, it changes nothing here" in await asking("run_cherry_pick", rev="topic", repo="app")
        assert "under way" not in await asking("get_status", repo="app")
        made.write("notes.txt", "four\n")
        before = made.git("rev-parse", "HEAD")
        said = await asking("create_commit", message="mine", all_tracked=True, repo="app")
        assert made.git("log", "-1", "--format=%s") == "mine\n"
        assert made.git("rev-parse", "HEAD~1") == before, said
        assert "mine" in await asking("list_refs", kind="reflog", repo="app")
        assert "theirs" in await asking("list_commits", repo="beside")
        assert "reftable" in await asking("create_worktree", name="new", repo="app")
        assert (await asking("delete_ref", name="topic", force=True, repo="app")).startswith("failed: ")


@pytest.mark.anyio
async def test_nobody_to_commit_as_and_another_git_at_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(tmp_path / "app")
    made.commit("first", {"a.txt": "a\n"})
    made.write("a.txt", "b\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    async with serving("--write", made.path) as asking:
        assert "`user.name`" in await asking("create_commit", message="x", all_tracked=True)
        (made.path / ".git/index.lock").touch()
        assert "Another `git` is at work" in await asking("stage_files", paths=["."])


@pytest.mark.anyio
async def test_a_refusal_that_git_gives_no_words_for_says_the_next_move(tmp_path: Path) -> None:
    async with serving("--write", made_app(tmp_path).path) as asking:
        said = await asking("create_commit", message="Nothing")
        assert "nothing to commit" in said and "`paths`" in said and "``" not in said


@pytest.mark.anyio
async def test_writing_is_closed_by_default(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    async with serving(made.path) as asking:
        tools = {tool.name for tool in (await asking.client.list_tools()).tools}
    assert not {name for name in tools if name.split("_")[0] in ("run", "create", "edit", "delete")}
    with pytest.raises(Unavailable):
        async with serving(tmp_path / "missing"):
            pass


@pytest.mark.anyio
async def test_what_git_refuses_comes_with_the_next_move(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.git("branch", "taken")
    async with serving(made.path, "--write") as asking:
        for tool, arguments, words in (
            ("stage_files", {"paths": ["nope"]}, "`get_status`"),
            ("stage_files", {"patch": "hello"}, "Send a unified diff"),
            ("create_branch", {"name": "taken"}, "`run_switch`"),
            ("delete_ref", {"name": "main"}, "`run_switch`"),
            ("delete_ref", {"name": "nope"}, "`list_refs`"),
            ("run_stash", {"action": "pop"}, "kind=stashes"),
        ):
            said = await asking(tool, **arguments)
            assert said.startswith("failed: ") and words in said, said
        made.git("switch", "--quiet", "taken")
        made.commit("more", {"b.txt": "b\n"})
        made.git("switch", "--quiet", "main")
        said = await asking("delete_ref", name="taken")
        assert "Set `force`" in said and "branch -D" not in said


@pytest.mark.anyio
async def test_a_failure_half_way_says_so_and_leads_back(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    oid = made.git("hash-object", "-w", "--stdin", given=b"written\n").strip()
    entries = "".join(f"100644 blob {oid}\t{name}\n" for name in ("fresh.txt", "notes.txt", "x" * 300))
    tree = made.git("mktree", given=entries.encode()).strip()
    made.git("tag", "long", made.git("commit-tree", "-p", "HEAD", "-m", "too long a name", tree).strip())
    # Git has advice about these before it says why it failed.
    made.write(".git/info/grafts", made.git("rev-parse", "HEAD"))
    made.write("side.txt", "precious\n")
    before = state(made)
    async with serving("--write", made.path) as asking:
        for tool, arguments in (
            ("run_reset", {"rev": "long", "mode": "hard"}),
            ("run_restore", {"rev": "long", "paths": ["notes.txt", "."]}),
        ):
            said = await asking(tool, **arguments)
            assert state(made) != before
            assert said.startswith("failed: git: `") and "after a part of it was done" in said, said
            assert "hint:" not in said and "`unable to create file x" in said, said
            # A restore has staged it by then, and its undo takes it away.
            assert ("new files, which stay: fresh.txt" in said) is (tool == "run_reset"), said
            await undone(asking, said)
            (made.path / "fresh.txt").unlink(missing_ok=tool != "run_reset")
            assert state(made) == before, tool
        said = await asking("run_switch", rev="long")
        assert said.startswith("failed: ") and "Nothing was changed" in said and state(made) == before


_INTO_TOPIC = {"into": "topic"}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("run_cherry_pick", {}),
        ("run_cherry_pick", _INTO_TOPIC),
        ("revert_commit", _INTO_TOPIC),
        ("run_merge", _INTO_TOPIC),
        ("run_rebase", {}),
    ],
)
async def test_commits_that_come_only_half_way_leave_a_way_back(
    tool: str, arguments: dict[str, str], tmp_path: Path
) -> None:
    """In a sparse checkout git finds a name too long only after it has written; a switch carries that along."""
    made = made_app(tmp_path)
    oid = made.git("rev-parse", "HEAD:side.txt").strip()
    entries = "".join(f"100644 blob {oid}\t{name}\n" for name in ("fresh.txt", "side.txt", "x" * 300))
    tree = made.git("mktree", given=entries.encode()).strip()
    commit = made.git("commit-tree", "-p", "HEAD", "-m", "too long a name", tree).strip()
    if tool == "revert_commit":
        commit = made.git("commit-tree", "-p", commit, "-m", "without it", "HEAD^{tree}").strip()
    made.git("sparse-checkout", "set", "--cone", "in")
    if tool != "run_rebase":
        made.write("side.txt", "precious\n")
    before = state(made)
    async with serving("--write", made.path) as asking:
        answer = await asking(tool, rev=commit, **arguments)
        assert "after a part of it was done" in answer and "\nnew files, which stay: fresh.txt" in answer, answer
        assert not (made.path / "notes.txt").exists()
        await undone(asking, answer)
    (made.path / "fresh.txt").unlink()
    assert state(made) == before


@pytest.mark.anyio
async def test_a_stash_whose_untracked_files_are_in_the_way_stays_whole(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.write("side.txt", "set aside\n")
    for name in ("new/a.txt", "new/b.txt"):
        made.write(name, "set aside\n")
    made.git("stash", "push", "--include-untracked")
    made.write("new/b.txt", "in the way\n")
    before = state(made)
    async with serving("--write", made.path) as asking:
        said = await asking("run_stash", action="pop")
        assert "`new/b.txt`" in said and "Nothing was changed" in said
        assert state(made) == before and not (made.path / "new/a.txt").exists()
        await asking("run_stash", action="push", untracked=True)
        assert not (await asking("run_stash", action="pop", rev="stash@{1}")).startswith("failed")
        assert (made.path / "side.txt").read_text() == (made.path / "new/b.txt").read_text() == "set aside\n"


@pytest.mark.anyio
async def test_that_a_file_was_only_meant_to_be_added_is_told_where_it_is_lost(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    made.commit("first", {"a.txt": "a\n"})
    made.write("new.txt", "new\n")
    said = "no undo brings back the mark `--intent-to-add` of new.txt"
    async with serving("--write", made.path) as asking:
        for tool, arguments in (
            ("stage_files", {"paths": ["new.txt"], "unstage": True}),
            ("stage_files", {"paths": ["new.txt"]}),
            ("create_commit", {"message": "new", "all_tracked": True}),
        ):
            made.git("reset", "--quiet", "HEAD", "--", "new.txt")
            made.git("add", "--intent-to-add", "new.txt")
            made.write("a.txt", tool)
            assert said not in await asking("stage_files", paths=["a.txt"])
            assert said in await asking(tool, **arguments)


@pytest.mark.anyio
async def test_of_a_stash_below_others_the_way_back_says_where_it_goes(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    for name in ("side.txt", "notes.txt"):
        made.write(name, "aside\n")
        made.git("stash", "push", "--quiet", "--message", name)
    async with serving("--write", made.path) as asking:
        for action, rev, is_told in (("drop", "stash@{1}", True), ("drop", "stash@{0}", False)):
            said = await asking("run_stash", action=action, rev=rev)
            assert ("as the first of the stashes" in said) is is_told, said
            await undone(asking, said)
        assert made.git("stash", "list", "--format=%gs").split() == [
            "On",
            "main:",
            "side.txt",
            "On",
            "main:",
            "notes.txt",
        ]


@pytest.mark.anyio
async def test_a_merge_with_a_message_is_a_commit_even_where_the_branch_could_be_moved(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.git("switch", "--quiet", "topic")
    made.commit("topic", {"topic.txt": "topic\n"})
    made.git("switch", "--quiet", "main")
    async with serving("--write", made.path) as asking:
        assert "`create_commit`" in await asking("run_merge", rev="topic", message="Both", squash=True)
        answer = await asking("run_merge", rev="topic", message="Both\n\n# of them")
        assert made.git("log", "-1", "--format=%B %p").split("\n\n")[:1] == ["Both"]
        assert "# of them" in made.git("log", "-1", "--format=%B")
        assert len(made.git("log", "-1", "--format=%p").split()) == 2, answer
        await undone(asking, answer)
        assert made.git("log", "-1", "--format=%s") == "first\n"


@pytest.mark.anyio
async def test_a_commit_stages_what_it_names_and_nothing_where_it_fails(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    index = made.path / ".git/index"
    made.write("notes.txt", (made.path / "notes.txt").read_text().replace("line 3\n", "LINE 3\n").replace("28", "XX"))
    made.write("new.txt", "new\n")
    (made.path / "side.txt").unlink()
    hunk = made.git("diff", "-U1", "notes.txt").partition("@@ -28")[0]
    before = state(made)
    async with serving("--write", made.path) as asking:
        answer = await asking(
            "create_commit", message="One hunk, one new, one gone", paths=["new.txt", "side.txt"], patch=hunk
        )
        assert made.git("show", "--format=", "--name-status").split() == [
            "A",
            "new.txt",
            "M",
            "notes.txt",
            "D",
            "side.txt",
        ]
        assert "XX" not in made.git("show") and "XX" in made.git("diff")
        await undone(asking, answer)
        assert state(made) == before
        for given, why in (
            ({"message": "a\0b", "paths": ["."]}, "NUL"),
            ({"message": "x", "paths": ["new.txt", "nothing.txt"]}, "did not match any"),
            ({"message": "x", "paths": ["new.txt"], "patch": hunk.replace(" line 2", " line 9")}, "does not apply"),
        ):
            data = index.read_bytes()
            assert why in await asking("create_commit", **given)
            assert (index.read_bytes(), state(made)) == (data, before)
        (made.path / ".git/refs/heads/main.lock").write_text("")
        data = index.read_bytes()
        assert "Another `git`" in await asking("create_commit", message="x", paths=["."])
        assert (index.read_bytes(), state(made)) == (data, before)
        assert not (made.path / ".git/index.lock").exists()


@pytest.mark.anyio
async def test_the_first_commit_of_all_stages_what_it_names(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    made.write("a.txt", "one\n")
    async with serving("--write", made.path) as asking:
        lock = made.path / ".git/refs/heads/main.lock"
        lock.write_text("")
        assert "Another `git`" in await asking("create_commit", message="first", paths=["a.txt"])
        assert not (made.path / ".git/index").exists()
        lock.unlink()
        assert "; clean]" in await asking("create_commit", message="first", paths=["a.txt"])


@pytest.mark.anyio
async def test_a_step_stages_what_is_resolved_and_leaves_the_conflicts_where_more_are_left(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    for branch, text in (("topic", "theirs\n"), ("main", "ours\n")):
        made.git("switch", "--quiet", branch)
        made.commit(branch, {"side.txt": text, "notes.txt": text})
    async with serving("--write", made.path) as asking:
        assert "2 in conflict" in await asking("run_merge", rev="topic")
        for name in ("side.txt", "notes.txt"):
            made.write(name, "both\n")
        before = state(made)
        assert "Leave" in await asking("continue_operation", action="abort", paths=["side.txt"])
        assert "failed" in await asking("continue_operation", action="continue", paths=["side.txt"])
        assert state(made) == before
        answer = await asking("continue_operation", action="continue", paths=["side.txt", "notes.txt"])
        assert "; clean]" in answer
        assert made.git("show", "HEAD:side.txt") == "both\n"
        await undone(asking, answer)
        assert made.git("log", "-1", "--format=%s") == "main\n"


@pytest.mark.anyio
async def test_an_answer_tells_the_commits_that_a_change_made_and_no_others(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.git("switch", "--quiet", "topic")
    made.commit("of the topic", {"topic.txt": "topic\n"})
    made.git("switch", "--quiet", "main")
    async with serving("--write", made.path) as asking:
        assert "of the topic" not in await asking("run_switch", rev="topic")
        await asking("run_switch", rev="main")
        assert "of the topic" not in await asking("create_branch", name="more", rev="topic", switch=True)
        await asking("run_switch", rev="main")
        assert "of the topic" in await asking("run_merge", rev="topic")
        made.write("new.txt", "new\n")
        answer = await asking("create_commit", message="A new file", paths=["new.txt"])
        head = made.git("rev-parse", "HEAD")
        assert answer.startswith(f"[main {head[:9]}; committed 1 file, +1 -0; clean]"), answer
        assert answer.splitlines()[1:3] == [f"{head[:7]} A new file", "new +1 -0 new.txt"], answer


@pytest.mark.anyio
async def test_a_file_that_was_only_written_again_stops_no_reset(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.commit("second", {"side.txt": "second\n"})
    async with serving("--write", made.path) as asking:
        os.utime(made.path / "side.txt", (1, 1))
        await undone(asking, await asking("run_reset", rev="HEAD~1"))
        assert made.git("log", "-1", "--format=%s") == "second\n"


@pytest.mark.anyio
async def test_a_message_that_git_cannot_take_is_refused_or_written_otherwise(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.git("switch", "--quiet", "topic")
    made.commit("topic", {"topic.txt": "topic\n"})
    made.git("switch", "--quiet", "main")
    made.write("notes.txt", "changed\n")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("run_merge", {"rev": "topic"}),
        ("create_tag", {"name": "v1"}),
        ("run_stash", {}),
        ("run_stash", {"action": "store"}),
        ("create_commit", {"all_tracked": True}),
    ]
    async with serving("--write", made.path) as asking:
        for tool, arguments in calls:
            before = state(made)
            assert "`message` holds a NUL" in await asking(tool, **arguments, message="a\0b"), tool
            assert state(made) == before
        before = state(made)
        for tool, arguments in (("run_merge", {"rev": "topic"}), ("run_stash", {})):
            assert "no arguments as long as these" in await asking(tool, **arguments, message="long " * 300_000)
            assert state(made) == before


@pytest.mark.anyio
@pytest.mark.parametrize("staged", [True, False])
async def test_a_step_that_meets_the_next_conflict_in_the_same_file_went_on(tmp_path: Path, staged: bool) -> None:
    made = made_app(tmp_path)
    made.git("switch", "--quiet", "topic")
    picked = [made.commit(text, {"side.txt": f"{text}\n"}) for text in ("one", "two")]
    made.git("switch", "--quiet", "main")
    made.commit("ours", {"side.txt": "ours\n"})
    with pytest.raises(AssertionError):
        made.git("cherry-pick", *picked)
    made.write("side.txt", "ours and one\n")
    async with serving("--write", made.path) as asking:
        if staged:
            answer = await asking("continue_operation", action="continue", paths=["side.txt"])
        else:
            await asking("stage_files", paths=["side.txt"])
            answer = await asking("continue_operation", action="continue")
        assert "1 in conflict" in answer and "conflict: side.txt" in answer, answer
        assert made.git("show", ":2:side.txt") == "ours and one\n" and made.git("show", ":3:side.txt") == "two\n"
        made.write("side.txt", "ours, one and two\n")
        assert "; clean]" in await asking("continue_operation", action="continue", paths=["side.txt"])
        assert made.git("log", "--format=%s", "-3").split() == ["two", "one", "ours"]


@pytest.mark.anyio
async def test_marks_of_a_conflict_are_not_committed_unseen(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    for branch, text in (("topic", "theirs\n"), ("main", "ours\n")):
        made.git("switch", "--quiet", branch)
        made.commit(branch, {"side.txt": text, "in/[x].txt": text})
    with pytest.raises(AssertionError):
        made.git("merge", "--quiet", "--message=#1 both", "topic")
    async with serving("--write", made.path) as asking:
        assert "2 in conflict" in await asking("get_status")
        before = state(made)
        for tool, arguments in (
            ("continue_operation", {"action": "continue", "paths": ["side.txt", "in"]}),
            ("create_commit", {"message": "x", "all_tracked": True}),
            ("create_commit", {"message": "x", "paths": ["."]}),
            ("create_commit", {"message": "x", "paths": ["in/[x].txt"]}),
        ):
            assert "marks of a conflict" in await asking(tool, **arguments)
            assert state(made) == before
        made.write("side.txt", "both\n")
        await asking("stage_files", paths=["in"])
        failed = await asking("continue_operation", action="continue", paths=["side.txt"])
        assert "`create_commit`" in failed  # git takes the whole message for a comment
        assert "; clean]" in await asking("create_commit", message="#1 both", paths=["."])
        assert len(made.git("log", "-1", "--format=%p").split()) == 2


@pytest.mark.anyio
async def test_what_a_commit_staged_does_not_stay_where_it_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = made_app(tmp_path)
    made.write("notes.txt", "changed\n")
    before = state(made)
    os.utime(made.path / ".git/index", (10**9, 10**9))
    data = (made.path / ".git/index").read_bytes()
    run = Git.run

    def stopped(git: Git, repository: Repository, words: Sequence[str], stop: CancelToken, **options: Any) -> Any:
        if words[0] == "commit":
            stop.set()
        return run(git, repository, words, stop, **options)

    monkeypatch.setattr(Git, "run", stopped)
    async with serving("--write", made.path) as asking:
        stopped_call = await asking("create_commit", message="x", paths=["."])
        assert stopped_call.startswith("failed: The change was stopped"), stopped_call
        assert "It may be done in part" in stopped_call, stopped_call
    assert ((made.path / ".git/index").read_bytes(), (made.path / ".git/index").stat().st_mtime) == (data, 10**9)
    assert state(made) == before


def test_a_git_that_is_stopped_leaves_no_lock(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    lock = made.path / ".git/index.lock"
    words = ["-C", str(made.path), "commit", "--all", "--file=-"]
    reads, feed = os.pipe()
    with open(reads, "rb") as message, open(feed, "wb"), open_unnamed_file(str(tmp_path)) as said:
        process = start(
            Command(GIT, words, str(made.path), dict(os.environ)), stdin=message, stderr=said, new_session=False
        )
        until = time.monotonic() + 30
        # A git that has just made the file does not know yet that it has to remove it; one that has filled it does.
        while not (lock.exists() and lock.stat().st_size):
            assert process.poll() is None and time.monotonic() < until
        terminate(process)
        process.stdout.close() if process.stdout else None
    assert not lock.exists()


def test_a_git_that_writes_gets_time_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is asked to end the moment that it made a lock leaves that, and the repository is shut."""
    monkeypatch.setattr("mcp_git.engine.program.process._COMPLETION_SECONDS", 30)
    made = made_app(tmp_path)
    words = [
        "-C",
        str(made.path),
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@b",
        "commit",
        "--allow-empty",
        "-m",
        "whole",
    ]
    with open_unnamed_file(str(tmp_path)) as said:
        process = start(
            Command(GIT, words, str(made.path), dict(os.environ)), stdin=None, stderr=said, new_session=False
        )
        terminate(process, writes=True)
        process.stdout.close() if process.stdout else None
    assert made.git("log", "--format=%s", "--max-count=1") == "whole\n"


@pytest.mark.anyio
async def test_of_a_commit_that_ends_a_conflict_the_way_back_says_what_it_does_not_bring_back(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.write("side.txt", "aside\n")
    made.git("stash", "push", "--quiet")
    made.commit("ours", {"side.txt": "ours\n"})
    with pytest.raises(AssertionError):
        made.git("stash", "pop")
    made.write("side.txt", "both\n")
    async with serving("--write", made.path) as asking:
        answer = await asking("create_commit", message="Both", paths=["side.txt"])
        assert "not that they were in conflict" in answer
        await undone(asking, answer)
        assert made.git("status", "--porcelain") == " M side.txt\n"


@pytest.mark.anyio
async def test_a_branch_that_is_being_rebased_stays(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    for branch, text in (("topic", "theirs\n"), ("main", "ours\n")):
        made.git("switch", "--quiet", branch)
        made.commit(branch, {"side.txt": text})
    async with serving("--write", made.path) as asking:
        assert "rebase under way" in await asking("run_rebase", rev="topic")
        before = state(made)
        assert "is being rebased" in await asking("delete_ref", name="main", force=True)
        assert state(made) == before
        assert not (await asking("continue_operation", action="abort")).startswith("failed")


@pytest.mark.anyio
async def test_a_branch_that_is_rebased_or_bisected_in_another_worktree_stays(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    for branch, text in (("topic", "theirs\n"), ("main", "ours\n")):
        made.git("switch", "--quiet", branch)
        made.commit(branch, {"side.txt": text})
    made.git("branch", "fix")
    made.git("worktree", "add", "--quiet", str(tmp_path / "rebased"), "fix")
    made.git("worktree", "add", "--quiet", str(tmp_path / "bisected"), "topic")
    Made(tmp_path / "bisected").git("bisect", "start", "HEAD", "HEAD~1")
    Made(tmp_path / "bisected").git("switch", "--quiet", "--detach", "HEAD")
    with pytest.raises(AssertionError):
        Made(tmp_path / "rebased").git("rebase", "--quiet", "topic")
    async with serving("--write", made.path, tmp_path / "rebased") as asking:
        for repo in ("app", "rebased"):
            for branch in ("fix", "topic", "main"):
                said = await asking("delete_ref", name=branch, force=True, repo=repo)
                assert said.startswith("failed"), (repo, branch, said)
    assert len(made.git("branch", "--list").splitlines()) >= 3


@pytest.mark.anyio
async def test_lines_with_a_hash_stay_in_the_message_of_a_merge_that_met_a_conflict(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    for branch, text in (("topic", "theirs\n"), ("main", "ours\n")):
        made.git("switch", "--quiet", branch)
        made.commit(branch, {"side.txt": text})
    async with serving("--write", made.path) as asking:
        for message in ("Both\n\n# of them", "#1 both", ""):
            assert "conflict" in await asking("run_merge", rev="topic", message=message)
            made.write("side.txt", "both\n")
            answer = await asking("continue_operation", action="continue", paths=["side.txt"])
            assert not answer.startswith("failed"), answer
            said = made.git("log", "-1", "--format=%B").rstrip("\n")
            assert said == (message or "Merge branch 'topic'")
            await undone(asking, answer)
        # One that was begun elsewhere has git's own remarks in its message.
        with pytest.raises(AssertionError):
            made.git("merge", "--quiet", "topic")
        made.write("side.txt", "both\n")
        await asking("continue_operation", action="continue", paths=["side.txt"])
    assert made.git("log", "-1", "--format=%B").rstrip("\n") == "Merge branch 'topic'"


@pytest.mark.anyio
@pytest.mark.parametrize("conflict", [False, True])
async def test_the_undo_of_a_stash_takes_away_the_untracked_files_that_it_brought(
    tmp_path: Path, conflict: bool
) -> None:
    made = made_app(tmp_path)
    for name in ("side.txt", "new.txt", "many/a.txt", "many/b.txt", "some/brought.txt", "built/x.log"):
        made.write(name, "aside\n")
    made.git("stash", "push", "--quiet", "--include-untracked")
    made.write(".gitignore", "*.log\n")
    made.write("some/here.txt", "stays\n")
    if conflict:
        made.commit("ours", {"side.txt": "ours\n"})
    made.write("notes.txt", "mine\n")
    before = state(made), (tmp_path / "app" / "side.txt").read_text()
    async with serving("--write", made.path) as asking:
        answer = await asking("run_stash", action="pop" if not conflict else "apply")
        assert "`stage_files` with paths=" in answer and "new files, which stay: built/x.log" in answer, answer
        await undone(asking, answer)
    assert before == (state(made), (tmp_path / "app" / "side.txt").read_text())
    assert not (made.path / "many").exists() and (made.path / "some" / "here.txt").read_text() == "stays\n"


@pytest.mark.anyio
async def test_the_undo_of_a_dropped_stash_has_its_message_to_the_character(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.write("side.txt", "aside\n")
    made.git("stash", "push", "--quiet", "--message", "a\x0cb\u2028c\\x0c\u202ed")
    before = made.git("stash", "list")
    async with serving("--write", made.path) as asking:
        answer = await asking("run_stash", action="drop")
        assert not re.search("[\x0c\u2028\u202e]", answer)
        await undone(asking, answer)
    assert made.git("stash", "list") == before


@pytest.mark.anyio
async def test_of_a_stash_the_way_back_says_that_files_were_deleted_after_they_were_staged(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.write("gone.txt", "new\n")
    made.git("add", "gone.txt")
    (made.path / "gone.txt").unlink()
    async with serving("--write", made.path) as asking:
        answer = await asking("run_stash")
        assert "staged and then deleted: gone.txt" in answer
        await undone(asking, answer)
    assert made.git("status", "--porcelain") == "A  gone.txt\n"


@pytest.mark.share(3)
@pytest.mark.anyio
@pytest.mark.parametrize(
    "way", [("run_stash", {}), ("run_reset", {"rev": "HEAD", "mode": "hard"}), ("run_reset", {"rev": "HEAD"})]
)
@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("begun", ["merge", "cherry-pick", "revert"])
async def test_what_was_under_way_and_is_no_longer_is_told(
    begun: str, number: int, way: tuple[str, dict[str, Any]], tmp_path: Path
) -> None:
    made = made_app(tmp_path)
    made.git("switch", "--quiet", "topic")
    several = [made.commit(text, {"side.txt": f"{text}\n"}) for text in ("one", "two", "three")][-number:]
    made.git("switch", "--quiet", "main" if begun != "revert" else "topic")
    made.commit("ours", {"side.txt": "ours\n"})
    with pytest.raises(AssertionError):
        made.git(begun, *(several if begun != "merge" else several[-1:]))
    made.write("side.txt", "both\n")
    made.git("add", "side.txt")
    tool, arguments = way

    def noted() -> set[str]:
        return {name for name in os.listdir(made.path / ".git") if name.endswith("_HEAD") and name != "ORIG_HEAD"}

    before = noted()
    async with serving("--write", made.path) as asking:
        answer = await asking(tool, **arguments)
        assert ("not brought back by an undo: " in answer) == (noted() != before), answer


@pytest.mark.share(3)
@pytest.mark.anyio
@pytest.mark.parametrize(
    "message", ["#12 one\n\n# of them\nrest\n", "one\n\nof them\n", "- one\n\n\ntwo  \n"], ids=range(3)
)
@pytest.mark.parametrize("conflict", [True, False])
@pytest.mark.parametrize("tool", ["run_cherry_pick", "run_rebase"])
async def test_a_message_is_the_same_after_a_conflict(tool: str, conflict: bool, message: str, tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.git("switch", "--quiet", "topic")
    made.write("side.txt", "one\n")
    made.git("commit", "--quiet", "--all", "--cleanup=verbatim", "--message", message)
    made.git("switch", "--quiet", "main")
    made.commit("ours", {"side.txt" if conflict else "other.txt": "ours\n"})
    if tool == "run_rebase":
        made.git("switch", "--quiet", "topic")
    async with serving("--write", made.path) as asking:
        answer = await asking(tool, rev="main" if tool == "run_rebase" else "topic")
        assert ("1 in conflict" in answer) == conflict, answer
        if conflict:
            made.write("side.txt", "both\n")
            answer = await asking("continue_operation", action="continue", paths=["side.txt"])
            assert answer.endswith("(to before it began)\n") and "not brought back" not in answer, answer
            # Git itself tidies then.
            message = re.sub(r" +$", "", re.sub(r"\n{3,}", "\n\n", message), flags=re.M)
    assert made.git("log", "-1", "--format=%B").rstrip("\n") == message.rstrip("\n")
    assert made.git("status", "--porcelain") == "" and made.git("log", "-1", "--format=%an") == "Ada Lovelace\n"


@pytest.mark.anyio
@pytest.mark.parametrize("begun", ["cherry-pick", "revert"])
async def test_a_step_of_which_nothing_is_left_names_the_next_move(begun: str, tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.git("switch", "--quiet", "topic")
    picked = made.commit("one", {"side.txt": "one\n"})
    made.git("switch", "--quiet", "main")
    made.commit("ours", {"side.txt": "ours\n"})
    with pytest.raises(AssertionError):
        made.git(begun, picked)
    made.write("side.txt", "ours\n")
    before = state(made)
    async with serving("--write", made.path) as asking:
        answer = await asking("continue_operation", action="continue", paths=["side.txt"])
        assert answer.startswith("failed") and "`continue_operation` with action=skip leaves it out" in answer, answer
        assert "git commit" not in answer and state(made) == before
        assert "; clean]" in await asking("continue_operation", action="skip")


@pytest.mark.anyio
@pytest.mark.parametrize("tool", ["run_switch", "create_branch"])
async def test_what_was_staged_as_the_other_branch_has_it_and_changed_since_comes_back(
    tool: str, tmp_path: Path
) -> None:
    made = made_app(tmp_path)
    made.git("switch", "--quiet", "topic")
    made.commit("theirs", {"side.txt": "theirs\n"})
    made.git("switch", "--quiet", "main")
    made.write("side.txt", "theirs\n")
    made.git("add", "side.txt")
    made.write("side.txt", "ours\n")
    made.write("new.txt", "new\n")
    before = state(made)
    given = {"rev": "topic"} if tool == "run_switch" else {"name": "fresh", "rev": "topic", "switch": True}
    async with serving("--write", made.path) as asking:
        answer = await asking(tool, **given)
        assert not answer.startswith("failed"), answer
        await undone(asking, answer)
    assert state(made) == before, answer


@pytest.mark.anyio
async def test_the_undo_of_a_stash_with_a_conflict_leaves_what_is_under_way(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.write("notes.txt", "stashed\n")
    made.git("stash", "--quiet")
    made.git("switch", "--quiet", "topic")
    picked = made.commit("theirs", {"side.txt": "theirs\n"})
    made.git("switch", "--quiet", "main")
    made.commit("ours", {"side.txt": "ours\n", "notes.txt": "ours\n"})
    with pytest.raises(AssertionError):
        made.git("cherry-pick", picked)
    made.write("side.txt", "both\n")
    made.git("add", "side.txt")
    before = state(made)
    async with serving("--write", made.path) as asking:
        answer = await asking("run_stash", action="apply")
        assert "1 in conflict" in answer, answer
        await undone(asking, answer)
    assert state(made) == before and (made.path / ".git" / "CHERRY_PICK_HEAD").exists()


@pytest.mark.anyio
async def test_a_branch_that_is_checked_out_says_where_to_leave_it(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.git("worktree", "add", "--quiet", str(tmp_path / "beside"), "topic")
    there, here = "It is in another worktree", "Go to another branch with `run_switch` first."
    async with serving("--write", made.path) as asking:
        for tool, arguments in (("run_switch", {"rev": "topic"}), ("delete_ref", {"name": "topic"})):
            answer = await asking(tool, **arguments)
            assert there in answer and here not in answer, answer
        answer = await asking("delete_ref", name="main")
        assert here in answer and there not in answer, answer


@pytest.mark.anyio
async def test_an_empty_pick_between_two_of_several_is_told_as_what_it_is(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.git("switch", "--quiet", "topic")
    for number in range(2):
        made.commit(f"topic {number}", {"side.txt": f"topic {number}\n"})
    made.git("switch", "--quiet", "main")
    made.commit("ours", {"side.txt": "ours\n"})
    with pytest.raises(AssertionError):
        made.git("cherry-pick", "topic~1", "topic")
    made.write("side.txt", "both\n")
    made.git("commit", "--quiet", "--all", "--message", "both")
    async with serving("--write", made.path) as asking:
        answer = await asking("run_cherry_pick", rev="HEAD")
        assert not answer.startswith("failed") and "cherry-pick under way" in answer, answer
        assert (made.path / ".git" / "CHERRY_PICK_HEAD").exists()
        assert "go on with `continue_operation`: skip or abort" in answer, answer
        assert "1 in conflict" in await asking("continue_operation", action="skip")


@pytest.mark.share(2)
@pytest.mark.anyio
@pytest.mark.parametrize("number", [1, 30])
@pytest.mark.parametrize("case", ["folder no longer known", "folder partly known", "no longer ignored"])
async def test_the_undo_of_a_stash_leaves_untracked_files_that_it_did_not_bring(
    tmp_path: Path, case: str, number: int
) -> None:
    made = made_app(tmp_path)
    brought = [f"dir/sub/{name}" for name in range(number)]
    if case == "folder no longer known":
        made.commit("a folder", {"dir/known": "known\n"})
        made.git("rm", "--quiet", "dir/known")
    elif case == "folder partly known":
        made.write("dir/known", "known\n")
        made.git("add", "dir/known")
    else:
        made.commit("ignored", {".gitignore": "*.mine\n"})
        made.write(".gitignore", "# nothing\n")
    for name in brought:
        made.write(name, "brought\n")
    made.git("stash", "push", "--quiet", "--include-untracked")
    made.write("dir/sub/x.mine", "mine\n")
    before = state(made)
    async with serving("--write", made.path) as asking:
        answer = await asking("run_stash", action="pop", index=case != "no longer ignored")
        await undone(asking, answer)
    assert (made.path / "dir" / "sub" / "x.mine").read_text() == "mine\n", answer
    assert number > 1 or state(made) == before
    told = re.search(r"new files, which stay: (.*) and 10 more", answer)
    assert bool(told) == (number == 30), answer


@pytest.mark.anyio
async def test_a_stash_with_more_files_than_a_command_can_name_comes_back(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    for number in range(600):
        made.write(f"{'long' * 60}/{number:03}", "")
    made.git("stash", "push", "--quiet", "--include-untracked")
    async with serving("--write", made.path) as asking:
        answer = await asking("run_stash", action="pop")
    assert not answer.startswith("failed") and " and 580 more" in answer, answer


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["HEAD", "v1"])
async def test_a_branch_does_not_stand_for_head_or_a_tag_of_its_name(tmp_path: Path, name: str) -> None:
    made = Made(tmp_path / "app")
    made.commit("first", {"a.txt": "one\n"})
    made.git("update-ref", f"refs/heads/{name}", "HEAD")
    made.commit("second", {"a.txt": "two\n", "b.txt": "b\n"})
    made.git("tag", "v1")
    made.write("a.txt", "three\n")
    async with serving(made.path, "--write") as asking:
        assert "undo" in await asking("run_restore", paths=["."], rev=name)
        assert (made.path / "a.txt").read_text() == "two\n" and (made.path / "b.txt").exists()
        for new, switch in (("here", False), ("there", True)):
            await asking("create_branch", name=new, rev=name, switch=switch)
            assert made.git("rev-parse", new) == made.git("rev-parse", "v1")


@pytest.mark.anyio
async def test_an_upstream_that_is_gone_is_not_even_with_its_branch(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    made.commit("first", {"a.txt": "one\n"})
    made.git("remote", "add", "origin", str(tmp_path / "far.git"))
    made.git("update-ref", "refs/remotes/origin/main", "HEAD")
    made.git("branch", "--quiet", "--set-upstream-to=origin/main")
    async with serving(made.path, "--write") as asking:
        assert "even with origin/main; clean]" in await asking("get_status")
        made.git("update-ref", "-d", "refs/remotes/origin/main")
        assert "origin/main is gone; clean]" in await asking("get_status")


@pytest.mark.anyio
async def test_an_undo_says_which_files_it_leaves_outside_of_a_sparse_checkout(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.commit("one", {"in/a.txt": "a\n", "out/b.txt": "1\n"})
    made.commit("two", {"out/b.txt": "2\n"})
    made.git("sparse-checkout", "set", "--cone", "in")
    async with serving("--write", made.path) as asking:
        answer = await asking("run_restore", paths=["out"], rev="HEAD~1")
        assert "outside of the sparse checkout, so that the undo leaves them on disk: out/b.txt" in answer
        await undone(asking, answer)
        assert made.git("status", "--porcelain") == ""
        assert (made.path / "out/b.txt").exists()
        assert "sparse" not in await asking("run_restore", paths=["in"], rev="HEAD~1")


@pytest.mark.anyio
async def test_the_undo_of_a_stash_takes_back_what_it_brought_outside_of_a_sparse_checkout(tmp_path: Path) -> None:
    """Beside a conflict git writes no file there, and a restore leaves the entry in the index."""
    made = made_app(tmp_path)
    made.commit("first", {"out/b.txt": "b\n"})
    made.write("notes.txt", "stashed\n")
    made.write("out/new.txt", "new\n")
    made.git("add", "out/new.txt")
    made.git("stash", "push", "--quiet")
    made.git("sparse-checkout", "set", "--cone", "in")
    made.git("switch", "--quiet", "topic")
    picked = made.commit("theirs", {"side.txt": "theirs\n"})
    made.git("switch", "--quiet", "main")
    made.commit("ours", {"side.txt": "ours\n", "notes.txt": "ours\n"})
    with pytest.raises(AssertionError):
        made.git("cherry-pick", picked)
    made.write("side.txt", "both\n")
    made.git("add", "side.txt")
    before = made.git("ls-files", "--stage"), state(made)
    async with serving("--write", made.path) as asking:
        answer = await asking("run_stash", action="apply")
        assert "S out/new.txt" in made.git("ls-files", "-t")
        *calls, (tool, arguments) = calls_back(answer)
        for other_tool, other_arguments in calls:
            assert not (await asking(other_tool, **other_arguments)).startswith("failed")
        made.write("side.txt", "of another\n")
        answer = await asking(tool, **arguments)
        assert answer.startswith("failed: `side.txt` has changed since"), answer
        made.write("side.txt", "both\n")
        assert not (await asking(tool, **arguments)).startswith("failed")
    assert (made.git("ls-files", "--stage"), state(made)) == before


@pytest.mark.anyio
async def test_an_undo_outside_of_a_sparse_checkout_stages_only_what_was_in_conflict(tmp_path: Path) -> None:
    """Git refuses that for new files, which stay, and does it for one in conflict."""
    made = made_app(tmp_path)
    made.commit("first", {"in/a.txt": "a\n", "out/b.txt": "b\n"})
    made.write("out/new.txt", "new\n")
    made.git("stash", "push", "--quiet", "--include-untracked")
    made.write("out/b.txt", "stashed\n")
    made.git("stash", "push", "--quiet")
    made.commit("second", {"out/b.txt": "ours\n"})
    made.git("sparse-checkout", "set", "--cone", "in")
    made.write("in/a.txt", "changed\n")
    before = state(made)
    async with serving("--write", made.path) as asking:
        answer = await asking("run_stash", action="apply", rev="stash@{1}")
        assert "\nnew files, which stay: out/new.txt\n" in answer, answer
        await undone(asking, answer)
        (made.path / "out/new.txt").unlink()
        (made.path / "out").rmdir()
        assert state(made) == before
        made.git("restore", "in/a.txt")
        made.commit("third", {"side.txt": "third\n"})
        made.git("revert", "--no-commit", "HEAD")
        before = state(made)
        answer = await asking("run_stash", action="apply")
        assert "1 in conflict" in answer and "under way" in answer, answer
        await undone(asking, answer)
        assert state(made) == before


@pytest.mark.anyio
async def test_a_mixed_reset_leads_where_a_folder_of_a_sparse_index_is_a_file(tmp_path: Path) -> None:
    """Git itself fails an assertion there, and leaves its lock."""
    made = made_app(tmp_path)
    made.commit("a file", {"out": "x\n", "in/a.txt": "a\n"})
    (made.path / "out").unlink()
    made.commit("a folder", {"out/b.txt": "b\n"})
    made.git("sparse-checkout", "set", "--cone", "--sparse-index", "in")
    assert "S out/\n" in made.git("ls-files", "--sparse", "-t")
    before = state(made)
    async with serving("--write", made.path) as asking:
        answer = await asking("run_reset", rev="HEAD~1", mode="mixed")
        assert "out/b.txt" not in made.git("ls-files"), answer
        await undone(asking, answer)
    assert state(made) == before


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["hard", "mixed", "switch", "commit"])
async def test_where_git_goes_back_no_more_there_is_no_undo(name: str, tmp_path: Path) -> None:
    """Git refuses to read a tree in which `.gitmodules` is a link."""
    made = made_app(tmp_path)
    oid = made.git("hash-object", "-w", "--stdin", given=b"side.txt").strip()
    entries = f"{made.git('ls-tree', 'HEAD')}120000 blob {oid}\t.gitmodules\n"
    tree = made.git("mktree", given=entries.encode()).strip()
    made.git("update-ref", "HEAD", made.git("commit-tree", tree, "-p", "HEAD", "-m", "a link").strip())
    calls = {
        "hard": ("run_reset", {"rev": "HEAD~1", "mode": "hard"}),
        "mixed": ("run_reset", {"rev": "HEAD~1", "mode": "mixed"}),
        "switch": ("run_switch", {"rev": "topic"}),
        "commit": ("create_commit", {"message": "remove it"}),
    }
    tool, arguments = calls[name]
    async with serving("--write", made.path) as asking:
        answer = await asking(tool, **arguments)
        assert not answer.startswith("failed"), answer
        if name == "commit":
            # Such an undo leaves the index as it is.
            await undone(asking, answer)
            return
    assert "\nno undo: the commit before has `.gitmodules` as a link" in answer
    assert "undo: `" not in answer, answer
    refused = subprocess.run([GIT, "reset", "--hard", "HEAD@{1}"], cwd=made.path, capture_output=True, check=False)
    assert b"invalid path '.gitmodules'" in refused.stderr


@pytest.mark.anyio
@pytest.mark.parametrize("paths", [["new.txt"], ["new.txt", "notes.txt"], ["."]], ids=["one", "two", "all"])
async def test_a_restore_of_what_is_only_staged_is_undone(paths: list[str], tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.write("new.txt", "new\n")
    made.git("add", "new.txt")
    (made.path / "new.txt").unlink()
    made.write("side.txt", "changed\n")
    before = state(made)
    async with serving("--write", made.path) as asking:
        answer = await asking("run_restore", paths=paths)
        assert "AD" not in made.git("status", "--porcelain")
        await undone(asking, answer)
    assert state(made) == before


@pytest.mark.anyio
async def test_a_file_of_a_stash_comes_back_without_being_staged(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.write("notes.txt", "staged\n")
    made.git("add", "notes.txt")
    made.write("side.txt", "changed\n")
    made.write("new.txt", "new\n")
    async with serving("--write", made.path) as asking:
        await asking("run_stash", untracked=True)
        made.write("notes.txt", "staged since\n")
        made.git("add", "notes.txt")
        before = state(made)
        refused = await asking("run_restore", rev="stash@{0}", paths=["new.txt"], index=False)
        assert refused.startswith("failed") and "rev=`stash@{0}^3`, index=false" in refused, refused
        changed = await asking("run_restore", rev="stash@{0}", paths=["side.txt", "notes.txt"], index=False)
        created = await asking("run_restore", rev="stash@{0}^3", paths=["new.txt"], index=False)
        assert made.git("status", "--porcelain") == "MM notes.txt\n M side.txt\n?? new.txt\n"
        assert (made.path / "new.txt").read_text() == "new\n" and (made.path / "side.txt").read_text() == "changed\n"
        await undone(asking, created)
        await undone(asking, changed)
    assert state(made) == before


@pytest.mark.anyio
@pytest.mark.parametrize("paths", [["notes.txt", "side.txt", "added.txt"], ["."]], ids=["files", "all"])
async def test_files_of_a_stash_come_back_staged_as_far_as_they_were(paths: list[str], tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.write("notes.txt", "staged\n")
    made.write("added.txt", "added\n")
    made.git("add", "notes.txt", "added.txt")
    made.write("notes.txt", "staged and changed\n")
    made.write("side.txt", "changed\n")
    stashed = state(made)
    async with serving("--write", made.path) as asking:
        await asking("run_stash")
        # What the stash did not stage stays as this commit has it.
        made.commit("since", {"side.txt": "since\n"})
        before = state(made)
        answer = await asking("run_restore", rev="stash@{0}", paths=paths)
        assert made.git("status", "--porcelain") == "A  added.txt\nMM notes.txt\n M side.txt\n"
        assert made.git("show", ":notes.txt") == "staged\n"
        assert (made.path / "notes.txt").read_text() == "staged and changed\n"
        await undone(asking, answer)
        assert state(made) == before
        made.git("reset", "--hard", "--quiet", "HEAD~1")
        await asking("run_restore", rev=made.git("rev-parse", "stash").strip(), paths=paths)
    assert state(made) == stashed


@pytest.mark.anyio
async def test_of_many_files_of_a_stash_all_are_staged_again(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    for number in range(450):
        made.write(f"many/{number}.txt", f"{number}\n")
    made.git("add", "many")
    stashed = state(made)
    async with serving("--write", made.path) as asking:
        await asking("run_stash")
        await asking("run_restore", rev="stash@{0}", paths=["."])
    assert state(made) == stashed


@pytest.mark.anyio
async def test_a_side_of_a_conflict_is_taken_whole_by_its_commit(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.git("switch", "--quiet", "topic")
    picked = made.commit("theirs", {"side.txt": "theirs\n", "notes.txt": "theirs\n"})
    made.git("switch", "--quiet", "main")
    made.commit("ours", {"side.txt": "ours\n", "notes.txt": "ours\n"})
    async with serving("--write", made.path) as asking:
        for tool, theirs in (("run_merge", "MERGE_HEAD"), ("run_cherry_pick", "CHERRY_PICK_HEAD")):
            assert "2 in conflict" in await asking(tool, rev=picked)
            refused = await asking("run_restore", paths=["side.txt"], rev=":3")
            assert "for ours name `HEAD`, for theirs `MERGE_HEAD`" in refused, refused
            assert not (await asking("run_restore", paths=["side.txt"], rev=theirs)).startswith("failed")
            assert not (await asking("run_restore", paths=["notes.txt"], rev="HEAD")).startswith("failed")
            answer = await asking("continue_operation", action="continue")
            assert "; clean]" in answer, answer
            assert (made.path / "side.txt").read_text() == "theirs\n"
            assert (made.path / "notes.txt").read_text() == "ours\n"
            made.git("reset", "--quiet", "--hard", "HEAD~1")
        made.git("rm", "--quiet", "notes.txt")
        made.git("commit", "--quiet", "--message=gone")
        assert "conflict: notes.txt (deleted by us)" in await asking("run_cherry_pick", rev=picked)
        refused = await asking("run_restore", paths=["notes.txt"], rev="HEAD")
        assert "That commit does not have it: delete the file" in refused, refused
        (made.path / "notes.txt").unlink()
        assert not (await asking("stage_files", paths=["notes.txt"])).startswith("failed")
        assert "notes.txt" not in await asking("get_status")


def put_in_the_way(made: Made, kind: str) -> None:
    """Put something untracked where `in/a.txt` is tracked."""
    (made.path / "in/a.txt").unlink()
    if kind == "folder":
        made.write("in/a.txt/inner.txt", "untracked\n")
    if kind == "repository":
        Made(made.path / "in/a.txt").commit("inner", {"inner.txt": "untracked\n"})
    if kind == "file":
        (made.path / "in").rmdir()
        made.write("in", "untracked\n")


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["folder", "repository", "file"])
async def test_nothing_untracked_is_removed_that_lies_where_a_file_is_tracked(kind: str, tmp_path: Path) -> None:
    """Git itself removes it, and tells of it neither before nor after."""
    made = made_app(tmp_path)
    made.commit("tracked", {"in/a.txt": "tracked\n"})
    put_in_the_way(made, kind)
    before = state(made)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("run_reset", {"mode": "hard"}),
        ("run_restore", {"paths": ["in/a.txt"]}),
        ("run_stash", {}),
        ("run_stash", {"untracked": True}),
    ]
    async with serving("--write", made.path) as asking:
        for tool, arguments in calls:
            answer = await asking(tool, **arguments)
            assert "is untracked, and would be overwritten for good" in answer, (tool, answer)
            assert state(made) == before
    kept = made.path / ("in" if kind == "file" else "in/a.txt/inner.txt")
    assert kept.read_text() == "untracked\n"


@pytest.mark.anyio
async def test_nothing_untracked_is_removed_by_a_rebase_that_ends(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.commit("tracked", {"in/a.txt": "tracked\n"})
    made.git("switch", "--quiet", "--create", "other")
    made.commit("theirs", {"side.txt": "theirs\n"})
    made.git("switch", "--quiet", "main")
    made.commit("ours", {"side.txt": "ours\n"})
    async with serving("--write", made.path) as asking:
        assert "in conflict" in await asking("run_rebase", rev="other")
        put_in_the_way(made, "folder")
        for action in ("abort", "skip"):
            answer = await asking("continue_operation", action=action)
            assert "would be overwritten for good" in answer, answer
        assert (made.path / "in/a.txt/inner.txt").exists()


@pytest.mark.anyio
@pytest.mark.parametrize("is_staged", [False, True])
async def test_an_undo_says_which_untracked_file_is_in_its_way(is_staged: bool, tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.commit("tracked", {"in/a.txt": "tracked\n", "side.txt": "other\n"})
    made.write("side.txt", "changed\n")
    untracked = made.path / "in/a.txt"
    if is_staged:
        made.git("rm", "--quiet", "--cached", "in/a.txt")
    else:
        put_in_the_way(made, "folder")
        untracked = untracked / "inner.txt"
    before = state(made)
    async with serving("--write", made.path) as asking:
        answer = await asking("run_reset", rev="HEAD~1", mode="hard")
        name = untracked.relative_to(made.path).as_posix()
        assert f"\nno undo while the untracked {name} is there: move it away first\n" in answer, answer
        untracked.rename(tmp_path / "moved")
        await undone(asking, answer)
        untracked.parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "moved").rename(untracked)
    assert state(made) == before


@pytest.mark.anyio
async def test_a_stash_has_no_untracked_file_where_head_has_one(tmp_path: Path) -> None:
    """Git brings back only one of both."""
    made = made_app(tmp_path)
    made.git("rm", "--quiet", "--cached", "side.txt")
    before = state(made)
    async with serving("--write", made.path) as asking:
        answer = await asking("run_stash", untracked=True)
        assert answer.startswith("failed: `side.txt` is untracked where HEAD has a file"), answer
        assert state(made) == before
        await undone(asking, await asking("run_stash"))
        assert state(made) == before
        made.write(".git/info/exclude", "side.txt\n")
        before = state(made)
        await undone(asking, await asking("run_stash", untracked=True))
    assert state(made) == before


@pytest.mark.anyio
async def test_no_ignored_file_is_overwritten_by_what_a_commit_brings(tmp_path: Path) -> None:
    """Git itself takes it for nothing worth."""
    made = made_app(tmp_path)
    made.git("switch", "--quiet", "topic")
    made.commit("settings", {"settings.env": "theirs\n", "build": "a file\n"})
    made.git("switch", "--quiet", "main")
    made.commit("ignore", {".gitignore": "*.env\nbuild/\n"})
    made.write("settings.env", "stashed\n")
    made.git("add", "--force", "settings.env")
    made.git("stash", "push", "--quiet")
    made.write("settings.env", "mine\n")
    before = state(made)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("run_switch", {"rev": "topic"}),
        ("create_branch", {"name": "new", "rev": "topic", "switch": True}),
        ("run_merge", {"rev": "topic"}),
        ("run_rebase", {"rev": "topic"}),
        ("run_cherry_pick", {"rev": "topic"}),
        ("run_cherry_pick", {"rev": "main..topic"}),
        ("run_reset", {"rev": "topic", "mode": "keep"}),
        ("run_stash", {"action": "apply"}),
    ]
    async with serving("--write", made.path) as asking:
        for tool, arguments in calls:
            answer = await asking(tool, **arguments)
            assert answer.startswith("failed: `settings.env` is ignored here"), (tool, answer)
            assert (made.path / "settings.env").read_text() == "mine\n"
            assert state(made) == before
        made.write("settings.env", "theirs\n")
        made.write("build/out.o", "built\n")
        assert "`build/out.o` is ignored here" in await asking("run_switch", rev="topic")
        (made.path / "build/out.o").unlink()
        assert not (await asking("run_switch", rev="topic")).startswith("failed")
        assert (made.path / "build").read_text() == "a file\n"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("tool", "revision"),
    [
        ("run_rebase", "main"),
        ("run_cherry_pick", "main..late"),
        ("run_cherry_pick", "base"),
        ("revert_commit", "base..late"),
    ],
)
async def test_no_ignored_file_is_overwritten_by_a_commit_between_others(
    tmp_path: Path, tool: str, revision: str
) -> None:
    """A file that was committed by mistake, then taken out and ignored, is still on disk."""
    made = made_app(tmp_path)
    made.git("switch", "--quiet", "--orphan", "base")
    made.commit("base", {"settings.env": "by mistake\n", "base.txt": "base\n"})
    made.git("switch", "--quiet", "--create", "late")
    made.git("rm", "--quiet", "settings.env")
    made.commit("taken out", {".gitignore": "*.env\n"})
    made.commit("added again", {"topic.txt": "topic\n"})
    made.write("settings.env", "mine\n")
    before = state(made)
    async with serving("--write", made.path) as asking:
        answer = await asking(tool, rev=revision)
        assert answer.startswith("failed: `settings.env` is ignored here"), answer
    assert (made.path / "settings.env").read_text() == "mine\n"
    assert state(made) == before


@pytest.mark.anyio
@pytest.mark.parametrize(("tool", "revision"), [("run_rebase", "main"), ("run_cherry_pick", "topic..late")])
@pytest.mark.parametrize("action", ["continue", "skip"])
async def test_no_ignored_file_that_came_at_a_conflict_is_overwritten(
    tmp_path: Path, tool: str, revision: str, action: str
) -> None:
    made = made_app(tmp_path)
    made.git("switch", "--quiet", "--create", "late")
    made.commit("in conflict", {"side.txt": "late\n", ".gitignore": "*.env\n"})
    made.write("settings.env", "by mistake\n")
    made.git("add", "--force", "settings.env")
    made.git("commit", "--quiet", "--message", "by mistake")
    made.git("rm", "--quiet", "settings.env")
    made.commit("taken out")
    made.git("switch", "--quiet", "main")
    made.commit("main", {"side.txt": "main\n", ".gitignore": "*.env\n"})
    if tool == "run_rebase":
        made.git("switch", "--quiet", "late")
    async with serving("--write", made.path) as asking:
        assert "1 in conflict" in await asking(tool, rev=revision)
        made.write("settings.env", "mine\n")
        staged = {}
        if action == "continue":
            made.write("side.txt", "both\n")
            staged = {"paths": ["side.txt"]}
        answer = await asking("continue_operation", action=action, **staged)
        assert answer.startswith("failed: `settings.env` is ignored here"), answer
        assert (made.path / "settings.env").read_text() == "mine\n"
        (made.path / "settings.env").unlink()
        answer = await asking("continue_operation", action=action, **staged)
        assert "under way" not in answer.splitlines()[0], answer


@pytest.mark.anyio
@pytest.mark.parametrize("tool", ["run_rebase", "run_merge", "run_cherry_pick"])
async def test_no_ignored_file_is_overwritten_where_an_operation_is_aborted(tmp_path: Path, tool: str) -> None:
    made = made_app(tmp_path)
    made.commit("tracked", {"settings.env": "tracked\n"})
    made.git("switch", "--quiet", "topic")
    made.git("reset", "--quiet", "--hard", "main")
    made.git("rm", "--quiet", "settings.env")
    made.commit("taken out", {"side.txt": "topic\n", ".gitignore": "*.env\n"})
    made.git("switch", "--quiet", "main")
    made.commit("main", {"side.txt": "main\n"})
    async with serving("--write", made.path) as asking:
        assert "1 in conflict" in await asking(tool, rev="topic")
        made.write("settings.env", "mine\n")
        answer = await asking("continue_operation", action="abort")
        assert answer.startswith("failed: `settings.env` is ignored here"), answer
        assert (made.path / "settings.env").read_text() == "mine\n"
        (made.path / "settings.env").unlink()
        assert "under way" not in await asking("continue_operation", action="abort")
    assert made.git("status", "--porcelain") == ""


@pytest.mark.anyio
async def test_the_undo_of_several_picks_leads_to_before_the_first(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.git("switch", "--quiet", "topic")
    made.commit("first of them", {"topic.txt": "topic\n"})
    made.commit("in conflict", {"side.txt": "topic\n"})
    made.git("switch", "--quiet", "main")
    made.commit("main", {"side.txt": "main\n"})
    before = state(made)
    async with serving("--write", made.path) as asking:
        assert "1 in conflict" in await asking("run_cherry_pick", rev="main..topic")
        answer = await asking("continue_operation", action="continue", theirs=["side.txt"])
        assert "(to before it began)" in answer, answer
        await undone(asking, answer)
    assert state(made) == before


@pytest.mark.anyio
async def test_nothing_that_is_staged_is_lost_before_the_first_commit(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.commit("second", {"new.txt": "old\n"})
    made.git("switch", "--quiet", "--orphan", "apart")
    made.write("new.txt", "new\n")
    made.git("add", "new.txt")
    async with serving("--write", made.path) as asking:
        for answer in (
            await asking("run_reset", mode="hard"),
            await asking("run_reset", mode="hard", rev="main"),
            await asking("run_restore", paths=["."], rev="main"),
        ):
            assert answer.startswith("failed: `HEAD` has no commit yet, so what is staged would be lost"), answer
        assert (made.path / "new.txt").read_text() == "new\n"
        assert not (await asking("stage_files", paths=["."], unstage=True)).startswith("failed")
        assert not (await asking("run_reset", mode="hard")).startswith("failed")
        assert (made.path / "new.txt").read_text() == "new\n"
