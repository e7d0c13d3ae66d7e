"""Every tool through a real client, every request judged by GitHub's own descriptions."""

import io
import logging
import zipfile
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from github_server.oracle import Oracle, Seen
from github_server.oracle.description import judged
from github_server.oracle.graph import operation_name
from github_server.oracle.server import Reply
from github_server.permissions import REFERENCE, filled, needed, together
from github_server.serving import EVERYTHING, served, text_of
from github_server.world import SHA, branch, file, issue, not_found, sample
from mcp_github.permissions import PERMISSIONS_BY_TOOL

O = {"repo": "octo/app"}  # noqa: E741 - it stands in every line
FACTS = "number,head,additions,mergeable,reviewers,review_decision,verdicts,checks,closes"
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("get_me", {}),
    ("list_people", {}),
    ("list_people", O),
    ("list_people", {**O, "kind": "contributors"}),
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
    ("list_commits", {**O, "ref": "dev", "base": "main"}),
    ("list_commits", {**O, "ref": "dev", "base": "releases/latest"}),
    ("get_commit", {**O, "ref": "main"}),
    ("list_refs", O),
    ("list_refs", {**O, "kind": "tags"}),
    ("list_refs", {**O, "fields": "name,date,author,protected"}),
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
    ("list_issues", {**O, "numbers": [3, 4]}),
    ("list_issues", {**O, "state": "all", "labels": ["bug", "good first"], "assignee": "*", "creator": "hubot",
                     "milestone": "#1", "since": "2026-01-01T00:00:00Z", "sort": "comments", "order": "asc"}),
    ("get_issue", {**O, "number": 3}),
    *(("list_issue_options", {**O, "kind": kind}) for kind in ("labels", "milestones", "assignees", "types")),
    ("list_comments", {**O, "number": 3, "since": "2026-01-01T00:00:00Z"}),
    ("list_comments", {**O, "number": 3, "order": "desc"}),
    ("list_comments", {**O, "number": 3, "kind": "timeline"}),
    ("create_issue", {**O, "title": "T", "body": "B", "labels": ["bug"], "assignees": ["copilot", "hubot"],
                      "milestone": "#1", "type": "Bug", "parent": 3}),
    ("edit_issue", {**O, "number": 3, "title": "T", "state": "closed", "state_reason": "not_planned",
                    "labels": ["+triaged", "-bug"], "assignees": ["hubot"], "milestone": 0}),
    ("edit_issue", {**O, "number": 3, "milestone": "v1.0", "add_comment": "C"}),
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
    ("list_pull_requests", {**O, "commit": SHA}),
    ("list_pull_requests", {**O, "labels": ["bug"], "milestone": "#1", "base": "main", "sort": "updated"}),
    ("list_pull_requests", {**O, "state": "merged", "fields": FACTS}),
    ("get_pull_request", {**O, "number": 5}),
    ("list_reviews", {**O, "number": 5}),
    ("list_reviews", {**O, "number": 5, "kind": "threads"}),
    ("list_reviews", {**O, "number": 5, "thread": "PRRT_kwDOAAAAAQ", "order": "desc"}),
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
    ("run_merge", {**O, "number": 5, "head_sha": SHA[:10], "when_ready": True, "method": "squash", "title": "T"}),
    *(("list_actions", {**O, "kind": kind}) for kind in ("workflows", "runs", "artifacts")),
    ("list_actions", {**O, "workflow": "ci.yml", "branch": "main", "status": "failure", "event": "push"}),
    ("list_actions", {**O, "kind": "jobs", "run_id": 9}),
    ("list_actions", {**O, "kind": "artifacts", "run_id": 9}),
    ("get_run", {**O, "run_id": 9}),
    ("get_run", {**O, "number": 5}),
    ("read_job_log", {**O, "job_id": 8}),
    ("read_artifact", {**O, "artifact": 5}),
    ("run_workflow", {**O, "workflow": "ci.yml", "ref": "main", "inputs": {"level": "all"}}),
    *(("edit_run", {**O, "run_id": 9, "action": action}) for action in ("rerun", "rerun_failed", "cancel")),
    ("delete_run_logs", {**O, "run_id": 9}),
    ("read_blame", {**O, "path": "src/x.py", "ref": "main"}),
    ("create_release", {**O, "tag": "v2", "ref": "main", "title": "Two", "body": "B", "generate_notes": True}),
    ("edit_release", {**O, "tag": "v1.0", "title": "One", "draft": False}),
    ("delete_release", {**O, "tag": "v1.0"}),
    ("list_discussions", {**O, "answered": False}),
    ("list_discussions", {**O, "category": "some name"}),
    ("list_discussions", {**O, "kind": "categories"}),
    ("get_discussion", {**O, "number": 4}),
    ("get_discussion", {**O, "number": 4, "comment_id": "DC_kwDOAAAAAQ"}),
    ("create_discussion_comment", {**O, "number": 4, "body": "B", "reply_to": "DC_kwDOAAAAAQ"}),
    ("edit_discussion_comment", {**O, "number": 4, "comment_id": "DC_kwDOAAAAAQ", "body": "B", "answer": True}),
    ("edit_discussion_comment", {**O, "number": 4, "comment_id": "DC_kwDOAAAAAQ", "answer": False}),
    ("delete_discussion_comment", {**O, "number": 4, "comment_id": "DC_kwDOAAAAAQ"}),
    ("list_notifications", {"include_read": True, "participating": True, "since": "2026-01-01T00:00:00Z"}),
    ("list_notifications", O),
    *(("edit_notification", {"notification": 1, "action": action})
      for action in ("read", "done", "ignore", "unsubscribe")),
    ("edit_notification", {"action": "read", "before": "2026-01-01T00:00:00Z"}),
    ("edit_notification", {"action": "read", **O}),
    ("list_gists", {"since": "2026-01-01T00:00:00Z"}),
    ("list_gists", {"user": "octocat"}),
    ("get_gist", {"gist": "aa5a315d61ae9438b18d"}),
    ("write_gist", {"texts": {"a.txt": "A"}, "description": "D", "public": True}),
    ("write_gist", {"gist": "aa5a315d61ae9438b18d", "texts": {"a.txt": "A", "b.txt": None}}),
    ("create_label", {**O, "name": "good first", "color": "00ff00", "description": "D"}),
    ("edit_label", {**O, "name": "a/b c", "new_name": "d"}),
    ("delete_label", {**O, "name": "a/b c"}),
    ("write_milestone", {**O, "title": "1.0", "due_on": "2026-12-31T00:00:00Z"}),
    ("write_milestone", {**O, "number": 1, "state": "closed"}),
    ("list_projects", {"owner": "octo"}),
    ("list_projects", {"owner": "octocat", "query": "board"}),
    ("list_projects", {"owner": "octo", "kind": "fields", "project": 1}),
    ("list_projects", {"owner": "octo", "kind": "items", "project": 1, "query": "is:open"}),
    ("create_project_item", {"owner": "octo", "project": 1, **O, "number": 3}),
    ("edit_project_item", {"owner": "octo", "project": 1, "item": 7, "field": "Priority", "value": "Low"}),
    ("delete_project_item", {"owner": "octo", "project": 1, "item": 7}),
    *(("list_alerts", {**O, "kind": kind, "state": "open"})
      for kind in ("code_scanning", "secret_scanning", "code_quality")),
    ("list_alerts", {**O, "kind": "dependabot", "state": "open", "severity": "high"}),
    *(("get_alert", {**O, "kind": kind, "number": 2})
      for kind in ("code_scanning", "secret_scanning", "dependabot", "code_quality")),
    ("list_stars", {}),
    ("list_stars", {"user": "octocat"}),
    ("edit_star", O),
    ("edit_star", {**O, "starred": False}),
    ("list_issue_options", {"repo": "octo/app", "kind": "custom"}),
    ("edit_issue", {**O, "number": 3, "numbers": [4], "labels": ["+bug"]}),
    ("edit_issue", {**O, "number": 3, "numbers": [4], "labels": ["+bug"], "dry_run": False}),
    ("edit_issue", {**O, "each": {"3": {"labels": ["+bug"], "add_comment": "C"}}, "dry_run": False}),
    ("edit_issue", {**O, "number": 3, "custom": {"text field": "me"}, "duplicate_of": 8}),
    ("list_refs", {**O, "kind": "tags", "fields": "name,message,tagger,tagged_at"}),
    ("list_issues", {**O, "custom": {"text field": "me"}}),
    ("edit_dependency", {**O, "number": 3, "blocked_by": 8}),
    ("edit_dependency", {**O, "number": 3, "blocked_by": 8, "action": "remove", "other_repo": "octo/app"}),
    ("find_duplicates", {**O, "number": 8}),
    ("find_duplicates", {**O, "title": "Crash on start", "body": "It crashes."}),
    ("run_copilot", {**O, "number": 3, "base": "main", "instructions": "With tests."}),
    ("create_review", {**O, "number": 5, "event": "COMMENT", "body": "B", "review_id": 81,
                       "comments": [{"path": "a.py", "body": "C"}, {"path": "a.py", "line": 3, "body": "C"}]}),
    ("create_review", {**O, "number": 5, "review_id": 81, "body": "B"}),
    ("create_review", {**O, "number": 5, "body": "B", "comments": [{"path": "a.py", "body": "C"}]}),
    ("create_review", {**O, "number": 5, "comments": [{"path": "a.py", "line": 3, "start_line": 1, "start_side": "LEFT",
                                                       "body": "C"}]}),
    ("get_usage", {**O, "run_id": 9}),
    ("get_usage", {**O, "workflow": "ci.yml"}),
    ("create_discussion", {**O, "title": "T", "body": "B", "category": "some name"}),
    ("get_subscription", O),
    *(("edit_subscription", {**O, "state": state}) for state in ("watching", "participating", "ignoring")),
    *(("list_projects", {"owner": "octo", "kind": kind, "project": 1}) for kind in ("views", "updates")),
    ("create_project", {"owner": "octo", "title": "T"}),
    ("create_project_field", {"owner": "octo", "project": 1, "name": "Size", "type": "single_select",
                              "options": ["S", "M"]}),
    ("create_project_field", {"owner": "octocat", "project": 1, "name": "Week", "type": "iteration",
                              "start": "2026-01-05", "days": 7}),
    ("create_project_view", {"owner": "octo", "project": 1, "name": "Mine", "query": "assignee:@me"}),
    ("create_project_view", {"owner": "octocat", "project": 1, "name": "Mine", "layout": "board"}),
    ("write_project_update", {"owner": "octo", "project": 1, "status": "at_risk", "body": "B", "due": "2026-12-31"}),
    ("write_project_update", {"owner": "octo", "project": 1, "update": "PVTSU_kwDOAAAAAQ", "status": "complete"}),
    ("list_rules", O),
    ("list_rules", {**O, "kind": "branch", "branch": "main"}),
    ("list_rules", {**O, "kind": "properties"}),
    ("get_ruleset", {**O, "ruleset": 42}),
    ("write_properties", {**O, "properties": {"environment": "test", "service": None}}),
    ("list_advisories", {"org": "octo"}),
    ("list_advisories", O),
    ("list_advisories", {"package": "django@4.0", "ecosystem": "pip", "severity": "high"}),
    ("list_advisories", {"advisory": "CVE-2026-0001"}),
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
    here = {"nameWithOwner": "octo/app"}
    thread = {"__typename": "PullRequestReviewThread", "pullRequest": {"number": 5}, "repository": here}
    said = {"__typename": "DiscussionComment", "discussion": {"number": 4, "repository": here}}
    update = {"__typename": "ProjectV2StatusUpdate", "project": {"number": 1, "owner": {"__typename": "Organization",
                                                                                    "login": "octo"}}}  # fmt: skip
    places = {"DC": said, "PV": update}
    oracle.graphql("NodePlace", lambda given: {"node": places.get(given["id"][:2], thread)})
    oracle.graphql("Thread", {"node": thread})
    oracle.graphql("DiscussionComment", {"node": {"__typename": "DiscussionComment"}})
    oracle.graphql("PullFacts", {"nodes": [{"__typename": "PullRequest"}]})
    board = {"repositoryOwner": {"__typename": "Organization", "projectV2": {"number": 1}}}
    oracle.graphql("ProjectViews", board)
    oracle.graphql("ProjectUpdates", board)
    oracle.answer("GET", "/repos/octo/app/pulls/5/reviews/81", {**sample("pulls/get-review"), "state": "PENDING"})
    copilot = {"assignees": [{"login": "Copilot"}]}
    oracle.answer("POST", "/repos/octo/app/issues/3/assignees", issue(3, **copilot), status=201)
    commit = {"oid": SHA, "blame": {"ranges": [{"startingLine": 1, "endingLine": 9}]}, "__typename": "Commit"}
    oracle.graphql("Blame", {"repository": {"object": commit}})
    oracle.answer("GET", "/users/octo", {**sample("users/get-by-username"), "type": "Organization"})
    where = {"Location": f"{oracle.url}/_storage/8"}
    oracle.answer("GET", "/repos/octo/app/actions/jobs/8/logs", status=302, headers=where)
    oracle.answer("GET", "/_storage/8", raw=b"2026-01-01T00:00:00.0Z \x1b[31mfailed\x1b[0m\n")
    where = {"Location": f"{oracle.url}/_storage/zip"}
    oracle.answer("GET", "/repos/octo/app/actions/artifacts/5/zip", status=302, headers=where)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("report.txt", "passed\n")
    oracle.answer("GET", "/_storage/zip", raw=made.getvalue())
    return oracle


