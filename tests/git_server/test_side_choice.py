"""Files in conflict that become as one side has them, in the call that continues."""

import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from git_server.made import Made
from git_server.serving import serving
from git_server.test_writes import state, undone

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="it only reads there yet"),
]

_BASE = "".join(f"line {number}\n" for number in range(30))
_FILES = ("same.txt", "other.txt", "last.txt", "crlf.txt", "picture.png", "gone.txt", "kept.txt", "new.txt")


def lines(changes: Mapping[int, str]) -> str:
    return "".join(f"{changes.get(number, f'line {number}')}\n" for number in range(30))


def made_sides(folder: Path) -> Made:
    """Return a repository whose `main` and `topic` changed the same lines of several files, and others."""
    made = Made(folder / "app")
    made.git("config", "user.name", "Grace Hopper")
    made.git("config", "user.email", "grace@example.org")
    made.commit("Begin", {
        ".gitattributes": "crlf.txt eol=crlf\n", "same.txt": _BASE, "other.txt": _BASE, "last.txt": "old",
        "crlf.txt": _BASE, "picture.png": b"\0old", "gone.txt": _BASE, "kept.txt": _BASE,
    })  # fmt: skip
    made.git("branch", "topic")
    ours = lines({2: "ours", 3: "ours", 15: "ours", 28: "only ours"})
    made.git("rm", "--quiet", "gone.txt")
    made.commit("Ours", {
        "same.txt": ours, "other.txt": ours, "last.txt": "ours", "crlf.txt": ours, "picture.png": b"\0ours",
        "kept.txt": lines({1: "ours"}), "new.txt": "ours\n",
    })  # fmt: skip
    made.git("switch", "--quiet", "topic")
    theirs = lines({2: "theirs", 15: "theirs", 22: "only theirs"})
    made.git("rm", "--quiet", "kept.txt")
    made.commit("Theirs", {
        "same.txt": theirs, "other.txt": theirs, "last.txt": "theirs", "crlf.txt": theirs, "picture.png": b"\0theirs",
        "gone.txt": lines({1: "theirs"}), "new.txt": "theirs\n",
    })  # fmt: skip
    made.git("switch", "--quiet", "main")
    return made


def merged(folder: Path, side: str) -> Made:
    """Return what git itself makes of another such repository, with `-X` and the side of what a side deleted."""
    made = made_sides(folder)
    with suppress(AssertionError):  # What a side deleted stays in conflict.
        made.git("merge", "--no-commit", "-X", side, "topic")
    deleted, written = ("gone.txt", "kept.txt") if side == "ours" else ("kept.txt", "gone.txt")
    made.git("rm", "--quiet", "--force", deleted)
    made.git("add", "--", written)
    return made


@pytest.mark.parametrize("side", ["ours", "theirs"])
async def test_a_side_wins_where_both_changed_and_the_rest_comes_from_both(side: str, tmp_path: Path) -> None:
    made = made_sides(tmp_path)
    expected = merged(tmp_path / "plain", side)
    before = state(made)
    async with serving("--write", made.path) as asking:
        assert "8 in conflict" in await asking("run_merge", rev="topic")
        answer = await asking("continue_operation", action="continue", **{side: ["."]})
        assert "; clean]" in answer, answer
        assert made.git("rev-parse", "HEAD^{tree}").strip() == expected.git("write-tree").strip()
        for name in _FILES:
            ours, theirs = made.path / name, expected.path / name
            assert ours.exists() == theirs.exists(), name
            assert not ours.exists() or ours.read_bytes() == theirs.read_bytes(), name
        await undone(asking, answer)
    assert state(made) == before


async def test_each_file_has_its_side_and_what_was_edited_outside_of_conflicts_stays(tmp_path: Path) -> None:
    made = made_sides(tmp_path)
    async with serving("--write", made.path) as asking:
        await asking("run_merge", rev="topic")
        edited = (made.path / "same.txt").read_text().replace("line 9\n", "edited\n")
        made.write("same.txt", edited)
        made.write("other.txt", "resolved\n")
        answer = await asking(
            "continue_operation", action="continue", paths=["other.txt"], theirs=["same.txt", "new.txt", "gone.txt"],
            ours=["last.txt", "crlf.txt", "picture.png", "kept.txt"],
        )  # fmt: skip
        assert not answer.startswith("failed"), answer
    assert made.git("show", "HEAD:same.txt") == lines(
        {2: "theirs", 3: "line 3", 9: "edited", 15: "theirs", 22: "only theirs", 28: "only ours"}
    )
    assert made.git("show", "HEAD:other.txt") == "resolved\n"
    assert made.git("show", "HEAD:new.txt") == "theirs\n"
    assert made.git("show", "HEAD:last.txt") == "ours"
    assert (made.path / "gone.txt").exists() and (made.path / "kept.txt").exists()


async def test_both_sides_stay_as_in_a_union_of_git(tmp_path: Path) -> None:
    made = made_sides(tmp_path)
    united = ["same.txt", "other.txt", "last.txt", "crlf.txt", "new.txt"]
    expected = made_sides(tmp_path / "plain")
    expected.write(".git/info/attributes", "*.txt merge=union\n")
    with suppress(AssertionError):  # What a side deleted stays in conflict, and so does the picture.
        expected.git("merge", "--no-commit", "topic")
    async with serving("--write", made.path) as asking:
        await asking("run_merge", rev="topic")
        answer = await asking(
            "continue_operation", action="continue", both=united, ours=["picture.png", "gone.txt"], theirs=["kept.txt"]
        )
        assert "; clean]" in answer, answer
    for name in united:
        assert (made.path / name).read_bytes() == (expected.path / name).read_bytes(), name
    assert made.git("show", "HEAD:last.txt") == "ours\ntheirs"


