"""What users ask of other servers for: the merge queue, auto-merge, the timeline, ahead and behind, newest first."""

from typing import Any

import pytest

from github_server.oracle import Oracle
from github_server.oracle.server import Reply
from github_server.serving import EVERYTHING, call, refused, served
from github_server.world import SHA, branch, comment, issue, not_found, sample

O = {"repo": "octo/app"}  # noqa: E741
HERE = "/repos/octo/app"
MERGE: dict[str, Any] = {**O, "number": 5, "head_sha": SHA, "when_ready": True}


def pull(oracle: Oracle, **more: Any) -> None:
    oracle.answer("GET", f"{HERE}/pulls/5", {**sample("pulls/get"), "head": {"sha": SHA}, "changed_files": 0, **more})
    oracle.answer("GET", f"{HERE}/pulls/5/files", [])


def merge_state(oracle: Oracle, **state: Any) -> None:
    oracle.graphql("MergeState", {"repository": {"pullRequest": {"mergeQueueEntry": None, **state}}})


@pytest.mark.anyio
async def test_github_merges_when_it_can(oracle: Oracle) -> None:
    pull(oracle)
    merge_state(oracle, isMergeQueueEnabled=True)
    entry = {"position": 2, "state": "QUEUED", "estimatedTimeToMerge": 90}
    oracle.graphql("Enqueue", {"enqueuePullRequest": {"mergeQueueEntry": entry}})
    made = {"number": 5, "autoMergeRequest": {"mergeMethod": "SQUASH"}}
    oracle.graphql("AutoMerge", {"enablePullRequestAutoMerge": {"pullRequest": made}})
    async with served(oracle, *EVERYTHING) as client:
        done = await call(client, "run_merge", **MERGE)
        assert done["data"] == {"position": 2, "state": "queued", "estimated_s": 90}
        sent = oracle.sent("POST", "/graphql")[-1].json["variables"]["input"]
        assert sent["expectedHeadOid"] == SHA and "mergeMethod" not in sent
        merge_state(oracle, isMergeQueueEnabled=True, mergeQueueEntry={**entry, "position": 1})
        before = len(oracle.sent("POST", "/graphql"))
        assert (await call(client, "run_merge", **MERGE))["data"]["position"] == 1
        # One that waits there already is not put there again.
        assert len(oracle.sent("POST", "/graphql")) == before + 1
        merge_state(oracle, isMergeQueueEnabled=False)
        done = await call(client, "run_merge", **MERGE, method="squash", title="T", body="B")
        assert "(squash) once its checks" in done["done"]
        sent = oracle.sent("POST", "/graphql")[-1].json["variables"]["input"]
        assert sent["mergeMethod"] == "SQUASH" and (sent["commitHeadline"], sent["commitBody"]) == ("T", "B")
        for message, words in (
            ("Pull request Pull request is in clean status", "without when_ready"),
            ("Auto merge is not allowed for this repository", "can turn that on"),
        ):
            error = {"type": "UNPROCESSABLE", "path": ["enablePullRequestAutoMerge"], "message": message}
            nothing = {"enablePullRequestAutoMerge": None}
            oracle.graphql("AutoMerge", Reply(200, {"data": nothing, "errors": [error]}))
            assert words in await refused(client, "run_merge", **MERGE)
        assert "not `" in await refused(client, "run_merge", **{**MERGE, "head_sha": "0" * 40})
    assert not oracle.sent("PUT")


