"""What the tools answer, beside what git itself says."""

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from git_server.made import Made
from git_server.serving import Asking, everything, serving
from mcp_batteries.errors import Invalid, Unavailable
from mcp_batteries.settings import load
from mcp_batteries.testing.wire import StdioWire
from mcp_git.engine.history.patterns import refuse_foreign_syntax
from mcp_git.engine.program.private_git_dir import _link_on_windows
from mcp_git.server import build
from mcp_git.settings import Settings
from tools.docs import snapshot


def history(folder: Path) -> Made:
    """Two branches that parted and met, a tag, a stash, and a file in each of the states."""
    made = Made(folder)
    made.commit("Add the notes", {"notes.txt": "one\ntwo\n", "docs/guide.md": "# Guide\n"})
    made.git("tag", "--annotate", "v1", "--message", "The first")
    made.git("switch", "--quiet", "--create", "side")
    made.commit("A side step", {"side.txt": "side\n"})
    made.git("switch", "--quiet", "main")
    made.commit("Change a note", {"notes.txt": "one\n2\n"})
    made.git("merge", "--quiet", "--no-edit", "side")
    made.write("notes.txt", "stashed\n")
    made.git("stash", "push", "--quiet", "--message", "for later")
    made.write("notes.txt", "one\n2\nthree\n")
    made.write("docs/guide.md", "# The guide\n")
    made.git("add", "docs/guide.md")
    made.write("new.txt", "new\n")
    return made


def conflict(made: Made) -> None:
    made.commit("ground", {"a.txt": "ground\n"})
    made.git("switch", "--quiet", "--create", "theirs")
    made.commit("their word", {"a.txt": "theirs\n"})
    made.git("switch", "--quiet", "main")
    made.commit("our word", {"a.txt": "ours\n"})
    with pytest.raises(AssertionError):
        made.git("merge", "theirs")


async def all_pages(asking: Asking, tool: str, **arguments: object) -> list[str]:
    pages = [await asking(tool, **arguments)]
    while found := re.search(r'cursor="([^"]+)"', pages[-1].partition("\n")[0]):
        pages.append(await asking(tool, **arguments, cursor=found[1]))
        assert not pages[-1].startswith("failed"), pages[-1]
    return pages


@pytest.mark.anyio
async def test_the_state_and_the_history(tmp_path: Path) -> None:
    made = history(tmp_path / "app")
    head, before = (made.git("rev-parse", "--short", name).strip() for name in ("HEAD", "HEAD~1"))
    async with serving(made.path) as asking:
        status = (await asking("get_status")).splitlines()
        assert status[0] == f"[main {made.git('rev-parse', 'HEAD')[:9]}; 1 staged, 1 changed, 1 untracked; 1 stash]"
        assert status[1:] == ["M  docs/guide.md", " M notes.txt", "?? new.txt"]
        rows = (await asking("list_commits")).splitlines()
        assert rows[0] == "[commits 1-4 of HEAD; all of 2026-01-31; all by Ada Lovelace]"
        assert rows[1] == f"{head} (*main) (merge) Merge branch 'side'"
        assert f"{head} 2026-01-31 Ada Lovelace: (*main) (merge) Merge" in await asking("list_commits", limit=1)
        assert [len(await asking("list_commits", **words)) > 40 for words in ({"author": "ada"}, {"message": "SIDE"})]
        assert (await asking("list_commits", author="grace")).startswith("[no commits")
        assert "Change a note" in await asking("list_commits", text="two", path="notes.txt")
        assert (await asking("list_commits", text="^side$", regex=True)).count("\n") == 2
        assert (await asking("list_commits", rev="v1..HEAD")).startswith("[commits 1-3 of v1..HEAD;")
        assert (await asking("list_commits", since="2026-02-01")).startswith("[no commits")
        for day in ("2026-01-31", "2026/01/31", "31 January 2026", "Jan 31, 2026"):
            # The whole day, whatever hour it is now.
            assert (await asking("list_commits", since=day, until=day)).startswith("[commits 1-4 of HEAD;"), day
        drawn = (await asking("list_commits", graph=True)).splitlines()
        assert drawn[1].startswith("*   ") and "|\\" in drawn[2]
        shown = await asking("read_diff", rev="HEAD~1")
        assert shown.startswith("[HEAD~1; 1 file, +1 -1]\n") and "\nChange a note\n" in shown and "-two\n+2\n" in shown
        assert before in shown.splitlines()[1]
        assert "merge of" in await asking("read_diff", rev="HEAD")
        assert "+new" not in await asking("read_diff") and "+three" in await asking("read_diff")
        assert "guide" not in await asking("read_diff", only="unstaged")
        assert "+# The guide" in await asking("read_diff", only="staged")
        assert "side.txt" in await asking("read_diff", rev="v1...side") and "notes" not in await asking(
            "read_diff", rev="v1...side"
        )
        blame = (await asking("get_blame", path="notes.txt")).splitlines()
        assert [line for line in blame if line[:1].isdigit() and ": " in line[:3]] == ["1: one", "2: 2", "3: three"]
        assert blame[-2] == "not committed yet" and "Ada Lovelace: Change a note" in blame[3]
        assert (await asking("get_merge_base", one="side", other="HEAD~1")).endswith(": Add the notes\n")
        assert "side has 1 commit of its own, HEAD~1 1" in await asking("get_merge_base", one="side", other="HEAD~1")
        assert (await asking("read_file", path="notes.txt", rev="v1")).endswith("\none\ntwo\n")
        assert (await asking("list_files")).splitlines()[1:] == ["docs/", "6 notes.txt", "5 side.txt"]
        assert "8 docs/guide.md" in await asking("list_files", recursive=True)
        assert "docs/guide.md:1:# Guide" in await asking("search_text", pattern="guide", ignore_case=True)


