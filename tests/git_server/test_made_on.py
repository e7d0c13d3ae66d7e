"""Merges and cherry-picks on another branch: one call, one way back, and HEAD where it was if nothing comes of it."""

import sys
from pathlib import Path
from typing import Any

import pytest

from git_server.made import Made
from git_server.serving import serving
from git_server.test_writes import made_app, state, undone

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="it only reads there yet"),
]
TOOLS = ["run_merge", "run_cherry_pick"]


def apart(folder: Path) -> Made:
    """`topic` and `main` with a commit each since they parted, and `main` is checked out."""
    made = made_app(folder)
    made.git("switch", "--quiet", "topic")
    made.commit("a word of the topic", {"topic.txt": "topic\n"})
    made.git("switch", "--quiet", "main")
    made.commit("second", {"side.txt": "more\n"})
    return made


@pytest.mark.share(7)
@pytest.mark.parametrize(
    ("tool", "arguments", "subject"),
    [
        ("run_merge", {"rev": "main"}, "Merge branch 'main' into topic"),
        ("run_merge", {"rev": "HEAD"}, "Merge branch 'main' into topic"),
        ("run_merge", {"rev": "HEAD", "message": "Both"}, "Both"),
        ("run_merge", {"rev": "main", "squash": True}, "a word of the topic"),
        ("run_cherry_pick", {"rev": "HEAD"}, "second"),
        ("run_cherry_pick", {"rev": "main"}, "second"),
        ("revert_commit", {"rev": "topic"}, 'Revert "a word of the topic"'),
    ],
)
@pytest.mark.diagonal
@pytest.mark.parametrize("detached", [False, True])
@pytest.mark.parametrize("dirty", [False, True])
async def test_it_is_done_on_the_branch_and_its_way_back_leads_to_the_first(
    tool: str, arguments: dict[str, Any], subject: str, detached: bool, dirty: bool, tmp_path: Path
) -> None:
    made = apart(tmp_path)
    if detached:
        made.git("switch", "--quiet", "--detach")
        if tool == "run_merge" and arguments["rev"] == "HEAD":
            subject = subject.replace("branch 'main'", f"commit '{made.git('rev-parse', 'HEAD').strip()}'")
    if dirty:
        made.write("notes.txt", "not committed\n")
        made.write("new.txt", "new\n")
    before, others = state(made), made.git("rev-parse", "main")
    async with serving("--write", made.path) as asking:
        answer = await asking(tool, into="topic", **arguments)
        assert answer.startswith("[topic "), answer
        assert made.git("log", "-1", "--format=%s", "topic") == f"{subject}\n"
        assert made.git("rev-parse", "main") == others
        revert = tool == "revert_commit"
        assert (made.path / "side.txt").read_text() == ("side\n" if revert else "more\n")
        assert (made.path / "topic.txt").exists() != revert
        await undone(asking, answer)
    assert state(made) == before, answer


@pytest.mark.parametrize("rev", ["HEAD~2..HEAD", "HEAD~2..", "main~2..main"])
async def test_a_range_is_of_the_commits_that_it_was_before_head_moved(rev: str, tmp_path: Path) -> None:
    made = apart(tmp_path)
    for number in range(2):
        made.commit(f"step {number}", {f"{number}.txt": f"{number}\n"})
    before = state(made)
    async with serving("--write", made.path) as asking:
        answer = await asking("run_cherry_pick", rev=rev, into="topic")
        assert answer.startswith("[topic "), answer
        assert made.git("log", "-2", "--format=%s", "topic").split("\n")[:2] == ["step 1", "step 0"]
        await undone(asking, answer)
        assert state(made) == before
        assert "There is no revision `nothing`" in await asking("run_cherry_pick", rev="nothing..HEAD", into="topic")
    assert state(made) == before


@pytest.mark.parametrize("tool", TOOLS)
async def test_in_a_conflict_it_stays_on_the_branch_and_says_what_leads_back(tool: str, tmp_path: Path) -> None:
    made = apart(tmp_path)
    made.git("switch", "--quiet", "topic")
    made.commit("their word", {"side.txt": "theirs\n"})
    made.git("switch", "--quiet", "main")
    before = state(made)
    async with serving("--write", made.path) as asking:
        answer = await asking(tool, rev="HEAD", into="topic")
        assert answer.startswith("[topic ") and "1 in conflict" in answer and "\nundo" not in answer, answer
        assert '\nthen `run_switch` with rev="main" leads back' in answer, answer
        assert "continue_operation" in await asking(tool, rev="topic", into="main")
        assert (await asking("continue_operation", action="abort")).startswith("[topic ")
        assert not (await asking("run_switch", rev="main")).startswith("failed")
        assert state(made) == before


