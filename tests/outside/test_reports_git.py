"""What users reported of other programs that run Git, tried on mcp-git with repositories of our own."""

from pathlib import Path

import pytest

from git_server.made import Made
from git_server.serving import serving

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