@pytest.mark.slow
@pytest.mark.anyio
async def test_every_tool_asks_github_for_what_github_knows(oracle: Oracle) -> None:
    prepared(oracle)
    async with served(oracle, *EVERYTHING) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        # What changed is told from memory, and GitHub is not asked.
        assert {name for name, _ in CALLS} | {"call_tools", "run_script", "list_changes"} == tools.keys()
        failed: list[str] = []
        asked: dict[str, set[str]] = {name: set() for name, _ in CALLS}
        for name, arguments in CALLS:
            before = len(oracle.seen)
            result = await client.call_tool(name, arguments)
            asked[name].update(needed(of) for seen in oracle.seen[before:] if (of := operation(seen)))
            if result.is_error:
                failed.append(f"{name}({arguments}): {text_of(result)}")
                continue
            assert len(oracle.seen) > before, f"{name}({arguments}) asked nothing"
            if (schema := tools[name].output_schema) is not None:
                validator: Any = Draft202012Validator(schema)
                validator.validate(result.structured_content)
            assert len(text_of(result).encode()) < 15_000
        assert not failed, "\n".join(failed)
    verbs = {seen.verb for seen in oracle.seen}
    assert verbs == {"GET", "POST", "PATCH", "PUT", "DELETE"}
    assert oracle.violations == []
    assert {name: together(permissions) for name, permissions in asked.items()} == {
        name: list(permissions) for name, permissions in PERMISSIONS_BY_TOOL.items()
    }


