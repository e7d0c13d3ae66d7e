"""What models send by mistake: taken where it can mean one thing only, else refused with the next move."""

from typing import Any

import pytest

from github_server.oracle import Oracle
from github_server.oracle.server import Reply, Seen
from github_server.serving import EVERYTHING, call, refused, served, text_of
from github_server.world import SHA, branch, changed, comment, file, issue, no_workflow_runs, not_found, sample

pytestmark = pytest.mark.anyio
O = {"repo": "octo/app"}  # noqa: E741 - it stands in every line


TAKEN: list[tuple[str, dict[str, Any], str]] = [
    ("get_issue", {"repo": "http://127.0.0.1/octo/app", "number": 3}, "/repos/octo/app/issues/3"),
    ("get_issue", {"repo": "http://127.0.0.1/octo/app/issues/9?x#y", "number": 3}, "/repos/octo/app/issues/3"),
    ("get_issue", {"repo": "git@127.0.0.1:octo/app.git", "number": 3}, "/repos/octo/app/issues/3"),
    ("get_issue", {"repo": "127.0.0.1/octo/app", "number": 3}, "/repos/octo/app/issues/3"),
    ("get_issue", {**O, "number": "#3"}, "/repos/octo/app/issues/3"),
    ("get_issue", {**O, "number": " 3 "}, "/repos/octo/app/issues/3"),
    ("get_issue", {**O, "number": "Octo/App#3"}, "/repos/octo/app/issues/3"),
    ("get_issue", {**O, "number": "https://github.com/octo/app/issues/3#issuecomment-7"}, "/issues/3"),
    ("get_pull_request", {**O, "number": "https://github.com/octo/app/pull/5/files"}, "/repos/octo/app/pulls/5"),
    ("get_run", {**O, "run_id": "https://github.com/octo/app/actions/runs/9/job/8"}, "/repos/octo/app/actions/runs/9"),
    ("edit_comment", {**O, "comment": "https://github.com/octo/app/issues/3#issuecomment-7", "body": "B"},
     "/repos/octo/app/issues/comments/7"),
    ("edit_comment", {**O, "comment": "https://github.com/octo/app/pull/3#discussion_r7", "body": "B"},
     "/repos/octo/app/pulls/comments/7"),
    ("delete_comment", {**O, "comment": "https://github.com/octo/app/pull/3#issuecomment-7", "review": True},
     "/repos/octo/app/issues/comments/7"),
    ("get_issue", {"repo": "`octo/app/`", "number": "octo/app#3"}, "/repos/octo/app/issues/3"),
    ("list_files", {"repo": "http://127.0.0.1/octo/app/tree/dev", "recursive": True},
     "/repos/octo/app/git/trees/dev?recursive=1"),
    ("get_commit", {"repo": "octo/app", "ref": "6dcb09b"}, "/repos/octo/app/commits/6dcb09b"),
    ("list_commits", {**O, "since": "2026-01-31", "until": "2026-01-31"},
     "/repos/octo/app/commits?per_page=30&since=2026-01-31T00%3A00%3A00Z&until=2026-01-31T23%3A59%3A59Z"),
    ("list_commits", {**O, "author": "@me"}, "/repos/octo/app/commits?author=octocat&per_page=30"),
    ("list_issues", {**O, "creator": "@hubot", "assignee": "@me"},
     "/repos/octo/app/issues?assignee=octocat&creator=hubot&per_page=30&state=open"),
    ("list_pull_requests", {**O, "head": "feature/x", "base": "refs/heads/main"},
     "/repos/octo/app/pulls?base=main&head=octo%3Afeature%2Fx&per_page=30&state=open"),
    ("list_reviews", {**O, "number": 5, "unresolved": True}, "/graphql"),
    ("list_stars", {"user": "@me"}, "/user/starred?per_page=30"),
    ("list_issues", {**O, "state": "OPEN", "labels": "bug, good first", "since": "2026-01-31"},
     "/repos/octo/app/issues?labels=bug%2Cgood+first&per_page=30&since=2026-01-31T00%3A00%3A00Z&state=open"),
    ("list_issues", {**O, "since": "2026-01-31T02:00:00+02:00", "sort": "Updated"},
     "/repos/octo/app/issues?per_page=30&since=2026-01-31T00%3A00%3A00Z&sort=updated&state=open"),
    ("read_file", {**O, "path": "/src/a.py"}, "/repos/octo/app/contents/src/a.py"),
    ("read_file", {**O, "path": "./src/a.py", "ref": "refs/heads/feature/x"},
     "/repos/octo/app/contents/src/a.py?ref=feature%2Fx"),
    ("run_workflow", {**O, "workflow": ".github/workflows/ci.yml", "ref": "main"},
     "/repos/octo/app/actions/workflows/ci.yml/dispatches"),
    ("get_gist", {"gist": "https://gist.github.com/octocat/aa5a315d"}, "/gists/aa5a315d"),
    ("list_actions", {**O, "status": "FAILURE"}, "/repos/octo/app/actions/runs?per_page=20&status=failure"),
]  # fmt: skip


