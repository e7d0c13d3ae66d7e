"""What goes wrong between here and GitHub, and what is made of it."""

import time
from typing import Any

import anyio
import pytest

from github_server.oracle import Oracle
from github_server.oracle.server import Reply
from github_server.serving import call, refused, served, text_of
from github_server.world import branch, issue, not_found, sample
from mcp_github.client import http, repository_names
from mcp_github.client.http import Client, Request
from mcp_github.client.repository_names import RepositoryNames
from mcp_github.client.response import Response

PATH = "/repos/octo/app/issues/3"
ASK: dict[str, Any] = {"repo": "octo/app", "number": 3}


@pytest.mark.share(8)
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("status", "headers", "message", "words"),
    [
        (401, {}, "Bad credentials", "does not accept the token"),
        (403, {"X-Accepted-GitHub-Permissions": "issues=read"}, "Resource not accessible", "permission `issues=read`"),
        (403, {"X-Accepted-OAuth-Scopes": "admin:org"}, "Must have admin rights", "one of the scopes `admin:org`"),
        (403, {"X-GitHub-SSO": "required; url=https://github.com/x"}, "SAML", "single sign-on"),
        (404, {}, "Not Found", "does not find issue #3"),
        (
            404,
            {"X-Accepted-OAuth-Scopes": "project"},
            "Not Found",
            "one of the scopes `project`; this one has `read:org",
        ),
        (410, {}, "This issue was deleted", "It was there and is gone"),
        (409, {}, "Git Repository is empty.", "no commit yet"),
        (410, {}, "Issues are disabled for this repo", "can turn that on"),
        (422, {}, "No commit found for SHA: fix/disabled", "`list_refs` shows"),
        (403, {}, "Dependabot alerts are disabled for this repository.", "can turn that on"),
        (403, {}, "Advanced Security must be enabled for this repository to use code scanning.", "can turn that on"),
        (409, {}, "Merge conflict", "its changes conflict with the base branch"),
        (422, {}, "Validation Failed", "can't use the request"),
        (451, {}, "DMCA", "legal reasons"),
        (406, {}, "diff too large", "file by file"),
        (403, {}, "The requested blob is too large to fetch via the API", "does not send so much of issue #3"),
    ],
)
async def test_a_refusal_is_explained_and_not_repeated(
    status: int, headers: dict[str, str], message: str, words: str, oracle: Oracle
) -> None:
    oracle.answer("GET", PATH, {"message": message}, status=status, headers=headers)
    async with served(oracle) as client:
        assert words in await refused(client, "get_issue", **ASK)
    assert len(oracle.seen) == 1


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("status", "headers", "message", "seconds"),
    [
        (429, {"Retry-After": "40"}, "Too many", 40),
        (429, {}, "Too many", 60),
        (403, {"Retry-After": "30"}, "You have exceeded a secondary rate limit", 30),
        (403, {}, "You have exceeded a secondary rate limit", 60),
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "in 500"}, "API rate limit exceeded", 500),
    ],
)
async def test_a_limit_is_said_at_once_and_kept(
    status: int, headers: dict[str, str], message: str, seconds: int, oracle: Oracle
) -> None:
    headers = {name: str(int(time.time()) + 500) if value == "in 500" else value for name, value in headers.items()}
    oracle.answer("GET", PATH, {"message": message}, status=status, headers=headers)
    async with served(oracle) as client:
        said = await refused(client, "get_issue", **ASK)
        told = int(said.partition("Try again in ")[2].partition(" ")[0])
        assert seconds - 20 <= told <= seconds + 1
        # Nothing more is sent before that.
        assert "limit" in await refused(client, "get_repository", repo="octo/app")
    assert len(oracle.seen) == 1


@pytest.mark.anyio
@pytest.mark.parametrize("status", [429, 403, 503])
async def test_a_limit_that_ends_soon_is_waited_for(status: int, waited: list[float], oracle: Oracle) -> None:
    oracle.answer("GET", PATH, issue(3))
    oracle.answer("GET", PATH, {"message": "wait"}, status=status, headers={"Retry-After": "4"}, times=1)
    async with served(oracle) as client:
        assert (await call(client, "get_issue", **ASK))["data"]["title"]
    assert waited == [4.0] and len(oracle.seen) == 2