def operation(seen: Seen) -> str:
    """What a request is called where permissions are listed; empty for a download."""
    if seen.path == "/graphql":
        return f"GRAPHQL {operation_name(seen.json['query'])}"
    found = judged(seen.verb, seen.target, seen.headers, seen.body).operation
    return f"{seen.verb} {found.template}" if found else ""


def test_the_readme_has_the_permissions() -> None:
    text = REFERENCE.read_text("utf-8")
    assert filled(text, PERMISSIONS_BY_TOOL) == text, "run `python tests/github_server/permissions.py`"


@pytest.mark.anyio
async def test_a_refusal_names_the_permission(oracle: Oracle) -> None:
    said = {"message": "Resource not accessible by personal access token"}
    oracle.answer("GET", "/repos/octo/app/actions/runs/9", said, status=403)
    oracle.answer(
        "GET", "/repos/octo/app/issues/3", said, status=403, headers={"x-accepted-github-permissions": "issues=read"}
    )
    oracle.graphql("Discussions", Reply(200, {"data": None, "errors": [{"type": "FORBIDDEN", **said}]}))
    async with served(oracle, "--toolsets", "all") as client:
        for tool, arguments, words in (
            ("get_run", {"run_id": 9}, "needs for this tool: Actions: read, Pull requests: read."),
            ("get_issue", {"number": 3}, "needs the permission `issues=read`."),
            ("list_discussions", {}, "needs for this tool: Discussions: read."),
        ):
            result = await client.call_tool(tool, {**O, **arguments})
            assert words in text_of(result), tool


