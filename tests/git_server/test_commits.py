"""What a commit takes and what it leaves, and that its answer tells both."""

import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from git_server.made import Made
from git_server.serving import serving
from git_server.test_writes import made_app, state, undone
from mcp_git.models import count

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="it only reads there yet"),
]


class Case(NamedTuple):
    """A commit.

    Attributes:
        taken: the files in it.
        staged: what is still staged after it.
        words: what its answer has.
    """

    prepare: Callable[[Made], object]
    arguments: dict[str, Any]
    taken: list[str]
    staged: list[str]
    words: tuple[str, ...] = ()


def stage_other(made: Made) -> None:
    """Somebody has staged side.txt, and notes.txt is changed."""
    made.write("side.txt", "of another\n")
    made.git("add", "side.txt")
    made.write("notes.txt", "mine\n")
    made.write("new.txt", "new\n")


def stage_deletion(made: Made) -> None:
    stage_other(made)
    (made.path / "notes.txt").unlink()


def stage_parts(made: Made) -> None:
    """What is staged of a named file differs from the file."""
    made.write("notes.txt", "staged\n")
    made.git("add", "notes.txt")
    stage_other(made)


def nest(made: Made) -> None:
    Made(made.path / "nested").commit("inside", {"in.txt": "in\n"})


def add_hooks(made: Made) -> None:
    stage_other(made)
    for name in ("pre-commit", "commit-msg", "pre-push"):
        made.write(f".git/hooks/{name}", "#!/bin/sh\nexit 1\n").chmod(0o755)


def ask_for_signing(made: Made) -> None:
    stage_other(made)
    made.git("config", "commit.gpgSign", "true")
    made.git("config", "core.hooksPath", ".husky/_")


CASES = {
    "only the named": Case(
        stage_other,
        {"paths": ["notes.txt"]},
        ["notes.txt"],
        ["side.txt"],
        ("committed 1 file, +1 -30", "+1 -30 notes.txt", "A subject", "still staged: side.txt"),
    ),
    "a new one": Case(stage_other, {"paths": ["new.txt"]}, ["new.txt"], ["side.txt"], ("+1 -0 new.txt",)),
    "one that is gone": Case(stage_deletion, {"paths": ["notes.txt"]}, ["notes.txt"], ["side.txt"], ("+0 -30",)),
    "one that is staged otherwise": Case(stage_parts, {"paths": ["notes.txt"]}, ["notes.txt"], ["side.txt"]),
    "a folder": Case(stage_other, {"paths": ["."]}, ["new.txt", "notes.txt", "side.txt"], [], ("committed 3 files",)),
    "what is staged": Case(stage_other, {}, ["side.txt"], [], ("committed 1 file, +1 -1", "1 changed, 1 untracked")),
    "all tracked": Case(stage_other, {"all_tracked": True}, ["notes.txt", "side.txt"], []),
    "all tracked and a new one": Case(
        stage_other, {"all_tracked": True, "paths": ["new.txt"]}, ["new.txt", "notes.txt", "side.txt"], []
    ),
    "another one for the last": Case(
        stage_other, {"amend": True, "paths": ["new.txt"]}, ["new.txt", "notes.txt", "side.txt"], ["side.txt"]
    ),
    "a repository inside": Case(
        nest, {"paths": ["nested"]}, ["nested"], [], ("adding embedded git repository: nested", "none of its files")
    ),
    "hooks": Case(add_hooks, {}, ["side.txt"], [], ("not run here: the hook pre-commit, the hook commit-msg\n",)),
    "signing": Case(
        ask_for_signing, {}, ["side.txt"], [], ("not signed", "not run here: the hooks of `core.hooksPath`")
    ),
}