@pytest.mark.anyio
async def test_a_write_waits_for_a_limit_and_for_nothing_else(waited: list[float], oracle: Oracle) -> None:
    place, given = "/repos/octo/app/issues", {"repo": "octo/app", "title": "T"}
    oracle.answer("POST", place, {"message": "slow down"}, status=429, headers={"Retry-After": "2"}, times=1)
    async with served(oracle, "--write") as client:
        await call(client, "create_issue", **given)
        assert 2.0 in waited and len(oracle.sent("POST")) == 2
        # It may have been done, so it is not sent again.
        oracle.answer("POST", place, status=503, headers={"Retry-After": "2"})
        await refused(client, "create_issue", **given)
        assert len(oracle.sent("POST")) == 3
        oracle.answer("POST", place, {"message": "slow down"}, status=429, headers={"Retry-After": "6"})
        result = await client.call_tool("create_issue", given)
        assert result.is_error and len(oracle.sent("POST")) == 4
        fields = {name: value for name, value in (result.meta or {}).items() if "/" not in name}
        assert fields == {"kind": "unavailable", "status": 429, "retry_after_s": 6.0}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("token", "kind"), [("github_pat_x", "fine-grained"), ("ghp_x", "classic"), ("other", "unknown")]
)
async def test_what_the_token_may_do_shows(
    token: str, kind: str, oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", token)
    async with served(oracle) as client:
        data = (await call(client, "get_me"))["data"]
    assert (data["token_kind"], data["token_from"], data["scopes"]) == (kind, "GITHUB_TOKEN", oracle.scopes)


@pytest.mark.anyio
async def test_the_limit_of_searches_leaves_the_rest_alone(oracle: Oracle) -> None:
    headers = {
        "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(time.time()) + 50), "X-RateLimit-Resource": "search",
    }  # fmt: skip
    oracle.answer("GET", "/search/issues", {"message": "API rate limit exceeded"}, status=403, headers=headers)
    async with served(oracle) as client:
        for _ in range(2):
            assert "`search`" in await refused(client, "search_github", kind="issues", query="x")
        await call(client, "get_repository", repo="octo/app")
    assert len(oracle.sent("GET", "/search")) == 1


@pytest.mark.anyio
async def test_the_limit_of_graphql_is_known_behind_its_200(oracle: Oracle) -> None:
    oracle.answer("POST", "/graphql", {"errors": [{"type": "RATE_LIMITED", "message": "API rate limit exceeded"}]})
    async with served(oracle) as client:
        for _ in range(2):
            assert "`graphql`" in await refused(client, "list_reviews", repo="octo/app", number=5, kind="threads")
    assert len(oracle.seen) == 1


@pytest.mark.anyio
@pytest.mark.parametrize("inside", [False, True])
async def test_a_secondary_limit_of_graphql_stops_everything(inside: bool, oracle: Oracle) -> None:
    said = {"message": "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}
    oracle.answer("POST", "/graphql", {"errors": [said]} if inside else said)
    async with served(oracle) as client:
        assert "60 s" in await refused(client, "list_reviews", repo="octo/app", number=5, kind="threads")
        assert "secondary rate limit" in await refused(client, "get_issue", **ASK)
    assert len(oracle.seen) == 1


@pytest.mark.anyio
async def test_no_data_is_no_answer(oracle: Oracle) -> None:
    oracle.answer("POST", "/graphql", {"data": None})
    async with served(oracle) as client:
        said = await refused(client, "list_reviews", repo="octo/app", number=5, kind="threads")
    assert "GitHub sent no data for pull request #5" in said


@pytest.mark.anyio
async def test_when_to_come_back_is_said(oracle: Oracle) -> None:
    oracle.answer("GET", PATH, status=503, headers={"Retry-After": "7"})
    spent = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(time.time()) + 500)}
    limited = {"errors": [{"type": "RATE_LIMITED", "message": "API rate limit already exceeded"}]}
    oracle.answer("POST", "/graphql", limited, headers=spent)
    async with served(oracle) as client:
        assert "Try again in 7 s." in await refused(client, "get_issue", **ASK)
        assert len(oracle.seen) == 1
        oracle.answer("GET", PATH, issue(3))
        await call(client, "get_issue", **ASK)
        said = await refused(client, "list_reviews", repo="octo/app", number=5, kind="threads")
        assert 480 <= int(said.partition("Try again in ")[2].partition(" ")[0]) <= 501