@pytest.mark.anyio
async def test_reading_asks_few_questions(oracle: Oracle) -> None:
    """Requests per question; the numbers a change should not raise unnoticed."""
    prepared(oracle)
    most = {"get_issue": 1, "get_pull_request": 2, "read_file": 1, "list_issues": 1, "get_commit": 1, "list_checks": 3,
            "read_diff": 2, "list_comments": 1, "get_repository": 1, "search_github": 1}  # fmt: skip
    async with served(oracle, *EVERYTHING) as client:
        for name, arguments in CALLS:
            before = len(oracle.seen)
            await client.call_tool(name, arguments)
            if name in most and "number" in arguments and name == "list_checks":
                # Whether it is green takes the rules of the base branch.
                assert len(oracle.seen) - before <= most[name] + 3
            elif name == "list_comments" and "order" in arguments:
                # The newest are on the last page, whose number another request tells.
                assert len(oracle.seen) - before <= most[name] + 1
            elif name == "list_issues" and "labels" in arguments:
                # None are found, so each label is looked up: it may not be there.
                assert len(oracle.seen) - before <= most[name] + len(arguments["labels"])
            elif (
                name in most
                and not {"custom", "numbers"} & arguments.keys()
                and arguments.get("base") != "releases/latest"
            ):
                assert len(oracle.seen) - before <= most[name], name


