"""Every tool through a real client, every request judged by GitHub's own descriptions."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from github_server.oracle import Oracle
from github_server.serving import EVERYTHING, served, text_of
from github_server.world import SHA, branch, file, issue, not_found

O = {"repo": "octo/app"}  # noqa: E741 - it stands in every line
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("get_me", {}),
    ("list_teams", {}),
    ("list_people", O),
    ("list_people", {"org": "octo"}),
    ("list_people", {"org": "octo", "team": "core"}),
    *(("search_github", {"kind": kind, "query": "words", "limit": 5})
      for kind in ("repositories", "code", "commits", "issues", "pull_requests", "users", "orgs", "topics")),
    ("search_github", {"kind": "issues", "query": "is:open crash", **O, "sort": "updated", "order": "desc"}),
    ("get_repository", O),
    ("list_files", O),
    ("list_files", {**O, "path": "src", "ref": "v1.0"}),
    ("list_files", {**O, "recursive": True, "pattern": "*.rb"}),
    ("read_file", {**O, "path": "src/a b.py", "ref": "feature/x"}),
    ("read_diff", {**O, "number": 5}),
    ("read_diff", {**O, "ref": SHA}),
    ("read_diff", {**O, "ref": "feature/x", "base": "main", "summary": True}),
    ("list_commits", {**O, "ref": "main", "path": "src", "author": "octocat", "since": "2026-01-01T00:00:00Z"}),
    ("list_commits", {**O, "number": 5}),
    ("get_commit", {**O, "ref": "main"}),
    ("list_refs", O),
    ("list_refs", {**O, "kind": "tags"}),
    ("list_releases", O),
    ("get_release", O),
    ("get_release", {**O, "tag": "v1.0"}),
    ("write_files", {**O, "branch": "main", "message": "Subject\n\nBody",
                     "files": [{"path": "new.txt", "content": "hello"},
                               {"path": "old.txt", "sha": SHA, "edits": [{"old": "a", "new": "b"}]}]}),
    ("create_branch", {**O, "branch": "feature/y"}),
    ("create_branch", {**O, "branch": "feature/y", "ref": "main"}),
    ("create_repository", {"repo": "octocat/fresh", "description": "New."}),
    ("create_repository", {"repo": "octo/fresh", "private": False}),
    ("copy_repository", {**O, "target": "octocat/app"}),
    ("copy_repository", {**O, "target": "mine/app"}),
    ("delete_branch", {**O, "branch": "feature/y"}),
    ("delete_repository", {"repo": "octo/old"}),
    ("move_branch", {**O, "branch": "feature/y", "ref": "main", "force": True}),
    ("list_issues", O),
    ("list_issues", {**O, "state": "all", "labels": ["bug", "good first"], "assignee": "*", "creator": "hubot",
                     "milestone": 1, "since": "2026-01-01T00:00:00Z", "sort": "comments", "order": "asc"}),
    ("get_issue", {**O, "number": 3}),
    *(("list_issue_options", {**O, "kind": kind}) for kind in ("labels", "milestones", "assignees", "types")),
    ("list_comments", {**O, "number": 3, "since": "2026-01-01T00:00:00Z"}),
    ("create_issue", {**O, "title": "T", "body": "B", "labels": ["bug"], "assignees": ["copilot", "hubot"],
                      "milestone": 1, "type": "Bug", "parent": 3}),
    ("edit_issue", {**O, "number": 3, "title": "T", "state": "closed", "state_reason": "not_planned",
                    "labels": ["+triaged", "-bug"], "assignees": ["hubot"], "milestone": 0}),
    *(("edit_sub_issue", {**O, "number": 3, "sub_issue": 8, "action": action})
      for action in ("add", "remove", "first")),
    ("edit_sub_issue", {**O, "number": 3, "sub_issue": 8, "action": "after", "after": 7}),
    ("create_comment", {**O, "number": 3, "body": "B"}),
    ("create_comment", {**O, "number": 5, "body": "B", "thread": "PRRT_kwDOAAAAAQ"}),
    ("edit_comment", {**O, "comment": 9, "body": "B"}),
    ("edit_comment", {**O, "comment": 9, "body": "B", "review": True}),
    ("delete_comment", {**O, "comment": 9}),
    ("create_reaction", {**O, "number": 3, "reaction": "rocket"}),
    ("create_reaction", {**O, "comment": 9, "reaction": "eyes", "review": True}),
    ("list_pull_requests", {**O, "state": "all", "head": "octo:x", "base": "main", "sort": "popularity"}),
    ("get_pull_request", {**O, "number": 5}),
    ("list_reviews", {**O, "number": 5}),
    ("list_reviews", {**O, "number": 5, "kind": "threads"}),
    ("list_checks", {**O, "number": 5}),
    ("list_checks", {**O, "ref": "main"}),
    ("create_pull_request", {**O, "title": "T", "head": "feature/y", "base": "main", "draft": True,
                             "reviewers": ["hubot", "octo/core", "copilot"]}),
    ("edit_pull_request", {**O, "number": 5, "title": "T", "base": "main", "draft": True,
                           "reviewers": ["+hubot", "-other_user"], "update_branch": True}),
    ("create_review", {**O, "number": 5, "event": "REQUEST_CHANGES", "body": "B", "commit": SHA,
                       "comments": [{"path": "a.py", "line": 3, "start_line": 1, "body": "C"}]}),
    ("create_review", {**O, "number": 5}),
    ("edit_review", {**O, "number": 5, "review_id": 80, "action": "submit", "event": "APPROVE"}),
    ("edit_review", {**O, "number": 5, "review_id": 80, "action": "delete"}),
    ("edit_review", {**O, "number": 5, "review_id": 80, "action": "dismiss", "body": "Done."}),
    ("edit_thread", {**O, "number": 5, "thread": "PRRT_kwDOAAAAAQ"}),
    ("edit_thread", {**O, "number": 5, "thread": "PRRT_kwDOAAAAAQ", "resolved": False}),
    ("run_merge", {**O, "number": 5, "head_sha": SHA[:10], "method": "squash", "title": "T", "body": "B"}),
]  # fmt: skip


def prepared(oracle: Oracle) -> Oracle:
    """What the calls above need beyond the description's examples."""
    branch(oracle)
    for path in ("src/a b.py", "old.txt"):
        oracle.answer("GET", f"/repos/octo/app/contents/{path}", file(path, b"a\n"))
    oracle.answer("GET", "/repos/octo/app/contents/(src)?", {"type": "dir", "entries": [file("src/x.py", b"")]})
    not_found(oracle, "GET", "/repos/octo/app/contents/new.txt")
    oracle.answer("GET", "/repos/octo/app/issues/8", issue(8, id=8))
    oracle.answer("GET", "/repos/octo/app/issues/3/sub_issues", [issue(7, id=7), issue(8, id=8)])
    place = {"__typename": "PullRequestReviewThread", "pullRequest": {"number": 5}}
    oracle.graphql("NodePlace", {"node": {**place, "repository": {"nameWithOwner": "octo/app"}}})
    return oracle