@pytest.mark.anyio
async def test_a_search_that_github_cannot_do_is_said(oracle: Oracle) -> None:
    errors = [{"message": "The listed users cannot be searched", "resource": "Search", "field": "q", "code": "invalid"}]
    oracle.answer("GET", "/search/issues", {"message": "Validation Failed", "errors": errors}, status=422)
    short = {"total_count": 1, "incomplete_results": True, "items": []}
    oracle.answer("GET", "/search/code", short)
    async with served(oracle) as client:
        said = await refused(client, "search_github", kind="issues", query="user:nobody")
        assert "cannot be searched" in said and "Look at `query`." in said
        assert "ran out of time" in (await call(client, "search_github", kind="code", query="x"))["note"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    "fault",
    [Reply(500), Reply(502, raw=b"<html>"), Reply(503), Reply(200, issue(3), cut=True)],
    ids=["500", "502", "503", "cut"],
)
async def test_a_read_is_tried_again(fault: Reply, waited: list[float], oracle: Oracle) -> None:
    left = [fault, fault]
    oracle.respond("GET", PATH, lambda seen: left.pop() if left else Reply(200, issue(3)))
    async with served(oracle) as client:
        assert (await call(client, "get_issue", **ASK))["data"]["number"] == 3
    assert len(oracle.seen) == 3 and len(waited) == 2


@pytest.mark.anyio
@pytest.mark.parametrize("fault", [Reply(500), Reply(201, issue(3), cut=True)], ids=["500", "cut"])
async def test_a_write_is_sent_once(fault: Reply, oracle: Oracle) -> None:
    oracle.respond("POST", "/repos/octo/app/issues", lambda seen: fault)
    async with served(oracle, "--write") as client:
        assert "may have been done" in await refused(client, "create_issue", repo="octo/app", title="T")
    assert len(oracle.seen) == 1


@pytest.mark.anyio
@pytest.mark.parametrize("body", [b"<html>no</html>", b"", b'{"number": 3', b"\xff\xfe"])
async def test_what_is_no_json_is_said(body: bytes, oracle: Oracle) -> None:
    oracle.answer("GET", PATH, raw=body)
    async with served(oracle) as client:
        said = await refused(client, "get_issue", **ASK)
        assert "is not JSON" in said and "Try again in a moment." in said
        oracle.answer("GET", PATH, issue(3))
        await call(client, "get_issue", **ASK)


@pytest.mark.anyio
async def test_a_write_whose_answer_is_no_json_may_have_been_done(oracle: Oracle) -> None:
    oracle.answer("POST", "/repos/octo/app/issues", raw=b"<html>", status=201)
    async with served(oracle, "--write") as client:
        said = await refused(client, "create_issue", repo="octo/app", title="T")
        assert "It may have been done all the same: look before you try again." in said
        await call(client, "get_issue", **ASK)
        oracle.answer("POST", "/repos/octo/app/issues", issue(4), status=201)
        await call(client, "create_issue", repo="octo/app", title="T")
    assert len(oracle.sent("POST")) == 2


@pytest.mark.anyio
async def test_silence_ends(oracle: Oracle) -> None:
    oracle.answer("GET", PATH, held=True)
    async with served(oracle) as client:
        # The imitation's first answer takes seconds on a busy machine.
        await call(client, "get_repository", repo="octo/app")
    async with served(oracle, "--timeout", "1") as client:
        said = await refused(client, "get_issue", **ASK)
        assert "the time of a call" in said or "too long" in said
        # The others go on.
        await call(client, "get_repository", repo="octo/app")


