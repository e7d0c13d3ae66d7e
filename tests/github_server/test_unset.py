"""What GitHub did not do of what it was asked for is said, whichever tool asked for it."""

import json
from typing import Any

import pytest

from github_server.oracle import Oracle, Seen
from github_server.oracle.server import Reply
from github_server.serving import EVERYTHING, call, refused, served, text_of
from github_server.test_every_tool import CALLS, prepared
from github_server.world import issue, sample
from mcp_github.client.write_outcome import describe_unset, find_unset, is_everything_unset

O = {"repo": "octo/app"}  # noqa: E741

# Method, what is asked for, what comes back, and what is said of it; nothing where nothing is missing.
OUTCOMES: list[tuple[str, Any, Any, str]] = [
    ("POST", {"labels": ["bug", "x"]}, {"labels": [{"name": "Bug"}]}, "labels `x`"),
    ("POST", {"labels": ["bug"]}, {"labels": [{"name": "bug"}, {"name": "triage"}]}, ""),
    ("PATCH", {"labels": ["bug"]}, {"labels": [{"name": "bug"}, {"name": "old"}]}, "labels (still `old`)"),
    ("PATCH", {"labels": []}, {"labels": [{"name": "old"}]}, "labels (still `old`)"),
    ("PATCH", {"labels": []}, {"labels": []}, ""),
    ("POST", {"assignees": ["Ada", "bob"]}, {"assignees": [{"login": "ada"}]}, "assignees `bob`"),
    ("POST", {"assignees": ["copilot-swe-agent[bot]"]}, {"assignees": [{"login": "Copilot"}]}, ""),
    ("POST", {"milestone": 3}, {"milestone": None}, "milestone `3`"),
    ("POST", {"milestone": 3}, {"milestone": {"number": 3, "title": "1.0"}}, ""),
    ("PATCH", {"milestone": None}, {"milestone": {"number": 3, "title": "1.0"}}, "milestone (still `1.0`)"),
    ("POST", {"type": "Bug"}, {"type": None}, "type `Bug`"),
    ("POST", {"type": "bug"}, {"type": {"name": "Bug"}}, ""),
    ("PATCH", {"type": ""}, {"type": None}, ""),
    ("POST", {"reviewers": ["ada"]}, {"requested_reviewers": []}, "reviewers `ada`"),
    ("POST", {"team_reviewers": ["core"]}, {"requested_teams": [{"slug": "core", "name": "Core"}]}, ""),
    ("DELETE", {"reviewers": ["ada"]}, {"requested_reviewers": [{"login": "Ada"}]}, "reviewers (still `ada`)"),
    ("DELETE", {"reviewers": ["ada"]}, {"requested_reviewers": [{"login": "bob"}]}, ""),
    ("PATCH", {"state": "closed"}, {"state": "open"}, "state `closed`"),
    ("POST", {"body": "a\r\nb "}, {"body": "a\nb"}, ""),
    ("POST", {"body": "a\u200bb"}, {"body": "ab"}, ""),
    ("POST", {"body": ""}, {"body": None}, ""),
    ("POST", {"body": "x" * 90}, {"body": None}, "body"),
    ("POST", {"body": "B", "generate_release_notes": True}, {"body": "B\n## What's changed"}, ""),
    ("POST", {"base": "next"}, {"base": {"ref": "main"}}, "base `next`"),
    ("POST", {"head": "me:x"}, {"head": {"ref": "x", "label": "me:x"}}, ""),
    ("PATCH", {"new_name": "d"}, {"name": "c"}, "name `d`"),
    ("POST", {"name": "copy"}, {"name": "app"}, "name `copy`"),
    ("POST", {"color": "00FF00"}, {"color": "00ff00"}, ""),
    ("POST", {"private": True}, {"private": False}, "private `True`"),
    ("POST", {"private": False}, {"private": True}, "private (still `True`)"),
    ("PATCH", {"draft": False}, {"draft": False}, ""),
    ("PATCH", {"due_on": "2026-12-31T12:00:00Z"}, {"due_on": "2026-12-31T08:00:00Z"}, ""),
    ("PATCH", {"due_on": "2026-12-31T12:00:00Z"}, {"due_on": None}, "due_on `2026-12-31T12:00:00Z`"),
    ("POST", {"event": "APPROVE"}, {"state": "APPROVED"}, ""),
    ("POST", {"event": "APPROVE"}, {"state": "COMMENTED"}, "event `APPROVE`"),
    ("POST", {"comments": [{"path": "a"}], "sha": "1"}, {"comments": 3, "sha": "2"}, ""),
    ("PATCH", {"files": {"a": {"content": "A"}, "b": None}}, {"files": {"a": {"content": "A"}}}, ""),
    ("PATCH", {"files": {"a": {"content": "A"}, "b": None}}, {"files": {"a": {"content": "0"}, "b": {}}},
     "files `a` (still `b`)"),
    ("PATCH", {"files": {"a": {"content": "A" * 9}}}, {"files": {"a": {"content": "A", "truncated": True}}}, ""),
    ("POST", {"files": {"a": {"content": "A"}}}, {"files": {}}, "files `a`"),
    ("POST", {"files": {"a": {"content": "A"}}}, {"files": None}, "files `a`"),
    ("POST", {"files": ["a"]}, {"files": ["a"]}, ""),
    ("POST", {"mergeMethod": "SQUASH"}, {"autoMergeRequest": {"mergeMethod": "SQUASH"}}, ""),
    ("POST", {"mergeMethod": "SQUASH"}, {"autoMergeRequest": {"mergeMethod": "MERGE"}}, "method `SQUASH`"),
    ("POST", {"commitHeadline": "T"}, {"autoMergeRequest": {"commitHeadline": None}}, "title `T`"),
    ("PUT", {"content": "aGk=", "message": "M"}, {"content": {"name": "a"}, "commit": {}}, ""),
    ("PATCH", {"issue_field_values": [{"field_id": 1, "value": "High"}]},
     {"issue_field_values": [{"issue_field_id": 1, "value": 7, "single_select_option": {"id": 7, "name": "High"}},
                             {"issue_field_id": 2, "value": "other"}]}, ""),
    ("PATCH", {"issue_field_values": [{"field_id": 1, "value": "High"}]}, {"issue_field_values": []},
     "custom fields `High`"),
    ("PATCH", {"fields": [{"id": 1, "value": 3.0}]}, {"fields": [{"id": 1, "value": 3}, {"id": 2, "value": 4}]}, ""),
    ("PATCH", {"fields": [{"id": 1, "value": "f75ad846"}]},
     {"fields": [{"id": 1, "value": {"id": "f75ad846", "name": {"raw": "Todo"}}}]}, ""),
    ("PATCH", {"fields": [{"id": 1, "value": "x"}]}, {"fields": [{"id": 1, "value": None}]}, "value `x`"),
    ("POST", {"title": "T"}, [], ""),
    ("PATCH", None, {"title": "T"}, ""),
]  # fmt: skip


