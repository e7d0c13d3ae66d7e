"""What users reported of other servers of GitHub, tried on mcp-github with answers of our own."""

import base64
import time
from datetime import UTC, datetime
from email.utils import formatdate
from typing import Any

import pytest

from github_server.oracle import Oracle, Seen
from github_server.oracle.server import Reply
from github_server.serving import call, refused, served, text_of
from github_server.world import OTHER_SHA, SHA, branch, changed, file, issue, no_workflow_runs, not_found, sample

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


@pytest.mark.reported("github/github-mcp-server#864")
@pytest.mark.reported("backstage/backstage#19668")
@pytest.mark.reported("JasonEtco/readme-box#9")
@pytest.mark.parametrize("ref", ["feature/x", "refs/heads/feature/x"])
async def test_a_file_is_read_from_a_branch_with_a_slash(oracle: Oracle, ref: str) -> None:
    oracle.answer("GET", f"{HERE}/contents/.*", file("localenv.config.yaml", b"one: 1\n"))
    async with served(oracle) as client:
        for path in ("localenv.config.yaml", "docs/a b#1.md"):
            assert "one: 1" in await call(client, "read_file", **O, path=path, ref=ref)
    assert {seen.query["ref"] for seen in oracle.sent("GET", "/contents/")} == {"feature/x"}


@pytest.mark.reported("github/github-mcp-server#1214")
@pytest.mark.reported("github/github-mcp-server#2495")
async def test_a_comment_that_github_drops_without_an_error_is_not_called_made(oracle: Oracle) -> None:
    pending = {**sample("pulls/get-review"), "id": 81, "state": "PENDING"}
    oracle.answer("GET", f"{HERE}/pulls/5/reviews/81", pending)
    oracle.graphql("AddThread", {"addPullRequestReviewThread": {"thread": None}})
    async with served(oracle, "--write") as client:
        comments = [{"path": "a.py", "line": 47, "body": "of a line that did not change"}]
        said = await refused(client, "create_review", **O, number=5, review_id=81, comments=comments)
    assert "0 of" in said or "not" in said


@pytest.mark.reported("github/github-mcp-server#112")
@pytest.mark.reported("github/github-mcp-server#133")
async def test_a_comment_on_a_line_is_sent_by_the_files_own_line(oracle: Oracle) -> None:
    async with served(oracle, "--write") as client:
        comments = [{"path": "file.md", "line": 6, "body": "here"}]
        await call(client, "create_review", **O, number=5, event="COMMENT", body="B", comments=comments)
    sent: Any = oracle.sent("POST", "/pulls/5/reviews$")[-1].json
    assert sent["comments"] == [{"path": "file.md", "line": 6, "side": "RIGHT", "body": "here"}]


@pytest.mark.reported("github/rest-api-description#5568")
async def test_a_comment_whose_place_is_gone_is_listed(oracle: Oracle) -> None:
    comment = {"databaseId": 9, "body": "was there", "diffHunk": "@@ -3 +3 @@\n-a\n+b"}
    thread = {
        "path": "a.py", "line": None, "startLine": None, "originalLine": 3, "originalStartLine": None,
        "isOutdated": True, "subjectType": "LINE", "comments": {"totalCount": 1, "nodes": [comment]},
    }  # fmt: skip
    threads = {"totalCount": 1, "pageInfo": {"hasNextPage": False, "endCursor": None}, "nodes": [thread]}
    oracle.graphql("Threads", {"repository": {"pullRequest": {"reviewThreads": threads}}})
    async with served(oracle) as client:
        page = await call(client, "list_reviews", **O, number=5, kind="threads")
    row = dict(zip(page["columns"], page["rows"][0], strict=True))
    assert row["line"] is None and row["original"] == {"line": 3, "hunk": "@@ -3 +3 @@\n-a\n+b"}
    assert "was there" in str(row["comments"])


@pytest.mark.reported("github/github-mcp-server#2182")
@pytest.mark.reported("SiderealPress/Lobster#95")
async def test_a_long_script_arrives_to_its_last_byte(oracle: Oracle) -> None:
    branch(oracle)
    not_found(oracle, "GET", f"{HERE}/contents/install.sh")
    block = 'cat <<\'EOF\' > "${HOME}/x"\n`uname` \\$1 ${a:-"b"} $(c) \u2028 é\nEOF\n'
    script = "#!/bin/sh\n" + block * 400
    async with served(oracle, "--write") as client:
        files = [{"path": "install.sh", "content": script}]
        await call(client, "write_files", **O, branch="main", message="M", files=files)
    (sent,) = oracle.sent("POST", "/graphql")[-1].json["variables"]["input"]["fileChanges"]["additions"]
    assert base64.b64decode(sent["contents"]).decode() == script


@pytest.mark.reported("github/github-mcp-server#3231")
async def test_one_line_of_a_large_file_is_changed_without_sending_the_file(oracle: Oracle) -> None:
    branch(oracle)
    text = "# Changes\n\n" + "- an entry of the past\n" * 13_000
    oracle.answer("GET", f"{HERE}/contents/CHANGELOG.md", file("CHANGELOG.md", text.encode()))
    edit = {"old": "# Changes\n", "new": "# Changes\n\n- the new entry"}
    async with served(oracle, "--write") as client:
        files = [{"path": "CHANGELOG.md", "sha": SHA, "edits": [edit]}]
        await call(client, "write_files", **O, branch="main", message="M", files=files)
    (sent,) = oracle.sent("POST", "/graphql")[-1].json["variables"]["input"]["fileChanges"]["additions"]
    assert base64.b64decode(sent["contents"]).decode() == text.replace(edit["old"], edit["new"])


@pytest.mark.reported("github/github-mcp-server#3130")
async def test_without_a_sha_the_refusal_has_it(oracle: Oracle) -> None:
    branch(oracle)
    oracle.answer("GET", f"{HERE}/contents/a.txt", file("a.txt", b"old"))
    async with served(oracle, "--write") as client:
        files: list[dict[str, Any]] = [{"path": "a.txt", "content": "new"}]
        said = await refused(client, "write_files", **O, branch="main", message="M", files=files)
        assert f"its sha is `{SHA}`" in said
        await call(client, "write_files", **O, branch="main", message="M", files=[{**files[0], "sha": SHA}])


@pytest.mark.reported("github/github-mcp-server#334")
@pytest.mark.reported("oomol-lab/open-connector#229")
@pytest.mark.reported("nearai/ironclaw#4888")
async def test_issues_behind_a_page_of_pull_requests_are_found(oracle: Oracle) -> None:
    pulls = [issue(number, pull_request={"url": "x"}) for number in range(1, 151)]
    oracle.pages(f"{HERE}/issues", [*pulls, issue(900), issue(901)])
    async with served(oracle) as client:
        page = await call(client, "list_issues", **O, limit=5, fields="number")
        numbers = page["rows"]
        while cursor := page.get("cursor"):
            page = await call(client, "list_issues", **O, limit=5, fields="number", cursor=cursor)
            numbers += page["rows"]
    assert numbers == [[900], [901]]


@pytest.mark.reported("wix/greyhound#41")
@pytest.mark.reported("github/github-mcp-server#1942")
async def test_checks_are_green_though_github_calls_no_statuses_pending(oracle: Oracle) -> None:
    no_workflow_runs(oracle)
    run = {**sample("checks/list-for-ref")["check_runs"][0], "status": "completed", "conclusion": "success"}
    oracle.pages(f"{HERE}/commits/main/check-runs", [run], "check_runs")
    oracle.answer("GET", f"{HERE}/commits/main/status", {"state": "pending", "statuses": []})
    async with served(oracle) as client:
        page = await call(client, "list_checks", **O, ref="main")
    assert len(page["rows"]) == 1 and "pending" not in page["note"]


@pytest.mark.reported("anthropics/claude-code#60656")
@pytest.mark.reported("wshm-dev/wshm#194")
@pytest.mark.reported("github/github-mcp-server#949")
async def test_an_issue_is_closed_for_its_reason_and_keeps_its_labels(oracle: Oracle) -> None:
    labels = [{"name": "windows"}, {"name": "p1"}]
    oracle.answer("GET", f"{HERE}/issues/3", issue(3, labels=labels))
    oracle.answer("GET", f"{HERE}/issues/1", issue(1, id=1001))
    async with served(oracle, "--write") as client:
        await call(client, "edit_issue", **O, number=3, duplicate_of=1)
        sent: Any = oracle.sent("PATCH", "/issues/3$")[-1].json
        assert sent == {"state": "closed", "state_reason": "duplicate", "duplicate_issue_id": 1001}
        await call(client, "edit_issue", **O, number=3, state="closed", state_reason="not_planned")
        assert oracle.sent("PATCH", "/issues/3$")[-1].json == {"state": "closed", "state_reason": "not_planned"}
        await call(client, "edit_issue", **O, number=3, labels=["+duplicate"])
    assert oracle.sent("POST", "/issues/3/labels$")[-1].json == {"labels": ["duplicate"]}


@pytest.mark.reported("github/github-mcp-server#2368")
@pytest.mark.reported("github/github-mcp-server#568")
async def test_commits_of_a_pull_request_and_of_a_person_are_listed(oracle: Oracle) -> None:
    commit = sample("repos/list-commits")[0]
    oracle.answer("GET", f"{HERE}/pulls/5", {**sample("pulls/get"), "commits": 1})
    oracle.pages(f"{HERE}/pulls/5/commits", [commit])
    oracle.pages(f"{HERE}/commits", [commit])
    async with served(oracle) as client:
        assert len((await call(client, "list_commits", **O, number=5))["rows"]) == 1
        await call(client, "list_commits", **O, author="octocat")
    assert oracle.sent("GET", f"{HERE}/commits$")[-1].query["author"] == "octocat"


@pytest.mark.reported("github/github-mcp-server#2202")
@pytest.mark.reported("github/github-mcp-server#3214")
async def test_angle_brackets_and_quotes_stay_as_they_are(oracle: Oracle) -> None:
    body = 'Run `git log -- <paths>`:\n\n```rust title="x"\nlet ptr: mut_raw<int> = a && b > c;\n```\n<!-- kept -->'
    title = 'Don\'t call "map<T>" & co'
    oracle.answer("GET", f"{HERE}/issues/3", issue(3, title=title, body=body))
    async with served(oracle, "--write") as client:
        found = await call(client, "get_issue", **O, number=3)
        assert found["data"]["body"] == body and found["data"]["title"] == title
        await call(client, "create_issue", **O, title=title, body=body)
    assert oracle.sent("POST", "/issues$")[-1].json == {"title": title, "body": body}