@pytest.mark.anyio
async def test_the_timeline_says_who_did_what(oracle: Oracle) -> None:
    other = {"number": 9, "title": "Fix it", "state": "closed", "pull_request": {"merged_at": "2026-01-02T00:00:00Z"},
             "repository": {"full_name": "octo/app"}}  # fmt: skip
    secret = {**other, "repository": {"full_name": "other/secret"}}
    by = {"actor": {"login": "ada"}, "created_at": "2026-01-01T00:00:00Z"}
    events = [
        {"event": "labeled", "label": {"name": "bug"}, **by}, {"event": "assigned", "assignee": {"login": "bob"}, **by},
        {"event": "review_requested", "requested_team": {"slug": "core"}, **by},
        {"event": "renamed", "rename": {"from": "A", "to": "B"}, **by},
        {"event": "cross-referenced", "source": {"issue": other}, **by},
        {"event": "cross-referenced", "source": {"issue": secret}, **by},
        {"event": "closed", "commit_id": SHA, **by}, {"event": "locked", **by},
    ]  # fmt: skip
    oracle.pages(f"{HERE}/issues/3/timeline", events)
    async with served(oracle, "--repos", "octo/app") as client:
        rows = (await call(client, "list_comments", **O, number=3, kind="timeline"))["rows"]
        assert [row[3] for row in rows] == [
            "bug", "bob", "core", "A -> B", "pull request octo/app#9 (merged): Fix it", SHA, None,
        ]  # fmt: skip
        assert {row[1] for row in rows} == {"ada"}
        assert "can't go with" in await refused(client, "list_comments", **O, number=3, kind="timeline", since="today")


@pytest.mark.anyio
@pytest.mark.parametrize("count", [0, 1, 100, 101, 250])
async def test_the_newest_comments_come_first(count: int, oracle: Oracle) -> None:
    said = [comment(number) for number in range(count)]
    oracle.pages(f"{HERE}/issues/3/comments", said)
    oracle.answer("GET", f"{HERE}/issues/3", issue(3, comments=count))
    async with served(oracle) as client:
        ask: dict[str, Any] = {**O, "number": 3, "order": "desc", "limit": 40, "fields": "id"}
        read: list[int] = []
        while True:
            found = await call(client, "list_comments", **ask)
            read += [row[0] for row in found["rows"]]
            if "cursor" not in found:
                break
            # One that comes meanwhile moves nothing.
            said.append(comment(9999))
            ask["cursor"] = found["cursor"]
        assert read == list(reversed(range(count)))


@pytest.mark.anyio
async def test_two_refs_are_compared_by_their_commits(oracle: Oracle) -> None:
    commits = [{**sample("repos/get-commit"), "sha": f"{number:040}"} for number in range(3)]
    counts = {"ahead_by": 3, "behind_by": 2, "total_commits": 3}
    oracle.answer("GET", rf"{HERE}/compare/main\.\.\.dev", {**counts, "commits": commits, "files": []})
    oracle.answer("GET", f"{HERE}/commits/{SHA}/pulls", [sample("pulls/list")[0]])
    async with served(oracle) as client:
        found = await call(client, "list_commits", **O, ref="dev", base="main")
        assert found["note"].startswith("`dev` is 3 ahead of `main` and 2 behind.") and len(found["rows"]) == 3
        subjects = await call(client, "list_commits", **O, ref="dev", base="main", fields="subject")
        assert [row[0] for row in subjects["rows"]] == [sample("repos/get-commit")["commit"]["message"]] * 3
        assert "can't go with" in await refused(client, "list_commits", **O, ref="dev", base="main", author="ada")
        assert len((await call(client, "list_pull_requests", **O, commit=SHA))["rows"]) == 1
        assert "can't go with" in await refused(client, "list_pull_requests", **O, commit=SHA, base="main")


@pytest.mark.anyio
async def test_a_new_file_can_be_executable_and_a_submodule_is_called_one(oracle: Oracle) -> None:
    branch(oracle)
    not_found(oracle, "GET", f"{HERE}/contents/run.sh")
    entry = {"type": "file", "size": 0, "sha": SHA, "path": "vendor/lib", "name": "lib"}
    entries = [{**entry, "git_url": f"{oracle.url}/repos/x/lib/git/trees/{SHA}"}, {**entry, "git_url": "x/git/blobs/1"}]
    oracle.answer("GET", f"{HERE}/contents/vendor", {"type": "dir", "entries": entries})
    async with served(oracle, "--write") as client:
        files = [{"path": "run.sh", "content": "#!/bin/sh\n", "executable": True}]
        done = await call(client, "write_files", **O, branch="main", message="M", files=files)
        assert "`run.sh` is executable" in done["done"]
        (entry,) = oracle.sent("POST", "/git/trees")[0].json["tree"]
        assert entry["mode"] == "100755"
        rows = (await call(client, "list_files", **O, path="vendor"))["rows"]
        assert [row[1] for row in rows] == ["submodule", "file"]