async def test_where_the_other_side_only_deleted_the_end_the_last_line_is_as_it_was(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    made.git("config", "user.name", "Grace Hopper")
    made.git("config", "user.email", "grace@example.org")
    made.commit("Begin", {"a.txt": "one\ntwo\nthree"})
    made.git("branch", "topic")
    made.commit("Ours", {"a.txt": "one\ntwo\nours"})
    made.git("switch", "--quiet", "topic")
    made.commit("Theirs", {"a.txt": "one\ntwo\n"})
    made.git("switch", "--quiet", "main")
    async with serving("--write", made.path) as asking:
        await asking("run_merge", rev="topic")
        answer = await asking("continue_operation", action="continue", both=["a.txt"])
        assert "; clean]" in answer, answer
    assert made.git("show", "HEAD:a.txt") == "one\ntwo\nours"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"both": ["."]}, "does not have lines of both sides"),
        ({"both": ["same.txt"], "theirs": ["."]}, "is named in `theirs` and in `both`"),
        ({"ours": ["same.txt"]}, "is still in conflict"),
        ({"ours": ["."], "theirs": ["same.txt"]}, "is named in `ours` and in `theirs`"),
        ({"ours": ["."], "theirs": ["nothing.txt"]}, "`nothing.txt` is not in conflict"),
        ({"ours": ["same.txt"], "action": "abort"}, "stages nothing"),
    ],
)
async def test_what_cannot_be_chosen_changes_nothing(
    arguments: Mapping[str, object], reason: str, tmp_path: Path
) -> None:
    made = made_sides(tmp_path)
    async with serving("--write", made.path) as asking:
        await asking("run_merge", rev="topic")
        before = state(made)
        answer = await asking("continue_operation", **{"action": "continue", **arguments})
        assert answer.startswith("failed") and reason in answer, answer
    assert state(made) == before


@pytest.mark.parametrize("text", ["resolved\n", "Title\n=======\nours\n"])
async def test_lines_that_are_no_marks_of_a_conflict_are_not_taken_for_such(text: str, tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    made.git("config", "user.name", "Grace Hopper")
    made.git("config", "user.email", "grace@example.org")
    made.commit("Begin", {"a.txt": "one\n"})
    made.git("branch", "topic")
    made.commit("Ours", {"a.txt": text})
    made.git("switch", "--quiet", "topic")
    made.commit("Theirs", {"a.txt": "theirs\n"})
    async with serving("--write", made.path) as asking:
        await asking("run_merge", rev="main")
        if "=" not in text:
            made.write("a.txt", text)
        before = state(made)
        answer = await asking("continue_operation", action="continue", theirs=["a.txt"])
        assert answer.startswith("failed") and "the marks of a conflict" in answer, answer
    assert state(made) == before


@pytest.mark.parametrize("attribute", ["-merge", "binary", "merge=binary"])
async def test_a_file_that_git_does_not_merge_is_taken_whole(attribute: str, tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    made.git("config", "user.name", "Grace Hopper")
    made.git("config", "user.email", "grace@example.org")
    made.commit("Begin", {"a.lock": _BASE, ".gitattributes": f"*.lock {attribute}\n"})
    made.git("branch", "topic")
    made.commit("Ours", {"a.lock": lines({2: "ours", 28: "only ours"})})
    made.git("switch", "--quiet", "topic")
    theirs = lines({2: "theirs", 22: "only theirs"})
    made.commit("Theirs", {"a.lock": theirs})
    made.git("switch", "--quiet", "main")
    async with serving("--write", made.path) as asking:
        await asking("run_merge", rev="topic")
        answer = await asking("continue_operation", action="continue", theirs=["a.lock"])
        assert not answer.startswith("failed"), answer
    assert made.git("show", "HEAD:a.lock") == theirs


async def test_in_a_rebase_ours_is_the_new_base(tmp_path: Path) -> None:
    made = made_sides(tmp_path)
    made.git("switch", "--quiet", "topic")
    async with serving("--write", made.path) as asking:
        await asking("run_rebase", rev="main")
        answer = await asking("continue_operation", action="continue", ours=["."])
        assert not answer.startswith("failed"), answer
    assert "ours" in made.git("show", "HEAD:same.txt") and "theirs\n" in made.git("show", "HEAD:same.txt")
    assert made.git("show", "HEAD:new.txt") == "ours\n"


async def test_a_commit_that_a_hook_refuses_leaves_the_files_resolved_and_says_so(tmp_path: Path) -> None:
    made = made_sides(tmp_path)
    hook = made.write(".git/hooks/commit-msg", "#!/bin/sh\necho no good >&2\nexit 1\n")
    hook.chmod(0o755)
    async with serving("--write", "--hooks", made.path) as asking:
        await asking("run_merge", rev="topic")
        answer = await asking("continue_operation", action="continue", theirs=["."])
        assert "no good" in answer and "after a part of it was done" in answer, answer
        assert " in conflict" not in await asking("get_status")
        hook.unlink()
        answer = await asking("continue_operation", action="continue")
        assert "; clean]" in answer, answer
    assert made.git("show", "HEAD:last.txt") == "theirs"