@pytest.mark.reported("github/github-mcp-server#2440")
async def test_a_team_is_asked_to_review_or_the_answer_says_that_it_was_not(oracle: Oracle) -> None:
    pull: dict[str, Any] = {**sample("pulls/get"), "number": 5, "requested_reviewers": [], "requested_teams": []}
    oracle.answer("GET", f"{HERE}/pulls/5", pull)
    asked = f"{HERE}/pulls/5/requested_reviewers"
    async with served(oracle, "--write") as client:
        oracle.answer("POST", asked, {**pull, "requested_teams": [{"slug": "docs", "name": "Docs"}]}, status=201)
        await call(client, "edit_pull_request", **O, number=5, reviewers=["octo/docs"])
        assert oracle.sent("POST", asked)[-1].json == {"team_reviewers": ["docs"]}
        oracle.answer("POST", asked, pull, status=201)
        said = await refused(client, "edit_pull_request", **O, number=5, reviewers=["octo/docs"])
        assert "changed nothing" in said and "did not set: reviewers `docs`" in said


@pytest.mark.reported("objectstack-ai/objectstack#12200")
async def test_who_only_asks_for_a_review_does_not_publish_a_draft(oracle: Oracle) -> None:
    oracle.answer("GET", f"{HERE}/pulls/5", {**sample("pulls/get"), "number": 5, "draft": True})
    async with served(oracle, "--write") as client:
        await call(client, "edit_pull_request", **O, number=5, reviewers=["+hubot"])
        assert not oracle.sent("PATCH") and not oracle.sent("POST", "/graphql")
        await call(client, "edit_pull_request", **O, number=5, title="T")
    assert oracle.sent("PATCH")[-1].json == {"title": "T"} and not oracle.sent("POST", "/graphql")


@pytest.mark.reported("github/github-mcp-server#1610")
async def test_a_token_of_an_app_is_told_what_it_is(oracle: Oracle) -> None:
    refusal = {"message": "Resource not accessible by integration", "status": "403"}
    oracle.answer("GET", "/user", refusal, status=403)
    async with served(oracle) as client:
        found = await call(client, "get_me")
    assert "acts for no user" in found["note"] and found["data"]["requests_left"]


@pytest.mark.reported("josegonzalez/python-github-backup#429")
@pytest.mark.reported("google/go-github#3565")
async def test_a_long_list_goes_on_by_the_mark_that_github_gives(oracle: Oracle) -> None:
    """Behind its first pages, GitHub takes no number of a page without the mark beside it."""

    def list_issues(seen: Seen) -> Reply:
        page = int(seen.query.get("page", 1))
        if page > 1 and seen.query.get("after") != f"mark{page}":
            return Reply(422, {"message": "Pagination with the page parameter is not supported for large datasets"})
        where = f"{oracle.url}{HERE}/issues?per_page=100&after=mark{page + 1}&page={page + 1}"
        headers = {"Link": f'<{where}>; rel="next"'}
        return Reply(200, [issue(number) for number in range(page * 100 - 99, page * 100 + 1)], headers)

    oracle.respond("GET", f"{HERE}/issues", list_issues)
    async with served(oracle) as client:
        page = await call(client, "list_issues", **O, limit=1000, fields="number")
        assert [row[0] for row in page["rows"]] == list(range(1, 1001))
        page = await call(client, "list_issues", **O, limit=1000, fields="number", cursor=page["cursor"])
        assert page["rows"][0] == [1001]


@pytest.mark.reported("promptfoo/promptfoo#6314")
@pytest.mark.parametrize(("start", "end"), [(4, 4), (6, 4), (4, 6)])
async def test_a_comment_on_one_line_is_no_range(start: int, end: int, oracle: Oracle) -> None:
    oracle.answer("GET", f"{HERE}/pulls/5/reviews/81", {**sample("pulls/get-review"), "id": 81, "state": "PENDING"})
    comments = [{"path": "a.py", "line": end, "start_line": start, "side": "RIGHT", "body": "B"}]
    async with served(oracle, "--write") as client:
        await call(client, "create_review", **O, number=5, event="COMMENT", body="B", comments=comments)
        (sent,) = oracle.sent("POST", "/pulls/5/reviews$")[-1].json["comments"]
        await call(client, "create_review", **O, number=5, review_id=81, comments=comments)
    added = oracle.sent("POST", "/graphql")[-1].json["variables"]["input"]
    assert (sent["line"], added["line"]) == (max(start, end), max(start, end))
    start_line = None if start == end else min(start, end)
    assert (sent.get("start_line"), added.get("startLine")) == (start_line, start_line)


@pytest.mark.reported("modelcontextprotocol/servers#2909")
async def test_an_issue_is_put_on_a_board_by_its_repository_and_number(oracle: Oracle) -> None:
    oracle.answer("GET", f"{HERE}/issues/113", issue(113, id=99))
    async with served(oracle, "--write", "--toolsets", "projects") as client:
        await call(client, "create_project_item", owner="octo", project=5, **O, number=113)
    (sent,) = oracle.sent("POST", "/projectsV2/5/items$")
    assert sent.json == {"type": "Issue", "owner": "octo", "repo": "app", "number": 113}


@pytest.mark.reported("Arclio/github-projects-mcp#9")
async def test_numbers_and_days_of_a_board_are_sent_as_what_they_are(oracle: Oracle) -> None:
    fields = [
        {"id": 1, "name": "Points", "data_type": "number"},
        {"id": 2, "name": "Start", "data_type": "date"},
        {"id": 3, "name": "Version", "data_type": "text"},
    ]
    oracle.answer("GET", ".*/projectsV2/1/fields", fields)
    target: dict[str, Any] = {"owner": "octo", "project": 1, "item": 7}
    async with served(oracle, "--write", "--toolsets", "projects") as client:
        for field, value, sent in (
            ("points", 3, 3), ("Points", "5", 5), ("Points", "2.5", 2.5), ("Points", 0.5, 0.5),
            ("Start", "2026-01-31", "2026-01-31"), ("Version", "5", "5"), ("Version", 5, "5"), ("Points", None, None),
        ):  # fmt: skip
            await call(client, "edit_project_item", **target, field=field, value=value)
            (entry,) = oracle.sent("PATCH")[-1].json["fields"]
            assert entry["value"] == sent and type(entry["value"]) is type(sent), (field, value)
        said = await refused(client, "edit_project_item", **target, field="Points", value="many")
        assert "`Points` takes a number" in said


@pytest.mark.reported("openai/codex#40582")
async def test_the_log_of_a_job_that_succeeded_is_read(oracle: Oracle) -> None:
    lines = [f"2026-11-20T10:00:00.0000000Z line {number} \x1b[32mok\x1b[0m\n" for number in range(900)]
    text = "\ufeff" + "".join(lines)
    oracle.answer("GET", f"{HERE}/actions/jobs/8/logs", status=302, headers={"Location": f"{oracle.url}/_storage/8"})
    oracle.answer("GET", "/_storage/8", raw=text.encode())
    async with served(oracle, "--toolsets", "actions") as client:
        said = await call(client, "read_job_log", **O, job_id=8)
        assert "line 899 ok" in said and "\x1b" not in said
        assert "line 0 ok" in await call(client, "read_job_log", **O, job_id=8, start_line=1)


@pytest.mark.reported("github/github-mcp-server#2133")
@pytest.mark.reported("github/github-mcp-server#595")
async def test_the_sha_of_a_file_is_that_of_its_content_and_not_of_the_answer(oracle: Oracle) -> None:
    branch(oracle)
    path = "sassy/modules/vi sion.py"
    oracle.answer("GET", f"{HERE}/contents/{path}", file(path, b"a = 1\n"), headers={"ETag": 'W/"another"'})
    async with served(oracle, "--write") as client:
        said = await call(client, "read_file", **O, path=path)
        assert SHA in said.splitlines()[0]
        files = [{"path": path, "sha": SHA, "edits": [{"old": "1", "new": "2"}]}]
        await call(client, "write_files", **O, branch="main", message="M", files=files)
    (sent,) = oracle.sent("POST", "/graphql")[-1].json["variables"]["input"]["fileChanges"]["additions"]
    assert sent["path"] == path and base64.b64decode(sent["contents"]) == b"a = 2\n"


@pytest.mark.reported("github/github-mcp-server#2412")
async def test_one_call_labels_the_issues_of_a_milestone(oracle: Oracle) -> None:
    issues = {number: issue(number, labels=[{"name": "kept"}]) for number in (3, 4)}
    oracle.pages(f"{HERE}/milestones", [{**sample("issues/get-milestone"), "number": 9, "title": "X"}])
    oracle.pages(f"{HERE}/issues", list(issues.values()))
    oracle.respond("GET", f"{HERE}/issues/[34]", lambda seen: Reply(200, issues[int(seen.path[-1])]))
    async with served(oracle, "--write") as client:
        found = await call(client, "list_issues", **O, milestone="x", fields="number")
        numbers = [row[0] for row in found["rows"]]
        change: dict[str, Any] = {"labels": ["+priority/high"], "dry_run": False}
        done = await call(client, "edit_issue", **O, number=numbers[0], numbers=numbers[1:], **change)
    assert done["done"] == "Changed 2 of 2 issues."
    assert [seen.json["labels"] for seen in oracle.sent("POST", "/labels$")] == [["priority/high"]] * 2


@pytest.mark.reported("cli/cli#13835")
@pytest.mark.reported("cli/cli#12264")
@pytest.mark.parametrize(
    ("kind", "query", "sent"),
    [
        ("issues", "extension OR gist", "(extension OR gist) repo:octo/app is:issue"),
        ("pull_requests", "(label:a) OR (label:b)", "((label:a) OR (label:b)) repo:octo/app is:pr"),
        ("issues", "extension gist", "extension gist repo:octo/app is:issue"),
        ("issues", "FOR ORDER", "FOR ORDER repo:octo/app is:issue"),
        ("code", "extension OR gist", "extension OR gist repo:octo/app"),
    ],
)
async def test_a_search_for_either_stays_in_the_repository(kind: str, query: str, sent: str, oracle: Oracle) -> None:
    async with served(oracle) as client:
        await call(client, "search_github", **O, kind=kind, query=query)
    assert oracle.sent("GET", "/search/")[-1].query["q"] == sent