async def test_what_can_mean_one_thing_is_taken(oracle: Oracle) -> None:
    oracle.answer("GET", "/repos/octo/app/contents/src/a.py", file("src/a.py", b"a\n"))
    async with served(oracle, *EVERYTHING) as client:
        for tool, arguments, target in TAKEN:
            oracle.seen.clear()
            await call(client, tool, **arguments)
            asked = [seen.target for seen in oracle.seen]
            assert any(item.endswith(target) for item in asked), (arguments, asked)


WRITTEN: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("create_issue", {**O, "title": "T", "labels": 'bug, "a, b", "c"'},
     {"title": "T", "labels": ["bug", "a, b", '"c"']}),
    ("create_issue", {**O, "title": "T", "labels": "bug", "assignees": "@ada, bob"},
     {"title": "T", "labels": ["bug"], "assignees": ["ada", "bob"]}),
    ("create_issue", {**O, "title": "T", "assignees": ["@me"]}, {"title": "T", "assignees": ["octocat"]}),
    ("edit_issue", {**O, "number": 3, "state": "Closed", "state_reason": "not planned"},
     {"state": "closed", "state_reason": "not_planned"}),
    ("create_branch", {**O, "branch": "refs/heads/x", "ref": "main"}, {"ref": "refs/heads/x", "sha": SHA}),
    ("create_review", {**O, "number": 5, "event": "approve", "comments": {"path": "/a.py", "line": "3", "body": "B"}},
     {"event": "APPROVE", "comments": [{"path": "a.py", "body": "B", "line": 3, "side": "RIGHT"}]}),
    ("create_label", {**O, "name": "bug", "color": "#FF0000"}, {"name": "bug", "color": "ff0000"}),
    ("write_milestone", {**O, "title": "x", "due_on": "2026-12-31"}, {"title": "x", "due_on": "2026-12-31T12:00:00Z"}),
]  # fmt: skip


