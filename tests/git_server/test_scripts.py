"""Scripts of `call_tools` read what the tools answer, line by line."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from git_server.made import Made
from git_server.serving import Asking, serving

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="scripts run in a process that is confined"),
]
_LONG = "A subject that is much longer than a line of an answer, and goes on behind its end with what matters: the end"


def made_history(folder: Path) -> Made:
    """Return a repository with a merge, a long subject, and an author of two names in another time zone."""
    made = Made(folder / "app")
    made.commit("First", {".mailmap": "Grace Hopper <grace@example.org> <g@old.example>\n"})
    made.git("switch", "--quiet", "--create", "side")
    made.git("commit", "--quiet", "--allow-empty", "--message", "(odd) a\tb", "--author=G. H. <g@old.example>",
             "--date=2026-01-31T23:30:00-05:00")  # fmt: skip
    made.git("switch", "--quiet", "main")
    made.commit(_LONG)
    made.git("merge", "--quiet", "--no-ff", "--message", "Merge it", "side")
    made.git("tag", "v1")
    return made


async def rows_of(asking: Asking, arguments: str, tool: str = "list_commits") -> Any:
    """Return what a script gets of all pages of a list, such as commits, each as an object."""
    script = f"return JSON.stringify({tool}.all({arguments}))"
    # What its first lines say of other pages is no matter here.
    return json.loads((await asking("call_tools", script=script)).rstrip().rpartition("\n")[2])


async def test_each_commit_stands_for_itself_with_all_that_git_says_of_it(tmp_path: Path) -> None:
    made = made_history(tmp_path)
    form = "%H%x00%P%x00%cd%x00%ad%x00%aN%x00%D%x00%s"
    expected = made.git("log", f"--format={form}", "--date=format-local:%Y-%m-%dT%H:%M:%SZ", TZ="UTC")
    expected = re.sub("([0-9a-f]{12})[0-9a-f]{28}", r"\1", expected.replace(" -> ", ", "))
    async with serving(made.path) as asking:
        rows = await rows_of(asking, "")
        found = await rows_of(asking, "{author: 'grace'}")
        for_models = await asking("list_commits")
        printed = await asking("call_tools", script="return list_commits()")
    texts = [
        "\0".join([row["hash"], " ".join(row["parents"]), row["committed"], row["authored"], row["author"],
                   ", ".join(row["refs"]), row["subject"]])
        for row in rows
    ]  # fmt: skip
    assert texts == expected.splitlines()
    assert [(row["authored"], row["author"]) for row in found] == [("2026-02-01T04:30:00Z", "Grace Hopper")]
    # All of one day and by one author each: a model reads that once.
    assert "all of 2026-01-31" in for_models and _LONG not in for_models
    # What a script prints a model reads too, but each line stands for itself, as it is said with the tool.
    long = made.git("rev-parse", "--short=12", "main~1").strip()
    assert f"\n{long} 2026-01-31 Ada Lovelace: {_LONG}\n" in printed, printed


async def test_hashes_of_several_lists_are_alike_in_a_script(tmp_path: Path) -> None:
    made = made_history(tmp_path)
    script = """
        const commits = list_commits.all();
        const side = list_refs({pattern: "side"}).split(" ")[1];
        const tag = list_refs({kind: "tags"}).split(" ")[1];
        const moved = list_refs({kind: "reflog"}).split(" ")[1];
        const base = get_merge_base({one: "main", other: "side"}).split(" ")[0];
        const last = get_blame({path: ".mailmap"}).split(" ")[0];
        const {hash: head, parents: [, first]} = commits[0];
        const current = get_status().remark.includes(head);
        const known = commits.some(({hash}) => hash === last);
        return [tag === head, side === first, moved === head, base === side, current, known];
    """
    async with serving(made.path) as asking:
        answer = await asking("call_tools", script=script)
    assert json.loads(answer.rstrip().rpartition("\n")[2]) == [True] * 6


async def test_each_commit_comes_with_its_body_on_request(tmp_path: Path) -> None:
    made = made_history(tmp_path)
    body = "Because:\n\n\tit is so.\u2028"
    made.git("commit", "--quiet", "--allow-empty", "--message", "Say why", "--message", body)
    made.git("commit", "--quiet", "--allow-empty", "--message", "Long", "--message", "x" * 900)
    async with serving(made.path) as asking:
        rows = await rows_of(asking, "{bodies: true}")
        searched = await rows_of(asking, "{bodies: true, message: 'y w'}")
        for_models = await asking("list_commits", bodies=True, limit=2)
        refused = await asking("list_commits", bodies=True, graph=True)
        page = await asking("list_commits", bodies=True, limit=1)
    addresses = made.git("log", "--format=%aE").splitlines()
    assert [row["email"] for row in rows] == addresses
    assert [row["body"] for row in rows] == ["x" * 900, body, "", "", "", ""]
    assert [[row["subject"], row["email"], row["body"]] for row in searched] == [["Say why", addresses[1], body]]
    assert "Say why\n    Because:\n\n    \\tit is so." in for_models
    assert f"\n    {'x' * 497}…\n" in page and "x" * 498 not in page and "Because" not in page
    assert refused.startswith("failed: ") and "without `bodies`" in refused


async def test_nothing_in_the_rows_of_a_script_is_hidden(tmp_path: Path) -> None:
    made = made_history(tmp_path)
    made.git(
        "commit",
        "--quiet",
        "--allow-empty",
        "--message",
        "a\u202eb",
        "--message",
        "\U000e0041",
        "--author=\u200bX <x@y>",
    )
    made.git("branch", "c\u2066d")
    async with serving(made.path) as asking:
        [row, *_] = await rows_of(asking, "{bodies: true}")
    assert [row["subject"], row["body"], row["author"]] == ["a\\u202eb", "\\U000e0041", "\\u200bX"]
    assert "c\\u2066d" in row["refs"]


async def test_a_graph_is_drawn_for_scripts_too(tmp_path: Path) -> None:
    made = made_history(tmp_path)
    async with serving(made.path) as asking:
        lines = await rows_of(asking, "{graph: true, limit: 2}")
    assert lines[0].startswith("*   ") and lines[1].startswith("|\\")


async def test_a_time_that_no_calendar_has_is_left_empty(tmp_path: Path) -> None:
    made = made_history(tmp_path)
    made.git("commit", "--quiet", "--allow-empty", "--message", "Late", "--date=@999999999999 +0000")
    async with serving(made.path) as asking:
        [row, *_] = await rows_of(asking, "")
    assert (row["committed"], row["authored"]) == ("2026-01-31T12:00:00Z", "")


async def test_a_change_that_a_script_prints_says_how_things_are_then(tmp_path: Path) -> None:
    made = made_history(tmp_path)
    made.write("new.txt", "new\n")
    script = "print(run_switch({rev: 'side'})); print(remark); print(create_tag({name: 'v2'}))"
    async with serving("--write", "--tools=default,call_tools", made.path) as asking:
        answer = await asking("call_tools", script=script)
    oid = made.git("rev-parse", "--short=12", "side").strip()
    state, undo, remark, *_ = answer.splitlines()
    assert state == f"[side {oid}; 1 untracked]" == remark
    assert f"\n[tag v2 is at {oid} " in answer
    assert undo.startswith("undo: ") and answer.count(f"[side {oid}; ") == 2


async def test_a_change_of_a_script_counts_files_and_names_none(tmp_path: Path) -> None:
    made = made_history(tmp_path)
    made.write("new.txt", "new\n")
    made.write(".mailmap", "")
    async with serving("--write", "--tools=default,call_tools", made.path) as asking:
        answer = await asking("call_tools", script="return stage_files({paths: ['new.txt']})")
        assert re.match(r"\[main [0-9a-f]{12}; 1 staged, 1 changed\]\nundo: ", answer), answer
        assert "\nA  new.txt\n" in await asking("stage_files", paths=["new.txt"])


async def test_a_script_reads_each_file_of_the_status(tmp_path: Path) -> None:
    made = made_history(tmp_path)
    for number in range(150):
        made.write(f"{number}.txt", "")
    async with serving(made.path) as asking:
        assert "folded" in await asking("get_status")
        script = "return get_status().lines().filter((line) => /^\\?\\? \\d+\\.txt$/.test(line)).length"
        assert (await asking("call_tools", script=script)).strip() == "150"
        for number in range(5001):
            made.write(f"many/{number}/one.txt", "")
        made.git("add", "many")
        answer = await asking("call_tools", script="return remark || (get_status(), remark)")
    assert answer.startswith("[not all is in what get_status returned") and "folded: name a folder" in answer
    # No call may name such a limit.
    assert "`limit`" not in answer, answer


async def test_a_blank_line_at_the_end_of_a_page_is_a_line(tmp_path: Path) -> None:
    made = made_history(tmp_path)
    made.write("blank.txt", "a\n\n")
    made.git("add", "blank.txt")
    made.git("commit", "-m", "blank")
    async with serving(made.path) as asking:
        answer = await asking("call_tools", script="return read_file.all({path: 'blank.txt'})")
    assert answer.splitlines()[-1] == '["a",""]'


async def test_each_file_of_a_diff_and_of_the_status_is_an_object(tmp_path: Path) -> None:
    made = made_history(tmp_path)
    made.commit("Files", {"old name": "".join(f"{number}\n" for number in range(9)), "a.png": b"\0", "gone": "x\n"})
    made.git("mv", "old name", "new name")
    made.git("rm", "--quiet", "gone")
    made.write('odd"name', "1\n")
    names = ("path", "renamed_from", "kind", "added", "removed")
    async with serving(made.path) as asking:
        status = await rows_of(asking, "", "get_status")
        first = await rows_of(asking, "{rev: 'HEAD', files_only: true}", "read_diff")
        made.commit("More")
        more = await rows_of(asking, "{rev: 'HEAD~1..HEAD', files_only: true}", "read_diff")
        assert await rows_of(asking, "{rev: 'HEAD..HEAD', files_only: true}", "read_diff") == []
        # With the patch they are lines.
        assert "+1" in await rows_of(asking, "{rev: 'HEAD'}", "read_diff")
    assert [tuple(row) for row in (*first, *more)] == [names] * 6
    assert [[*row.values()] for row in first] == [
        ["a.png", "", "new", None, None],
        ["gone", "", "new", 1, 0],
        ["old name", "", "new", 9, 0],
    ]
    assert [[*row.values()] for row in more] == [
        ["gone", "", "deleted", 0, 1],
        ["new name", "old name", "", 0, 0],
        [r'"odd\"name"', "", "new", 1, 0],
    ]
    assert status == [
        {"status": "D ", "path": "gone", "renamed_from": ""},
        {"status": "R ", "path": "new name", "renamed_from": "old name"},
        {"status": "??", "path": r'"odd\"name"', "renamed_from": ""},
    ]


async def test_each_ref_is_an_object_with_the_hash_of_its_commit(tmp_path: Path) -> None:
    made = made_history(tmp_path)
    made.git("tag", "--annotate", "--message", "Two", "v2", "side")
    made.git("branch", "--set-upstream-to=side", "main")
    made.write("a.txt", "a\n")
    made.git("add", "a.txt")
    made.git("stash", "push", "--quiet", "--message", "mine")
    made.git("remote", "add", "far", "https://example.org/far.git")
    main, side = (made.git("rev-parse", "--short=12", name).strip() for name in ("main", "side"))
    ahead = int(made.git("rev-list", "--count", "side..main"))
    noon = "2026-01-31T12:00:00Z"
    async with serving(made.path) as asking:
        branches = {row["name"]: row for row in await rows_of(asking, "", "list_refs")}
        tags = await rows_of(asking, "{kind: 'tags'}", "list_refs")
        containing = await rows_of(asking, "{kind: 'tags', contains: 'side'}", "list_refs")
        [stash] = await rows_of(asking, "{kind: 'stashes'}", "list_refs")
        [move, *_] = await rows_of(asking, "{kind: 'reflog'}", "list_refs")
        remotes = await rows_of(asking, "{kind: 'remotes'}", "list_refs")
        for_models = await asking("list_refs", kind="tags", pattern="v2")
    assert [*branches["main"].values()] == ["main", main, noon, "Merge it", "side", ahead, 0, True]
    # It follows nothing, so there is nothing that it could be even with.
    assert (branches["side"]["ahead"], branches["side"]["behind"]) == (None, None)
    assert (branches["side"]["upstream"], branches["side"]["is_current"]) == ("", False)
    assert {row["name"]: row["hash"] for row in tags} == {"v1": main, "v2": side}
    assert sorted(map(str, containing)) == sorted(map(str, tags))
    assert (stash["name"], stash["subject"]) == ("stash@{0}", "On main: mine")
    assert (move["name"], move["hash"], move["date"]) == ("HEAD@{0}", main, "2026-01-31")
    assert remotes == [{"name": "far", "url": "https://example.org/far.git", "is_push": False}]
    assert f"\nv2 {side[:7]}" in for_models, for_models


async def test_a_branch_whose_upstream_is_gone_is_not_even_with_it(tmp_path: Path) -> None:
    made = made_history(tmp_path)
    made.git("branch", "upstream", "main")
    made.git("branch", "--set-upstream-to=upstream", "side")
    made.git("branch", "--set-upstream-to=upstream", "main")
    async with serving(made.path) as asking:
        before = {row["name"]: row for row in await rows_of(asking, "", "list_refs")}
        made.git("update-ref", "-d", "refs/heads/upstream")
        after = {row["name"]: row for row in await rows_of(asking, "", "list_refs")}
    assert (before["main"]["ahead"], before["main"]["behind"]) == (0, 0)
    assert (after["main"]["ahead"], after["main"]["behind"]) == (None, None)
    assert after["main"]["upstream"] == "upstream"