@pytest.mark.reported("microsoft/vscode#252667")
async def test_several_repositories_are_searched_for_what_is_in_either(oracle: Oracle) -> None:
    oracle.pages("/search/issues", [], "items")
    async with served(oracle, "--repos", "octo/app", "--repos", "octo/lib") as client:
        await call(client, "search_github", kind="issues", query="crash")
        sent = oracle.sent("GET", "/search/issues")[-1].query
        assert sent["q"] == "crash (repo:octo/app OR repo:octo/lib) is:issue" and sent["advanced_search"] == "true"
        # There, several are either of them without a word.
        await call(client, "search_github", kind="code", query="crash")
        assert oracle.sent("GET", "/search/code")[-1].query["q"] == "crash repo:octo/app repo:octo/lib"
    async with served(oracle) as client:
        note = (await call(client, "search_github", kind="issues", query="x repo:a/b repo:c/d"))["note"]
        assert "`(repo:a/b OR repo:c/d)`" in note
        page = await call(client, "search_github", kind="issues", query="label:a label:b repo:c/d")
        assert "note" not in page
        note = (await call(client, "search_github", **O, kind="issues", query="x repo:a/b"))["note"]
        assert "`(repo:a/b OR repo:octo/app)`" in note
        page = await call(client, "search_github", **O, kind="issues", query="x repo:Octo/App")
        assert "note" not in page


@pytest.mark.reported("MarcusJellinghaus/mcp-workspace#256")
async def test_a_write_to_a_moved_issue_names_its_new_number(oracle: Oracle) -> None:
    oracle.answer("GET", "/repositories/77", {"full_name": "octo/lib"})
    location = f"{oracle.url}/repositories/77/issues/17"
    moved = {"message": "Moved Permanently", "url": location}
    oracle.answer("PATCH", f"{HERE}/issues/5", moved, status=301, headers={"Location": location})
    comments = {"Location": f"{location}/comments"}
    oracle.answer("POST", f"{HERE}/issues/5/comments", moved, status=307, headers=comments)
    async with served(oracle, "--write") as client:
        said = await refused(client, "edit_issue", **O, number=5, state="closed")
        assert "#17 of `octo/lib`" in said and "its name by now" not in said
        assert "#17 of `octo/lib`" in await refused(client, "create_comment", **O, number=5, body="B")
        await call(client, "edit_issue", repo="octo/lib", number=17, state="closed")
    # Under an allow-list, nobody hears where it went.
    async with served(oracle, "--write", "--repos", "octo/app") as client:
        assert "octo/lib" not in await refused(client, "edit_issue", **O, number=5, state="closed")


@pytest.mark.reported("vermiculus/magithub#104")
@pytest.mark.reported("hub4j/github-api#78")
@pytest.mark.reported("actions/stale#1227")
@pytest.mark.parametrize("message", ["Rate limiting is not enabled.", "No rate limit for white listed users"])
async def test_a_server_without_limits_says_who_one_is(message: str, oracle: Oracle) -> None:
    oracle.answer("GET", "/rate_limit", {"message": message}, status=404)
    async with served(oracle) as client:
        data = (await call(client, "get_me"))["data"]
    assert data["requests_left"] == "no limit" and data["login"] == "octocat"


@pytest.mark.reported("release-drafter/release-drafter#615")
async def test_blame_goes_through_an_annotated_tag(oracle: Oracle) -> None:
    commit = {"oid": SHA, "messageHeadline": "M", "committedDate": "2026-01-02T00:00:00Z", "author": {"name": "N"}}
    lines = {"blame": {"ranges": [{"startingLine": 1, "endingLine": 3, "commit": commit}]}}
    tag = {"__typename": "Tag", "target": {"__typename": "Commit", **lines}}
    oracle.graphql("Blame", {"repository": {"isEmpty": False, "object": tag}})
    async with served(oracle, "--toolsets", "code") as client:
        page = await call(client, "read_blame", **O, path="a.py", ref="v1.0")
    assert [row[:3] for row in page["rows"]] == [[1, 3, SHA]]


@pytest.mark.reported("github-changelog-generator/github-changelog-generator#920")
async def test_a_difference_that_github_gives_up_on_is_not_asked_for_again(oracle: Oracle) -> None:
    message = "Server Error: Sorry, this diff is taking too long to generate."
    errors = [{"resource": "Comparison", "field": "diff", "code": "not_available"}]
    oracle.answer("GET", f"{HERE}/compare/.*", {"message": message, "errors": errors}, status=500)
    message = "Sorry, there was a problem generating this diff. The repository may be missing relevant data."
    oracle.answer("GET", f"{HERE}/pulls/5/files", {"message": message, "errors": errors}, status=422)
    async with served(oracle) as client:
        said = await refused(client, "read_diff", **O, base="v1", ref="main")
        assert "taking too long" in said and "single commits" in said and "moment" not in said
        assert len(oracle.sent("GET", "/compare/")) == 1
        said = await refused(client, "read_diff", **O, number=5)
        assert "missing relevant data" in said and "Look at" not in said


@pytest.mark.reported("PyGithub/PyGithub#1015")
@pytest.mark.reported("Astrotomic/opendor.me#60")
async def test_a_repository_that_github_blocks_is_no_matter_of_the_token(oracle: Oracle) -> None:
    block = {"reason": "tos", "created_at": "2026-01-02T00:00:00Z", "html_url": "https://github.com/tos"}
    oracle.answer("GET", HERE, {"message": "Repository access blocked", "block": block}, status=403)
    async with served(oracle) as client:
        said = await refused(client, "get_repository", **O)
    assert "GitHub itself blocks" in said and "fine-grained" not in said


@pytest.mark.reported("cli/cli#13413")
async def test_a_sub_issue_of_another_issue_is_told_as_what_it_is(oracle: Oracle) -> None:
    errors = ["Issue may not contain duplicate sub-issues and Sub issue may only have one parent"]
    oracle.answer("POST", f"{HERE}/issues/1/sub_issues", {"message": "Validation Failed", "errors": errors}, status=422)
    async with served(oracle, "--write") as client:
        said = await refused(client, "edit_sub_issue", **O, number=1, sub_issue=2, action="add")
    assert "`get_issue` shows its `parent`" in said


@pytest.mark.reported("cli/cli#4001")
@pytest.mark.reported("PyGithub/PyGithub#3474")
async def test_who_starts_a_workflow_hears_which_run_it_is(oracle: Oracle) -> None:
    path = f"{HERE}/actions/workflows/ci.yml/dispatches"
    oracle.answer("POST", path, {"workflow_run_id": 42, "run_url": "u", "html_url": "https://github.com/r/42"})
    start: dict[str, Any] = {**O, "workflow": "ci.yml", "ref": "main"}
    async with served(oracle, "--toolsets", "actions", "--write", "--runs") as client:
        assert (await call(client, "run_workflow", **start))["data"] == {"run_id": 42}
        # Older servers refuse what they do not know, and say nothing of the run.
        oracle.answer("POST", path, status=204)
        unknown = {"message": 'Invalid request.\n\n"return_run_details" is not a permitted key.'}
        oracle.answer("POST", path, unknown, status=422, times=1)
        assert "appears among the runs" in (await call(client, "run_workflow", **start))["done"]
    assert [seen.json.get("return_run_details") for seen in oracle.sent("POST", "/dispatches")] == [True, True, None]


@pytest.mark.reported("hms-dbmi-cellenics/iac#323")
@pytest.mark.reported("convictional/trigger-workflow-and-wait#98")
async def test_inputs_of_a_workflow_are_sent_as_texts(oracle: Oracle) -> None:
    inputs = {"a": True, "b": 3, "c": ["el8", "el9"], "d": "x", "e": None}
    async with served(oracle, "--toolsets", "actions", "--write", "--runs") as client:
        await call(client, "run_workflow", **O, workflow="ci.yml", ref="main", inputs=inputs)
    sent: Any = oracle.sent("POST", "/dispatches")[-1].json
    assert sent["inputs"] == {"a": "true", "b": "3", "c": '["el8", "el9"]', "d": "x"}


GERMAN = "// Gr\u00fc\u00dfe\nint x = 1;\n"
JAPANESE = "// \u3053\u308c\u306f\u30c6\u30b9\u30c8\nint x = 1;\n"


@pytest.mark.reported("k0shk0sh/FastHub#1206")
@pytest.mark.reported("MoonshotAI/kimi-code#2647")
@pytest.mark.parametrize(
    ("data", "note"),
    [
        (GERMAN.encode("utf-16"), "UTF-16-LE; "), (b"\xfe\xff" + JAPANESE.encode("utf-16-be"), "UTF-16-BE; "),
        (GERMAN.encode("latin-1"), "not UTF-8: "), (JAPANESE.encode("shift_jis"), "not UTF-8: "),
        (JAPANESE.encode("gb18030"), "not UTF-8: "), (GERMAN.encode("utf-8-sig"), ""),
    ],
)  # fmt: skip
async def test_a_file_of_any_encoding_is_read_and_edited_in_place(data: bytes, note: str, oracle: Oracle) -> None:
    branch(oracle)
    oracle.answer("GET", f"{HERE}/contents/a.c", file("a.c", data))
    commit: dict[str, Any] = {**O, "branch": "main", "message": "M"}
    edit = {"old": "int x = 1;", "new": "int x = 2;"}
    async with served(oracle, "--write") as client:
        text = await call(client, "read_file", **O, path="a.c")
        assert f"; sha {SHA}; {note}" in text and "\nint x = 1;\n" in text
        assert note or text.count("\u00fc") == 1
        await call(client, "write_files", **commit, files=[{"path": "a.c", "sha": SHA, "edits": [edit]}])
        if note.startswith("not UTF-8"):
            edit = {"old": "int x = 1;", "new": "int \u00fc = 1;"}
            said = await refused(client, "write_files", **commit, files=[{"path": "a.c", "sha": SHA, "edits": [edit]}])
            assert "not UTF-8" in said
            shown = GERMAN.replace("\u00fc", "\ufffd")
            files = [{"path": "a.c", "sha": SHA, "content": shown}]
            assert "in place of its own bytes" in await refused(client, "write_files", **commit, files=files)
    (sent,) = oracle.sent("POST", "/graphql")[-1].json["variables"]["input"]["fileChanges"]["additions"]
    # All other bytes are as they were.
    assert sum(old != new for old, new in zip(data, base64.b64decode(sent["contents"]), strict=True)) == 1