@pytest.mark.slow
@pytest.mark.share(1)
@pytest.mark.parametrize("tool", TOOLS)
async def test_what_is_refused_leaves_all_as_it_was(tool: str, tmp_path: Path) -> None:
    made = apart(tmp_path)
    made.git("branch", "beside", "topic")
    made.git("worktree", "add", "--quiet", str(tmp_path / "beside"), "beside")
    made.git("update-ref", "refs/remotes/origin/far", "topic")
    made.git("tag", "v1", "topic")
    async with serving("--write", made.path) as asking:

        async def refused(said: str, into: str = "topic", rev: str = "main") -> None:
            before, log = state(made), made.git("reflog")
            answer = await asking(tool, rev=rev, into=into)
            assert answer.startswith("failed: ") and said in answer, answer
            assert state(made) == before, answer
            # There and back is what the log of HEAD may hold, and no more.
            assert made.git("reflog") == log or made.git("log", "-g", "-1", "--format=%gs").endswith(" to main\n")

        await refused("no branch `nothing` here", into="nothing")
        await refused("no branch `origin/far` here", into="origin/far")
        await refused("no branch `v1` here", into="v1")
        await refused("no branch `HEAD` here", into="HEAD")
        await refused("no revision `nothing`", rev="nothing")
        await refused("can't be the name", into="-x")
        await refused("beside", into="beside")
        made.write("topic.txt", "untracked\n")
        await refused("topic.txt")
        (made.path / "topic.txt").unlink()
        made.write("side.txt", "not committed\n")
        await refused("side.txt")
        made.git("add", "side.txt")
        await refused("staged or deleted does not come along")
        made.git("reset", "--quiet", "--hard")
        made.write("new.txt", "new\n")
        made.git("add", "--intent-to-add", "new.txt")
        await refused("staged or deleted does not come along")
        made.git("reset", "--quiet")
        (made.path / "side.txt").unlink()
        await refused("deleted does not come along")
        made.git("restore", "side.txt")
        # Refused only there: what is to come lies in the way of a file that is not committed.
        made.commit("third", {"notes.txt": "third\n"})
        made.git("switch", "--quiet", "--create", "other", "HEAD~1")
        made.git("switch", "--quiet", "--create", "here")
        made.write("notes.txt", "not committed\n")
        before = state(made)
        answer = await asking(tool, rev="main", into="other")
        assert answer.startswith("failed: ") and "notes.txt" in answer, answer
        assert state(made) == before
        made.git("switch", "--quiet", "--detach")
        before = state(made)
        assert (await asking(tool, rev="main", into="other")).startswith("failed: ")
        assert state(made) == before


@pytest.mark.parametrize("tool", TOOLS)
async def test_a_branch_without_commits_is_not_left(tool: str, tmp_path: Path) -> None:
    made = apart(tmp_path)
    made.git("symbolic-ref", "HEAD", "refs/heads/unborn")
    made.git("rm", "--quiet", "-r", "--cached", ".")
    async with serving("--write", made.path) as asking:
        assert "no commit yet" in await asking(tool, rev="main", into="topic")
    assert made.git("symbolic-ref", "HEAD") == "refs/heads/unborn\n"


async def test_an_ignored_file_is_not_overwritten_on_the_way(tmp_path: Path) -> None:
    made = apart(tmp_path)
    made.write(".git/info/exclude", "topic.txt\n")
    made.write("topic.txt", "precious\n")
    async with serving("--write", made.path) as asking:
        assert "topic.txt" in await asking("run_merge", rev="main", into="topic")
    assert (made.path / "topic.txt").read_text() == "precious\n"
    assert made.git("symbolic-ref", "--short", "HEAD") == "main\n"


async def test_into_the_branch_that_is_checked_out_is_as_without(tmp_path: Path) -> None:
    made = apart(tmp_path)
    before = state(made)
    async with serving("--write", made.path) as asking:
        answer = await asking("run_merge", rev="topic", into="main")
        assert answer.count("\nundo: ") == 1, answer
        await undone(asking, answer)
    assert state(made) == before


@pytest.mark.share(2)
@pytest.mark.parametrize("more", [{}, {"into": "topic"}, {"squash": True}, {"message": "Both", "into": "topic"}])
async def test_a_merge_that_brings_nothing_says_so(more: dict[str, Any], tmp_path: Path) -> None:
    made = apart(tmp_path)
    made.write("notes.txt", "not committed\n")
    branch = more.get("into", "main")
    tip = made.git("rev-parse", "--short=9", branch).strip()
    async with serving("--write", made.path) as asking:
        answer = await asking("run_merge", rev="main~1", **more)
        assert answer.startswith(f"[{branch} {tip}; already up to date; 1 changed]"), answer
        answer = await asking("run_merge", rev="main", into="topic")
        assert "already" not in answer, answer


@pytest.mark.parametrize(
    ("tool", "more", "bisected"),
    [
        ("run_cherry_pick", {}, False),
        ("run_cherry_pick", {"into": "topic"}, False),
        ("run_cherry_pick", {"into": "main"}, True),
        ("revert_commit", {}, True),
    ],
)
async def test_a_pick_that_brings_nothing_leaves_all_as_it_was(
    tool: str, more: dict[str, Any], bisected: bool, tmp_path: Path
) -> None:
    made = apart(tmp_path)
    rev = made.git("rev-parse", "main").strip()
    if tool == "revert_commit":
        made.git("revert", "--no-edit", "main")
    made.git("branch", "--force", "topic", "main")
    made.write("notes.txt", "not committed\n")
    if bisected:
        made.git("bisect", "start")
    before = state(made)
    async with serving("--write", made.path) as asking:
        answer = await asking(tool, rev=rev, **more)
    if tool == "revert_commit":
        assert answer.startswith("failed: git found nothing to revert."), answer
    else:
        assert "\nleft out, it changes nothing here: " in answer and " second\n" in answer, answer
    if "into" in more:
        assert made.git("branch", "--show-current").strip() == more["into"]
        made.git("symbolic-ref", "HEAD", "refs/heads/main")
    assert state(made) == before and not (made.path / ".git" / "CHERRY_PICK_HEAD").exists()