@pytest.mark.share(5)
@pytest.mark.parametrize("name", CASES)
async def test_a_commit_takes_what_is_named_and_tells_what_it_took(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    made = made_app(tmp_path)
    case.prepare(made)
    before = made.git("status", "--porcelain=v2"), made.git("diff", "--cached"), made.git("rev-parse", "HEAD")
    async with serving("--write", made.path) as asking:
        answer = await asking("create_commit", message="A subject\n\nA body", **case.arguments)
        assert not answer.startswith("failed"), answer
        taken = made.git("show", "--format=", "--name-only", "--no-renames").split()
        staged = made.git("diff", "--cached", "--name-only").split()
        assert (taken, staged) == (case.taken, case.staged), answer
        for word in case.words:
            assert word in answer, (word, answer)
        assert ("still staged" in answer) == bool(case.staged), answer
        await undone(asking, answer)
    after = made.git("status", "--porcelain=v2"), made.git("diff", "--cached"), made.git("rev-parse", "HEAD")
    assert after == before, answer


async def test_a_patch_commits_nothing_of_somebody_else(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    stage_other(made)
    patch = made.git("diff", "notes.txt")
    async with serving("--write", made.path) as asking:
        answer = await asking("create_commit", message="x", paths=["new.txt"], patch=patch)
        assert answer.startswith("failed: `side.txt` is staged") and "`stage_files`" in answer
        assert made.git("diff", "--cached", "--name-only").split() == ["side.txt"]


@pytest.mark.parametrize("tool", ["run_cherry_pick", "revert_commit"])
async def test_a_merge_is_picked_and_reverted_by_its_mainline(tool: str, tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.git("switch", "--quiet", "topic")
    made.commit("theirs", {"topic.txt": "topic\n"})
    made.git("switch", "--quiet", "main")
    made.git("switch", "--quiet", "--create", "other")
    made.git("merge", "--quiet", "--no-ff", "--no-edit", "topic")
    revert = tool == "revert_commit"
    if not revert:
        made.git("switch", "--quiet", "main")
    async with serving("--write", made.path) as asking:
        refused = await asking(tool, rev="other")
        assert refused.startswith("failed") and "`mainline`" in refused, refused
        answer = await asking(tool, rev="other", mainline=1)
        assert not answer.startswith("failed"), answer
        assert (made.path / "topic.txt").exists() is not revert
        await undone(asking, answer)


async def test_single_files_are_put_aside(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    stage_other(made)
    before = made.git("status", "--porcelain=v2")
    async with serving("--write", made.path) as asking:
        answer = await asking("run_stash", paths=["notes.txt"])
        assert made.git("status", "--porcelain").split() == ["M", "side.txt", "??", "new.txt"], answer
        assert "takes no `paths`" in await asking("run_stash", action="pop", paths=["notes.txt"])
        await undone(asking, answer)
    assert made.git("status", "--porcelain=v2") == before


@pytest.mark.parametrize("tool", ["run_cherry_pick", "revert_commit"])
async def test_commits_of_a_range_are_picked_and_reverted(tool: str, tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.git("switch", "--quiet", "topic")
    for number in range(3):
        made.commit(f"step {number}", {f"{number}.txt": f"{number}\n"})
    revert = tool == "revert_commit"
    if not revert:
        made.git("switch", "--quiet", "main")
    before = made.git("rev-parse", "HEAD")
    async with serving("--write", made.path) as asking:
        assert "Of a range only `a..b` is done" in await asking(tool, rev="topic~2...topic")
        answer = await asking(tool, rev="topic~2..topic")
        assert answer.count("step ") == 2, answer
        assert [(made.path / f"{number}.txt").exists() for number in range(3)] == [revert, not revert, not revert]
        await undone(asking, answer)
        assert made.git("rev-parse", "HEAD") == before
        refused = await asking(tool, rev="topic~2..nothing")
        assert refused.startswith("failed: There is no revision `nothing`"), refused


@pytest.mark.parametrize("begin", [["merge", "topic"], ["cherry-pick", "topic"]])
async def test_where_git_commits_no_paths_it_is_said_how_to_commit_all(begin: list[str], tmp_path: Path) -> None:
    made = made_app(tmp_path)
    _part(made)
    with suppress(AssertionError):
        made.git(*begin)
    made.write("side.txt", "both\n")
    before = made.git("rev-parse", "HEAD"), made.git("status", "--porcelain=v2")
    async with serving("--write", made.path) as asking:
        refused = await asking("create_commit", message="mine", paths=["side.txt"])
        assert refused.startswith("failed: git: `cannot do a partial commit during"), refused
        assert "`create_commit` without `paths`" in refused, refused
        assert (made.git("rev-parse", "HEAD"), made.git("status", "--porcelain=v2")) == before
        await asking("stage_files", paths=["side.txt"])
        assert "committed 2 files" in await asking("create_commit", message="mine")
    assert made.git("status", "--porcelain") == ""


async def test_in_a_merge_a_commit_of_all_paths_ends_it(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    _part(made)
    with suppress(AssertionError):
        made.git("merge", "topic")
    made.write("side.txt", "both\n")
    async with serving("--write", made.path) as asking:
        assert "committed 2 files" in await asking("create_commit", message="mine", paths=["."])


async def test_in_a_revert_a_commit_of_paths_is_undone_without_what_it_left(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    reverted = made.commit("both", {"side.txt": "first\n", "notes.txt": "first\n"})
    made.commit("one", {"side.txt": "second\n"})
    with suppress(AssertionError):
        made.git("revert", "--no-edit", reverted)
    made.write("side.txt", "both\n")
    made.git("add", "side.txt")
    before = made.git("status", "--porcelain=v2")
    async with serving("--write", made.path) as asking:
        answer = await asking("create_commit", message="mine", paths=["side.txt"])
        assert "still staged: notes.txt" in answer, answer
        assert "not brought back by an undo: revert under way" in answer and "before it began" not in answer, answer
        await undone(asking, answer)
    assert made.git("status", "--porcelain=v2") == before


def _part(made: Made) -> None:
    """Let `main` and `topic` change side.txt differently, and `topic` one more file."""
    made.git("switch", "--quiet", "topic")
    made.commit("theirs", {"side.txt": "theirs\n", "other.txt": "theirs\n"})
    made.git("switch", "--quiet", "main")
    made.commit("ours", {"side.txt": "ours\n"})


async def test_while_patches_are_applied_a_commit_is_of_its_paths(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.git("switch", "--quiet", "topic")
    made.commit("theirs", {"side.txt": "theirs\n"})
    patch = made.git("format-patch", "-1", "--stdout")
    made.git("switch", "--quiet", "main")
    made.commit("ours", {"side.txt": "ours\n"})
    with suppress(AssertionError):
        made.git("am", given=patch.encode())
    made.write("notes.txt", "staged\n")
    made.git("add", "notes.txt")
    made.write("side.txt", "both\n")
    async with serving("--write", made.path) as asking:
        answer = await asking("create_commit", message="mine", paths=["side.txt"])
        assert "am under way" in answer and "still staged: notes.txt" in answer, answer
    assert made.git("show", "--format=", "--name-only").split() == ["side.txt"]


async def test_a_commit_keeps_the_author_that_is_named(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.write("side.txt", "by Ada\n")
    ada = "Ada Lovelace <ada@example.org>"
    async with serving("--write", made.path) as asking:
        for author in ("Ada", "<ada@example.org>", "Ada <>", "Ada\n <ada@example.org>", "--all <a@example.org>x"):
            refused = await asking("create_commit", message="x", all_tracked=True, author=author)
            assert refused.startswith("failed: ") and "is not an author" in refused, refused
        await asking("create_commit", message="x", all_tracked=True, author=ada)
        assert made.git("log", "-1", "--format=%an <%ae>, %cn") == f"{ada}, Grace Hopper\n"
        await asking("create_commit", message="y", amend=True)
        assert made.git("log", "-1", "--format=%an <%ae>") == f"{ada}\n"
        await asking("create_commit", message="y", amend=True, author="Zoë Ünal <zoe@example.org>")
        assert made.git("log", "-1", "--format=%an") == "Zoë Ünal\n"


async def test_a_commit_can_have_the_author_and_the_date_of_another(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    ada = "Ada Lovelace <ada@example.org>"
    dates = ["2026-01-31T23:30:00-05:00", "@86400 +0130"]
    for date in dates:
        made.git("commit", "--quiet", "--allow-empty", "--message=x", f"--author={ada}", f"--date={date}")
    sources = [made.git("log", "-1", "--format=%an <%ae> %ad", "--date=raw", name) for name in ("HEAD", "HEAD~1")]
    async with serving("--write", made.path) as asking:
        for arguments, source in (({"paths": ["side.txt"]}, sources[0]), ({"all_tracked": True}, sources[0])):
            made.write("side.txt", f"{arguments}\n")
            await asking("create_commit", message="split", author="HEAD", **arguments)
            assert made.git("log", "-1", "--format=%an <%ae> %ad", "--date=raw") == source
        answer = await asking("create_commit", amend=True, author="HEAD~3")
        assert made.git("log", "-1", "--format=%an <%ae> %ad", "--date=raw") == sources[1], answer
        assert made.git("log", "-1", "--format=%cn") == "Grace Hopper\n"


async def test_an_amended_commit_keeps_its_message_unless_another_is_given(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    message = "Subject  \n\n# no remark, a line\n\n\n  indented: ü\n"
    made.git("commit", "--quiet", "--allow-empty", "--cleanup=verbatim", f"--message={message}")
    before = made.git("cat-file", "commit", "HEAD").partition("\n\n")[2]
    made.write("side.txt", "forgotten\n")
    async with serving("--write", made.path) as asking:
        answer = await asking("create_commit", amend=True, paths=["side.txt"])
        assert "in place of" in answer, answer
        assert made.git("cat-file", "commit", "HEAD").partition("\n\n")[2] == before
        assert "side.txt" in made.git("show", "--format=", "--name-only")
        await undone(asking, answer)
        refused = await asking("create_commit", paths=["side.txt"])
        assert refused.startswith("failed: ") and "`message` is missing" in refused, refused


async def test_a_commit_that_is_picked_says_how_much_it_changes(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    made.git("config", "user.name", "Grace Hopper")
    made.git("config", "user.email", "grace@example.org")
    made.commit("Begin", {"a.txt": "one\ntwo\n"})
    made.git("branch", "topic")
    made.commit("Change both", {"a.txt": "one\n", "b.txt": "new\nnew\n"})
    made.commit(" 1 file changed, 2 insertions(+)", {"a.txt": "one\nthree\n"})
    made.commit("Add a picture", {"c.png": b"\x89PNG\0"})
    async with serving("--write", made.path) as asking:
        picked = await asking("run_cherry_pick", rev="main~3..main", into="topic")
        reverted = await asking("revert_commit", rev="HEAD~1")
    subjects = re.findall(r"(?m)^[0-9a-f]{7,} +(.*)$", picked)
    assert subjects == [
        "Add a picture (1 file, +0 -0)",
        "1 file changed, 2 insertions(+) (1 file, +1 -0)",
        "Change both (2 files, +2 -1)",
    ]
    assert "(1 file, +0 -1)" in reverted, reverted


async def test_a_pick_of_which_a_part_was_there_already_tells_how_much_the_commit_changed(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    made.git("config", "user.name", "Grace Hopper")
    made.git("config", "user.email", "grace@example.org")
    made.commit("Begin", {"a.txt": "one\n", "b.txt": "one\n", "c.txt": "one\n"})
    made.git("branch", "topic")
    made.commit("Change both", {"a.txt": "two\n", "b.txt": "two\ntwo\n"})
    made.commit("Change one", {"c.txt": "two\n"})
    both = made.git("rev-parse", "--short", "main~1").strip()
    made.git("switch", "--quiet", "topic")
    here = made.commit("Here already", {"a.txt": "two\n"})[:7]
    for revision in ("main~2..main", "main~1"):
        async with serving("--write", made.path) as asking:
            picked = await asking("run_cherry_pick", rev=revision)
            rest = f"the rest of {both} (2 files, +3 -2) was here already: a.txt: `-one`, `+two`, "
            rest += f"came with {here} Here already"
            assert f"Change both (1 file, +2 -1; {rest})" in picked, picked
            assert ".." not in revision or "Change one (1 file, +1 -1)\n" in picked, picked
            await undone(asking, picked)


async def test_a_pick_names_a_file_as_the_commit_and_as_the_branch_do(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    lines = [f"line {number}" for number in range(20)]

    def text_with(**changed: str) -> str:
        return "\n".join([changed.get(line.replace(" ", "_"), line) for line in lines]) + "\n"

    made.commit("Begin", {"src/orders.py": text_with()})
    made.git("branch", "export")
    made.commit("Change two lines", {"src/orders.py": text_with(line_1="first", line_18="last")})
    made.git("switch", "--quiet", "export")
    (made.path / "src/shop").mkdir()
    made.git("mv", "src/orders.py", "src/shop/orders.py")
    here = made.commit("Move, and change one", {"src/shop/orders.py": text_with(line_1="first")})[:7]
    async with serving("--write", made.path) as asking:
        picked = await asking("run_cherry_pick", rev="main")
    assert "was here already: src/orders.py (here src/shop/orders.py): `-line 1`, `+first`, " in picked, picked
    assert f"`+first`, came with {here} Move, and change one)" in picked, picked


@pytest.mark.parametrize(
    ("history", "origins"),
    [
        ([("one", "first", "line 3"), ("three", "first", "third")], ["three", "one"]),
        ([("both", "first", "third"), ("more", "first", "third", "more")], ["both"]),
        ([("once", "first", "third"), ("undo",), ("again", "first", "third")], ["again"]),
        ([("both", "first", "third"), ("undo one", "line 1", "third"), ("one", "first", "third")], ["one", "both"]),
        ([("both", "first", "third"), ("more", "first", "third", "first")], ["both"]),
        ([("one", "first"), ("undo",), ("both", "first", "third")], ["both"]),
    ],
)
async def test_a_pick_names_the_commits_with_which_its_lines_came(
    history: Sequence[tuple[str, ...]], origins: Sequence[str], tmp_path: Path
) -> None:
    made = Made(tmp_path / "app")

    def text(first: str = "line 1", third: str = "line 3", last: str = "line 5", new: str = "line 7") -> str:
        return f"{first}\nline 2\n{third}\nline 4\n{last}\nline 6\n{new}\n"

    made.commit("Begin", {"a.txt": text(), "b.txt": "line 1\nline 3\n"})
    made.git("branch", "topic")
    made.commit("Change three", {"a.txt": text("first", "third", new="seventh")})
    made.git("switch", "--quiet", "topic")
    # What has the lines in another file is not where they came from.
    made.commit("Elsewhere", {"b.txt": "first\nthird\n"})
    hashes = {subject: made.commit(subject, {"a.txt": text(*lines)})[:7] for subject, *lines in history}
    async with serving("--write", made.path) as asking:
        picked = await asking("run_cherry_pick", rev="main")
    assert "was here already: a.txt: `-line 1`, `-line 3`" in picked or "and 2 more" in picked, picked
    named = ", ".join(f"{hashes[subject]} {subject}" for subject in origins)
    assert f", came with {named})" in picked if origins else "came with" not in picked, picked


async def test_of_two_commits_that_made_the_same_change_none_is_where_it_came_from(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    lines = [f"line {number}" for number in range(20)]
    made.commit("Begin", {"a.txt": "\n".join(["one", *lines]), "b.txt": "one\n"})
    made.git("branch", "topic")
    made.commit("Change both", {"a.txt": "\n".join(["two", *lines]), "b.txt": "two\n"})
    made.git("switch", "--quiet", "topic")
    made.git("branch", "side")
    made.commit("On the branch", {"a.txt": "\n".join(["two", *lines, "more"])})
    made.git("switch", "--quiet", "side")
    made.commit("On the side", {"a.txt": "\n".join(["two", *lines[:9], *lines[10:]])})
    made.git("switch", "--quiet", "topic")
    made.git("merge", "--quiet", "--no-ff", "--message=merged", "side")
    async with serving("--write", made.path) as asking:
        picked = await asking("run_cherry_pick", rev="main")
    assert "was here already: a.txt: `-one`, `+two`)" in picked, picked


async def test_a_commit_that_only_renamed_a_file_is_not_where_its_lines_came_from(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    lines = [f"line {number}" for number in range(20)]
    made.commit("Begin", {"a.txt": "\n".join(lines)})
    made.git("branch", "topic")
    made.commit("Add two", {"a.txt": "\n".join(["first", *lines, "last"])})
    made.git("switch", "--quiet", "topic")
    made.git("mv", "a.txt", "other.txt")
    made.commit("Add one in another place", {"other.txt": "\n".join(["first", *lines])})
    (made.path / "new").mkdir()
    made.git("mv", "other.txt", "new/a.txt")
    made.commit("Rename")
    async with serving("--write", made.path) as asking:
        picked = await asking("run_cherry_pick", rev="main")
    assert "was here already: a.txt (here new/a.txt): `+first`)" in picked, picked


async def test_picks_pass_over_what_is_there_already_also_after_a_conflict(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    made.git("config", "user.name", "Grace Hopper")
    made.git("config", "user.email", "grace@example.org")
    made.commit("Begin", {"a.txt": "one\n", "b.txt": "one\n"})
    made.git("branch", "topic")
    for number in range(3):
        made.commit(f"step {number}", {f"{number}.txt": "text\n"})
    made.commit("other side", {"b.txt": "theirs\n"})
    made.commit("last", {"last.txt": "text\n"})
    made.git("switch", "--quiet", "topic")
    for name in ("0.txt", "2.txt", "last.txt"):
        made.commit(f"also {name}", {name: "text\n"})
    made.commit("ours", {"b.txt": "ours\n"})
    start = made.git("rev-parse", "HEAD")
    async with serving("--write", made.path) as asking:
        stopped = await asking("run_cherry_pick", rev="topic..main")
        assert "1 in conflict" in stopped and "continue or abort; 1 commit to come]" in stopped, stopped
        assert re.findall(r"(?m)^left out, it changes nothing here: \w+ (.*)$", stopped) == ["step 0", "step 2"]
        ended = await asking("continue_operation", action="continue", theirs=["b.txt"])
        assert re.findall(r"(?m)^left out, it changes nothing here: \w+ (.*)$", ended) == ["last"]
        # What ends it tells all that came of it.
        assert re.findall(r"(?m)^[0-9a-f]{7,} (\w+ \w+)", ended) == ["other side", "step 1"]
        await undone(asking, ended)
    assert made.git("rev-parse", "HEAD") == start


def merge_side(made: Made) -> None:
    """Merge a branch of one commit into `main`, which has got one of its own."""
    made.git("switch", "--quiet", "--create", "side")
    made.commit("on the side", {"one.txt": "text\n"})
    made.git("switch", "--quiet", "main")
    made.commit("on main", {"two.txt": "text\n"})
    made.git("merge", "--quiet", "--no-ff", "--message", "Both", "side")


@pytest.mark.parametrize("tool", ["run_cherry_pick", "revert_commit"])
async def test_a_range_with_a_merge_is_done_without_it(tool: str, tmp_path: Path) -> None:
    made = made_app(tmp_path)
    merge_side(made)
    merge = made.git("rev-parse", "--short", "HEAD").strip()
    made.git("switch", "--quiet", "--create", "other", "main" if tool == "revert_commit" else "main~2")
    async with serving("--write", made.path) as asking:
        answer = await asking(tool, rev="main~2..main")
    assert f"\nleft out, a merge: {merge} Both\n" in answer and "under way" not in answer, answer
    files = made.git("ls-files").split()
    assert ("one.txt" in files, "two.txt" in files) == (tool != "revert_commit",) * 2


async def test_a_pick_that_stops_without_a_conflict_says_why(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.git("switch", "--quiet", "topic")
    made.commit("one", {"one.txt": "text\n"})
    made.commit("two", {"two.txt": "text\n"})
    made.git("switch", "--quiet", "main")
    made.write("two.txt", "mine\n")
    async with serving("--write", made.path) as asking:
        answer = await asking("run_cherry_pick", rev="topic~2..topic")
    assert "under way" in answer and "two.txt" in answer.partition("\ngit: ")[2], answer


async def test_a_rebase_that_ends_after_a_conflict_tells_all_its_commits(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.git("switch", "--quiet", "topic")
    made.commit("one", {"one.txt": "text\n"})
    made.commit("theirs", {"side.txt": "theirs\n"})
    made.git("switch", "--quiet", "main")
    made.commit("ours", {"side.txt": "ours\n"})
    made.git("switch", "--quiet", "topic")
    async with serving("--write", made.path) as asking:
        stopped = await asking("run_rebase", rev="main")
        assert "; its `ours` is the new base]" in stopped, stopped
        ended = await asking("continue_operation", action="continue", theirs=["side.txt"])
    assert re.findall(r"(?m)^[0-9a-f]{7,} (\w+)$", ended) == ["theirs", "one"], ended


async def test_what_names_or_moves_a_branch_says_at_which_commit_it_is(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.commit("second", {"side.txt": "more\n"})
    made.commit("third", {"side.txt": "most\n"})
    second = made.git("log", "-1", "--format=%h %s", "main~1").strip()
    async with serving("--write", made.path) as asking:
        assert f"[new is at {second}]\n" in await asking("create_branch", name="new", rev="main~1")
        assert f"[tag v1 is at {second}]\n" in await asking("create_tag", name="v1", rev="main~1", message="One")
        renamed = await asking("create_branch", name="newer", rename="new")
        assert f"[new is now newer, at {second}]\n" in renamed, renamed
        await undone(asking, renamed)
        assert f"[deleted new, which was at {second}]\n" in await asking("delete_ref", name="new")
        assert f"[deleted tag v1, which was at {second}]\n" in await asking("delete_ref", name="v1", kind="tag")
        reset = await asking("run_reset", rev="main~1")
        assert f"\n1 commit taken off, now at {second}\n" in reset, reset
        # What an argument is by itself is not said.
        assert "mode" not in reset, reset
        made.git("switch", "--quiet", "--create", "other", "main~1")
        merged = await asking("run_merge", rev="main", message="Both")
        assert "; brought 1 file, +1 -1; " in merged, merged


async def test_what_git_refuses_comes_with_the_call_that_helps(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.git("tag", "v1")
    made.git("switch", "--quiet", "topic")
    made.commit("theirs", {"side.txt": "theirs\n"})
    made.git("switch", "--quiet", "main")
    made.write("side.txt", "mine\n")
    async with serving("--write", made.path) as asking:
        assert "kind=tag" in await asking("delete_ref", name="v1")
        assert "`run_stash`" in await asking("run_rebase", rev="topic")
        assert "`run_stash`" in await asking("run_switch", rev="topic")
        made.git("restore", "side.txt")
        made.commit("ours", {"side.txt": "ours\n"})
        assert "in conflict" in await asking("run_merge", rev="topic")
        assert "`continue_operation`" in await asking("run_cherry_pick", rev="topic")


async def test_a_stash_names_the_untracked_files_that_it_has(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.write("new.txt", "new\n")
    made.write("side.txt", "more\n")
    made.git("stash", "push", "--quiet", "--include-untracked")
    async with serving(made.path) as asking:
        answer = await asking("read_diff", rev="stash@{0}", files_only=True)
    assert "untracked files that were put aside are in the last, new.txt\n" in answer, answer


@pytest.mark.parametrize("into", [{}, {"into": "topic"}])
async def test_several_commits_are_picked_and_reverted_in_one_call(into: dict[str, str], tmp_path: Path) -> None:
    made = made_app(tmp_path)
    hashes = [made.commit(f"step {number}", {f"{number}.txt": "text\n"}) for number in range(4)]
    if not into:
        made.git("switch", "--quiet", "topic")
    before = made.git("rev-parse", "topic")
    async with serving("--write", made.path) as asking:
        answer = await asking("run_cherry_pick", rev=f"{hashes[3]} main~2 {hashes[0]}", **into)
        assert answer.startswith("[topic "), answer
        subjects = made.git("log", "--format=%s", "topic").splitlines()
        assert subjects == ["step 0", "step 1", "step 3", "first"], answer
        assert "3.txt" in made.git("ls-files") and "2.txt" not in made.git("ls-files")
        await undone(asking, answer)
        assert made.git("rev-parse", "topic") == before
        # A model may send them as an array.
        made.git("switch", "--quiet", "main")
        reverted = await asking("revert_commit", rev=[hashes[3], hashes[1]])
        assert made.git("log", "-2", "--format=%s").splitlines() == ['Revert "step 1"', 'Revert "step 3"'], reverted
        await undone(asking, reverted)
        missing = await asking("run_cherry_pick", rev=f"{hashes[0]} nothing")
        assert missing.startswith("failed: There is no revision `nothing`"), missing
        assert "range" in await asking("run_cherry_pick", rev=f"{hashes[0]} main~2..main")


async def test_of_several_picks_one_in_conflict_leaves_the_others_to_come(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    hashes = [
        made.commit(f"step {number}", {"side.txt": f"{number}\n", f"{number}.txt": "text\n"}) for number in (0, 1)
    ]
    hashes.append(made.commit("apart", {"apart.txt": "text\n"}))
    made.git("switch", "--quiet", "topic")
    async with serving("--write", made.path) as asking:
        stopped = await asking("run_cherry_pick", rev=" ".join(hashes[1:]))
        assert "1 in conflict" in stopped and "; 1 commit to come]" in stopped, stopped
        ended = await asking("continue_operation", action="continue", theirs=["side.txt"])
        assert made.git("log", "-2", "--format=%s").splitlines() == ["apart", "step 1"], ended
        await undone(asking, ended)


@pytest.mark.parametrize("first", [True, False])
async def test_an_ignored_file_is_safe_from_each_of_several_picks(first: bool, tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.write(".gitignore", "*.log\n")
    made.commit("ignore", {})
    made.git("branch", "--force", "topic")
    made.write("a.log", "theirs\n")
    made.git("add", "--force", "a.log")
    brings = made.commit("bring a.log")
    other = made.commit("other", {"other.txt": "text\n"})
    made.git("switch", "--quiet", "topic")
    made.write("a.log", "mine\n")
    commits = [brings, other] if first else [other, brings]
    async with serving("--write", made.path) as asking:
        answer = await asking("run_cherry_pick", rev=" ".join(commits))
    assert answer.startswith("failed: ") and "a.log" in answer, answer
    assert (made.path / "a.log").read_text() == "mine\n" and "under way" not in answer


@pytest.mark.parametrize("blocked", [1, 2])
@pytest.mark.parametrize("tool", ["run_cherry_pick", "revert_commit"])
async def test_a_commit_at_which_git_refused_to_go_on_is_made_later(tool: str, blocked: int, tmp_path: Path) -> None:
    made = made_app(tmp_path)
    hashes = [made.commit(f"step {number}", {f"{number}.txt": "text\n"}) for number in range(3)]
    if tool == "run_cherry_pick":
        made.git("switch", "--quiet", "topic")
    start = made.git("rev-parse", "HEAD")
    made.write(f"{blocked}.txt", "mine\n")
    made.write("notes.txt", "mine\n")
    async with serving("--write", made.path) as asking:
        stopped = await asking(tool, rev=" ".join(hashes))
        assert f"; {count(3 - blocked, 'commit')} to come]" in stopped, stopped
        # It is refused again as long as the file is there.
        refused = await asking("continue_operation", action="continue")
        assert refused.startswith("failed: ") and "Nothing was changed" in refused, refused
        assert (made.path / f"{blocked}.txt").read_text() == "mine\n"
        (made.path / f"{blocked}.txt").unlink()
        if tool == "revert_commit":
            made.git("restore", f"{blocked}.txt")
        ended = await asking("continue_operation", action="continue")
        assert [f"step {number}" in ended for number in range(3)] == [True] * 3, ended
        assert "under way" not in ended and made.git("rev-list", "--count", f"{start.strip()}..").strip() == "3"
        await undone(asking, ended)
    assert made.git("rev-parse", "HEAD") == start and made.git("status", "--porcelain") == " M notes.txt\n"


@pytest.mark.parametrize("skips", [True, False])
async def test_a_refused_commit_of_a_pick_can_be_skipped_or_made_by_hand(skips: bool, tmp_path: Path) -> None:
    made = made_app(tmp_path)
    hashes = [made.commit(f"step {number}", {f"{number}.txt": "text\n"}) for number in range(3)]
    made.git("switch", "--quiet", "topic")
    made.write("1.txt", "mine\n")
    async with serving("--write", made.path) as asking:
        await asking("run_cherry_pick", rev=" ".join(hashes))
        if not skips:
            (made.path / "1.txt").unlink()
            made.git("cherry-pick", hashes[1])
        await asking("continue_operation", action="skip" if skips else "continue")
    subjects = made.git("log", "--format=%s").splitlines()
    assert subjects == ["step 2", *([] if skips else ["step 1"]), "step 0", "first"]


async def test_a_conflict_in_a_commit_that_was_refused_before_is_resolved_and_the_others_follow(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    hashes = [
        made.commit("one", {"one.txt": "text\n"}),
        made.commit("two", {"side.txt": "theirs\n"}),
        made.commit("three", {"three.txt": "text\n"}),
    ]
    made.git("switch", "--quiet", "topic")
    made.commit("ours", {"side.txt": "ours\n"})
    made.write("side.txt", "mine\n")
    async with serving("--write", made.path) as asking:
        await asking("run_cherry_pick", rev=" ".join(hashes))
        made.git("restore", "side.txt")
        stopped = await asking("continue_operation", action="continue")
        assert "conflict: side.txt\n" in stopped and "; 1 commit to come]" in stopped, stopped
        await asking("continue_operation", action="continue", theirs=["side.txt"])
    assert made.git("log", "-3", "--format=%s").splitlines() == ["three", "two", "one"]
    assert made.git("status", "--porcelain") == ""


@pytest.mark.parametrize("into", [{}, {"into": "topic"}])
async def test_several_picks_that_are_refused_at_once_leave_nothing_under_way(
    into: dict[str, str], tmp_path: Path
) -> None:
    made = made_app(tmp_path)
    hashes = [made.commit(f"step {number}", {f"{number}.txt": "text\n"}) for number in range(2)]
    made.git("switch", "--quiet", "--detach", "topic")
    made.write("0.txt", "mine\n")
    before = state(made)
    async with serving("--write", made.path) as asking:
        answer = await asking("run_cherry_pick", rev=" ".join(hashes), **into)
        assert answer.startswith("failed: ") and "0.txt" in answer and "Nothing was changed" in answer, answer
        assert "under way" not in await asking("get_status")
    assert state(made) == before


async def test_several_commits_with_a_merge_are_refused_before_one_is_made(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    merge_side(made)
    made.git("switch", "--quiet", "topic")
    async with serving("--write", made.path) as asking:
        refused = await asking("run_cherry_pick", rev="main~1 main")
        assert refused.startswith("failed: ") and "`mainline`" in refused, refused
        assert "under way" not in await asking("get_status")
        await asking("run_cherry_pick", rev="main~1 main", mainline=1)
    assert made.git("log", "--format=%s").splitlines() == ["Both", "on main", "first"]


@pytest.mark.parametrize("rev", ["main~1^!", "main^@", "main^! main~1^!", "main main~1^-", "main~1^-1"])
async def test_what_names_a_commit_by_its_parents_is_not_picked(rev: str, tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.write(".gitattributes", "*.bin filter=unknown\n")
    made.git("config", "filter.unknown.smudge", "cat")
    made.git("config", "filter.unknown.clean", "cat")
    made.commit("filtered", {"a.bin": "text\n"})
    made.commit("other", {"other.txt": "text\n"})
    made.git("switch", "--quiet", "topic")
    before = state(made)
    async with serving("--write", made.path) as asking:
        answer = await asking("run_cherry_pick", rev=rev)
    assert answer.startswith("failed: ") and "is a range" in answer, answer
    assert state(made) == before


@pytest.mark.parametrize("rev", ["main..topic", "topic..main"])
async def test_a_range_without_commits_says_where_to_look(rev: str, tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.git("switch", "--quiet", "--create", "side")
    made.commit("on the side", {"one.txt": "text\n"})
    made.git("switch", "--quiet", "main")
    made.git("merge", "--quiet", "--no-ff", "--message", "Both", "side")
    made.git("switch", "--quiet", "topic")
    made.git("merge", "--quiet", "--ff-only", "side")
    async with serving("--write", made.path) as asking:
        answer = await asking("run_cherry_pick", rev=rev)
    assert "`list_commits`" in answer and "`mainline`" in answer, answer


async def test_a_tag_of_what_is_no_commit_and_a_long_name_are_said_with_their_hash(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    tree = made.git("rev-parse", "--short=12", "HEAD^{tree}").strip()
    first = made.git("log", "-1", "--format=%h %s").strip()
    long_name = "b" * 150
    made.git("tag", "of-tree", "HEAD^{tree}")
    async with serving("--write", made.path) as asking:
        assert f"[deleted tag of-tree, which was at {tree}]\n" in await asking("delete_ref", name="of-tree", kind="tag")
        assert f"[{long_name} is at {first}]\n" in await asking("create_branch", name=long_name)


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_reverts_pass_over_what_is_gone_already(place: int, tmp_path: Path) -> None:
    made = made_app(tmp_path)
    hashes = [made.commit(f"step {number}", {f"{number}.txt": f"{number}\n" * 30}) for number in range(3)]
    made.git("revert", "--no-edit", hashes[1])
    before = state(made)
    order = [hashes[0], hashes[2]]
    order.insert(place, hashes[1])
    async with serving("--write", made.path) as asking:
        answer = await asking("revert_commit", rev=" ".join(order))
        assert re.findall(r"(?m)^left out, it changes nothing here: \w+ (.*)$", answer) == ["step 1"], answer
        assert "under way" not in answer and made.git("ls-files").split() == ["notes.txt", "side.txt"]
        await undone(asking, answer)
    assert state(made) == before


@pytest.mark.parametrize("tool", ["run_merge", "run_rebase"])
async def test_several_picks_begin_nothing_while_something_else_is_under_way(tool: str, tmp_path: Path) -> None:
    made = made_app(tmp_path)
    hashes = [made.commit(f"step {number}", {"side.txt": f"{number}\n"}) for number in range(2)]
    made.git("switch", "--quiet", "topic")
    made.commit("ours", {"side.txt": "ours\n"})
    async with serving("--write", made.path) as asking:
        assert "in conflict" in await asking(tool, rev="main")
        refused = await asking("run_cherry_pick", rev=" ".join(hashes))
        assert refused.startswith("failed: There is a ") and "`continue_operation`" in refused, refused
        ended = await asking("continue_operation", action="abort")
        assert "under way" not in ended, ended


async def test_a_merge_of_three_is_no_stash_by_its_subject(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    for name in ("one", "two"):
        made.git("switch", "--quiet", "--create", name, "main")
        made.commit(name, {f"{name}.txt": "text\n"})
    made.git("switch", "--quiet", "main")
    made.commit("apart", {"apart.txt": "text\n"})
    made.git("merge", "--quiet", "--message", "On the way", "one", "two")
    async with serving(made.path) as asking:
        answer = await asking("read_diff", rev="HEAD")
    assert "shown against the first\n" in answer and "put aside" not in answer, answer


async def test_several_picks_need_a_commit_to_go_back_to(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    hashes = [made.commit(f"step {number}", {f"{number}.txt": "text\n"}) for number in range(3)]
    made.git("switch", "--quiet", "--orphan", "fresh")
    async with serving("--write", made.path) as asking:
        refused = await asking("run_cherry_pick", rev=" ".join(hashes))
        assert refused.startswith("failed: `HEAD` has no commit yet"), refused
        await asking("run_cherry_pick", rev=hashes[0])
        made.write("2.txt", "mine\n")
        assert "under way" in await asking("run_cherry_pick", rev=" ".join(hashes[1:]))
        await asking("continue_operation", action="abort")
    assert made.git("log", "--format=%s") == "step 0\n"


@pytest.mark.parametrize("is_later", [True, False])
async def test_an_ignored_file_is_safe_from_a_refused_pick_that_continues(is_later: bool, tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.write(".gitignore", "*.log\n")
    made.commit("ignore", {})
    made.git("branch", "--force", "topic")
    other = made.commit("other", {"other.txt": "text\n"})
    made.write("blocked.txt", "theirs\n")
    if is_later:
        made.commit("blocked", {})
    made.write("a.log", "theirs\n")
    made.git("add", "--force", "a.log")
    made.commit("bring a.log", {"blocked.txt": "theirs\n"})
    made.git("switch", "--quiet", "topic")
    made.write("blocked.txt", "mine\n")
    async with serving("--write", made.path) as asking:
        stopped = await asking("run_cherry_pick", rev=f"{other}~1..main")
        assert "under way" in stopped, stopped
        (made.path / "blocked.txt").unlink()
        made.write("a.log", "mine\n")
        refused = await asking("continue_operation", action="continue")
        assert refused.startswith("failed: `a.log` is ignored"), refused
        (made.path / "a.log").unlink()
        assert "under way" not in await asking("continue_operation", action="continue")
    assert made.git("ls-files").split() == [".gitignore", "a.log", "blocked.txt", "notes.txt", "other.txt", "side.txt"]


async def test_a_commit_of_what_was_in_the_way_of_a_pick_does_not_stand_for_it(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    hashes = [made.commit(f"step {number}", {f"{number}.txt": "text\n"}) for number in range(3)]
    made.git("switch", "--quiet", "topic")
    made.write("1.txt", "mine\n")
    async with serving("--write", made.path) as asking:
        await asking("run_cherry_pick", rev=" ".join(hashes))
        committed = await asking("create_commit", message="mine", paths=["1.txt"])
        assert "; 2 commits to come]" in committed, committed
        stopped = await asking("continue_operation", action="continue")
        assert "conflict: 1.txt (added by both)\n" in stopped, stopped
        # What is committed after a conflict stands for the commit.
        made.write("1.txt", "both\n")
        made.git("add", "1.txt")
        committed = await asking("create_commit", message="step 1 and mine")
        assert "; 1 commit to come]" in committed, committed
        ended = await asking("continue_operation", action="continue")
        assert "under way" not in ended, ended
    assert made.git("log", "-4", "--format=%s").splitlines() == ["step 2", "step 1 and mine", "mine", "step 0"]


@pytest.mark.parametrize("by_hand", [True, False])
async def test_a_commit_of_what_was_in_the_way_of_a_revert_does_not_stand_for_it(by_hand: bool, tmp_path: Path) -> None:
    made = made_app(tmp_path)
    hashes = [made.commit(f"step {number}", {f"{number}.txt": "text\n"}) for number in range(3)]
    made.write("1.txt", "text\n" * 9 + "mine\n")
    async with serving("--write", made.path) as asking:
        await asking("revert_commit", rev=" ".join(hashes))
        if by_hand:
            made.git("restore", "1.txt")
            made.git("revert", "--no-edit", hashes[1])
        else:
            committed = await asking("create_commit", message="mine", paths=["1.txt"])
            assert "; 2 commits to come]" in committed, committed
            stopped = await asking("continue_operation", action="continue")
            assert "conflict: 1.txt (deleted by them)\n" in stopped, stopped
            made.git("rm", "--quiet", "1.txt")
            # Another message than git's does not say that it stands for the commit, so git tries once more.
            await asking("create_commit", message="no step 1")
        ended = await asking("continue_operation", action="continue")
        assert "under way" not in ended, ended
    own_commits = [] if by_hand else ["no step 1", "mine"]
    reverts = ['Revert "step 2"', *(own_commits or ['Revert "step 1"']), 'Revert "step 0"', "step 2"]
    assert made.git("log", f"-{len(reverts)}", "--format=%s").splitlines() == reverts
    assert made.git("ls-files").split() == ["notes.txt", "side.txt"]


@pytest.mark.parametrize("action", ["skip", "abort"])
async def test_what_is_staged_where_a_pick_was_refused_is_not_thrown_away(action: str, tmp_path: Path) -> None:
    made = made_app(tmp_path)
    hashes = [made.commit(f"step {number}", {f"{number}.txt": "text\n"}) for number in range(3)]
    made.git("switch", "--quiet", "topic")
    made.write("1.txt", "mine\n")
    async with serving("--write", made.path) as asking:
        await asking("run_cherry_pick", rev=" ".join(hashes))
        made.write("side.txt", "mine\n")
        made.git("add", "side.txt")
        refused = await asking("continue_operation", action=action)
        assert refused.startswith("failed: ") and "Nothing was changed" in refused, refused
        assert (made.path / "side.txt").read_text() == "mine\n"
        made.git("restore", "--staged", "side.txt")
        assert "under way" not in await asking("continue_operation", action=action)
    assert (made.path / "side.txt").read_text() == "mine\n"
    assert made.git("log", "-1", "--format=%s") == ("step 2\n" if action == "skip" else "first\n")


async def test_own_changes_in_the_way_of_the_end_of_a_pick_can_be_put_aside(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    hashes = [made.commit(f"step {number}", {f"{number}.txt": "text\n"}) for number in range(3)]
    made.git("switch", "--quiet", "topic")
    made.write("1.txt", "mine\n")
    async with serving("--write", made.path) as asking:
        await asking("run_cherry_pick", rev=" ".join(hashes))
        made.write("0.txt", "mine\n")
        advice = "Nothing was changed. `run_stash` puts them aside"
        assert advice in await asking("continue_operation", action="abort")
        made.git("add", "0.txt")
        for action in ("continue", "skip"):
            assert advice in await asking("continue_operation", action=action)
        await asking("run_stash", action="push")
        assert "under way" not in await asking("continue_operation", action="abort")
    assert made.git("show", "stash@{0}:0.txt") == (made.path / "1.txt").read_text() == "mine\n"


async def test_a_refused_pick_is_made_with_the_options_of_the_others(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    merge_side(made)
    made.git("switch", "--quiet", "topic")
    made.write("one.txt", "mine\n")
    async with serving("--write", made.path) as asking:
        with suppress(AssertionError):
            made.git("cherry-pick", "-x", "--mainline=1", "main~1", "main")
        (made.path / "one.txt").unlink()
        ended = await asking("continue_operation", action="continue")
        assert "under way" not in ended, ended
    assert made.git("log", "--format=%s").splitlines() == ["Both", "on main", "first"]
    assert made.git("log", "--format=%b").count("cherry picked from") == 2


async def test_more_commits_than_a_call_can_look_at_are_refused(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    before = state(made)
    async with serving("--write", made.path) as asking:
        answer = await asking("run_cherry_pick", rev=" ".join(["topic"] * 201))
    assert answer.startswith("failed: These are 201 commits, and one call takes 200."), answer
    assert state(made) == before