@pytest.mark.reported("deliciousmods/1956_beta#1434")
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-8"])
async def test_a_file_that_is_replaced_keeps_its_byte_order_mark(encoding: str, oracle: Oracle) -> None:
    branch(oracle)
    oracle.answer("GET", f"{HERE}/contents/a.yml", file("a.yml", GERMAN.encode(encoding)))
    async with served(oracle, "--write") as client:
        files = [{"path": "a.yml", "sha": SHA, "content": JAPANESE}]
        await call(client, "write_files", **O, branch="main", message="M", files=files)
    (sent,) = oracle.sent("POST", "/graphql")[-1].json["variables"]["input"]["fileChanges"]["additions"]
    assert base64.b64decode(sent["contents"]) == JAPANESE.encode(encoding)


@pytest.mark.reported("gitify-app/gitify#3174")
@pytest.mark.reported("refined-github/refined-github#6946")
async def test_a_server_that_is_too_old_for_a_query_is_told_as_one(oracle: Oracle) -> None:
    def unknown(field: str, kind: str) -> Reply:
        extensions = {"code": "undefinedField", "typeName": kind, "fieldName": field}
        message = f"Field '{field}' doesn't exist on type '{kind}'"
        return Reply(200, {"errors": [{"path": ["query", field], "extensions": extensions, "message": message}]})

    branch(oracle)
    not_found(oracle, "GET", f"{HERE}/contents/a.txt")
    oracle.graphql("Threads", unknown("subjectType", "PullRequestReviewThread"))
    oracle.graphql("CommitOnBranch", unknown("createCommitOnBranch", "Mutation"))
    async with served(oracle, "--write") as client:
        said = await refused(client, "list_reviews", **O, number=5, kind="threads")
        assert "too old" in said and "`Field 'subjectType' doesn't exist" in said
        # What REST can do as well is done.
        files = [{"path": "a.txt", "content": "A"}]
        await call(client, "write_files", **O, branch="main", message="M", files=files)
    assert oracle.sent("POST", "/git/commits")


@pytest.mark.reported("superman66/wakatime-sync#26")
async def test_a_gist_of_which_github_leaves_out_files_says_so(oracle: Oracle) -> None:
    gist = {**sample("gists/get"), "files": {f"{n}.txt": {"content": "x", "size": 1} for n in range(300)}}
    oracle.answer("GET", "/gists/aa5a", {**gist, "truncated": True})
    async with served(oracle, "--toolsets", "gists") as client:
        assert "first 300 files" in (await call(client, "get_gist", gist="aa5a"))["note"]
        oracle.answer("GET", "/gists/aa5a", {**gist, "truncated": False})
        assert "note" not in await call(client, "get_gist", gist="aa5a")


def check(name: str, outcome: str, suite: int, started_at: str) -> dict[str, Any]:
    state = {"status": "completed", "conclusion": outcome}
    return {**sample("checks/get"), "name": name, "check_suite": {"id": suite}, "started_at": started_at, **state}


def workflow_run(number: int, outcome: str, **more: Any) -> dict[str, Any]:
    """A run of the workflow CI for a pull request, whose check suite has the same number."""
    state = {"status": "completed", "conclusion": outcome, "workflow_id": 1, "event": "pull_request", "name": "CI"}
    return {**sample("actions/get-workflow-run"), "id": number, "check_suite_id": number, **state, **more}


def commit_checks(oracle: Oracle, checks: list[dict[str, Any]], runs: list[dict[str, Any]]) -> None:
    """The head of pull request 5, which nothing is required of."""
    oracle.answer("GET", f"{HERE}/pulls/5", {**sample("pulls/get"), "head": {"sha": SHA}, "base": {"ref": "main"}})
    oracle.pages(f"{HERE}/commits/{SHA}/check-runs", checks, "check_runs")
    oracle.pages(f"{HERE}/actions/runs", runs, "workflow_runs")
    oracle.answer("GET", f"{HERE}/commits/{SHA}/status", {"state": "pending", "statuses": []})
    oracle.answer("GET", f"{HERE}/branches/main", {"name": "main", "protection": {}})
    oracle.answer("GET", f"{HERE}/rules/branches/main", [])


EARLY, LATE = "2026-01-02T00:00:00Z", "2026-01-02T00:05:00Z"


@pytest.mark.reported("netresearch/git-workflow-skill#310")
@pytest.mark.reported("dtzp555-max/ocp#335")
@pytest.mark.reported("stephrobert/feint#53")
async def test_a_pull_request_whose_runs_wait_for_an_approval_is_not_green(oracle: Oracle) -> None:
    """Runs that nobody approved have no check."""
    held = workflow_run(7, "action_required")
    async with served(oracle, "--toolsets", "all") as client:
        for checks, passed in (([], ""), ([check("cla", "success", 9, EARLY)], ", 1 passed")):
            commit_checks(oracle, checks, [held])
            page = await call(client, "list_checks", **O, number=5, wait=60)
            assert page["note"].startswith(f"Not green: 1 action_required{passed}.")
            assert "until a maintainer approves it on GitHub: `CI`" in page["note"]
            assert page["rows"][0][:4] == ["CI", "completed", "action_required", "github-actions"]
            oracle.answer("GET", f"{HERE}/actions/runs/7", held)
            passed_run = workflow_run(9, "success", workflow_id=2)
            oracle.pages(f"{HERE}/actions/runs", [passed_run, held], "workflow_runs")
            run = await call(client, "get_run", **O, number=5)
            assert run["data"]["run_id"] == 7 and "1 of them wait for an approval" in run["note"]
        # A run that was approved, or had another after it, does not wait.
        commit_checks(oracle, [check("test", "success", 8, LATE)], [workflow_run(8, "success"), held])
        assert (await call(client, "list_checks", **O, number=5))["note"] == "Green: 1 passed."
        oracle.answer("GET", f"{HERE}/actions/runs", {"message": "Not Found"}, status=404)
        assert "waits for an approval is not known" in (await call(client, "list_checks", **O, number=5))["note"]


@pytest.mark.reported("actions/runner#1042")
@pytest.mark.reported("NousResearch/hermes-agent#111994")
@pytest.mark.parametrize("outcome", ["startup_failure", "failure"])
async def test_a_workflow_that_could_not_begin_is_not_green(outcome: str, oracle: Oracle) -> None:
    broken = workflow_run(7, outcome, name=".github/workflows/ci.yaml")
    commit_checks(oracle, [check("lint", "success", 9, EARLY)], [broken])
    async with served(oracle) as client:
        page = await call(client, "list_checks", **O, number=5)
    assert page["note"].startswith("Not green: 1 ") and page["rows"][0][0] == ".github/workflows/ci.yaml"


@pytest.mark.reported("open-mercato/skills#89")
async def test_a_run_that_has_no_jobs_yet_is_waited_for(oracle: Oracle) -> None:
    queued = workflow_run(7, "", status="queued", conclusion=None)
    commit_checks(oracle, [check("lint", "success", 9, EARLY)], [queued])
    async with served(oracle) as client:
        note = (await call(client, "list_checks", **O, number=5, wait=0))["note"]
    assert note.startswith("Not done: 1 queued, 1 passed. 1 of 2 checks are still going on.")


@pytest.mark.reported("wechuli/allcheckspassed#104")
@pytest.mark.reported("lewagon/wait-on-check-action#156")
@pytest.mark.reported("netresearch/git-workflow-skill#223")
async def test_a_check_that_ran_again_counts_as_it_went_last(oracle: Oracle) -> None:
    """GitHub keeps those of the run before beside those of the last, though asked for the latest alone."""
    runs = [workflow_run(8, "success"), workflow_run(7, "failure")]
    before, last = check("test", "failure", 7, EARLY), check("test", "success", 8, LATE)
    async with served(oracle, "--toolsets", "all") as client:
        for checks in ([before, last], [last, before]):
            commit_checks(oracle, checks, runs)
            page = await call(client, "list_checks", **O, number=5)
            assert page["note"].startswith("Green: 1 passed.") and "Left out: 1 of workflow runs" in page["note"]
            assert len(page["rows"]) == 1
        oracle.answer("GET", f"{HERE}/actions/runs/8", runs[0])
        found = await call(client, "get_run", **O, number=5)
        assert "None of 1 runs that no later one replaces failed" in found["note"]
        # The run that was created first may have been repeated last.
        commit_checks(oracle, [check("test", "failure", 7, LATE), check("test", "success", 8, EARLY)], runs)
        assert (await call(client, "list_checks", **O, number=5))["note"].startswith("Not green: 1 failed.")


@pytest.mark.reported("jsboige/CoursIA#11902")
@pytest.mark.parametrize("other", [{"workflow_id": 2}, {"event": "push"}, {"head_branch": "release"}])
async def test_a_failure_is_not_hidden_by_the_check_of_another_workflow(other: dict[str, Any], oracle: Oracle) -> None:
    runs = [workflow_run(8, "success", **other), workflow_run(7, "failure")]
    commit_checks(oracle, [check("test", "failure", 7, EARLY), check("test", "success", 8, LATE)], runs)
    async with served(oracle) as client:
        assert (await call(client, "list_checks", **O, number=5))["note"] == "Not green: 1 failed, 1 passed."
        # Jobs of one run may be called alike, too.
        commit_checks(oracle, [check("test", "failure", 7, EARLY), check("test", "success", 7, LATE)], runs)
        assert (await call(client, "list_checks", **O, number=5))["note"].startswith("Not green: 1 failed, 1 passed.")


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab\nsize 12345\n"


@pytest.mark.reported("git-lfs/git-lfs#2563")
@pytest.mark.parametrize("is_base64", [False, True])
async def test_a_pointer_of_git_lfs_is_not_overwritten_by_its_content(is_base64: bool, oracle: Oracle) -> None:
    branch(oracle)
    oracle.answer("GET", f"{HERE}/contents/logo.psd", file("logo.psd", POINTER))
    async with served(oracle, "--write") as client:

        async def write(content: bytes, **more: Any) -> str:
            text = base64.b64encode(content).decode() if is_base64 else content.decode()
            entry: dict[str, Any] = {"path": "logo.psd", "sha": SHA, "content": text, "base64": is_base64}
            return await commit(entry, **more)

        async def commit(entry: dict[str, Any], **more: Any) -> str:
            result = await client.call_tool(
                "write_files", {**O, "branch": "main", "message": "M", "files": [entry], **more}
            )
            return text_of(result)

        assert "is in Git LFS" in await write(b"the new picture")
        edits = [{"old": POINTER.decode(), "new": "the new text"}]
        assert "is in Git LFS" in await commit({"path": "logo.psd", "sha": SHA, "edits": edits})
        assert not oracle.sent("POST")
        # Another pointer is a change of what Git LFS has, and a small file is no pointer.
        assert "Committed 1 file" in await write(POINTER.replace(b"4d7a", b"5d7a"))
        oracle.answer("GET", f"{HERE}/contents/logo.psd", file("logo.psd", b"version 1\n"))
        assert "Committed 1 file" in await write(b"version 2\n")