@pytest.mark.parametrize(("method", "asked", "answered", "words"), OUTCOMES)
def test_what_is_not_as_asked_is_found(method: str, asked: Any, answered: Any, words: str) -> None:
    unset = find_unset(asked, answered, method=method)
    assert (describe_unset(unset) if unset else "") == (f"GitHub did not set: {words}." if words else "")


def test_a_part_that_came_about_is_not_nothing() -> None:
    asked = {"title": "T", "labels": ["bug"]}
    unset = find_unset(asked, {"title": "T", "labels": []}, method="PATCH")
    assert not is_everything_unset(asked, unset)
    assert is_everything_unset({"labels": ["bug"]}, unset)


@pytest.mark.anyio
async def test_dropped_fields_are_told_beside_what_was_done(oracle: Oracle) -> None:
    bare = issue(7, labels=[], assignees=[], milestone=None, type=None)
    oracle.answer("POST", "/repos/octo/app/issues", {**bare, "title": "T"}, status=201)
    oracle.answer("PATCH", "/repos/octo/app/issues/7", {**bare, "title": "T"})
    oracle.answer("POST", "/repos/octo/app/pulls/5/requested_reviewers", sample("pulls/get"), status=201)
    oracle.answer("GET", "/repos/octo/app/pulls/5", {**sample("pulls/get"), "requested_reviewers": []})
    wishes: dict[str, Any] = {"labels": ["bug"], "assignees": ["octocat"], "milestone": 1, "type": "Bug"}
    said = "GitHub did not set: labels `bug`; assignees `octocat`; milestone `1`; type `Bug`."
    async with served(oracle, "--write") as client:
        result = await client.call_tool("create_issue", {**O, "title": "T", **wishes})
        assert said in text_of(result) and "push or triage" in text_of(result)
        # For hosts that show the data alone.
        assert said in (result.structured_content or {})["note"]
        assert said in text_of(await client.call_tool("edit_issue", {**O, "number": 7, "title": "T", **wishes}))
        text = await refused(client, "edit_issue", **O, number=7, **wishes)
        assert "changed nothing" in text and said in text
        text = await refused(client, "edit_pull_request", **O, number=5, reviewers=["nobody"])
        assert "GitHub did not set: reviewers `nobody`" in text


