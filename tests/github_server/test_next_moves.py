"""What a failure says beside what failed: what is nearest, what it is called by now, and where a token comes from."""

from typing import Any

import pytest

from github_server.oracle import Oracle
from github_server.serving import EVERYTHING, call, refused, served, text_of
from github_server.world import issue, not_found, sample
from mcp_github.requests import graphql_queries

O = {"repo": "octo/app"}  # noqa: E741
HERE = "/repos/octo/app"


@pytest.mark.anyio
async def test_a_wrong_path_gets_the_nearest_ones(oracle: Oracle) -> None:
    paths = ["README.md", "src/app/parser.py", "src/app/lexer.py", "tests/test_parser.py", "docs/guide.md"]
    tree = [{"path": path, "type": "blob"} for path in paths]
    oracle.answer("GET", f"{HERE}/git/trees/(HEAD|dev)", {"tree": tree})
    not_found(oracle, "GET", f"{HERE}/contents/.*")
    async with served(oracle) as client:
        for path, nearest in (
            ("src/parser.py", "`src/app/parser.py`"), ("parser.py", "`src/app/parser.py`"),
            ("readme.md", "`README.md`"), ("docs/guides.md", "`docs/guide.md`"), ("src/app/lexxer.py", "lexer.py`"),
        ):  # fmt: skip
            text = await refused(client, "read_file", **O, path=path)
            assert f"nearest there are: {nearest}" in text or nearest in text, text
            assert "`list_files`" in text
        assert "nearest" not in await refused(client, "read_file", **O, path="zzzzzz.qqq")
        assert "`README.md`" in await refused(client, "read_file", **O, path="readme.md", ref="dev")
        not_found(oracle, "GET", f"{HERE}/git/trees/HEAD")
        assert "`list_files`" in await refused(client, "read_file", **O, path="readme.md")


@pytest.mark.anyio
async def test_a_renamed_repository_is_named_on_writes(oracle: Oracle) -> None:
    moved = {"Location": f"{oracle.url}/repositories/42/issues"}
    oracle.answer("POST", f"{HERE}/issues", {"message": "Moved Permanently"}, status=307, headers=moved)
    oracle.answer("GET", "/repositories/42", {**sample("repos/get"), "full_name": "octo/new-app"})
    async with served(oracle, "--write") as client:
        text = await refused(client, "create_issue", **O, title="T")
        assert "Call again with `octo/new-app`" in text and "Nothing was changed" in text
        assert len(oracle.sent("POST")) == 1
        await call(client, "create_issue", repo="octo/new-app", title="T")
    async with served(oracle, "--write", "--repos", "octo/app") as client:
        text = await refused(client, "create_issue", **O, title="T")
        assert "new-app" not in text and "Look the repository up" in text


def renamed(oracle: Oracle) -> None:
    """`octo/app` is `octo/new-app` by now, of REST and of GraphQL."""
    oracle.answer("GET", HERE, status=301, headers={"Location": f"{oracle.url}/repositories/42"})
    oracle.answer("GET", "/repositories/42", {**sample("repos/get"), "full_name": "octo/new-app"})
    thread = {"pullRequest": {"number": 5}, "repository": {"nameWithOwner": "octo/new-app"}}
    oracle.graphql("NodePlace", {"node": {"__typename": "PullRequestReviewThread", **thread}})
    oracle.graphql("Discussions", {"repository": {"nameWithOwner": "octo/new-app"}})


@pytest.mark.anyio
async def test_graphql_tells_the_new_name_of_a_repository_on_writes_too(oracle: Oracle) -> None:
    renamed(oracle)
    async with served(oracle, *EVERYTHING) as client:
        for tool, more in (
            ("edit_thread", {"number": 5, "thread": "PRRT_kwDOAAAAAQ"}), ("list_discussions", {}),
            ("create_comment", {"number": 5, "thread": "PRRT_kwDOAAAAAQ", "body": "B"}),
        ):  # fmt: skip
            result = await client.call_tool(tool, {**O, **more})
            assert not result.is_error and "`octo/app` is `octo/new-app` by now" in text_of(result), text_of(result)