@pytest.mark.reported("cli/cli#4152")
@pytest.mark.reported("apache/devlake#3708")
@pytest.mark.reported("entrius/gittensor#1093")
async def test_pull_requests_are_listed_though_github_has_no_time_for_details(oracle: Oracle) -> None:
    oracle.pages(f"{HERE}/pulls", [{**sample("pulls/list")[0], "number": n, "node_id": f"P{n}"} for n in (6, 5)])
    verdicts = {"nodes": [{"author": {"__typename": "User", "login": "ben"}, "state": "APPROVED"}]}
    pull = {"__typename": "PullRequest", "id": "P6", "number": 6, "latestOpinionatedReviews": verdicts}

    def answer(variables: dict[str, Any]) -> Any:
        if len(variables["ids"]) > 1:
            return Reply(502, {"message": "Server Error"})
        return {"nodes": [pull]}

    oracle.graphql("PullFacts", answer)
    ask: dict[str, Any] = {**O, "fields": ["number", "verdicts"]}
    async with served(oracle) as client:
        page = await call(client, "list_pull_requests", **ask)
        assert page["rows"] == [[6, None], [5, None]]
        assert "Ask for fewer with `limit`" in page["note"] and "null there is not known" in page["note"]
        page = await call(client, "list_pull_requests", **ask, limit=1)
        assert page["rows"] == [[6, ["ben approved"]]] and "null" not in page["note"]


@pytest.mark.reported("octokit/octokit.rb#761")
@pytest.mark.reported("github/site-policy#1258")
async def test_a_suspended_account_is_not_told_to_widen_its_token(oracle: Oracle) -> None:
    oracle.answer("GET", f"{HERE}/issues/3", {"message": "Sorry. Your account was suspended"}, status=403)
    async with served(oracle) as client:
        said = await refused(client, "get_issue", **O, number=3)
    assert "account that the token belongs to is suspended" in said and "fine-grained" not in said


@pytest.mark.reported("slapperwan/gh4a#1102")
@pytest.mark.reported("yanyongyu/githubkit#200")
@pytest.mark.reported("anomalyco/opencode#13820")
@pytest.mark.reported("backstage/backstage#15834")
async def test_a_pull_request_whose_author_and_fork_are_gone_is_read_and_merged(oracle: Oracle) -> None:
    head = {"label": None, "ref": "topic", "sha": SHA, "repo": None, "user": None}
    pull = {**sample("pulls/get"), "number": 5, "user": None, "head": head, "changed_files": 1, "state": "open"}
    oracle.answer("GET", f"{HERE}/pulls/5", {**pull, "merged": False})
    oracle.pages(f"{HERE}/pulls", [{**sample("pulls/list")[0], "user": None, "head": head}])
    oracle.pages(f"{HERE}/pulls/5/files", [changed("a.py")])
    oracle.pages(f"{HERE}/pulls/5/reviews", [{**sample("pulls/list-reviews")[0], "user": None}])
    async with served(oracle, "--write", "--merge", "--flow", "off") as client:
        data = (await call(client, "get_pull_request", **O, number=5))["data"]
        assert (data["author"], data["head"]) == ("ghost", "ghost:topic")
        page = await call(client, "list_pull_requests", **O, fields=["author", "head", "head_repo"])
        assert page["rows"] == [["ghost", "ghost:topic", None]]
        assert (await call(client, "list_reviews", **O, number=5, fields="author"))["rows"] == [["ghost"]]
        assert "None" not in await call(client, "read_diff", **O, number=5)
        assert "Merged" in (await call(client, "run_merge", **O, number=5, head_sha=SHA))["done"]


@pytest.mark.reported("Digital-Process-Tools/claude-supertool#2225")
@pytest.mark.reported("cli/cli#14223")
@pytest.mark.reported("Shopify/shipit-engine#664")
async def test_a_branch_of_open_pull_requests_is_not_deleted(oracle: Oracle) -> None:
    """GitHub closes them, and takes no other base for one that is closed."""
    pull = sample("pulls/list")[0]
    own, fork = {"full_name": "octo/app"}, {"full_name": "fork/app"}
    stacked = {**pull, "number": 961, "base": {"ref": "fix/958", "repo": own}, "head": {"ref": "x", "repo": own}}
    from_topic = {**pull, "number": 7, "base": {"ref": "main", "repo": own}, "head": {"ref": "topic", "repo": own}}
    from_fork = {**pull, "number": 8, "base": {"ref": "main", "repo": own}, "head": {"ref": "old", "repo": fork}}

    def list_pulls(seen: Seen) -> Reply:
        # GitHub passes over a filter that it cannot use, and lists all.
        return Reply(200, [stacked, from_topic, from_fork])

    oracle.respond("GET", f"{HERE}/pulls", list_pulls)
    for name in ("fix/958", "topic", "old"):
        branch(oracle, name)
    async with served(oracle, "--write", "--delete") as client:
        for name, number in (("fix/958", "#961"), ("topic", "#7")):
            said = await refused(client, "delete_branch", **O, branch=name)
            assert number in said and "`edit_pull_request`" in said
        assert not oracle.sent("DELETE")
        several: dict[str, Any] = {**O, "branches": ["fix/958", "old"]}
        shown = await call(client, "delete_branch", **several)
        assert shown["data"]["rows"] == [["fix/958", SHA, [961]], ["old", SHA, []]]
        done = await call(client, "delete_branch", **several, dry_run=False)
        assert done["done"] == "Deleted 1 of 2 branches." and "#961" in str(done["data"]["rows"])
        assert [seen.path for seen in oracle.sent("DELETE")] == [f"{HERE}/git/refs/heads/old"]
        # Who may not look at pull requests is told so.
        oracle.answer("GET", f"{HERE}/pulls", {"message": "Resource not accessible"}, status=403)
        result = await client.call_tool("delete_branch", {**O, "branch": "old"})
        assert not result.is_error and "closes is not known" in text_of(result)


@pytest.mark.reported("actions/labeler#763")
@pytest.mark.reported("open-component-model/open-component-model#2267")
@pytest.mark.reported("getsentry/eng-pipes#585")
@pytest.mark.parametrize("field", ["labels", "assignees"])
async def test_what_a_bot_adds_meanwhile_stays(field: str, oracle: Oracle) -> None:
    names, key = ["kept", "old"], {"labels": "name", "assignees": "login"}[field]

    def shown() -> list[dict[str, str]]:
        return [{key: name} for name in names]

    def comment(seen: Seen) -> Reply:
        # A bot that reads the comment is faster than the next request.
        names.append("by-bot")
        return Reply(201, {**sample("issues/create-comment"), "body": seen.json["body"]})

    def change(seen: Seen) -> Reply:
        last = seen.path.rpartition("/")[2]
        changed_names = seen.json[field] if seen.body else [last]
        if seen.verb == "PATCH":
            names[:] = changed_names
        elif seen.verb == "POST":
            names.extend(changed_names)
        else:
            names[:] = [name for name in names if name not in changed_names]
        return Reply(200, shown() if "/labels" in seen.path else issue(3, **{field: shown()}))

    oracle.respond("GET", f"{HERE}/issues/3", lambda seen: Reply(200, issue(3, **{field: shown()})))
    oracle.respond("POST", f"{HERE}/issues/3/comments", comment)
    for verb in ("PATCH", "POST", "DELETE"):
        oracle.respond(verb, f"{HERE}/issues/3(/{field}(/.*)?)?", change)
    async with served(oracle, "--write") as client:
        wishes: dict[str, Any] = {field: ["+new", "-old"], "add_comment": "/triage"}
        done = await call(client, "edit_issue", **O, number=3, **wishes)
    assert names == ["kept", "by-bot", "new"] == done["data"][field]


@pytest.mark.reported("MarcusJellinghaus/mcp-workspace#251")
@pytest.mark.reported("cli/cli#11739")
async def test_a_text_that_was_cut_is_not_written_back(oracle: Oracle) -> None:
    oracle.answer("GET", f"{HERE}/issues/3", issue(3, body="x" * 20_000))
    gist_file = {"filename": "a.txt", "content": "y" * 1000, "size": 2_000_000, "truncated": True}
    oracle.answer("GET", "/gists/aa5a315d61ae9438b18d", {**sample("gists/get"), "files": {"a.txt": gist_file}})
    async with served(oracle, "--write", "--toolsets", "all", "--flow", "off") as client:
        body = (await call(client, "get_issue", **O, number=3))["data"]["body"]
        for tool, more in (("edit_issue", {"number": 3}), ("edit_comment", {"comment": 5})):
            for added in ("\n", "\r\n\r\n## Update\r\n\r\nIt works."):
                said = await refused(client, tool, **O, **more, body=body + added)
                assert "must be a whole text" in said and "fields=body alone" in said
        gist = {"gist": "aa5a315d61ae9438b18d"}
        texts = (await call(client, "get_gist", **gist))["data"]["texts"]
        assert "was cut by an answer" in await refused(client, "write_gist", **gist, texts=texts)
        await call(client, "edit_issue", **O, number=3, body="It was cut: “… [3 more characters]”, and is no more.")
    assert not oracle.sent("PATCH", "/gists") and len(oracle.sent("PATCH")) == 1


@pytest.mark.reported("fastify/website#36")
@pytest.mark.reported("WICG/webcomponents#273")
@pytest.mark.reported("wei/pull#548")
async def test_a_branch_that_loses_commits_says_where_it_was(oracle: Oracle) -> None:
    branch(oracle, "main", SHA)
    branch(oracle, "old", OTHER_SHA)
    async with served(oracle, "--write", "--force", "--toolsets", "all", "--flow", "off") as client:
        done = await call(client, "move_branch", **O, branch="main", ref="old", force=True)
    assert f"it was at {SHA}" in done["done"] and done["data"]["old_sha"] == SHA


