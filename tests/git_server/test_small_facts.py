"""Small facts that models copy from answers: names, dates, addresses, locks."""

import os
import re
import sys
import time
from pathlib import Path

import pytest

from git_server.made import Made
from git_server.serving import serving
from git_server.test_writes import made_app, undone
from mcp_git.path_quoting import escape_line_breaks, quote_path, unquote_path
from mcp_git.remote_addresses import hide_password

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="it only reads there yet"),
]


async def test_an_author_is_named_in_full(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    for name in ("Ada King Lovelace", "Grace B. Hopper"):
        made.git("commit", "--quiet", "--allow-empty", "--message", "x", GIT_AUTHOR_NAME=name)
    async with serving(made.path) as asking:
        answer = await asking("list_commits")
    assert " Ada King Lovelace: x" in answer and " Grace B. Hopper: (*main) x" in answer


async def test_dates_are_of_the_commit_and_both_are_told_where_they_differ(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    made.commit("same", {"b.txt": "b\n"})
    written = "2020-02-02T12:00:00+00:00"
    made.write("a.txt", "a\n")
    made.git("add", "a.txt")
    made.git("commit", "--quiet", "--message", "late", GIT_AUTHOR_DATE=written, GIT_COMMITTER_NAME="Grace Hopper")
    async with serving(made.path) as asking:
        listed = await asking("list_commits")
        assert re.search(r"(?m)^\w{7,} written 2020-02-02: \(\*main\) late$", listed), listed
        shown = await asking("read_diff", rev="HEAD")
        assert f"Ada Lovelace <ada@example.org> {written[:10]}" in shown
        assert "committed by Grace Hopper <ada@example.org> 2026-01-31" in shown
        assert "committed by" not in await asking("read_diff", rev="HEAD~1")
        assert "2026-01-31" in await asking("get_blame", path="a.txt")
        assert "2026-01-31" in await asking("get_merge_base", one="HEAD")
        assert "written" not in await asking("list_commits", rev="HEAD~1")


async def test_a_reflog_has_the_dates_of_its_entries(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    made.commit("first", {"a.txt": "a\n"})
    moved = "2026-11-11T12:00:00+00:00"
    made.git("update-ref", "-m", "moved", "HEAD", made.commit("second"), GIT_COMMITTER_DATE=moved)
    made.git("reset", "--quiet", "--soft", "HEAD~1", GIT_COMMITTER_DATE=moved)
    async with serving(made.path) as asking:
        rows = (await asking("list_refs", kind="reflog")).splitlines()[1:]
        assert re.fullmatch(r"HEAD@\{0\} \w+ 2026-11-11 reset: moving to HEAD~1", rows[0]), rows
        assert re.match(r"HEAD@\{2\} \w+ 2026-01-31 commit: second", rows[2]), rows
        assert (await asking("list_refs", kind="reflog", name="main")).splitlines()[1].startswith("main@{0} ")


async def test_a_change_of_nothing_but_the_mode_has_a_name(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    made.commit("first", {"run.sh": "true\n", "other.sh": "true\n"})
    (made.path / "run.sh").chmod(0o755)
    made.commit("mode", {"empty.txt": ""})
    async with serving(made.path) as asking:
        patch = (await asking("read_diff", rev="HEAD")).partition("mode\n\n")[2].splitlines()
    assert patch[patch.index("old mode 100644") - 1] == "+0 -0 run.sh", patch
    assert patch[patch.index("new file mode 100644") - 1] == "new +0 -0 empty.txt", patch


async def test_a_rebase_tells_only_its_own_commits(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    for branch, text in (("topic", "theirs\n"), ("main", "ours\n")):
        made.git("switch", "--quiet", branch)
        made.commit(f"upstream {branch}", {"side.txt": text})
        made.commit(f"more {branch}", {f"{branch}.txt": text})
    async with serving("--write", made.path) as asking:
        assert "in conflict" in await asking("run_rebase", rev="topic")
        made.write("side.txt", "both\n")
        answer = await asking("continue_operation", action="continue", paths=["side.txt"])
        assert "upstream main" in answer and "more main" in answer and "topic" not in answer.partition("undo")[0], (
            answer
        )
        made.git("reset", "--quiet", "--hard", "ORIG_HEAD")
        made.git("reset", "--quiet", "--hard", "HEAD@{1}")


UNSEEN = {
    "tag characters": "a\U000e0041\U000e0042b",
    "direction": "a\u202eb",
    "isolate": "a\u2066b",
    "mark": "a\u200fb",
    "no width": "a\u200bb",
    "filler": "a\u3164b",
    "variation": "a\U000e0101b",
}


@pytest.mark.parametrize("text", UNSEEN.values(), ids=UNSEEN.keys())
def test_what_nobody_sees_is_escaped(text: str) -> None:
    assert escape_line_breaks(text).isascii()
    name = text.encode()
    assert quote_path(name).isascii() and os.fsencode(unquote_path(quote_path(name))) == name


async def test_a_message_hides_nothing_and_contents_are_told_that_do(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    made.commit(
        "first\n\n\tindented \u202eback\n", {"a.txt": "if admin:\u202e\u2066 no\n", "b.txt": "\ufeffplain \u200d\n"}
    )
    named = "2 characters that show nothing or turn text around: U+202E, U+2066]"
    async with serving(made.path) as asking:
        shown = await asking("read_diff", rev="HEAD")
        assert "\tindented \\u202eback\n" in shown and "+if admin:\u202e\u2066 no" in shown
        for answer in (
            shown,
            await asking("read_file", path="a.txt"),
            await asking("search_text", pattern="admin"),
            await asking("get_blame", path="a.txt"),
        ):
            assert answer.partition("\n")[0].endswith(named), answer
        assert "characters" not in await asking("read_file", path="b.txt")


ADDRESSES = {
    "https://example.org/app?access_token=s3cret": "https://example.org/app?…",
    "pull https://ada:pw@example.org/app.git?private_token=s3cret: Fast": "pull https://…@example.org/app.git?… Fast",
    "https://example.org/app": "https://example.org/app",
    "git@example.org:app.git": "git@example.org:app.git",
}


@pytest.mark.parametrize("text", ADDRESSES)
def test_no_token_in_an_address_is_shown(text: str) -> None:
    assert hide_password(text) == ADDRESSES[text]


async def test_a_lock_tells_its_age_and_owner(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.write("notes.txt", "changed\n")
    lock = made.write(".git/index.lock", "")
    async with serving("--write", made.path) as asking:
        fresh = await asking("stage_files", paths=["."])
        assert "`index.lock` is" in fresh and "Call again when it is done" in fresh, fresh
        os.utime(lock, (time.time() - 7300, time.time() - 7300))
        stale = await asking("stage_files", paths=["."])
        assert "is 2 hours old, of `" in stale and "the user can remove it" in stale, stale
        lock.unlink()
        assert not (await asking("stage_files", paths=["."])).startswith("failed: ")


async def test_a_bisect_is_under_way_to_every_tool(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.git("bisect", "start")
    async with serving("--write", made.path) as asking:
        assert "bisect under way" in await asking("get_status")
        answer = await asking("continue_operation", action="abort")
        assert answer.startswith("failed: A bisect is under way") and "git bisect reset" in answer


@pytest.mark.parametrize("name", [".mailmap", ".gitattributes", ".gitignore"])
async def test_a_pipe_in_the_place_of_a_file_stops_no_call(name: str, tmp_path: Path) -> None:
    made = made_app(tmp_path)
    os.mkfifo(made.path / name)
    async with serving("--timeout=5", made.path) as asking:
        for tool in ("list_commits", "get_status"):
            began = time.monotonic()
            answer = await asking(tool)
            assert answer.startswith(f"failed: `{name}` in the work tree is a pipe"), answer
            assert time.monotonic() - began < 4


async def test_the_status_of_a_partial_clone_does_without_renames(tmp_path: Path) -> None:
    far = made_app(tmp_path / "far")
    far.commit("first", {"old.txt": "line\n" * 40})
    far.git("mv", "old.txt", "new.txt")
    far.commit("renamed", {"new.txt": "line\n" * 40 + "more\n"})
    far.git("config", "uploadpack.allowFilter", "true")
    far.git("clone", "--quiet", "--filter=blob:none", f"file://{far.path}", str(tmp_path / "app"))
    made = Made(tmp_path / "app")
    async with serving("--write", made.path) as asking:
        answer = await asking("run_reset", rev="HEAD~1", mode="soft")
        assert "; 2 staged]" in answer, answer
        assert "A  new.txt\nD  old.txt\n" in await asking("get_status")
        await undone(asking, answer)
        assert "clean" in await asking("get_status")


async def test_a_stash_says_which_files_it_has(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.write("notes.txt", "staged\n")
    made.git("add", "notes.txt")
    made.git("restore", "--source=HEAD", "--worktree", "notes.txt")
    made.write("side.txt", "changed\n")
    made.write("new.txt", "new\n")
    async with serving("--write", made.path) as asking:
        assert "\nstashed 2 files: notes.txt, side.txt\n" in await asking("run_stash")
        assert "\nstashed 1 file: new.txt\n" in await asking("run_stash", untracked=True)
        assert (await asking("run_stash")).startswith("failed")


async def test_every_merge_is_marked(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.git("switch", "--quiet", "topic")
    made.commit("merge the lists", {"more.txt": "x\n"})
    made.git("switch", "--quiet", "main")
    made.git("merge", "--quiet", "--no-ff", "--message=fix: join the search", "topic")
    made.git("switch", "--quiet", "--create", "other", "HEAD~1")
    made.commit("aside", {"aside.txt": "x\n"})
    made.git("merge", "--quiet", "--no-edit", "main")
    async with serving(made.path) as asking:
        answer = await asking("list_commits")
        assert "(merge) fix: join the search" in answer
        assert "(merge) Merge branch 'main' into other" in answer and answer.count("(merge)") == 2, answer
        found = await asking("list_commits", message="search")
        assert "(merge) fix: join the search" in found
        missing = await asking("get_blame", path="*.txt")
        assert missing.endswith("A path is no pattern: name a file or folder, or leave it out."), missing


async def test_releases_with_a_commit_come_from_the_first_one_on(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    oid = made.git("rev-parse", "HEAD").strip()
    for year in (2021, 2022, 2023):
        date = f"{year}-05-01T12:00:00Z"
        made.git("tag", f"v{year}", "--message=A release", oid, GIT_COMMITTER_DATE=date)
    async with serving(made.path) as asking:
        answer = await asking("list_refs", kind="tags", contains=oid, limit=2)
        head, *rows = answer.splitlines()
        assert rows == ["v2021 2021-05-01", "v2022 2022-05-01"]
        cursor = head.partition('cursor="')[2].partition('"')[0]
        answer = await asking("list_refs", kind="tags", contains=oid, limit=2, cursor=cursor)
        assert answer.splitlines()[1:] == ["v2023 2023-05-01"]


async def test_branches_and_tags_are_found_by_name_and_by_what_they_have(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.git("tag", "v1.0")
    made.git("branch", "old/done")
    made.git("switch", "--quiet", "--create", "old/open")
    oid = made.commit("open work", {"open.txt": "x\n"})
    made.git("tag", "v2.0")
    made.git("tag", "other")
    made.git("switch", "--quiet", "main")
    made.git("update-ref", "refs/remotes/origin/old/open", oid)

    async def names(**arguments: str) -> set[str]:
        rows = (await asking("list_refs", **arguments)).splitlines()[1:]
        return {row.removeprefix("* ").split(" ")[0] for row in rows}

    async with serving(made.path) as asking:
        assert await names(kind="tags", pattern="v*") == {"v1.0", "v2.0"}
        assert await names(kind="tags", contains=oid) == {"v2.0", "other"}
        assert await names(kind="tags", contains=oid, pattern="v*") == {"v2.0"}
        assert await names(pattern="old/*") == {"old/done", "old/open", "origin/old/open"}
        assert await names(pattern="origin/*/*") == {"origin/old/open"}
        assert await names(pattern="origin/old") == {"origin/old/open"}
        assert await names(contains=oid) == {"old/open", "origin/old/open"}
        assert "old/open" in await names(not_merged="main") and "old/done" not in await names(not_merged="main")
        assert "old/done" in await names(merged="main") and "old/open" not in await names(merged="main")
        assert "There is no revision `missing`" in await asking("list_refs", merged="missing")
        assert "are of branches and tags, not of stashes" in await asking("list_refs", kind="stashes", pattern="x")
        page = await asking("list_refs", kind="tags", pattern="v*", limit=1)
        cursor = page.partition('cursor="')[2].partition('"')[0]
        assert "not issued for this listing" in await asking("list_refs", kind="tags", cursor=cursor)
        assert "tags 2-2" in await asking("list_refs", kind="tags", pattern="v*", limit=1, cursor=cursor)


async def test_a_star_in_a_pattern_passes_slashes_as_in_a_list_of_git(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    for name in ("fix/one", "fix/deep/two", "feature/one", "old/fix/two", "one"):
        made.git("branch", name)
        made.git("tag", f"t-{name}")

    async def names(**arguments: str) -> list[str]:
        rows = (await asking("list_refs", **arguments)).splitlines()[1:]
        return sorted(row.removeprefix("* ").split(" ")[0] for row in rows)

    async with serving(made.path) as asking:
        for pattern in ("f*", "*one", "fix/*", "*/fix/*", "f*e*", "*", "f*x*t*o", "one", "f**", "f**e*", "f*x*/*w*"):
            listed = made.git("branch", "--list", "--format=%(refname:short)", pattern).split()
            assert await names(pattern=pattern) == sorted(listed), pattern
            listed = made.git("tag", "--list", f"t-{pattern}").split()
            assert await names(kind="tags", pattern=f"t-{pattern}") == sorted(listed), pattern
        for name in ("origin/one", "origin/fix/one", "other/one"):
            made.git("update-ref", f"refs/remotes/{name}", "HEAD")
        assert await names(pattern="or*") == ["origin/fix/one", "origin/one"]
        assert await names(pattern="fix*/**/two") == ["fix/deep/two"]
        refused = await asking("list_refs", pattern="*a" * 5)
        assert refused == "failed: `*a*a*a*a*a` has more than 4 stars. Leave some out."


async def test_an_annotated_tag_shows_its_text_and_who_made_it(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.git("tag", "light")
    made.git("tag", "--annotate", "--message", "Version 1\n\nWith \u202eall.", "v1", GIT_COMMITTER_NAME="Grace Hopper")
    async with serving(made.path) as asking:
        shown = await asking("read_diff", rev="v1")
        expected = (
            "tagged by Grace Hopper <ada@example.org> 2026-01-31T12:00:00+00:00\n\nVersion 1\n\nWith \\u202eall.\n"
        )
        assert shown.partition("\n")[2].startswith(expected), shown
        for rev in ("light", "HEAD"):
            assert "tagged by" not in await asking("read_diff", rev=rev)


async def test_an_answer_has_the_status_of_the_files_that_it_leaves(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.write("notes.txt", "changed\n")
    made.write("new.txt", "new\n")
    for number in range(12):
        made.write(f"untracked{number:02}.txt", "")
    async with serving("--write", made.path) as asking:
        staged = await asking("stage_files", paths=["new.txt"])
        assert "\nA  new.txt\n M notes.txt\n?? untracked00.txt\n" in staged
        assert "?? untracked07.txt\n… 4 more: `get_status` has them\nundo: " in staged, staged
        await asking("run_stash")
        popped = await asking("run_stash", action="pop")
        assert "\nA  new.txt\n M notes.txt\n" in popped, popped
        committed = await asking("create_commit", message="x", paths=["notes.txt", "new.txt"])
        assert "untracked00" not in committed, committed
        restored = await asking("run_restore", paths=["."], rev="HEAD~1")
        assert "\nD  new.txt\nM  notes.txt\n" in restored, restored


@pytest.mark.parametrize(("source", "target"), [("x ->", "y"), ("x", "-> y"), ("x -> y", "z")])
async def test_a_rename_tells_its_two_names_apart(source: str, target: str, tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.commit("second", {source: "moved\n"})
    made.git("mv", "--", source, target)
    names = [f'"{name}"' if "->" in name else name for name in (source, target)]
    async with serving(made.path) as asking:
        assert (await asking("get_status")).splitlines()[1:] == [f"R  {names[0]} -> {names[1]}"]