async def test_what_is_written_is_what_was_meant(oracle: Oracle) -> None:
    branch(oracle)
    async with served(oracle, *EVERYTHING) as client:
        for tool, arguments, body in WRITTEN:
            oracle.seen.clear()
            await call(client, tool, **arguments)
            (sent,) = [seen for seen in oracle.seen if seen.verb in ("POST", "PATCH")]
            assert sent.json == body


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("get_issue", {"repo": "https://gitlab.com/octo/app", "number": 3}, "is not on `127.0.0.1`"),
    ("get_issue", {"repo": "app", "number": 3}, "Write it as `owner/name`"),
    ("get_issue", {**O, "number": "https://github.com/other/x/issues/3"}, "is of `other/x`, but `repo` is `octo/app`"),
    ("get_issue", {"repo": "octo/app2", "number": "octo/app#3"}, "is of `octo/app`"),
    ("get_issue", {**O, "number": "https://github.com/octo/app/wiki"}, "an address without `number`"),
    ("get_issue", {**O, "number": "octo/3"}, "must be an integer"),
    ("list_files", {"repo": "http://127.0.0.1/octo/app/blob/feature/x/a.py"}, "the branch as `ref`"),
    ("read_diff", {"repo": "http://127.0.0.1/octo/app/compare/main...dev"}, "`main...dev` after `octo/app`"),
    ("list_gists", {"user": "@me "}, "`get_me`"),
    ("list_issues", {**O, "sort": "newest"}, "one of `created`, `updated`, `comments`"),
    ("list_issues", {**O, "since": "last week"}, "such as 2026-01-31"),
    ("list_issues", {**O, "milestone": -1}, "a number from 0 on"),
    ("list_actions", {**O, "status": "failed"}, "`failure`"),
    ("read_file", {**O, "path": "https://github.com/octo/app/blob/main/x.py"}, "the branch as `ref`"),
    ("create_issue", {**O, "title": " "}, "must not be empty"),
    ("create_label", {**O, "name": "x", "color": "red"}, "six hexadecimal digits"),
    ("search_github", {"kind": "forks", "query": "x"}, "one of `repositories`"),
]  # fmt: skip


async def test_what_is_wrong_is_told_before_anything_is_asked(oracle: Oracle) -> None:
    async with served(oracle, *EVERYTHING) as client:
        for tool, arguments, words in WRONG:
            assert words in await refused(client, tool, **arguments)
    assert oracle.seen == []


DECIDE = ("kind", "number", "run_id", "job_id", "repo", "org", "project")
"""Arguments that say what is shown; others pick of it."""
PICK: dict[str, Any] = {
    "ref": "dev", "base": "main", "path": "src", "author": "hubot", "since": "2026-01-01", "until": "2026-02-01",
    "labels": ["bug"], "assignee": "hubot", "creator": "hubot",
    "milestone": 1, "type": "Bug", "head": "x", "workflow": "ci.yml", "branch": "dev", "status": "failure",
    "event": "push", "team": "core", "category": "some name", "answered": True, "query": "is:open", "severity": "high",
    "package": "p", "ecosystem": "pip", "advisory": "GHSA-2c6m-6gqh-6qg3", "participating": True, "include_read": True,
    "user": "hubot", "tag": "v1", "recursive": True, "summary": True,
}  # fmt: skip


async def test_no_argument_is_dropped_without_a_word(oracle: Oracle) -> None:
    """Beside what decides what is shown, each that picks of it changes what GitHub is asked, or is refused."""
    dropped: list[str] = []

    async def asked(client: Any, tool: str, arguments: dict[str, Any]) -> Any:
        oracle.seen.clear()
        result = await client.call_tool(tool, arguments)
        said = None if result.is_error else text_of(result)
        return said, [(seen.target, seen.body) for seen in oracle.seen]

    async with served(oracle, *EVERYTHING) as client:
        for tool in (await client.list_tools()).tools:
            if not (tool.annotations and tool.annotations.read_only_hint) or tool.name == "list_changes":
                continue
            has: dict[str, Any] = tool.input_schema["properties"]
            base = {
                "repo": "octo/app",
                "owner": "octo",
                "number": 5,
                "query": "x",
                "gist": "a1",
                "path": "a",
                "ref": "x",
            }
            needed = {name: base.get(name, 7) for name in tool.input_schema.get("required", ()) if name != "kind"}
            for decides in (name for name in DECIDE if name in has and name not in needed):
                for value in has[decides].get("enum", ["octo/app" if decides == "repo" else 7]):
                    mode = {**({"repo": "octo/app"} if "repo" in has and decides != "org" else {}), **needed}
                    mode[decides] = "octo" if decides == "org" else value
                    plain = await asked(client, tool.name, mode)
                    for name in (name for name in PICK if name in has and name not in mode):
                        found = await asked(client, tool.name, {**mode, name: PICK[name]})
                        if None not in (plain[0], found[0]) and found == plain:
                            dropped.append(f"{tool.name} {decides}={value}: {name}")
    assert not dropped