@pytest.mark.anyio
async def test_every_tool_asks_github_for_what_github_knows(oracle: Oracle) -> None:
    prepared(oracle)
    async with served(oracle, *EVERYTHING) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert {name for name, _ in CALLS} == tools.keys()
        failed: list[str] = []
        for name, arguments in CALLS:
            before = len(oracle.seen)
            result = await client.call_tool(name, arguments)
            if result.is_error:
                failed.append(f"{name}({arguments}): {text_of(result)}")
                continue
            assert len(oracle.seen) > before, f"{name}({arguments}) asked nothing"
            if (schema := tools[name].output_schema) is not None:
                validator: Any = Draft202012Validator(schema)
                validator.validate(result.structured_content)
            assert len(text_of(result).encode()) < 15_000
        assert failed == []
    verbs = {seen.verb for seen in oracle.seen}
    assert verbs == {"GET", "POST", "PATCH", "PUT", "DELETE"}
    assert oracle.violations == []


@pytest.mark.anyio
async def test_reading_asks_few_questions(oracle: Oracle) -> None:
    """Requests per question; the numbers a change should not raise unnoticed."""
    prepared(oracle)
    most = {"get_issue": 1, "get_pull_request": 1, "read_file": 1, "list_issues": 1, "get_commit": 1, "list_checks": 2,
            "read_diff": 1, "list_comments": 1, "get_repository": 1, "search_github": 1}  # fmt: skip
    async with served(oracle, *EVERYTHING) as client:
        for name, arguments in CALLS:
            before = len(oracle.seen)
            await client.call_tool(name, arguments)
            if name in most and "number" in arguments and name == "list_checks":
                assert len(oracle.seen) - before <= most[name] + 1
            elif name in most:
                assert len(oracle.seen) - before <= most[name], name