@pytest.mark.anyio
async def test_graphql_shows_no_repository_that_one_was_renamed_to_and_is_not_served(oracle: Oracle) -> None:
    renamed(oracle)
    async with served(oracle, *EVERYTHING, "--repos", "octo/app") as client:
        assert "not served here" in await refused(client, "list_discussions", **O)
        assert "no thread" in await refused(client, "edit_thread", **O, number=5, thread="PRRT_kwDOAAAAAQ")


def test_each_query_of_a_repository_selects_its_name() -> None:
    texts = [text for name, text in vars(graphql_queries).items() if name.isupper()]
    of_repositories = [text for text in texts if "repository(owner: $owner, name: $name)" in text]
    assert len(of_repositories) >= 8
    assert all("repository(owner: $owner, name: $name) { nameWithOwner" in text for text in of_repositories)


@pytest.mark.anyio
async def test_an_empty_repository_answers_as_one(oracle: Oracle) -> None:
    empty = {"message": "Git Repository is empty.", "status": "409"}
    for path in ("commits", "commits/.*", "git/.*"):
        oracle.answer("GET", f"{HERE}/{path}", empty, status=409)
    oracle.answer("GET", f"{HERE}/contents/.*", {"message": "This repository is empty."}, status=404)
    oracle.answer("GET", f"{HERE}/branches", [])
    oracle.graphql("Blame", {"repository": {"isEmpty": True, "object": None}})
    async with served(oracle, "--toolsets", "all", "--write") as client:
        for tool, more in (
            ("list_files", {}), ("list_files", {"recursive": True}), ("read_file", {"path": "a"}), ("list_commits", {}),
            ("get_commit", {"ref": "main"}), ("read_blame", {"path": "a"}), ("create_branch", {"branch": "x"}),
        ):  # fmt: skip
            text = await refused(client, tool, **O, **more)
            assert "no commit yet" in text and "`write_files`" in text, text
        assert "no commit yet" in (await call(client, "list_refs", **O))["note"]
        assert "note" not in await call(client, "list_refs", **O, kind="tags")


@pytest.mark.anyio
async def test_whatever_takes_a_path_names_the_nearest(oracle: Oracle) -> None:
    tree = [{"path": "src/parser.py", "type": "blob"}, {"path": "src", "type": "tree"}]
    oracle.answer("GET", f"{HERE}/git/trees/HEAD", {"tree": tree})
    oracle.answer("GET", f"{HERE}/commits", [])
    not_found(oracle, "GET", f"{HERE}/contents/(parser.py|sr)")
    nobody = {"__typename": "Commit", "blame": {"ranges": []}}
    oracle.graphql("Blame", {"repository": {"isEmpty": False, "object": nobody}})
    async with served(oracle, "--toolsets", "all") as client:
        for tool, more in (("list_files", {"path": "sr"}), ("list_files", {"path": "sr", "recursive": True})):
            assert "`src`" in await refused(client, tool, **O, **more)
        assert "`src/parser.py`" in await refused(client, "read_blame", **O, path="parser.py")
        # GitHub lists no commits of a path that is not there, as of one that nobody changed since.
        found = await call(client, "list_commits", **O, path="parser.py")
        assert found["rows"] == [] and "`src/parser.py`" in found["note"]
        assert "is no folder" in await refused(client, "list_files", **O, path="README.md", recursive=True)


@pytest.mark.anyio
@pytest.mark.parametrize("status", [403, 404])
async def test_an_issue_is_shown_though_its_sub_issues_are_hidden(status: int, oracle: Oracle) -> None:
    has = {"sub_issues_summary": {"total": 2, "completed": 0}, "issue_dependencies_summary": {"total_blocked_by": 1}}
    oracle.answer("GET", f"{HERE}/issues/3", issue(3, **has))
    oracle.answer("GET", f"{HERE}/issues/3/sub_issues", {"message": "Not Found"}, status=status)
    oracle.answer("GET", f"{HERE}/issues/3/dependencies/blocked_by", [issue(8)])
    async with served(oracle) as client:
        found = await call(client, "get_issue", **O, number=3)
        assert found["data"]["title"] == "Issue 3" and "`sub_issue_list`" in found["note"]
        assert "sub_issue_list" not in found["data"] and len(found["data"]["blocked_by"]) == 1