async def test_what_is_not_there_says_where_to_look(oracle: Oracle) -> None:
    for path in ("issues/9.*", "pulls/3.*", "contents/nope.txt", "commits/no", "git/ref/heads/no"):
        not_found(oracle, "GET", f"/repos/octo/app/{path}")
    missing = {"message": "No commit found for the ref no"}
    oracle.answer("GET", "/repos/octo/app/contents/x.txt", missing, status=404)
    not_found(oracle, "GET", "/repos/octo/gone")
    oracle.answer("GET", "/repos/octo/empty/commits", {"message": "Git Repository is empty."}, status=409)
    oracle.answer("GET", "/repos/octo/empty/contents/", {"message": "This repository is empty."}, status=404)
    archived = {"message": "Repository was archived so is read-only."}
    oracle.answer("POST", "/repos/octo/old/issues", archived, status=403)
    error = {
        "type": "NOT_FOUND",
        "path": ["repository", "pullRequest"],
        "message": "Could not resolve.",
    }
    unknown = {"message": "No commit found for SHA: origin/x"}
    oracle.answer("GET", "/repos/octo/app/commits/origin/x", unknown, status=422)
    not_found(oracle, "GET", "/repos/octo/gone/commits")
    oracle.answer("GET", "/repos/octo/empty/git/.*", {"message": "Git Repository is empty."}, status=409)
    new = [{"path": "a", "content": "x"}, {"path": "b", "delete": True}]
    none = {"data": {"repository": {"pullRequest": None}}, "errors": [error]}
    oracle.graphql("Threads", Reply(200, none))
    async with served(oracle, *EVERYTHING) as client:
        for tool, arguments, words in (
            ("get_issue", {**O, "number": 9}, "`list_issues`"),
            ("get_pull_request", {**O, "number": 3}, "`get_issue`"),
            ("list_reviews", {**O, "number": 3, "kind": "threads"}, "find pull request #3"),
            ("read_file", {**O, "path": "nope.txt"}, "`list_files`"),
            ("read_file", {**O, "path": "x.txt", "ref": "no"}, "No commit found for the ref no"),
            ("get_commit", {**O, "ref": "no"}, "`list_refs`"),
            ("create_branch", {**O, "branch": "x", "ref": "no"}, "`list_refs`"),
            ("get_commit", {**O, "ref": "origin/x"}, "`list_refs`"),
            ("list_commits", {"repo": "octo/gone", "ref": "no"}, "`no` in `octo/gone`"),
            (
                "write_files",
                {"repo": "octo/empty", "branch": "x", "message": "M", "files": new},
                "the repository is empty",
            ),
            ("get_repository", {"repo": "octo/gone"}, "kind=repositories"),
            ("list_commits", {"repo": "octo/empty"}, "no commit yet"),
            ("list_files", {"repo": "octo/empty"}, "no commit yet"),
            ("create_issue", {"repo": "octo/old", "title": "T"}, "is archived"),
        ):
            assert words in await refused(client, tool, **arguments), tool


async def test_who_is_gone_is_a_ghost(oracle: Oracle) -> None:
    oracle.pages("/repos/octo/app/issues", [issue(1, user=None, body=None, labels=[])])
    oracle.pages("/repos/octo/app/issues/1/comments", [comment(1, user=None, body=None)])
    oracle.answer("GET", "/repos/octo/app/pulls/5", {**sample("pulls/get"), "user": None, "head": {"repo": None}})
    thread = {"comments": {"totalCount": 1, "nodes": [{"author": None, "body": ""}]}}
    known = {"repository": {"pullRequest": {"reviewThreads": {"totalCount": 1, "nodes": [thread]}}}}
    oracle.graphql("Threads", known)
    async with served(oracle) as client:
        (row,) = (await call(client, "list_issues", **O, fields="author,body"))["rows"]
        assert row == ["ghost", None]
        (row,) = (await call(client, "list_comments", **O, number=1, fields="author,body"))["rows"]
        assert row == ["ghost", None]
        assert (await call(client, "get_pull_request", **O, number=5))["data"]["author"] == "ghost"
        (row,) = (await call(client, "list_reviews", **O, number=5, kind="threads"))["rows"]
        assert row[-1][0][1] == "ghost"