@pytest.mark.reported("electron/electron#37864")
@pytest.mark.reported("knative/infra#201")
@pytest.mark.reported("BerriAI/litellm#30005")
@pytest.mark.parametrize(
    ("tag", "latest", "stays"),
    [
        ("v21.4.4", "v24.0.0", True), ("v24.0.1", "v24.0.0", False), ("1.9.0", "1.10.0", True),
        ("cli-1.0.0", "lib-3.0.0", False), ("nightly", "v24.0.0", False),
    ],
)  # fmt: skip
async def test_an_older_version_does_not_become_the_latest(tag: str, latest: str, stays: bool, oracle: Oracle) -> None:
    branch(oracle)
    oracle.answer("GET", f"{HERE}/releases/latest", {**sample("repos/get-release"), "tag_name": latest})
    draft = {**sample("repos/get-release"), "tag_name": tag, "draft": True, "prerelease": False}
    oracle.answer("GET", f"{HERE}/releases/tags/{tag}", draft)
    async with served(oracle, "--write", "--releases", "--toolsets", "all", "--flow", "off") as client:
        published = [await call(client, "edit_release", **O, tag=tag, draft=False)]
        not_found(oracle, "GET", f"{HERE}/releases/tags/{tag}")
        published.append(await call(client, "create_release", **O, tag=tag, draft=False))
        for more in ({"draft": True}, {"draft": False, "prerelease": True}):
            await call(client, "create_release", **O, tag=tag, **more)
    sent = [seen.json.get("make_latest") for seen in [*oracle.sent("PATCH"), *oracle.sent("POST")]]
    assert sent == (["false", "false", None, None] if stays else [None] * 4)
    assert all((f"{latest} stays the latest" in done["done"]) is stays for done in published)


@pytest.mark.reported("github/github-mcp-server#2551")
@pytest.mark.reported("github/github-mcp-server#2755")
@pytest.mark.parametrize("cleared", [None, ""])
async def test_a_custom_field_that_is_set_leaves_the_others(cleared: str | None, oracle: Oracle) -> None:
    fields = [{"id": 4, "name": "Priority"}, {"id": 5, "name": "Effort"}, {"id": 6, "name": "Size"}]
    oracle.answer("GET", "/orgs/octo/issue-fields", fields)
    values = {4: "P2", 5: "Low"}

    def answer(seen: Seen) -> Reply:
        sent: Any = seen.json if seen.body else {}
        if seen.verb == "PATCH" and "issue_field_values" in sent:
            values.clear()
        if seen.verb == "DELETE":
            del values[int(seen.path.rpartition("/")[2])]
            return Reply(204, None)
        values.update({each["field_id"]: each["value"] for each in sent.get("issue_field_values", [])})
        shown = [{"issue_field_id": key, "issue_field_name": str(key), "value": text} for key, text in values.items()]
        return Reply(200, shown if seen.verb == "POST" else issue(3, issue_field_values=shown, title="New"))

    for verb in ("GET", "PATCH"):
        oracle.respond(verb, f"{HERE}/issues/3", answer)
    for verb in ("POST", "DELETE"):
        oracle.respond(verb, f"{HERE}/issues/3/issue-field-values.*", answer)
    async with served(oracle, "--write", "--toolsets", "all", "--flow", "off") as client:
        done = await call(client, "edit_issue", **O, number=3, custom={"Effort": "High"})
        assert values == {4: "P2", 5: "High"} and done["data"]["custom"] == {"4": "P2", "5": "High"}
        assert done["data"]["title"] == "New" and done["url"]
        await call(client, "edit_issue", **O, number=3, custom={"Effort": "Medium"}, title="New")
        assert values == {4: "P2", 5: "Medium"}
        done = await call(client, "edit_issue", **O, number=3, custom={"Priority": cleared, "Size": cleared})
        assert values == {5: "Medium"} and done["data"]["custom"] == {"5": "Medium"}
        await call(client, "edit_issue", **O, number=3, custom={"Effort": cleared, "Size": 3})
    assert values == {6: 3}


@pytest.mark.reported("jdx/communique#241")
@pytest.mark.reported("mongodb-js/mongosh#691")
@pytest.mark.reported("release-drafter/release-drafter#204")
@pytest.mark.parametrize("more", [{"title": "One"}, {"body": "Notes"}, {"draft": False}])
async def test_a_draft_keeps_its_tag(more: dict[str, Any], oracle: Oracle) -> None:
    branch(oracle)
    draft = {**sample("repos/get-release"), "id": 7, "tag_name": "v2", "draft": True, "target_commitish": "main"}
    not_found(oracle, "GET", f"{HERE}/(git/ref/tags|releases/tags)/v2")
    oracle.answer("GET", f"{HERE}/releases", [draft])
    oracle.respond(
        "PATCH", f"{HERE}/releases/7", lambda seen: Reply(200, {**draft, "tag_name": "untagged-249d854d"} | seen.json)
    )
    async with served(oracle, "--write", "--releases", "--toolsets", "all", "--flow", "off") as client:
        done = await call(client, "edit_release", **O, tag="v2", **more)
    assert done["done"].startswith("Changed release v2.") and done["uri"].endswith("/releases/v2")


@pytest.mark.reported("avibe-bot/avibe#1712")
@pytest.mark.reported("ncipollo/release-action#8")
async def test_no_second_draft_is_made_and_none_of_several_is_guessed(oracle: Oracle) -> None:
    branch(oracle)
    drafts = [
        {**sample("repos/get-release"), "id": number, "tag_name": tag, "draft": True, "html_url": f"https://x/{number}"}
        for number, tag in ((7, "v2"), (8, "v3"), (9, "v3"))
    ]
    not_found(oracle, "GET", f"{HERE}/(git/ref/tags|releases/tags)/v[234]")
    oracle.answer("GET", f"{HERE}/releases", drafts)
    arguments = ("--write", "--delete", "--releases", "--toolsets", "all", "--flow", "off")
    async with served(oracle, *arguments) as client:
        for draft in (True, False):
            assert "a draft of the release `v2`" in await refused(client, "create_release", **O, tag="v2", draft=draft)
        for tool, more in (("edit_release", {"draft": False}), ("delete_release", {})):
            said = await refused(client, tool, **O, tag="v3", **more)
            assert "2 drafts" in said and "https://x/8, https://x/9" in said
        assert oracle.sent("POST") == oracle.sent("PATCH") == oracle.sent("DELETE") == []
        assert (await call(client, "get_release", **O, tag="v3"))["data"]["draft"] is True
        await call(client, "create_release", **O, tag="v4")
        await call(client, "delete_release", **O, tag="v2")
    assert oracle.sent("DELETE", "/releases/7$") and len(oracle.sent("POST", "/releases$")) == 1


@pytest.mark.reported("octokit/plugin-throttling.js#599")
@pytest.mark.reported("gofri/go-github-ratelimit#47")
@pytest.mark.parametrize("hours_ahead", [-1, 1])
async def test_a_limit_ends_by_the_clock_of_github(hours_ahead: int, oracle: Oracle) -> None:
    server_time = time.time() - hours_ahead * 3600
    headers = {
        "x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(server_time) + 120),
        "date": formatdate(server_time, usegmt=True),
    }  # fmt: skip
    oracle.answer("GET", f"{HERE}/issues", {"message": "API rate limit exceeded"}, status=403, headers=headers)
    async with served(oracle) as client:
        assert "Try again in 120 s" in await refused(client, "list_issues", **O)
    assert len(oracle.sent("GET", "/issues$")) == 1


@pytest.mark.reported("octokit/octokit.rb#608")
@pytest.mark.reported("ovity/octotree#12")
async def test_the_tree_of_a_branch_with_a_slash_is_asked_for_by_one_part_of_a_path(oracle: Oracle) -> None:
    tree = [{"path": "docs/a.md", "mode": "100644", "type": "blob", "sha": SHA, "size": 3}]

    def answer(seen: Seen) -> Reply:
        if "/git/trees/support%2F0.9.x" not in seen.target:
            return Reply(404, {"message": "Not Found"})
        return Reply(200, {"sha": SHA, "tree": tree, "truncated": False})

    oracle.respond("GET", f"{HERE}/git/trees/.*", answer)
    not_found(oracle, "GET", f"{HERE}/contents/a.md")
    async with served(oracle) as client:
        found = await call(client, "list_files", **O, ref="support/0.9.x", recursive=True, fields="path")
        assert found["rows"] == [["docs/a.md"]]
        said = await refused(client, "read_file", **O, ref="support/0.9.x", path="a.md")
    assert "The nearest there are: `docs/a.md`" in said


@pytest.mark.reported("ExpediaGroup/github-helpers#150")
@pytest.mark.reported("github-tools/github-release-notes#166")
@pytest.mark.parametrize(
    ("wishes", "sent"),
    [
        ({"sort": "updated"}, "desc"), ({"sort": "popularity"}, "desc"), ({"sort": "updated", "order": "asc"}, "asc"),
        ({}, None), ({"sort": "long-running"}, None),
    ],
)  # fmt: skip
async def test_pull_requests_that_changed_last_come_first(wishes: dict[str, Any], sent: str, oracle: Oracle) -> None:
    """GitHub sorts by what it is asked for in ascending order, unless it is told otherwise."""
    oracle.pages(f"{HERE}/pulls", [sample("pulls/list")[0]])
    async with served(oracle) as client:
        await call(client, "list_pull_requests", **O, **wishes)
    assert oracle.sent("GET", f"{HERE}/pulls$")[-1].query.get("direction") == sent


@pytest.mark.reported("home-assistant/core#45305")
@pytest.mark.reported("webcomponents/webcomponents.org#826")
@pytest.mark.reported("octokit/octokit.js#2073")
async def test_a_count_with_pull_requests_in_it_is_not_called_one_of_issues(oracle: Oracle) -> None:
    oracle.answer("GET", HERE, {**sample("repos/get"), "open_issues_count": 315})
    milestone = {**sample("issues/get-milestone"), "open_issues": 4, "closed_issues": 8}
    oracle.pages(f"{HERE}/milestones", [milestone])
    async with served(oracle) as client:
        data = (await call(client, "get_repository", **O))["data"]
        assert data["open_issues_and_pulls"] == 315 and "open_issues" not in data
        # It is found by GitHub's name too.
        data = (await call(client, "get_repository", **O, fields="open_issues_count"))["data"]
        assert data == {"open_issues_and_pulls": 315}
        page = await call(client, "list_issue_options", **O, kind="milestones")
    row = dict(zip(page["columns"], page["rows"][0], strict=True))
    assert (row["open"], row["closed"]) == (4, 8) and "open_issues" not in row