@pytest.mark.slow
@pytest.mark.anyio
async def test_no_write_is_blamed_that_github_did(oracle: Oracle) -> None:
    prepared(oracle)
    async with served(oracle, *EVERYTHING) as client:
        for tool, arguments in CALLS:
            result = await client.call_tool(tool, arguments)
            assert "did not set" not in text_of(result), (tool, arguments, text_of(result))


@pytest.mark.slow
@pytest.mark.anyio
async def test_every_write_tells_what_was_dropped(oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a body has that the answer has too: where the answer lacks it, that is said."""
    plain = prepared(oracle).reply
    dropped: list[str] = []

    def drop(seen: Seen) -> Reply:
        found = plain(seen)
        is_mutation = seen.path == "/graphql" and seen.json["query"].lstrip().startswith("mutation")
        if seen.verb not in ("POST", "PATCH", "PUT") or not seen.body or found.status >= 400:
            return found
        if seen.path == "/graphql" and not is_mutation:
            return found
        data = json.loads(json.dumps(found.data))
        targets = [data]
        asked = seen.json
        if is_mutation:
            asked = asked["variables"]["input"]
            targets = [each for payload in data["data"].values() for each in payload.values()]
        for target in targets:
            if isinstance(target, dict):
                for name in ("title", "body", "name", "description", "labels", "color", "status"):
                    if asked.get(name) and target.get(name):
                        target[name] = [] if isinstance(asked[name], list) else None
                        dropped.append(f"{name} of {seen.verb} {seen.path}")
        return Reply(found.status, data, found.headers)

    monkeypatch.setattr(oracle, "reply", drop)
    async with served(oracle, *EVERYTHING) as client:
        for tool, arguments in CALLS:
            dropped.clear()
            result = await client.call_tool(tool, arguments)
            assert not dropped or "did not set" in text_of(result), (tool, arguments, dropped, text_of(result))


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("mutation", "made", "tool", "arguments"),
    [
        ("Resolve", {"resolveReviewThread": {"thread": {"id": "T", "isResolved": False}}}, "edit_thread",
         {"number": 5, "thread": "PRRT_kwDOAAAAAQ"}),
        ("Draft", {"convertPullRequestToDraft": {"pullRequest": {"isDraft": False}}}, "edit_pull_request",
         {"number": 5, "draft": True}),
        ("MarkAnswer", {"markDiscussionCommentAsAnswer": {"discussion": {"number": 4, "answer": None}}},
         "edit_discussion_comment", {"number": 4, "comment_id": "DC_kwDOAAAAAQ", "answer": True}),
    ],
)  # fmt: skip
async def test_a_mutation_that_left_all_as_it_was_is_told(
    mutation: str, made: dict[str, Any], tool: str, arguments: dict[str, Any], oracle: Oracle
) -> None:
    oracle.answer("GET", "/repos/octo/app/pulls/5", {**sample("pulls/get"), "draft": False})
    prepared(oracle).graphql(mutation, made)
    async with served(oracle, *EVERYTHING) as client:
        assert "changed nothing" in await refused(client, tool, **O, **arguments)
        assert await call(client, "get_me")