async def test_what_is_not_all_there_is_said(oracle: Oracle) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9000\n"
    oracle.answer("GET", "/repos/octo/app/contents/big.bin", file("big.bin", pointer))
    files = [changed(f"{number:03}.txt") for number in range(300)]
    oracle.answer("GET", r"/repos/octo/app/compare/main\.\.\.x", {"files": files})
    async with served(oracle) as client:
        assert "Git LFS" in await call(client, "read_file", **O, path="big.bin")
        ask = {**O, "ref": "x", "base": "main", "summary": True}
        seen: list[str] = []
        while True:
            text = await call(client, "read_diff", **ask)
            assert "the first 300 files only" in text
            seen += [line for line in text.splitlines() if line.startswith("===")]
            if "cursor=" not in text:
                break
            ask["cursor"] = text.partition("cursor=")[2].partition("]")[0]
        assert len(seen) == len(set(seen)) == 300


async def test_what_github_does_not_list_is_not_called_absent(oracle: Oracle) -> None:
    where, files = "/repos/octo/app", [changed(f"{number:03}.txt") for number in range(300)]
    # Later pages of a comparison have commits alone.
    more = {"Link": f'<{oracle.url}{where}/compare/main...x?page=2>; rel="next"'}
    oracle.answer("GET", rf"{where}/compare/main\.\.\.x", {"files": files}, headers=more)
    oracle.pages(f"{where}/pulls/5/files", [changed(f"{number:04}.txt", patch=None) for number in range(3000)])
    entry = {"type": "file", "size": 1, "sha": SHA}
    entries = [{**entry, "path": f"many/{number}"} for number in range(1000)]
    oracle.answer("GET", f"{where}/contents/many", {"type": "dir", "path": "many", "entries": entries})
    tree = [{"path": "a/1", "type": "blob", "sha": SHA, "size": 1}]
    oracle.answer("GET", f"{where}/git/trees/HEAD", {"tree": tree, "truncated": True})
    oracle.pages(f"{where}/pulls/5/commits", [sample("repos/get-commit")] * 250)
    oracle.answer("GET", f"{where}/commits/big", {**sample("repos/get-commit"), "files": files}, headers=more)
    async with served(oracle) as client:
        for ask in ({"ref": "x", "base": "main"}, {"number": 5}):
            text = await refused(client, "read_diff", **O, **ask, path="zzz.txt")
            assert "zzz.txt` is among the first" in text and "GitHub lists no more" in text
        assert len(oracle.sent("GET", "/compare/")) == 1
        found = await call(client, "list_files", **O, path="many", limit=1000)
        assert "the first 1,000 of a folder" in found["note"]
        assert "cut the tree" in await refused(client, "list_files", **O, path="z", recursive=True)
        page = await call(client, "list_commits", **O, number=5, limit=100, fields="sha")
        while "cursor" in page:
            assert "only" not in (page["note"] or "")
            page = await call(client, "list_commits", **O, number=5, cursor=page["cursor"], fields="sha")
        assert page["note"] == "GitHub lists the first 250 only."
        assert "At least 240 more files" in (await call(client, "get_commit", **O, ref="big"))["note"]