@pytest.mark.anyio
async def test_a_commit_that_was_picked_with_another_patch_is_named_with_its_namesake(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    made.commit("base", {"a.txt": "a\n"})
    made.git("branch", "release")
    made.commit("alike", {"b.txt": "b\n"})
    ours = made.commit("with more beside it", {"a.txt": "b\n"})[:7]
    made.git("switch", "--quiet", "release")
    made.commit("alike", {"b.txt": "b\n"})
    theirs = made.commit("with more beside it", {"a.txt": "b\n", "VERSION": "2\n"})[:7]
    for branch in ("main", "release"):
        # Without a subject no commit is like another.
        made.git("switch", "--quiet", branch)
        made.write(f"{branch}.txt", "text\n")
        made.git("add", f"{branch}.txt")
        made.git("commit", "--quiet", "--allow-empty-message", "--message", "")
    async with serving(made.path) as asking:
        answer = await asking("list_commits", rev="release..main", not_picked=True)
        named = f"; not the patch but the subject of one in release: {ours} as {theirs} (`+2` only there); "
        assert named in answer, answer
        assert "alike" not in answer, answer
        script = "print(list_commits.all({rev: 'release..main', not_picked: true}).length)"
        assert f"{ours}" in await asking("call_tools", script=script)
        assert "the subject" not in await asking("list_commits", rev="release..main")


@pytest.mark.anyio
async def test_namesakes_are_told_with_the_lines_by_which_they_differ(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    made.commit("base", {"a.txt": "one\ntwo\nthree\n", "lua.txt": "-- a\n-- b\n"})
    made.git("branch", "release")
    sides = {
        # Beside other lines, which do not count, a comment whose removal looks like the head of a patch.
        "main": [
            {"lua.txt": "-- a\n"},
            {"a.txt": "new\none\ntwo\nthree\n"},
            {"p.png": b"\0a"},
            {"c.c": "continue with cursor=1; a\nc;\n"},
        ],
        "release": [{"lua.txt": "-- b\n"}, {"a.txt": "one\ntwo\nnew\nthree\n"}, {"p.png": b"\0b"}, {"c.c": "c;\n"}],
    }
    hashes: dict[str, list[str]] = {}
    for branch, changes in sides.items():
        made.git("switch", "--quiet", branch)
        hashes[branch] = [made.commit(f"fix {number}", files)[:7] for number, files in enumerate(changes)]
    differences = [
        " (`--- b`, there `--- a`)",
        " (the same lines elsewhere)",
        "",
        " (`+continue with cursor =1;a` only here)",
    ]
    pairs = [f"{one} as {other}{more}" for one, other, more in zip(*hashes.values(), differences, strict=True)]
    async with serving(made.path) as asking:
        answer = await asking("list_commits", rev="release..main", not_picked=True)
        assert f"in release: {', '.join(pairs[::-1])}]" in answer, answer
        script = "print(list_commits.all({rev: 'release..main', not_picked: true}).length)"
        assert "(the same lines elsewhere)" in await asking("call_tools", script=script)


Contents = Mapping[str, str | bytes]


def made_with_sides(
    path: Path, main: Mapping[str, Contents], release: Mapping[str, Contents]
) -> tuple[Made, dict[str, str]]:
    """A repository with commits on two branches, and their hashes by their subjects."""
    made = Made(path)
    made.commit("base", {"a.txt": "one\ntwo\n"})
    made.git("branch", "release")
    hashes: dict[str, str] = {}
    for branch, commits in {"main": main, "release": release}.items():
        made.git("switch", "--quiet", branch)
        for subject, files in commits.items():
            hashes[subject] = made.commit(subject, files)[:7]
    return made, hashes


@pytest.mark.anyio
async def test_what_was_made_in_another_way_is_told_with_the_commits_that_have_its_lines(tmp_path: Path) -> None:
    made, hashes = made_with_sides(
        tmp_path / "app",
        {
            "spaced": {"s.py": "if a == 1:\n    stop()\n"},
            "split": {"p.py": "first()\nsecond()\n"},
            "in part": {"q.py": "third()\nfourth()\nfifth()\n"},
            "alone": {"b.py": "nowhere()\n}\n"},
            "picture": {"p.png": b"\0a"},
        },
        {
            "as a part": {"other/s.py": "if a==1:\r\n\tstop()\r\n}\r\nmore()\r\n"},
            "half": {"p.py": "first()\n"},
            "the other half": {"p.py": "first()\nsecond()\n", "q.py": "fifth()\nthird()\n"},
        },
    )
    made.git("switch", "--quiet", "main")
    made.git("merge", "--quiet", "--strategy=ours", "--message=merged", "release~3")
    async with serving(made.path) as asking:
        answer = await asking("list_commits", rev="release..main", not_picked=True)
        script = "print(list_commits.all({rev: 'release..main', not_picked: true}).length)"
        printed = await asking("call_tools", script=script)
    said = (
        "; of the 4 commits not picked, commits of release have "
        f"all 2 lines of {hashes['split']} (in {hashes['the other half']}, {hashes['half']} beside others), "
        f"all 2 lines of {hashes['spaced']} (in {hashes['as a part']} beside others), "
        f"2 of 3 lines of {hashes['in part']} (`+third()` and 1 more in {hashes['the other half']}), "
        "no line of 1 (but for white space, merges and lines without words)]"
    )
    assert said in answer, answer
    assert "of the 4 commits not picked, commits of release have" in printed, printed


@pytest.mark.anyio
async def test_that_no_commit_has_a_line_of_others_is_said_too(tmp_path: Path) -> None:
    made, _ = made_with_sides(
        tmp_path / "app",
        {"like": {"b.txt": "b\n"}, "one": {"c.txt": "é\n".encode("latin-1")}, "spaces": {"a.txt": "one\r\n two\n"}},
        {"like": {"b.txt": "b\n", "c.txt": "è\n".encode("latin-1")}, "later": {"a.txt": "one \ntwo\n"}},
    )
    async with serving(made.path) as asking:
        answer = await asking("list_commits", rev="release..main", not_picked=True)
        assert (
            "; no commit of release adds or removes a line of the 1 other not picked (but for white space, " in answer
        ), answer
        for more in ({"rev": "release..main"}, {"rev": "release~2..release", "not_picked": True}):
            assert "but for white space" not in await asking("list_commits", **more)


@pytest.mark.anyio
async def test_what_was_not_compared_line_by_line_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subjects = [f"commit {number}" for number in range(4)]
    made, _ = made_with_sides(
        tmp_path / "app",
        {f"main's {subject}": {f"{subject}.py": f"{subject}\n"} for subject in subjects}
        | {"main's commit 1": {"large.py": "".join(f"line {number}\n" for number in range(99))}},
        {f"release's {subject}": {f"{subject}.txt": f"of {subject}\n"} for subject in subjects},
    )
    async with serving(made.path) as asking:
        monkeypatch.setattr("mcp_git.engine.history.other_side._MAX_OTHERS", 3)
        answer = await asking("list_commits", rev="release..main", not_picked=True)
        assert "; no commit of release adds or removes a line of the 4 commits not picked (" in answer, answer
        assert "; lines not compared: all but 3 commits of release]" in answer, answer
        monkeypatch.setattr("mcp_git.engine.history.other_side._MAX_BYTES_OF_RUN", 700)
        answer = await asking("list_commits", rev="release..main", not_picked=True)
        assert "a line of the 3 commits not picked (" in answer, answer
        assert "; lines not compared: 1 commit here, all but 3 commits of release]" in answer, answer


@pytest.mark.anyio
@pytest.mark.parametrize("path", ["tax.csv", "*.csv", '"tax.csv"'])
async def test_a_path_that_only_other_commits_have_is_an_empty_list_and_no_failure(path: str, tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    made.commit("base", {"a.txt": "a\n"})
    made.git("switch", "--quiet", "--create", "tax")
    oid = made.commit("Tax", {"tax.csv": "1\n"})[:7]
    made.git("switch", "--quiet", "main")
    async with serving(made.path) as asking:
        for more in ({}, {"rev": "main~0..main"}, {"message": "Tax"}, {"not_picked": True, "rev": "main~0..main"}):
            answer = await asking("list_commits", path=path, **more)
            assert answer.startswith("[no commits of ") and f"; only other commits have it, the latest {oid}" in answer
        assert oid in await asking("list_commits", path=path, all_branches=True)
        # That of a branch that was deleted is still in the reflog.
        made.git("branch", "--quiet", "-D", "tax")
        answer = await asking("call_tools", script=f"print(list_commits.all({{path: {path!r}}}))")
        assert "(only other commits have it, the latest " in answer and answer.endswith("\n[]\n"), answer
        refused = await asking("list_commits", path="never.csv")
        assert refused.startswith("failed: There is no `never.csv`"), refused


@pytest.mark.anyio
async def test_commits_whose_change_was_picked_are_left_out_on_every_page(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    made.commit("base", {"a.txt": "a\n"})
    made.git("branch", "release")
    hashes = [made.commit(f"fix {number}", {f"{number}.txt": f"{number}\n"}) for number in range(6)]
    made.git("switch", "--quiet", "release")
    made.commit("own", {"own.txt": "own\n"})
    for oid in (hashes[1], hashes[4]):
        made.git("cherry-pick", oid, GIT_COMMITTER_DATE="2026-02-01T12:00:00+00:00")
    query: dict[str, Any] = {"rev": "release..main", "not_picked": True}
    async with serving(made.path) as asking:
        first = await asking("list_commits", **query, limit=2)
        assert first.startswith("[commits 1-2 of release..main; no changes that release has too; "), first
        cursor = first.partition('cursor="')[2].partition('"')[0]
        made.commit("later", {"later.txt": "x\n"})
        rest = await asking("list_commits", **query, cursor=cursor)
        assert re.findall(r"fix \d", first + rest) == ["fix 5", "fix 3", "fix 2", "fix 0"], first + rest
        assert "later" not in rest and "own" not in first + rest
        found = await asking("list_commits", **query, message="fix", limit=3)
        cursor = found.partition('cursor="')[2].partition('"')[0]
        found += await asking("list_commits", **query, message="fix", cursor=cursor)
        assert re.findall(r"fix \d", found) == ["fix 5", "fix 3", "fix 2", "fix 0"], found
        assert "fix" not in (await asking("list_commits", **query, path="4.txt")).partition("\n")[2]
        for wrong in ({"rev": "main"}, {"rev": "release...main"}, {**query, "all_branches": True}):
            refused = await asking("list_commits", **{"not_picked": True, **wrong})
            assert refused.startswith("failed: `not_picked` is about a `rev` like `a..b`"), refused
        # The commits that were picked are older here than what was made of them.
        for date in ("since", "until"):
            refused = await asking("list_commits", rev="main..release", not_picked=True, **{date: "2026-02-01"})
            assert "takes neither `since` nor `until`" in refused, refused


@pytest.mark.anyio
async def test_authors_and_messages_are_looked_for_as_they_stand_unless_they_are_expressions(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    for subject, author in (
        ("feat(core): C++", "dependabot[bot] <bot@example.org>"),
        ("Ümlaut", "ada <a@example.org>"),
    ):
        made.git("commit", "--quiet", "--allow-empty", f"--message={subject}", f"--author={author}")
    found = {"C++": 1, "feat(core)": 1, "feat(": 1, "ümlaut": 1, "^feat": 0, "feat|lau": 0}
    async with serving(made.path) as asking:
        for message, number in found.items():
            said = await asking("list_commits", message=message)
            assert said.count("\n") - 1 == number, (message, said)
            assert ("set `regex`" in said) is (not number), said
        assert "C++" in await asking("list_commits", author="Dependabot[bot]")
        assert (await asking("list_commits", message="^feat|lau", regex=True)).count("\n") == 3
        assert "C++" in await asking("list_commits", author="^depend", regex=True)


@pytest.mark.anyio
async def test_pages_are_of_what_the_first_one_was_of(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    made.commit("first", {f"{name}.txt": f"{name}\n" * 400 for name in "bcdefgh"})
    first = made.git("rev-parse", "HEAD").strip()
    made.commit("all of them", {f"{name}.txt": f"{name} changed\n" * 400 for name in "bcdefgh"})
    calls: dict[str, dict[str, object]] = {
        "list_files": {"limit": 3},
        "search_text": {"pattern": "changed", "limit": 100},
        "read_diff": {"rev": f"{first}..main"},
    }
    async with serving(made.path) as asking:
        cursors = {tool: _cursor(await asking(tool, **arguments)) for tool, arguments in calls.items()}
        whole = {tool: await asking(tool, **calls[tool], cursor=cursors[tool]) for tool in calls}
        made.commit("meanwhile", {"a.txt": "changed\n", "b.txt": "b\n"})
        for tool in ("list_files", "search_text"):
            assert await asking(tool, **calls[tool], cursor=cursors[tool]) == whole[tool]
        said = await asking("read_diff", **calls["read_diff"], cursor=cursors["read_diff"])
        assert "no longer those of the page before" in said
        cursor = _cursor(await asking("read_diff", rev=f"{first}..main"))
        assert (await asking("read_diff", rev=f"{first}..main", cursor=cursor)).startswith("[")


@pytest.mark.anyio
async def test_a_page_behind_one_that_changed_is_refused_and_others_go_on(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    for number in range(5):
        made.commit(f"number {number}", {"a.txt": f"{number}\n"})
        made.git("branch", f"b{number}")
        made.git("tag", f"t{number}")
        made.git("remote", "add", f"r{number}", f"https://example.org/{number}")
        made.git("worktree", "add", "--quiet", "--detach", str(tmp_path / f"w{number}"))
        made.write("a.txt", f"put away {number}\n")
        made.git("stash", "push", "--quiet")
    late = {"GIT_COMMITTER_DATE": "2026-02-01T12:00:00+00:00"}
    changes: dict[str, list[str]] = {
        "branches": ["commit-tree", "-m", "moved", "HEAD^{tree}"],
        "tags": ["tag", "--annotate", "a-later", "--message", "new"],
        "remotes": ["remote", "remove", "r0"],
        "worktrees": ["worktree", "remove", str(tmp_path / "w0")],
        "stashes": ["stash", "drop", "stash@{1}"],
        "reflog": ["commit", "--quiet", "--allow-empty", "--message", "one more"],
        "all": ["update-ref", "refs/heads/b1", "HEAD"],
    }
    async with serving(made.path) as asking:

        async def page(kind: str, **more: object) -> str:
            return await (
                asking("list_commits", all_branches=True, limit=2, **more)
                if kind == "all"
                else asking("list_refs", kind=kind, limit=2, **more)
            )

        for kind, words in changes.items():
            cursor = _cursor(await page(kind))
            following = await page(kind, cursor=cursor)
            assert not following.startswith("failed"), following
            if kind in ("branches", "tags"):
                made.git("update-ref", "-d", f"refs/{'heads' if kind == 'branches' else 'tags'}/{kind[0]}4")
                assert "no longer" not in await page(kind, cursor=_cursor(following))
            said = made.git(*words, **late)
            if kind == "branches":
                made.git("update-ref", "refs/heads/b3", said.strip())  # which is shown later, and then first
            assert "no longer" in await page(kind, cursor=cursor), kind
            assert "no longer" not in await page(kind, cursor=_cursor(await page(kind))), kind


@pytest.mark.anyio
async def test_a_function_is_the_one_of_that_whole_name_and_its_lines_are_told(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    body = "\n{\n  return 1;\n}\n\n"
    made.commit("both", {"a.c": f"int open_all(int a){body}int open(int a){body}"})
    made.commit("the first", {"a.c": f"int open_all(int b){body}int open(int a){body}"})
    made.commit("the other", {"a.c": f"int open_all(int b){body}int open(int c){body}"})
    made.git("mv", "a.c", "b.c")
    made.commit("moved")
    async with serving(made.path) as asking:

        async def subjects(**arguments: object) -> list[str]:
            return re.findall(r"(?m)^\w{7,} (?:\(.*?\) )?(.*)$", await asking("list_commits", path="b.c", **arguments))

        # Git itself takes `open_all` for `open`, because it stands first.
        assert made.git("log", "-L:open:b.c", "-s", "--format=%s").split("\n")[:-1] == ["the first", "both"]
        for written in ("open", ":open", "open()", " open "):
            assert await subjects(lines=written) == ["the other", "both"]
            assert "b.c lines 6-10: int open(int c);" in await asking("list_commits", path="b.c", lines=written)
        assert await subjects(lines="open_all") == await subjects(lines="1-2") == ["the first", "both"]
        for written in ("6-10", "6,10", "L6-L10", "6..10", "6 - 999"):
            assert await subjects(lines=written) == ["the other", "both"]
        assert "the other" in await asking("list_commits", path="b.c", lines="6", rev="HEAD~2..")
        cursor = _cursor(await asking("list_commits", path="b.c", lines="open", limit=1))
        made.commit("meanwhile", {"b.c": "int x(int a)\n{\n}\n"})
        assert "both" in await asking("list_commits", path="b.c", lines="open", limit=1, cursor=cursor)
        wrong = {
            "10-7": "names no `lines`",
            "0": "names no",
            "a\nb": "names no",
            "40-50": "only 3 lines",
            "zip": "sees no",
        }
        for written, said in wrong.items():
            assert said in await asking("list_commits", path="b.c", lines=written)
        assert "is a folder" in await asking("list_commits", path=".", lines="1")
        for beside in ({"text": "x"}, {"all_branches": True}, {"path": ""}):
            assert "`lines` are of one" in await asking("list_commits", **{"path": "b.c", "lines": "1", **beside})


def _cursor(said: str) -> str:
    return re.findall(r'cursor="([^"]+)"', said.partition("\n")[0])[0]


@pytest.mark.anyio
async def test_blame_tells_the_day_of_the_commit_and_knows_a_folder(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    made.write("docs/a.txt", "one\n")
    made.git("add", "--all")
    made.git("commit", "--quiet", "--message=late", GIT_COMMITTER_DATE="2024-02-29T23:30:00 -0930")
    async with serving(made.path) as asking:
        assert " 2024-02-29 Ada Lovelace: late" in await asking("get_blame", path="docs/a.txt")
        for rev in ({}, {"rev": "HEAD"}):
            assert "`docs` is a folder" in await asking("get_blame", path="docs", **rev)
        assert "Exchange them" in await asking("read_file", path="docs/a.txt", start_line=3, end_line=2)


@pytest.mark.anyio
async def test_refs_of_every_kind(tmp_path: Path) -> None:
    made = history(tmp_path / "app")
    made.git("remote", "add", "origin", "https://me:hunter2@example.org/app.git")
    made.git("remote", "add", "far", "git@example.org:app.git")
    made.git("update-ref", "refs/remotes/origin/main", "v1")
    made.git("branch", "--set-upstream-to", "origin/main", "main")
    made.git("worktree", "add", "--quiet", str(tmp_path / "beside"), "side")
    async with serving(made.path) as asking:
        assert "[origin/main: ahead 3]" in await asking("list_refs")
        assert "3 ahead origin/main" in await asking("get_status")
        assert "v1 " in await asking("list_refs", kind="tags")
        remotes = await asking("list_refs", kind="remotes")
        assert "hunter2" not in remotes and "origin https://…@example.org/app.git" in remotes
        assert "far git@example.org:app.git" in remotes
        assert "stash@{0}" in await asking("list_refs", kind="stashes")
        assert "for later" in await asking("list_refs", kind="stashes")
        assert (await asking("list_refs", kind="worktrees")).splitlines()[1:] == ["app main", "beside side"]
        assert "HEAD@{0}" in await asking("list_refs", kind="reflog", limit=1)
        assert "side@{0}" in await asking("list_refs", kind="reflog", name="side")
        pages = await all_pages(asking, "list_refs", kind="reflog", limit=2)
        rows = [row for page in pages for row in page.splitlines()[1:]]
        assert len(rows) == len(made.git("reflog").splitlines()) == len(set(rows))


@pytest.mark.anyio
async def test_a_conflict_is_seen_from_both_sides(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    conflict(made)
    async with serving(made.path) as asking:
        assert "merge under way; 1 in conflict" in await asking("get_status")
        assert "UU a.txt" in await asking("get_status")
        sides = [await asking("read_file", path="a.txt", rev=f":{side}") for side in (1, 2, 3)]
        assert [side.splitlines()[-1] for side in sides] == ["ground", "ours", "theirs"]
        assert "theirs" in await asking("read_diff", path="a.txt")
        assert "theirs" in await asking("read_diff", path="a.txt", only="unstaged")
    made.git("merge", "--abort")
    with pytest.raises(AssertionError):
        made.git("rebase", "theirs")
    async with serving(made.path) as asking:
        assert "rebase under way, step 1 of 1, of main; 1 in conflict" in await asking("get_status")


@pytest.mark.anyio
async def test_what_git_would_take_for_something_else_is_refused_with_the_right_words(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    made.commit("first", {"a.txt": "f(1)\n"})
    made.write("a.txt", "f(2)\n")
    made.write("new.txt", "new\n")
    made.git("stash", "--quiet", "--include-untracked")
    refused: dict[str, tuple[str, list[dict[str, object]]]] = {
        "`2 weeks ago`": ("list_commits", [{"since": "v1.0"}, {"until": "garbage"}, {"until": "next friday"}]),
        "`[0-9]`": (
            "list_commits",
            [{"regex": True, **words} for words in ({"author": "(?i)ada"}, {"text": r"\d"}, {"message": r"\\\d"})],
        ),
        "`pattern` is empty. Give what to look for": ("search_text", [{"pattern": ""}]),
        "no `\\d`": ("search_text", [{"pattern": r"f\(\d"}]),
        "such as `\\(`": ("search_text", [{"pattern": "f("}]),
        "what is meant as it stands": (
            "list_commits",
            [{"author": "(", "regex": True}, {"message": "[", "regex": True}],
        ),
        "has no side `:2`": ("read_file", [{"path": "a.txt", "rev": ":2"}]),
    }
    taken: dict[str, tuple[str, list[dict[str, object]]]] = {
        "first": (
            "list_commits",
            [{"since": "2020-01-31T10:00:00Z"}, {"until": "now"}, {"since": "10 years ago"}],
        ),
        "f(1)": ("search_text", [{"pattern": r"f\([0-9]"}, {"pattern": "f(", "literal": True}, {"pattern": r"f\(?1"}]),
        "in the last": ("read_diff", [{"rev": "stash@{0}"}]),
    }
    async with serving(made.path) as asking:
        for expected, (tool, calls) in (*refused.items(), *taken.items()):
            for arguments in calls:
                said = await asking(tool, **arguments)
                assert expected in said and said.startswith("failed") is (expected in refused), (arguments, said)


@pytest.mark.anyio
async def test_an_empty_a_bare_and_no_repository(tmp_path: Path) -> None:
    made = Made(tmp_path / "empty")
    made.write("a.txt", "one\n")
    made.git("add", "a.txt")
    async with serving(made.path) as asking:
        assert "main, no commits yet; 1 staged" in await asking("get_status")
        assert "+one" in await asking("read_diff")
        assert "no commit yet" in await asking("list_commits")
        assert "no commits yet" in await asking.read("git://empty/head")
    Made(tmp_path / "full").commit("first", {"a.txt": "one\n"})
    made.git("clone", "--quiet", "--bare", str(tmp_path / "full"), str(tmp_path / "bare.git"))
    async with serving(tmp_path / "bare.git") as asking:
        assert "bare repository" in await asking("get_status")
        assert "first" in await asking("list_commits")
        assert "one" in await asking("read_file", path="a.txt")
        assert "`uncommitted`" in await asking("read_diff")
    (tmp_path / "none").mkdir()
    async with serving(tmp_path / "none") as asking:
        assert "`none` is not a Git repository" in await asking("get_status")
        Made(tmp_path / "none").git("init", "--quiet")
        assert "no commits yet" in await asking("get_status")


@pytest.mark.anyio
async def test_sha256_and_shallow_and_sparse_repositories(tmp_path: Path) -> None:
    made = Made(tmp_path / "long", "--object-format=sha256")
    made.commit("first", {"a.txt": "one\n", "in/b.txt": "b\n"})
    made.commit("second", {"a.txt": "two\n"})
    made.git("config", "core.sparseCheckout", "true")
    async with serving(made.path) as asking:
        assert "second" in await asking("list_commits") and "+two" in await asking("read_diff", rev="HEAD")
    made.git("sparse-checkout", "set", "in")
    made.git("clone", "--quiet", "--depth=1", f"file://{made.path}", str(tmp_path / "shallow"))
    async with serving(made.path, tmp_path / "shallow") as asking:
        assert "; clean]" in await asking("get_status", repo="long")
        assert (await asking("list_commits", repo="shallow")).startswith("[commits 1-1")


@pytest.mark.anyio
async def test_a_large_change_is_read_page_by_page(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    files = {f"d{number % 7}/f{number:03}.txt": f"a former line {number}\n" * 30 for number in range(150)}
    made.commit("first", {**files, "bytes.bin": b"\0\1", "turns.txt": "x\n" * 9, "old name.txt": "kept\n" * 20})
    made.git("mv", "old name.txt", "new name.txt")
    (made.path / "turns.txt").unlink()
    (made.path / "turns.txt").symlink_to("bytes.bin")
    made.commit(
        "second", {**{name: text.replace("a former line", "row") for name, text in files.items()}, "bytes.bin": b"\0\2"}
    )
    async with serving(made.path) as asking:
        pages = await all_pages(asking, "read_diff", rev="HEAD")
        assert max(len(page.encode()) for page in pages) < 11_000 and len(pages) > 10
        [files] = await all_pages(asking, "read_diff", rev="HEAD", files_only=True)
        assert files.count("\n +30 -30 f") == 150 and files.count("/\n +30") == 7 and "@@" not in files
        assert "150 files" not in pages[0] and "[HEAD; 153 files, +" in pages[0]
        text = "\n".join(page.partition("\n")[2] for page in pages)
        patch = re.sub(r"(?m)^(diff --git|index) .*\n", "", made.git("show", "--format=", "HEAD"))
        told = [line for line in text.splitlines() if line[:1] in ("+", "-") and not re.match(r"[+-]\d+ -", line)]
        assert told == [line for line in patch.splitlines() if line[:1] in ("+", "-")]
        assert "binary bytes.bin" in text and "rename to new name.txt" in text
        listed = await all_pages(asking, "list_files", recursive=True, limit=40)
        assert len(re.findall(r"(?m)^ ?\d+ \S", "\n".join(listed))) == 153
        found = await all_pages(asking, "search_text", pattern="row 1[0-9]$", limit=60)
        assert len(re.findall(r"(?m)(?:^|:)\d+:row 1\d$", "\n".join(found))) == 10 * 30


@pytest.mark.anyio
async def test_a_list_of_files_names_renames_in_full(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    made.commit("first", {f"some-long-folder/{number}.txt": f"{number}\n" * 5 for number in range(8)})
    for number in range(4):
        made.git("mv", f"some-long-folder/{number}.txt", f"some-long-folder/new{number}.txt")
    made.commit("second", {f"some-long-folder/{number}.txt": "" for number in range(4, 8)})
    async with serving(made.path) as asking:
        lines = (await asking("read_diff", rev="HEAD", files_only=True)).splitlines()
    assert "+0 -0 some-long-folder/0.txt -> some-long-folder/new0.txt" in lines and " +0 -5 4.txt" in lines, lines


@pytest.mark.anyio
async def test_rows_are_short_and_a_large_status_is_folded(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    for number in range(30):
        made.commit(f"{number} A subject that goes on \u00e9\u4e2d for much longer than anybody wants to read" * 2)
    async with serving(made.path) as asking:
        pages = await all_pages(asking, "list_commits", limit=7)
        rows = [row for page in pages for row in page.splitlines()[1:]]
        assert len(rows) == 30 and max(len(f"{row}\n".encode()) for row in rows) <= 90
        # What comes meanwhile moves no page.
        first = await asking("list_commits", limit=7)
        cursor = re.search(r'cursor="([^"]+)"', first)
        made.commit("meanwhile")
        assert cursor and (await asking("list_commits", limit=7, cursor=cursor[1])) == pages[1]
    for number in range(1000):
        made.write(f"src/part{number % 20}/f{number}.txt", "x")
    made.git("add", "src")
    async with serving(made.path) as asking:
        status = await asking("get_status")
        assert len(status) < 3000 and "1,000 staged; folded" in status and "src/part1/ 50 staged" in status
        assert (await asking("get_status", path="src/part1")).count("A  src/part1/") == 50


@pytest.mark.anyio
async def test_a_revision_that_is_not_there_has_neighbours(tmp_path: Path) -> None:
    made = history(tmp_path / "app")
    async with serving(made.path) as asking:
        for tool in ("list_commits", "read_diff"):
            assert "There is no revision `sid`. Did you mean `side`?" in await asking(tool, rev="sid")
        assert "no revision `nope`" in await asking("read_diff", rev="main..nope")
        assert "no revision `nope`" in await asking("get_merge_base", one="nope")
        # Git takes any full hash for a name, whether or not there is such an object.
        for hashes in ({"one": "1" * 40}, {"one": "HEAD", "other": "1" * 40}):
            assert f"There is no revision `{'1' * 40}`" in await asking("get_merge_base", **hashes)
        assert "There is no `nope.txt` in `v1`" in await asking("read_file", path="nope.txt", rev="v1")
        assert "is a folder" in await asking("read_file", path="docs")
        assert "start_line" in await asking("get_blame", path="notes.txt", start_line=50)
    async with serving(Made(tmp_path / "empty").path) as asking:
        for tool in ("get_blame", "read_file"):
            assert "`HEAD` has no commit yet" in await asking(tool, path="notes.txt")


@pytest.mark.anyio
async def test_a_path_in_a_submodule_is_said_to_be_in_one(tmp_path: Path) -> None:
    made = history(tmp_path / "app")
    Made(made.path / "libs" / "inner").commit("inside", {"in.txt": "in\n"})
    made.commit("with a submodule")
    async with serving(made.path) as asking:
        calls = [("get_status", {}), ("list_commits", {}), ("list_commits", {"author": "Ada"}), ("read_diff", {}),
                 ("read_diff", {"rev": "HEAD"}), ("read_file", {}), ("list_files", {}), ("get_blame", {}),
                 ("get_blame", {"rev": "HEAD"}), ("search_text", {"pattern": "in"})]  # fmt: skip
        for tool, more in calls:
            said = await asking(tool, path="libs/inner/in.txt", **more)
            assert "`libs/inner` is a submodule, which is not entered" in said, (tool, more, said)
        for tool in ("read_file", "list_files", "get_blame"):
            assert "`libs/inner` is a submodule, which is not entered" in await asking(tool, path="libs/inner"), tool
        assert "Did you mean `notes.txt`" in await asking("get_blame", path="note.txt")
        # One wrong letter is looked for beside it, a wrong folder everywhere.
        assert "Did you mean `docs/" in await asking("read_file", path="Docs/" + _in_docs(made))
        assert "Did you mean `docs/" in await asking("get_status", path="elsewhere/" + _in_docs(made))


def _in_docs(made: Made) -> str:
    return made.git("ls-files", "docs").splitlines()[0].removeprefix("docs/")


def test_without_the_first_tool_the_instructions_still_tell_of_cut_answers(tmp_path: Path) -> None:
    Made(tmp_path / "app")
    instructions = build(load(Settings, [str(tmp_path / "app"), "--exclude-tools=get_status"])).instructions
    assert instructions is not None
    assert "`get_status`" not in instructions
    assert "what was cut" in instructions


def test_a_machine_without_git_is_told_so_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    Made(tmp_path / "app")
    build(load(Settings, [str(tmp_path / "app")]))
    assert caplog.messages == []
    monkeypatch.setenv("PATH", str(tmp_path))
    build(load(Settings, [str(tmp_path / "app")]))
    [said] = caplog.messages
    assert "`git` was not found" in said


def test_a_drive_that_takes_no_junctions_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_target: str, _place: str) -> None:
        raise OSError(50, "The request is not supported")

    (tmp_path / "refs").mkdir()
    monkeypatch.setitem(sys.modules, "_winapi", SimpleNamespace(CreateJunction=refuse))
    with pytest.raises(Unavailable, match=re.escape(f"`{tmp_path}`: The request is not supported")) as problem:
        _link_on_windows(str(tmp_path / "refs"), str(tmp_path / "link"))
    assert "TEMP" in str(problem.value)


def test_what_a_model_reads_of_all_tools_has_a_bound(tmp_path: Path) -> None:
    """2,115 tokens of four bytes: names, descriptions and input schemas, which is what hosts hand on to a model."""
    sizes = snapshot(build(load(Settings, [str(Made(tmp_path / "app").path)])))["bytes"]
    assert sizes["name_description_input_schema"] <= 2275 * 4


@pytest.mark.anyio
@pytest.mark.skipif(sys.platform == "win32", reason="a file that is all holes")
async def test_an_index_that_only_claims_to_be_large_is_not_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Made(tmp_path / "app")
    made.commit("first", {"a.txt": "one\n"})
    os.truncate(made.path / ".git/index", 600 << 20)

    def copied(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("shutil.copy2", copied)
    async with serving(made.path) as asking:
        assert "failed inside" not in await asking("read_diff")


@pytest.mark.anyio
@pytest.mark.parametrize("forged", [False, True])
async def test_a_system_may_clean_up_the_server_s_own_folder(
    tmp_path: Path, forged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, temporary = Made(tmp_path / "app"), tmp_path / "tmp"
    made.commit("first", {"a.txt": "one\n"})
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    async with serving(made.path) as asking:
        before = [await asking("list_commits"), await asking("get_status")]
        assert "first" in before[0]
        seen: set[Path] = set()
        for _ in range(2):
            [folder] = set(temporary.glob("mcp-git-*")) - seen
            if forged:
                seen.add(folder)
                config = next(folder.glob("*/config"))
                config.unlink()
                config.write_text("[core]\n\tbare = true\n", "utf-8")
            else:
                shutil.rmtree(folder)
            assert [await asking("list_commits"), await asking("get_status")] == before


@pytest.mark.anyio
async def test_the_subject_is_seen_behind_many_refs(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    made.commit("The subject that tells what was done", {"a.txt": "one\n"})
    for number in range(20):
        made.git("branch", f"a-branch-with-a-name-{number}")
    async with serving(made.path) as asking:
        row = (await asking("list_commits")).splitlines()[1]
        assert "The subject that tells what was done" in row and re.search(r"\(\*main, .*\b\d+ more\)", row), row
        assert len(row.encode()) < 90


@pytest.mark.parametrize(
    "pattern", ["[(?]x", "[]()?]", "[^](?]", "[[:digit:](?]", r"\(?", r"\\\(?x", r"a\\d", r"[\\d]", "[a](b)?"]
)
def test_a_pattern_that_posix_knows_is_taken(pattern: str) -> None:
    refuse_foreign_syntax(pattern)


@pytest.mark.parametrize(
    "pattern", ["(?:a)", r"\d", r"\\\d", r"[\d.]+", r"[^\D]", r"a\\(?i)", "[a](?:b)", r"\[(?:b)", r"[[:digit:]\d]"]
)
def test_a_pattern_of_another_language_is_refused(pattern: str) -> None:
    with pytest.raises(Invalid, match=r"has no `(?:\(\?|\\[dD])`"):
        refuse_foreign_syntax(pattern)


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.skipif(sys.platform == "win32", reason="POSIX: a process inherits which signals are ignored")
async def test_git_fails_also_under_a_host_that_ignores_the_ends_of_its_children(tmp_path: Path) -> None:
    made = Made(tmp_path / "r")
    made.commit("first", {"a.txt": "a\n"})
    ignoring = (
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    )
    async with StdioWire([sys.executable, "-c", ignoring, sys.executable, "-m", "mcp_git", str(made.path)]) as wire:
        await wire.open()
        for tool in ("list_commits", "read_diff"):
            answer = await wire.call(tool, rev="nowhere")
            assert answer["isError"] and "`nowhere`" in answer["content"][0]["text"], answer


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_path_that_is_nowhere_is_an_error_with_its_neighbours(tmp_path: Path) -> None:
    made = history(tmp_path / "app")
    made.write(".gitignore", "ignored/\n")
    made.write("ignored/deep/it.txt", "ignored\n")
    made.git("rm", "--quiet", "side.txt")
    made.git("commit", "--quiet", "--message", "Delete it")
    ways: list[tuple[str, dict[str, object]]] = [
        ("get_status", {}),
        ("read_diff", {}),
        ("read_diff", {"only": "staged"}),
        ("read_diff", {"rev": "HEAD"}),
        ("read_diff", {"rev": "v1..HEAD", "files_only": True}),
        ("list_commits", {}),
        ("list_commits", {"rev": "v1..HEAD", "author": "ada"}),
        ("list_commits", {"all_branches": True}),
        ("search_text", {"pattern": "."}),
        ("read_file", {}),
        ("list_files", {}),
    ]
    wrong = {
        "note.txt": "notes.txt", "Notes.TXT": "notes.txt", "guide.md": "docs/guide.md",
        "docs/giude.md": "docs/guide.md",
        "doc": "docs",
    }  # fmt: skip
    async with serving(made.path) as asking:
        for tool, arguments in ways:
            for path, meant in wrong.items():
                told = await asking(tool, path=path, **arguments)
                assert told.startswith("failed") and f"`{path}`" in told, (tool, arguments, path, told)
                assert f"`{meant}`" in told, (tool, arguments, path, told)
        for path in ("docs", "notes.txt", "ignored", "ignored/deep", "ignored/deep/it.txt"):
            assert not (await asking("get_status", path=path)).startswith("failed"), path
            for rev in (None, "HEAD", "v1..HEAD"):
                told = await asking("read_diff", path=path, **({"rev": rev} if rev else {}))
                assert not told.startswith("failed"), (path, rev, told)
            assert not (await asking("list_commits", path=path, author="grace")).startswith("failed"), path
        # What was deleted has a history, and is in a revision that is compared.
        assert "1 file" in await asking("read_diff", rev="HEAD", path="side.txt")
        assert "no changes" in await asking("read_diff", rev="HEAD~1..HEAD~1", path="side.txt")
        assert "[commits 1-" in await asking("list_commits", path="side.txt")
        assert "[no commits" in await asking("list_commits", path="side.txt", author="grace")
        # Deleted on disk or in the index alone, it is a change.
        (made.path / "notes.txt").unlink()
        assert " D notes.txt" in await asking("get_status", path="notes.txt")


@pytest.mark.anyio
async def test_reading_writes_nothing_even_where_only_times_differ(tmp_path: Path) -> None:
    made = history(tmp_path / "app")
    made.write("notes.txt", "changed\n")
    file = made.path / "docs/guide.md"

    def all_of_it() -> dict[Path, tuple[int, int, int]]:
        found = [path for path in made.path.rglob("*") if path.is_file()]
        return {path: (path.stat().st_ino, path.stat().st_mtime_ns, path.stat().st_size) for path in found}

    os.utime(file, (1, 1))
    before = all_of_it()
    async with serving(made.path) as asking:
        said = await everything(asking)
    assert "+changed" in said and "guide.md" in said
    assert all_of_it() == before
    made.git("diff", "--stat", GIT_OPTIONAL_LOCKS="0")
    assert all_of_it() != before, "the case is not armed"


@pytest.mark.anyio
async def test_the_history_of_a_method_is_found_by_its_name(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    text = "class Session:\n    def open(self):\n        return {}\n\n    def close(self):\n        return 2\n"
    for value in (0, 1):
        made.commit(f"open {value}", {"session.py": text.format(value)})
    made.commit("close", {"session.py": text.format(1).replace("2", "3")})
    async with serving(made.path) as asking:
        answer = await asking("list_commits", path="session.py", lines="open")
        assert "lines 2-4: def open(self):" in answer and "open 1" in answer and "close" not in answer, answer
        assert "Git sees no function `flush`" in await asking("list_commits", path="session.py", lines="flush")


@pytest.mark.anyio
async def test_the_blame_of_a_file_outside_of_a_sparse_checkout_says_where_it_is(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    made.commit("first", {"in/a.txt": "a\n", "out/b.txt": "b\n"})
    made.git("sparse-checkout", "set", "in")
    async with serving(made.path) as asking:
        assert "With rev=`HEAD`" in await asking("get_blame", path="out/b.txt")
        assert "1: b" in await asking("get_blame", path="out/b.txt", rev="HEAD")
        assert "There is no file `out/c.txt`" in await asking("get_blame", path="out/c.txt")


@pytest.mark.anyio
async def test_blame_offers_more_lines_only_where_there_are_some(tmp_path: Path) -> None:
    made = history(tmp_path / "app")
    async with serving(made.path) as asking:
        assert (await asking("get_blame", path="notes.txt", end_line=2)).startswith(
            "[notes.txt lines 1-2; for more, start_line=3]\n"
        )
        for end in (3, 200):
            assert (await asking("get_blame", path="notes.txt", end_line=end)).startswith("[notes.txt lines 1-3]\n")
        assert "\n3: three\n" in await asking("get_blame", path="notes.txt", start_line=3, end_line=3)


@pytest.mark.anyio
async def test_what_needs_a_commit_says_so_of_a_tag_of_something_else(tmp_path: Path) -> None:
    made = history(tmp_path / "app")
    made.git("tag", "file", made.git("rev-parse", "HEAD:notes.txt").strip())
    made.git("tag", "folder", "HEAD^{tree}")
    async with serving(made.path, "--write") as asking:
        for name in ("file", "folder"):
            for tool, arguments in (
                ("read_diff", {"rev": name}),
                ("get_merge_base", {"one": name}),
                ("run_switch", {"rev": name}),
                ("create_branch", {"name": "new", "rev": name}),
            ):
                answer = await asking(tool, **arguments)
                assert answer.startswith("failed: ") and "Name a commit, or a branch or tag of one" in answer, answer