@pytest.mark.anyio
@pytest.mark.parametrize(("tool", "more"), [("get_issue", {"number": 3}), ("create_issue", {"title": "T"})])
async def test_the_time_of_a_request_is_that_of_all_its_tries(
    tool: str, more: dict[str, Any], oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redirects, tries and limits that are waited for end with the first try's time."""
    ends: list[float] = []
    exchange = Client._exchange

    async def noted(client: Client, request: Request) -> Response:
        ends.append(anyio.current_effective_deadline())
        return await exchange(client, request)

    monkeypatch.setattr(Client, "_exchange", noted)
    for verb, path in (("GET", PATH), ("POST", "/repos/octo/app/issues")):
        oracle.answer(verb, path, {"message": "wait"}, status=429, headers={"Retry-After": "0"}, times=1)
    oracle.answer("GET", PATH, status=301, headers={"Location": f"{oracle.url}{PATH}"}, times=1)
    async with served(oracle, "--write", "--timeout", "9") as client:
        start = anyio.current_time()
        await call(client, tool, repo="octo/app", **more)
        assert len(ends) >= 2 and len(set(ends)) == 1 and ends[0] - start < 9.5


@pytest.mark.anyio
async def test_a_call_has_one_time_for_all_its_requests(oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request takes 5 of 9 s: a call is stopped in its second, and the next one begins anew."""
    seconds = [0.0]

    class Clock:
        def __getattr__(self, name: str) -> Any:
            return getattr(anyio, name)

        @staticmethod
        def current_time() -> float:
            return anyio.current_time() + seconds[0]

    exchange = Client._exchange

    async def slow(client: Client, request: Request) -> Response:
        seconds[0] += 5.0
        return await exchange(client, request)

    monkeypatch.setattr(http, "anyio", Clock())
    monkeypatch.setattr(Client, "_exchange", slow)
    small = {
        "type": "file",
        "path": "a",
        "name": "a",
        "sha": "1" * 40,
        "size": 3,
        "content": "eHh4",
        "encoding": "base64",
    }
    oracle.answer("GET", "/repos/octo/app/contents/a", small)
    oracle.answer("GET", "/repos/octo/app/git/ref/heads/main", {"ref": "refs/heads/main", "object": {"sha": "2" * 40}})
    change: dict[str, Any] = {"path": "a", "sha": "1" * 40, "edits": [{"old": "xxx", "new": "y"}]}
    async with served(oracle, "--write", "--timeout", "9") as client:
        said = await refused(
            client, "write_files", repo="octo/app", branch="main", message="M", files=[change]
        )  # fmt: skip
        assert "`9 s`, the time of a call" in said and "--timeout" in said
        before = len(oracle.seen)
        await call(client, "get_issue", **ASK)
    assert before <= 3 and not oracle.sent("POST")
    oracle.answer("GET", "/repos/octo/app/contents/", [small])
    async with served(oracle, "--write", "--timeout", "14") as client:
        said = await refused(client, "write_files", repo="octo/app", branch="main", message="M", files=[change])
        assert "Too little is left of the `14 s`" in said and "it was not changed" in said, said
    assert not oracle.sent("POST") and not oracle.sent("PUT")


@pytest.mark.anyio
async def test_no_limit_is_waited_for_beyond_the_time_of_the_request(oracle: Oracle) -> None:
    for verb, path in (("GET", PATH), ("POST", "/repos/octo/app/issues")):
        oracle.answer(verb, path, {"message": "wait"}, status=429, headers={"Retry-After": "4"})
    async with served(oracle, "--write", "--timeout", "2") as client:
        assert "Try again in 4 s" in await refused(client, "get_issue", **ASK)
        assert "Try again in 4 s" in await refused(client, "create_issue", repo="octo/app", title="T")
    assert len(oracle.seen) == 1


@pytest.mark.anyio
async def test_a_write_that_failed_may_have_been_done_though_github_says_when_to_try(oracle: Oracle) -> None:
    oracle.answer("POST", "/repos/octo/app/issues", status=503, headers={"Retry-After": "2"})
    async with served(oracle, "--write") as client:
        assert "may have been done" in await refused(client, "create_issue", repo="octo/app", title="T")
    assert len(oracle.sent("POST")) == 1


@pytest.mark.anyio
async def test_a_redirect_in_circles_ends(oracle: Oracle) -> None:
    oracle.answer("GET", PATH, status=301, headers={"Location": f"{oracle.url}{PATH}"})
    async with served(oracle) as client:
        assert "circles" in await refused(client, "get_issue", **ASK)
    assert len(oracle.seen) <= 4


RENAMED = {"message": "Moved Permanently"}


@pytest.mark.anyio
async def test_a_rename_is_told_and_the_new_name_used(oracle: Oracle) -> None:
    where = {"Location": f"{oracle.url}/repositories/42/issues/3"}
    oracle.answer("GET", "/repos/octo/old/issues/3", RENAMED, status=301, headers=where)
    oracle.answer("GET", "/repos/octo/old", RENAMED, status=301, headers={"Location": f"{oracle.url}/repositories/42"})
    oracle.answer("GET", "/repositories/42", {**sample("repos/get"), "full_name": "octo/new"})
    oracle.answer("GET", "/repositories/42/issues/3", issue(3))
    oracle.answer("GET", "/repos/octo/new/issues/3", issue(3))
    async with served(oracle, "--write") as client:
        for _ in range(2):
            result = await client.call_tool("get_issue", {"repo": "octo/old", "number": 3})
            assert "`octo/old` is `octo/new` by now: use that name." in text_of(result)
        await call(client, "create_issue", repo="octo/old", title="T")
    assert len(oracle.sent("GET", "/repos/octo/old/issues")) == len(oracle.sent("GET", "/repos/octo/old$")) == 1
    assert [seen.path for seen in oracle.sent("POST")] == ["/repos/octo/new/issues"]


@pytest.mark.anyio
async def test_an_old_name_that_another_repository_gets_is_its(oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repository_names, "_SECONDS", 0.0)
    where = {"Location": f"{oracle.url}/repositories/42"}
    oracle.answer("GET", "/repos/octo/old", RENAMED, status=301, headers=where, times=1)
    oracle.answer("GET", "/repositories/42", {**sample("repos/get"), "full_name": "octo/new"})
    async with served(oracle, "--write") as client:
        await call(client, "get_repository", repo="octo/old")
        oracle.answer("GET", "/repos/octo/old", {**sample("repos/get"), "full_name": "octo/old"})
        assert (await call(client, "get_repository", repo="octo/old"))["data"]["repo"] == "octo/old"


def test_names_are_remembered_for_some_minutes_and_not_all() -> None:
    now = [0.0]
    names = RepositoryNames(lambda: now[0])
    for number in range(1500):
        names.put(f"Octo/Old{number}", "octo/new")
    assert names.get("octo/old1499") == names.get("OCTO/old500") == "octo/new"
    assert names.get("octo/old499") is None
    now[0] = 3600.0
    assert names.get("octo/old1499") is None


@pytest.mark.anyio
@pytest.mark.parametrize("there", [200, 404])
async def test_an_issue_that_was_moved_takes_nothing_else_with_it(there: int, oracle: Oracle) -> None:
    where = {"Location": f"{oracle.url}/repositories/42/issues/7"}
    oracle.answer("GET", PATH, RENAMED, status=301, headers=where)
    oracle.answer("GET", "/repositories/42", {**sample("repos/get"), "full_name": "octo/other"})
    oracle.answer("GET", "/repositories/42/issues/7", issue(7, title="Elsewhere"))
    oracle.answer("GET", "/repos/octo/app", sample("repos/get"), status=there)
    async with served(oracle, "--write") as client:
        for _ in range(2):
            result = await client.call_tool("get_issue", ASK)
            assert "Issue #3 of `octo/app` was moved: this is `octo/other/issues/7`." in text_of(result)
        await call(client, "create_issue", repo="octo/app", title="T")
    assert [seen.path for seen in oracle.sent("POST")] == ["/repos/octo/app/issues"]


@pytest.mark.anyio
async def test_without_check_runs_there_are_runs_and_statuses_and_a_word_about_it(oracle: Oracle) -> None:
    no = {"message": "Resource not accessible by personal access token"}
    where = "/repos/octo/app/commits/main"
    run = {**sample("actions/get-workflow-run"), "id": 9, "name": "CI", "status": "completed", "conclusion": "failure"}
    oracle.answer("GET", f"{where}/check-runs", no, status=403)
    oracle.answer("GET", "/repos/octo/app/actions/runs", {"total_count": 1, "workflow_runs": [run]})
    oracle.answer("GET", f"{where}/status", {"state": "success", "statuses": [{"context": "ci/x", "state": "success"}]})
    ask = {"repo": "octo/app", "ref": "main"}
    async with served(oracle) as client:
        found = await call(client, "list_checks", **ask)
        assert "Fine-grained" in found["note"] and [row[0] for row in found["rows"]] == ["CI", "ci/x"]
        assert found["rows"][0][2] == "failure" and "run 9" in found["rows"][0][4]
        # A part that fails is no statement about the rest.
        oracle.answer("GET", f"{where}/status", no, status=403)
        found = await call(client, "list_checks", **ask)
        assert "Statuses are missing here" in found["note"] and len(found["rows"]) == 1
        oracle.answer("GET", "/repos/octo/app/actions/runs", no, status=403)
        assert "token may not" in await refused(client, "list_checks", **ask)


@pytest.mark.anyio
async def test_a_run_is_found_without_its_jobs(oracle: Oracle) -> None:
    oracle.answer("GET", "/repos/octo/app/actions/runs/9", {**sample("actions/get-workflow-run"), "id": 9})
    oracle.answer("GET", "/repos/octo/app/actions/runs/9/jobs", {"message": "Not Found"}, status=404)
    async with served(oracle, "--toolsets", "actions") as client:
        found = await call(client, "get_run", repo="octo/app", run_id=9)
    assert found["data"]["run_id"] == 9 and "jobs" not in found["data"]
    assert "Its jobs are missing here" in found["note"] and "the jobs of run `9`" in found["note"]


@pytest.mark.anyio
async def test_an_answer_without_end_is_cut_off(oracle: Oracle) -> None:
    oracle.answer("GET", PATH, raw=b'"' + b"x" * 9_000_000 + b'"')
    async with served(oracle) as client:
        said = await refused(client, "get_issue", **ASK)
        assert "8,000,000" in said and "Ask for less at once." in said
        assert len(oracle.seen) == 1
        oracle.answer("GET", PATH, issue(3))
        await call(client, "get_issue", **ASK)


@pytest.mark.anyio
async def test_nobody_there(waited: list[float], oracle: Oracle) -> None:
    with Oracle() as gone:
        pass
    async with served(gone) as client:
        said = await refused(client, "get_issue", **ASK)
        assert "refused the connection, and no proxy is set. Try again in a moment; if that ends alike" in said
        assert said.rstrip().endswith("the operator can check network, proxy and --api-url.")


@pytest.mark.anyio
async def test_what_has_not_changed_costs_no_body(oracle: Oracle) -> None:
    async with served(oracle) as client:
        first = await call(client, "get_issue", **ASK)
        assert await call(client, "get_issue", **ASK) == first
    assert "if-none-match" in oracle.seen[1].headers


@pytest.mark.anyio
async def test_what_graphql_leaves_out_costs_no_more_than_that(oracle: Oracle) -> None:
    nodes = [{"number": 1, "title": "One", "comments": {"totalCount": 0}, "category": None, "author": None}, None]
    nodes[0] |= {"isAnswered": None, "closed": False, "updatedAt": "2026-01-02T03:04:05Z"}  # type: ignore[operator]
    page = {"totalCount": 2, "pageInfo": {"hasNextPage": False, "endCursor": None}, "nodes": nodes}
    hidden = {"type": "FORBIDDEN", "message": "SAML enforcement", "path": ["repository", "discussions", "nodes", 1]}
    oracle.graphql("Discussions", Reply(200, {"data": {"repository": {"discussions": page}}, "errors": [hidden]}))
    async with served(oracle, "--toolsets", "discussions") as client:
        result = await client.call_tool("list_discussions", {"repo": "octo/app"})
    assert '"One"' in text_of(result) and "GitHub leaves out a part" in text_of(result)
    assert "SAML enforcement" in text_of(result)


@pytest.mark.anyio
async def test_graphql_that_broke_off_is_no_mistake_of_the_caller(oracle: Oracle) -> None:
    said = "Something went wrong while executing your query. This may be the result of a timeout."
    oracle.answer("POST", "/graphql", {"data": None, "errors": [{"message": said}]})
    branch(oracle)
    async with served(oracle, "--toolsets", "all", "--write", "--flow", "off") as client:
        text = await refused(client, "list_discussions", repo="octo/app")
        assert "GitHub failed on" in text and text.endswith("Try again in a moment.")
        not_found(oracle, "GET", "/repos/octo/app/contents/new.txt")
        files = [{"path": "new.txt", "content": "x"}]
        text = await refused(client, "write_files", repo="octo/app", branch="main", message="M", files=files)
        assert "GitHub failed on" in text and "It may have been done all the same" in text


@pytest.mark.anyio
async def test_members_that_are_hidden_are_not_said_to_be_all(oracle: Oracle) -> None:
    where = {"Location": f"{oracle.url}/orgs/octo/public_members"}
    oracle.answer("GET", "/orgs/octo/members", RENAMED, status=302, headers=where)
    async with served(oracle, "--toolsets", "all") as client:
        result = await client.call_tool("list_people", {"org": "octo"})
    assert "The organisation `octo` shows this token only its public members." in text_of(result)


@pytest.mark.anyio
async def test_a_list_goes_on_whatever_its_address_holds(oracle: Oracle) -> None:
    at = f"{oracle.url}/repos/octo/app/issues?labels=a,b&page="
    link = {"Link": f'<{at}2>; rel="next", <{at}2>; rel="last"'}
    oracle.answer("GET", "/repos/octo/app/issues", [issue(1)], headers=link)
    async with served(oracle) as client:
        assert "cursor" in await call(client, "list_issues", repo="octo/app", labels=["a", "b"], limit=1)