@pytest.mark.reported("slapperwan/gh4a#1419")
@pytest.mark.reported("PyGithub/PyGithub#3053")
@pytest.mark.reported("refined-github/refined-github#998")
async def test_the_history_of_a_file_says_where_it_went_on_before_a_rename(oracle: Oracle) -> None:
    commits = [{**sample("repos/list-commits")[0], "sha": sha} for sha in (OTHER_SHA, SHA)]
    oracle.pages(f"{HERE}/commits", commits)
    renamed = {**changed("src/new.py"), "status": "renamed", "previous_filename": "old name.py"}
    oracle.answer("GET", f"{HERE}/commits/{SHA}", {**sample("repos/get-commit"), "files": [changed("a.py"), renamed]})
    wishes: dict[str, Any] = {**O, "path": "src/new.py"}
    async with served(oracle) as client:
        assert "it was `old name.py`" in (await call(client, "list_commits", **wishes))["note"]
        # What is not the whole history does not begin there.
        for more in ({"since": "2026-01-01"}, {"author": "octocat"}, {"limit": 1}):
            assert "old name.py" not in str(await call(client, "list_commits", **wishes, **more))
        oracle.answer("GET", f"{HERE}/commits/{SHA}", {**sample("repos/get-commit"), "files": [changed("src/new.py")]})
        assert "note" not in await call(client, "list_commits", **wishes)
        oracle.answer("GET", f"{HERE}/commits/{SHA}", {"message": "Server Error"}, status=404)
        assert len((await call(client, "list_commits", **wishes))["rows"]) == 2


@pytest.mark.reported("DependencyTrack/dependency-track#5307")
@pytest.mark.reported("github/advisory-database#4612")
async def test_malware_is_among_the_advisories_of_a_package(oracle: Oracle) -> None:
    """GitHub lists advisories about malware only to those who ask for that type."""
    by_type = {kind: {**sample("security-advisories/list-global-advisories")[0], "ghsa_id": kind} for kind in
               ("reviewed", "malware", "unreviewed")}  # fmt: skip
    found = set(by_type)

    def list_advisories(seen: Seen) -> Reply:
        kind = seen.query.get("type", "reviewed")
        return Reply(200, [by_type[kind]] if kind in found else [])

    oracle.respond("GET", "/advisories", list_advisories)
    async with served(oracle, "--toolsets", "security") as client:
        page = await call(client, "list_advisories", package="evil", ecosystem="npm", fields="ghsa,severity")
        assert [row[0] for row in page["rows"]] == ["malware", "reviewed"]
        assert page["note"].startswith("About malware: the first 1.") and page["total"] == 2
        for kind in ("reviewed", "malware", "unreviewed"):
            assert (await call(client, "list_advisories", advisory="CVE-2026-1", fields="ghsa"))["rows"] == [[kind]]
            found.remove(kind)
        assert (await call(client, "list_advisories", advisory="CVE-2026-1"))["rows"] == []


@pytest.mark.reported("microsoft/vscode-remote-repositories-github#173")
@pytest.mark.reported("oskarlh/ohlt#3")
@pytest.mark.reported("mattias800/prosper#2443")
async def test_a_search_that_finds_nothing_says_what_it_does_not_see(oracle: Oracle) -> None:
    for kind in ("code", "commits", "issues"):
        oracle.pages(f"/search/{kind}", [], "items")
    async with served(oracle) as client:
        assert "no fork with fewer stars" in (await call(client, "search_github", kind="code", query="boop"))["note"]
        found = await call(client, "search_github", **O, kind="commits", query="boop")
        assert "default branch only" in found["note"]
        assert "note" not in await call(client, "search_github", **O, kind="issues", query="boop")
        # By the old name of a repository GitHub's search finds nothing, whatever is there.
        where = {"Location": f"{oracle.url}/repositories/77"}
        oracle.answer("GET", HERE, {"message": "Moved Permanently"}, status=301, headers=where)
        oracle.answer("GET", "/repositories/77", {**sample("repos/get"), "full_name": "octo/new-app"})
        found = await call(client, "search_github", **O, kind="issues", query="boop")
        assert "`octo/app` is `octo/new-app` by now" in found["note"]


@pytest.mark.reported("AmintaCCCP/GithubStarsManager#93")
async def test_an_order_that_github_would_pass_over_is_refused(oracle: Oracle) -> None:
    async with served(oracle) as client:
        for kind, wishes, words in (
            ("repositories", {"sort": "created"}, "`stars`, `forks`, `help-wanted-issues`, `updated`"),
            ("issues", {"sort": "stars"}, "`comments`, "), ("code", {"sort": "updated"}, "sorts them by nothing"),
            ("topics", {"sort": "stars"}, "sorts them by nothing"), ("issues", {"order": "asc"}, "Pass `sort` too"),
        ):  # fmt: skip
            assert words in await refused(client, "search_github", kind=kind, query="x", **wishes)
        await call(client, "search_github", kind="commits", query="x", sort="Author-Date", order="desc")
    assert oracle.sent("GET", "/search/commits")[-1].query["sort"] == "author-date"


@pytest.mark.reported("Sma1lboy/rove#202")
@pytest.mark.reported("isaacs/node-glob#453")
@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("**/*.ts", ["a.ts", "src/a.ts", "src/b/c.ts"]), ("src/**/*.ts", ["src/a.ts", "src/b/c.ts"]),
        ("*.ts", ["a.ts", "src/a.ts", "src/b/c.ts"]), ("src/*.ts", ["src/a.ts"]),
        ("*.{ts,tsx}", ["a.ts", "src/a.ts", "src/b/c.ts", "src/b/d.tsx"]),
        ("src/**", ["src/a.ts", "src/b/c.ts", "src/b/d.tsx"]),
        ("{src/b,lib}/*.tsx", ["src/b/d.tsx"]), ("**/b/**/*.tsx", ["src/b/d.tsx"]), ("src/b", []),
        ("./*.ts", ["a.ts"]), ("{src,lib}/{b,c}/*.{ts,tsx}", ["src/b/c.ts", "src/b/d.tsx"]),
    ],
)  # fmt: skip
async def test_a_glob_means_what_it_means_everywhere(pattern: str, matches: list[str], oracle: Oracle) -> None:
    paths = ["a.ts", "src/a.ts", "src/b/c.ts", "src/b/d.tsx"]
    tree = [{"path": path, "mode": "100644", "type": "blob", "sha": SHA, "size": 1} for path in paths]
    oracle.answer("GET", f"{HERE}/git/trees/HEAD", {"sha": SHA, "tree": tree, "truncated": False})
    oracle.answer("GET", f"{HERE}/pulls/5", {**sample("pulls/get"), "head": {"sha": SHA}, "changed_files": 4})
    oracle.pages(f"{HERE}/pulls/5/files", [changed(path) for path in paths])
    async with served(oracle) as client:
        found = await call(client, "list_files", **O, recursive=True, pattern=pattern, fields="path")
        assert [row[0] for row in found["rows"]] == matches
        if not matches:
            return
        said = await call(client, "read_diff", **O, number=5, path=pattern, summary=True)
        assert [path for path in paths if f"=== {path} " in said] == matches
        below = await call(client, "list_files", **O, path="src", recursive=True, pattern="b/*.ts", fields="path")
        assert below["rows"] == [["src/b/c.ts"]]
        many = "{a,b}" * 8
        assert "stand for more than" in await refused(client, "list_files", **O, recursive=True, pattern=many)


@pytest.mark.reported("google/go-github#2847")
async def test_alerts_of_code_scanning_are_chosen_by_severity(oracle: Oracle) -> None:
    async with served(oracle, "--toolsets", "security") as client:
        await call(client, "list_alerts", **O, kind="code_scanning", severity="high")
        assert oracle.sent("GET", "/code-scanning/alerts$")[-1].query["severity"] == "high"
        said = await refused(client, "list_alerts", **O, kind="secret_scanning", severity="high")
        assert "`severity` does not choose among secret_scanning alerts" in said


@pytest.mark.reported("Asana/SGTM#190")
@pytest.mark.reported("superset-sh/superset#6843")
async def test_a_message_that_no_commit_gets_is_not_taken_without_a_word(oracle: Oracle) -> None:
    pull = {**sample("pulls/get"), "number": 5, "head": {"sha": SHA}, "changed_files": 1}
    oracle.answer("GET", f"{HERE}/pulls/5", pull)
    oracle.pages(f"{HERE}/pulls/5/files", [changed("a.py")])
    state = {"isMergeQueueEnabled": True, "mergeQueueEntry": None}
    oracle.graphql("MergeState", {"repository": {"pullRequest": state}})
    oracle.graphql("Enqueue", {"enqueuePullRequest": {"mergeQueueEntry": {"position": 1, "state": "QUEUED"}}})
    merge: dict[str, Any] = {**O, "number": 5, "head_sha": SHA}
    async with served(oracle, "--write", "--merge", "--flow", "off") as client:
        said = await refused(client, "run_merge", **merge, method="rebase", title="T", body="B")
        assert "`title` and `body` can't go with method=rebase" in said and not oracle.sent("PUT")
        for wishes in ({"title": "T"}, {"body": "B"}, {"method": "squash"}):
            done = await call(client, "run_merge", **merge, when_ready=True, **wishes)
            assert "is in the merge queue" in done["done"] and "were not used" in done["note"]
        assert "note" not in await call(client, "run_merge", **merge, when_ready=True)


@pytest.mark.reported("sandeberger/TheTab.Ninja#34")
@pytest.mark.reported("changesets/action#391")
@pytest.mark.reported("TecharoHQ/anubis#1599")
@pytest.mark.parametrize(
    ("kind", "message", "words"),
    [
        ("UNPROCESSABLE", "Repository rule violations found\n\nSecret detected in content\n\n", "Take it out"),
        ("FORBIDDEN", "refusing to allow an OAuth App to create or update workflow `.github/workflows/a.yml` "
                      "without `workflow` scope", "needs the scope `workflow`"),
    ],
)  # fmt: skip
async def test_what_github_does_not_take_from_a_token_is_told(
    kind: str, message: str, words: str, oracle: Oracle
) -> None:
    branch(oracle)
    not_found(oracle, "GET", f"{HERE}/contents/a.txt")
    errors = [{"type": kind, "path": ["createCommitOnBranch"], "message": message}]
    oracle.graphql("CommitOnBranch", Reply(200, {"data": {"createCommitOnBranch": None}, "errors": errors}))
    async with served(oracle, "--write") as client:
        files = [{"path": "a.txt", "content": "A"}]
        said = await refused(client, "write_files", **O, branch="main", message="M", files=files)
    assert words in said and "list_rules" not in said and "Contents: write" not in said


