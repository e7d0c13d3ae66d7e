"""What users reported of other servers of GitHub, tried on mcp-github with answers of our own."""

from typing import Any

import pytest

from github_server.oracle import Oracle
from github_server.serving import call, refused, served
from github_server.world import SHA, branch, changed, file, sample

pytestmark = pytest.mark.anyio

O = {"repo": "octo/app"}  # noqa: E741
HERE = "/repos/octo/app"


@pytest.mark.reported("github/github-mcp-server#2997")
async def test_a_link_is_neither_read_as_its_target_nor_overwritten(oracle: Oracle) -> None:
    branch(oracle)
    oracle.answer("GET", f"{HERE}/git/commits/{SHA}", {"sha": SHA, "tree": {"sha": SHA}})
    tree = [{"path": "NOTES.md", "mode": "120000", "type": "blob", "sha": SHA}]
    oracle.answer("GET", f"{HERE}/git/trees/{SHA}", {"sha": SHA, "tree": tree, "truncated": False})
    link = {"type": "symlink", "target": "docs/notes.md", "sha": SHA}
    oracle.answer("GET", f"{HERE}/contents/NOTES.md", link)
    text: dict[str, Any] = {"path": "NOTES.md", "sha": SHA, "content": "# Notes\n"}
    async with served(oracle, "--write") as client:
        assert "link to `docs/notes.md`" in await refused(client, "read_file", **O, path="NOTES.md")
        # GitHub answers the target's content where the link leads to a file of the same repository.
        oracle.answer("GET", f"{HERE}/contents/NOTES.md", file("NOTES.md", b"# Old\n"))
        said = await refused(client, "write_files", **O, branch="main", message="notes", files=[text])
        assert "`NOTES.md` is a symlink" in said
    assert not oracle.sent("POST", "/git/trees") and not oracle.sent("PATCH")


@pytest.mark.reported("github/github-mcp-server#527")
@pytest.mark.reported("modelcontextprotocol/servers#974")
async def test_the_files_of_a_pull_request_go_on_behind_the_first_page(oracle: Oracle) -> None:
    oracle.answer("GET", f"{HERE}/pulls/5", {**sample("pulls/get"), "head": {"sha": SHA}, "changed_files": 130})
    oracle.pages(f"{HERE}/pulls/5/files", [changed(f"f{number}.txt") for number in range(130)])
    async with served(oracle) as client:
        said = await call(client, "read_diff", **O, number=5, summary=True)
        assert all(f"=== f{number}.txt " in said for number in (0, 29, 30, 100, 129))


@pytest.mark.reported("github/github-mcp-server#2347")
async def test_reviews_behind_the_first_page_are_there_and_counted(oracle: Oracle) -> None:
    reviews = [{**sample("pulls/list-reviews")[0], "id": number, "body": f"look {number}"} for number in range(95)]
    oracle.pages(f"{HERE}/pulls/5/reviews", reviews)
    arguments: dict[str, Any] = {**O, "number": 5, "kind": "reviews", "fields": ["id"]}
    async with served(oracle) as client:
        page = await call(client, "list_reviews", **arguments)
        assert "more" in page["note"]
        numbers = [row[0] for row in page["rows"]]
        while cursor := page.get("cursor"):
            page = await call(client, "list_reviews", **arguments, cursor=cursor)
            numbers += [row[0] for row in page["rows"]]
    assert sorted(numbers) == list(range(95))


@pytest.mark.reported("atxtechbro/dotfiles#623")
async def test_a_list_of_pull_requests_stays_small_whatever_they_say(oracle: Oracle) -> None:
    pulls = [{**sample("pulls/list")[0], "number": number, "body": "long " * 10_000} for number in range(1, 31)]
    oracle.pages(f"{HERE}/pulls", pulls)
    async with served(oracle) as client:
        done = await client.call_tool("list_pull_requests", O)
    assert sum(len(getattr(block, "text", "")) for block in done.content) < 16_000


@pytest.mark.reported("xorbitsai/xagent#1432")
async def test_a_file_that_github_sends_without_its_content_is_not_empty(oracle: Oracle) -> None:
    text = b"first\n" + b"z" * 1_200_000
    oracle.answer("GET", f"{HERE}/contents/big.txt", file("big.txt", b"", size=len(text), encoding="none"))
    oracle.answer("GET", f"{HERE}/git/blobs/{SHA}", raw=text)
    async with served(oracle) as client:
        assert "first" in await call(client, "read_file", **O, path="big.txt")