@pytest.mark.anyio
async def test_a_link_is_one_however_it_is_listed(oracle: Oracle) -> None:
    entries = [
        {"path": "a", "mode": "120000", "type": "blob", "sha": SHA, "size": 3},
        {"path": "b", "mode": "160000", "type": "commit", "sha": SHA},
        {"path": "c", "mode": "100755", "type": "blob", "sha": SHA, "size": 3},
    ]
    oracle.answer("GET", f"{HERE}/git/trees/HEAD", {"sha": SHA, "tree": entries, "truncated": False})
    async with served(oracle) as client:
        rows = (await call(client, "list_files", **O, recursive=True))["rows"]
    assert [row[1] for row in rows] == ["symlink", "submodule", "file"]


@pytest.mark.anyio
async def test_a_pull_request_says_what_it_closes_and_where_it_waits(oracle: Oracle) -> None:
    pull(oracle)
    ours = {"number": 7, "title": "Crash", "state": "OPEN", "repository": {"nameWithOwner": "Octo/App"}}
    theirs = {**ours, "number": 8, "repository": {"nameWithOwner": "other/secret"}}
    closing = {"totalCount": 25, "nodes": [ours, theirs]}
    entry = {"position": 3, "state": "AWAITING_CHECKS", "estimatedTimeToMerge": 120}
    state: dict[str, Any] = {"isMergeQueueEnabled": True, "mergeQueueEntry": entry, "closingIssuesReferences": closing}
    oracle.graphql("PullLinks", {"repository": {"pullRequest": state}})
    async with served(oracle, "--repos", "octo/app") as client:
        found = await call(client, "get_pull_request", **O, number=5)
        assert found["data"]["merge_queue"] == {"position": 3, "state": "awaiting_checks", "estimated_s": 120}
        assert found["data"]["closes"] == [["#7", "open", "Crash"], ["other/secret#8", "not served here"]]
        assert "23 more issues" in found["note"]
        state |= {"mergeQueueEntry": None, "closingIssuesReferences": {"totalCount": 0, "nodes": []}}
        found = await call(client, "get_pull_request", **O, number=5)
        assert "not in it" in found["data"]["merge_queue"] and "closes" not in found["data"]
        # An older server has none of it, and the pull request is shown all the same.
        error = {"message": "Field 'isMergeQueueEnabled' doesn't exist on type 'PullRequest'"}
        oracle.graphql("PullLinks", Reply(200, {"errors": [error]}))
        found = await call(client, "get_pull_request", **O, number=5)
        assert found["data"]["number"] and "are not known" in found["note"]
        before = len(oracle.sent("POST", "/graphql"))
        await call(client, "get_pull_request", **O, number=5, fields="title")
        await client.read_resource("github://octo/app/pulls/5")
        # Who asks for one field, or is told of a change, costs no second request.
        assert len(oracle.sent("POST", "/graphql")) == before


@pytest.mark.anyio
async def test_contributors_are_listed_with_those_who_have_no_account(oracle: Oracle) -> None:
    bob = {"type": "Anonymous", "name": "Bob", "email": "b@x", "contributions": 2}
    people = [{"login": "ada", "type": "User", "contributions": 31}, bob]
    oracle.answer("GET", f"{HERE}/contributors", people)
    async with served(oracle) as client:
        found = await call(client, "list_people", **O, kind="contributors")
        assert found["columns"] == ["login", "name", "contributions"]
        assert found["rows"] == [["ada", None, 31], [None, "Bob", 2]]
        assert oracle.sent("GET", f"{HERE}/contributors")[0].query["anon"] == "1"
        oracle.answer("GET", f"{HERE}/contributors", raw=b"", status=204)
        assert (await call(client, "list_people", **O, kind="contributors"))["rows"] == []
        assert "`repo`" in await refused(client, "list_people", org="octo", kind="contributors")