@pytest.mark.share(1)
@pytest.mark.anyio
@pytest.mark.parametrize("body", ["{}", "[]", "null", '[{"number": {}}]'])
async def test_an_answer_nobody_foresaw_is_said_to_be_one(
    body: str, oracle: Oracle, caplog: pytest.LogCaptureFixture
) -> None:
    """Success of another shape is not a defect of the server; after a write nobody may think that nothing happened."""
    for verb in ("GET", "POST", "PATCH", "PUT", "DELETE"):
        oracle.answer(verb, ".*", raw=body.encode())
    with caplog.at_level(logging.CRITICAL):
        async with served(oracle, *EVERYTHING) as client:
            for tool, arguments in CALLS:
                wrote = len(oracle.seen) - len(oracle.sent("GET"))
                result = await client.call_tool(tool, arguments)
                said = text_of(result)
                assert "failed inside the server" not in said, (tool, said)
                wrote = len(oracle.seen) - len(oracle.sent("GET")) - wrote
                if "can't be understood" in said and wrote and not oracle.sent("POST", "/graphql"):
                    assert "may have been done" in said, (tool, said)


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("inner", [True, False])
async def test_a_change_that_github_did_not_make_is_not_told_as_made(
    inner: bool, oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers null without an error for a comment on a line that is not in the difference, for example."""
    plain, spoilt = prepared(oracle).reply, list[str]()

    def reply(seen: Seen) -> Reply:
        found = plain(seen)
        if seen.path == "/graphql" and seen.json["query"].lstrip().startswith("mutation"):
            ((name, made),) = found.data["data"].items()
            if not (inner and name.startswith("delete")):
                spoilt.append(name)
                return Reply(200, {"data": {name: dict.fromkeys(made) if inner else None}})
        return found

    monkeypatch.setattr(oracle, "reply", reply)
    async with served(oracle, *EVERYTHING) as client:
        for tool, arguments in CALLS:
            before = len(spoilt)
            result = await client.call_tool(tool, arguments)
            assert len(spoilt) == before or (result.is_error and "changed nothing" in text_of(result)), (
                tool,
                arguments,
            )
    assert len(set(spoilt)) > 10