async def test_all_checks_count(oracle: Oracle) -> None:
    where = "/repos/octo/app/commits/main"
    no_workflow_runs(oracle)
    runs = [{**sample("checks/get"), "status": "completed"} for _ in range(100)]
    oracle.pages(f"{where}/check-runs", [*runs, {**runs[0], "status": "in_progress"}], "check_runs")
    statuses = [{"context": f"ci/{number}", "state": "success"} for number in range(100)]
    statuses.append({"context": "ci/last", "state": "pending"})

    def of_page(seen: Seen) -> Reply:
        at = 100 * (int(seen.query.get("page", "1")) - 1)
        headers = {} if at else {"Link": f'<{oracle.url}{where}/status?page=2>; rel="next"'}
        return Reply(200, {"state": "failure", "statuses": statuses[at : at + 100]}, headers)

    oracle.respond("GET", f"{where}/status", of_page)
    async with served(oracle) as client:
        note = (await call(client, "list_checks", **O, ref="main", wait=0))["note"]
    assert "2 of 202 checks are still going on" in note
    assert note.startswith("Not done: 1 in_progress, 1 pending, ")


@pytest.mark.parametrize(
    ("kind", "query", "sent"),
    [
        ("issues", "crash", "crash is:issue"), ("issues", "crash is:pr", "crash is:pr"),
        ("issues", "Type:Issue x", "Type:Issue x"), ("pull_requests", "is:open x", "is:open x is:pr"),
        ("users", "type:org octo", "type:org octo"), ("orgs", "octo", "octo type:org"),
    ],
)  # fmt: skip
async def test_a_query_says_what_it_wants_once(kind: str, query: str, sent: str, oracle: Oracle) -> None:
    async with served(oracle) as client:
        await call(client, "search_github", kind=kind, query=query)
    assert oracle.sent("GET", "/search/")[-1].query["q"] == sent


async def test_what_a_list_does_not_tell_is_not_called_unknown(oracle: Oracle) -> None:
    merged = {**sample("pulls/list")[0], "merged_at": "2026-01-02T00:00:00Z"}
    oracle.answer("GET", "/repos/octo/app/pulls", [merged, {**merged, "merged_at": None}])
    hit = issue(4, repository_url=f"{oracle.url}/repos/octo/app", pull_request={"merged_at": "2026-01-02T00:00:00Z"})
    oracle.answer("GET", "/search/issues", {"total_count": 1, "incomplete_results": False, "items": [hit]})
    async with served(oracle) as client:
        found = await call(client, "list_pull_requests", **O, fields="number,merged,state,review_comments")
        assert [row[1:3] for row in found["rows"]] == [[True, "merged"], [False, "open"]]
        assert found["note"] == "Not told in a list, so null: `review_comments`."
        hits = await call(client, "search_github", kind="pull_requests", query="x", fields="merged,merged_at,state")
        assert hits["rows"] == [[True, "2026-01-02T00:00:00Z", "merged"]] and not oracle.sent("POST")
        assert "note" not in await call(client, "list_pull_requests", **O)


async def test_zero_leaves_an_optional_number_out(oracle: Oracle) -> None:
    """Models in strict modes have to send every argument, and no bound in the schemas says that 0 is none."""
    oracle.answer("GET", "/repos/octo/app/contents/a", file("a", b"one\n"))
    async with served(oracle, *EVERYTHING) as client:
        for tool, arguments in (
            ("list_issues", {"limit": 0, "milestone": 0}), ("list_checks", {"ref": "main", "number": 0, "limit": 0}),
            ("read_file", {"path": "a", "start_line": 0, "lines": 0}), ("list_commits", {"number": 0, "limit": 0}),
            ("edit_issue", {"number": 3, "title": "T", "duplicate_of": 0, "numbers": []}),
            ("create_issue", {"title": "T", "milestone": 0, "parent": 0}),
            ("create_reaction", {"number": 3, "comment": 0, "reaction": "heart"}),
        ):  # fmt: skip
            result = await client.call_tool(tool, {**O, **arguments})
            assert not result.is_error, f"{tool}: {text_of(result)}"
        assert "milestone" not in oracle.sent("GET", "/issues")[0].query
        assert "1 or more" in await refused(client, "get_issue", **O, number=0)
    assert "milestone" not in oracle.sent("POST", "/issues")[0].json