@pytest.mark.reported("refined-github/refined-github#670")
@pytest.mark.reported("k0shk0sh/FastHub#426")
async def test_the_files_of_a_release_come_with_size_and_downloads(oracle: Oracle) -> None:
    asset = {"name": "app.zip", "size": 12_345, "download_count": 42, "digest": "sha256:ab"}
    oracle.answer("GET", f"{HERE}/releases/latest", {**sample("repos/get-release"), "assets": [asset]})
    async with served(oracle) as client:
        (shown,) = (await call(client, "get_release", **O))["data"]["assets"]
        oracle.answer("GET", f"{HERE}/releases/latest", {**sample("repos/get-release"), "assets": [asset] * 51})
        many = await call(client, "get_release", **O)
    assert shown == {"name": "app.zip", "bytes": 12_345, "downloads": 42, "digest": "sha256:ab"}
    assert many["data"]["assets"] == ["app.zip"] * 51 and "Of 51 assets" in many["note"]


@pytest.mark.reported("OnToology/OnToology#506")
@pytest.mark.reported("decaporg/decap-cms#2802")
async def test_a_fork_that_is_there_already_is_not_called_new(oracle: Oracle) -> None:
    fork = {**sample("repos/get"), "name": "old-fork", "full_name": "octocat/old-fork"}
    oracle.answer("POST", "/repos/up/app/forks", fork, status=202)
    async with served(oracle, "--write", "--flow", "off") as client:
        done = await call(client, "copy_repository", repo="up/app", target="octocat/app")
    assert done["done"] == "No new fork was made: octocat/old-fork is there already."
    assert done["uri"] == "github://octocat/old-fork"


@pytest.mark.reported("octokit/octokit.js#483")
@pytest.mark.reported("cli/cli#5030")
async def test_a_new_fork_under_another_name_is_called_new(oracle: Oracle) -> None:
    created_at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    fork = {**sample("repos/get"), "name": "app-1", "full_name": "octocat/app-1", "created_at": created_at}
    oracle.answer("POST", "/repos/up/app/forks", fork, status=202)
    async with served(oracle, "--write", "--flow", "off") as client:
        done = await call(client, "copy_repository", repo="up/app", target="octocat/app")
    assert done["done"].startswith("GitHub is making octocat/app-1, because octocat/app is taken")


@pytest.mark.reported("microsoft/vscode#94048")
@pytest.mark.parametrize("tool", ["list_issues", "list_pull_requests"])
async def test_nothing_found_by_a_label_that_is_not_there_is_told(tool: str, oracle: Oracle) -> None:
    oracle.pages(f"{HERE}/issues", [])
    not_found(oracle, "GET", f"{HERE}/labels/bugg")
    async with served(oracle) as client:
        said = (await call(client, tool, **O, labels=["bugg", "p1"]))["note"]
        assert "`octo/app` has no label `bugg`:" in said and "p1" not in said
        assert "note" not in await call(client, tool, **O, labels=["p1"])
        asked = len(oracle.sent("GET", "/labels/"))
        await call(client, tool, **O, labels=["none"])
    assert len(oracle.sent("GET", "/labels/")) == asked


LONG = "line\n" * 1000


@pytest.mark.reported("tdstein/fix#20")
@pytest.mark.reported("giscus/giscus#184")
async def test_what_was_said_in_a_thread_can_be_read_whole(oracle: Oracle) -> None:
    place = {"pullRequest": {"number": 5}, "repository": {"nameWithOwner": "octo/app"}}
    end = {"hasNextPage": False, "endCursor": None}
    comment = {"databaseId": 9, "body": LONG, "createdAt": "2026-01-02T00:00:00Z"}
    comments = {"totalCount": 1, "pageInfo": end, "nodes": [comment]}
    thread = {"id": "PRRT_kwDOAAAAAQ", "path": "a.py", "line": 3, "isOutdated": False, "comments": comments}
    threads = {"totalCount": 1, "pageInfo": end, "nodes": [{"isResolved": False, **thread}]}
    oracle.graphql("Threads", {"repository": {"pullRequest": {"reviewThreads": threads}}})
    oracle.graphql("Thread", {"node": {"__typename": "PullRequestReviewThread", **place, **thread}})
    replies = [{"id": f"DC_{number}", "body": f"{number} {LONG}"} for number in range(30)]

    def answer_comment(given: dict[str, Any]) -> dict[str, Any]:
        start = int(given["after"] or 0)
        nodes = replies[start : start + given["first"]]
        more = start + len(nodes) < len(replies)
        info = {"hasNextPage": more, "endCursor": str(start + len(nodes))}
        page = {"totalCount": 30, "pageInfo": info, "nodes": nodes}
        return {"node": {"__typename": "DiscussionComment", "id": "DC_9", "body": LONG, "replies": page}}

    shown = {"id": "DC_9", "body": "short", "replies": {"totalCount": 30, "nodes": replies[:20]}}
    discussion = {"comments": {"totalCount": 1, "pageInfo": end, "nodes": [shown]}}
    oracle.graphql("Discussion", {"repository": {"discussion": discussion}})
    oracle.graphql("DiscussionComment", answer_comment)
    where = {"__typename": "DiscussionComment", "discussion": {"number": 4, "repository": place["repository"]}}

    def find_place(given: dict[str, Any]) -> dict[str, Any]:
        return {"node": where if given["id"] == "DC_9" else None}

    oracle.graphql("NodePlace", find_place)
    async with served(oracle, "--toolsets", "all") as client:
        page = await call(client, "list_reviews", **O, number=5, kind="threads")
        assert "whole with its `thread`" in page["note"] and LONG not in str(page["rows"][0][-1])
        page = await call(client, "list_reviews", **O, number=5, thread="PRRT_kwDOAAAAAQ")
        assert page["rows"][0][-1] == LONG
        assert "by its `comment_id`" in (await call(client, "get_discussion", **O, number=4))["note"]
        wishes: dict[str, Any] = {**O, "number": 4, "comment_id": "DC_9"}
        data = (await call(client, "get_discussion", **wishes))["data"]
        assert data["body"] == LONG and data["replies"] == 30
        bodies = [row[-1] for row in data["reply_rows"]]
        while cursor := data.get("cursor"):
            data = (await call(client, "get_discussion", **wishes, cursor=cursor))["data"]
            bodies += [row[-1] for row in data["reply_rows"]]
        assert bodies == [reply["body"] for reply in replies]
        assert "has no comment" in await refused(client, "get_discussion", **O, number=4, comment_id="DC_10")


@pytest.mark.reported("PyGithub/PyGithub#836")
@pytest.mark.reported("PyGithub/PyGithub#1019")
async def test_since_is_described_as_the_time_of_a_change(oracle: Oracle) -> None:
    async with served(oracle, "--toolsets", "all") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    for name in ("list_issues", "list_comments", "list_gists"):
        assert "Last change" in str(tools[name].input_schema["properties"]["since"])


@pytest.mark.reported("google/go-github#3583")
@pytest.mark.reported("loopwerk/tag-changelog#12")
@pytest.mark.reported("Somsubhra/github-release-stats#41")
@pytest.mark.reported("adaptlearning/adapt_authoring#2290")
async def test_nobody_takes_the_first_of_a_list_for_the_newest(oracle: Oracle) -> None:
    """GitHub lists tags by name, and releases in an order of its own."""
    oracle.pages(f"{HERE}/tags", [{**sample("repos/list-tags")[0], "name": name} for name in ("v1.9", "v1.10")])
    async with served(oracle) as client:
        assert (await call(client, "list_refs", **O, kind="tags"))["note"].startswith("By name: ")
        tools = {tool.name: tool.description or "" for tool in (await client.list_tools()).tools}
    assert "newest first" not in tools["list_releases"]


@pytest.mark.reported("github/github-mcp-server#2648")
@pytest.mark.reported("mondoohq/mql#9793")
@pytest.mark.reported("renovatebot/renovate#45241")
async def test_alerts_go_on_by_the_mark_that_github_gives(oracle: Oracle) -> None:
    def list_alerts(seen: Seen) -> Reply:
        if "page" in seen.query:
            return Reply(400, {"message": "Pagination using the `page` parameter is not supported."})
        start = int(seen.query.get("after", 0))
        alerts = [{**sample("dependabot/list-alerts-for-repo")[0], "number": start + number} for number in range(100)]
        where = f"{oracle.url}{HERE}/dependabot/alerts?per_page=100&after={start + 100}"
        return Reply(200, alerts, {"Link": f'<{where}>; rel="next"'} if start < 200 else {})

    oracle.respond("GET", f"{HERE}/dependabot/alerts", list_alerts)
    numbers: list[int] = []
    async with served(oracle, "--toolsets", "security") as client:
        wishes: dict[str, Any] = {**O, "kind": "dependabot", "fields": "number", "limit": 150}
        page = await call(client, "list_alerts", **wishes)
        numbers += [row[0] for row in page["rows"]]
        while cursor := page.get("cursor"):
            page = await call(client, "list_alerts", **wishes, cursor=cursor)
            numbers += [row[0] for row in page["rows"]]
    assert numbers == list(range(300))


@pytest.mark.reported("vfeskov/gitpunch#131")
@pytest.mark.reported("microsoft/kiota#2429")
@pytest.mark.reported("RequestPolicyContinued/requestpolicy#786")
async def test_the_repositories_of_an_owner_come_without_forks_but_not_without_a_word(oracle: Oracle) -> None:
    oracle.pages("/search/repositories", [sample("repos/get")], "items")
    async with served(oracle) as client:
        for query, is_told in (("user:octo", True), ("tetris org:octo", True), ("tetris", False),
                               ("user:octo fork:true", False)):  # fmt: skip
            page = await call(client, "search_github", kind="repositories", query=query)
            assert ("`fork:true` in the query" in page.get("note", "")) is is_told


@pytest.mark.reported("homeassistant-ai/ha-mcp#2154")
@pytest.mark.reported("mock-server/mockserver-monorepo#2486")
async def test_notes_of_a_release_may_be_as_long_as_github_takes_them(oracle: Oracle) -> None:
    branch(oracle)
    not_found(oracle, "GET", f"{HERE}/(git/ref/tags|releases/tags)/v2")
    oracle.answer("GET", f"{HERE}/releases", [])
    async with served(oracle, "--write", "--releases", "--toolsets", "all", "--flow", "off") as client:
        await call(client, "create_release", **O, tag="v2", body="x" * 125_000)
        said = await refused(client, "create_release", **O, tag="v2", body="x" * 125_001)
        assert "at most 125000 characters" in said
    assert len(oracle.sent("POST", "/releases$")) == 1