@pytest.mark.anyio
async def test_failures_name_what_github_finds_them_by(waited: list[float], oracle: Oracle) -> None:
    header = {"X-GitHub-Request-Id": "C0FE:1234:ABCD"}
    oracle.answer("GET", f"{HERE}/issues/3", status=500, headers=header)
    broke = {"errors": [{"message": "Something went wrong while executing your query"}]}
    oracle.answer("POST", "/graphql", broke, headers=header)
    async with served(oracle) as client:
        assert "request `C0FE:1234:ABCD`" in await refused(client, "get_issue", **O, number=3)
        assert "request `C0FE:1234:ABCD`" in await refused(client, "list_reviews", **O, number=5, kind="threads")
        oracle.answer("GET", f"{HERE}/issues/4", {"message": "Bad credentials"}, status=401)
        text = await refused(client, "get_issue", **O, number=4)
        assert "`gh auth login`" in text and "--token-file" in text
    assert len(waited) == 2


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("kind", "query", "words"),
    [
        ("pull_requests", "is:issue crash", "`is:issue`, which counts more than kind=pull_requests"),
        ("issues", "type:pr crash", "`type:pr`"), ("pull_requests", "is:pr crash", ""), ("issues", "crash", ""),
        ("code", "is:issue", ""),
    ],
)  # fmt: skip
async def test_a_query_that_wants_another_kind_is_told(kind: str, query: str, words: str, oracle: Oracle) -> None:
    async with served(oracle) as client:
        note = (await call(client, "search_github", kind=kind, query=query)).get("note", "")
    assert words in note and ("counts more" in note) == bool(words)


@pytest.mark.anyio
async def test_without_a_token_one_may_read(oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_TOKEN")
    async with served(oracle, "--write", "--merge", "--auth", "none") as client:
        result: Any = await client.call_tool("get_me", {})
        assert result.structured_content["data"]["may"] == ["read"]
        assert "only public repositories" in text_of(result)


@pytest.mark.anyio
async def test_commits_of_a_period_show_the_time_that_it_is_of(oracle: Oracle) -> None:
    written, made = "2020-01-01T00:00:00Z", "2026-01-15T00:00:00Z"
    commit = {"author": {"name": "A", "date": written}, "committer": {"date": made}, "message": "M"}
    oracle.answer("GET", f"{HERE}/commits", [{**sample("repos/get-commit"), "commit": commit}])
    async with served(oracle) as client:
        for more, column, date in (({}, "date", written), ({"since": "2026-01-01"}, "committed_at", made),
                                   ({"until": "2026-02-01"}, "committed_at", made)):  # fmt: skip
            found = await call(client, "list_commits", **O, **more)
            assert found["rows"][0][found["columns"].index(column)] == date and len(found["columns"]) == 5


@pytest.mark.anyio
async def test_a_notification_of_a_release_names_its_tag(oracle: Oracle) -> None:
    about = {"title": "One", "type": "Release", "url": f"{oracle.url}/repos/octo/app/releases/42"}
    note = {"id": "1", "reason": "subscribed", "repository": {"full_name": "octo/app", "private": False}}
    issue_note = {**note, "id": "2", "subject": {"title": "T", "type": "Issue", "url": "x/7"}}
    oracle.answer("GET", "/notifications", [{**note, "subject": about}, issue_note])
    oracle.answer("GET", f"{HERE}/releases/42", {**sample("repos/get-release"), "tag_name": "v1.2"})
    async with served(oracle, "--toolsets", "all") as client:
        found = await call(client, "list_notifications")
        at = found["columns"].index("number")
        assert [row[at] for row in found["rows"]] == ["v1.2", 7]
        not_found(oracle, "GET", f"{HERE}/releases/42")
        found = await call(client, "list_notifications")
        assert [row[at] for row in found["rows"]] == [None, 7]
