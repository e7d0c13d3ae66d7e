"""What one call does that took several: a look at some issues, a review, a red pull request, a release, a backport."""

from typing import Any

import pytest

from github_server.oracle import Oracle
from github_server.serving import call, refused, served
from github_server.world import OTHER_SHA, SHA, branch, changed, file, issue, not_found, sample

O = {"repo": "octo/app"}  # noqa: E741
HERE = "/repos/octo/app"


@pytest.mark.anyio
async def test_some_issues_are_read_by_their_numbers(oracle: Oracle) -> None:
    for number in (3, 4):
        oracle.answer("GET", f"{HERE}/issues/{number}", issue(number, body=f"Text {number}"))
    not_found(oracle, "GET", f"{HERE}/issues/5")
    async with served(oracle) as client:
        found = await call(client, "list_issues", **O, numbers="3, #5 4", fields="number,body")
        assert found["rows"] == [[3, "Text 3"], [4, "Text 4"]]
        assert "does not find issue #5" in found["note"]
        said = await refused(client, "list_issues", **O, numbers=[3], labels=["bug"])
        assert "`labels` can't go with `numbers`" in said
        await call(client, "list_issues", **O, numbers=[3], state="all")
        said = await refused(client, "list_issues", **O, numbers=[3, 4], limit=1)
        assert "`numbers` has 2, more than `limit`." in said


@pytest.mark.anyio
async def test_of_some_issues_those_in_a_state_are_listed_and_the_others_named(oracle: Oracle) -> None:
    for number, state in ((3, "open"), (4, "closed"), (5, "open")):
        oracle.answer("GET", f"{HERE}/issues/{number}", issue(number, state=state))
    async with served(oracle) as client:
        found = await call(client, "list_issues", **O, numbers=[3, 4, 5], state="open", fields="number")
        assert found["rows"] == [[3], [5]] and found["note"] == "#4 is closed."
        found = await call(client, "list_issues", **O, numbers=[3, 4, 5], state="closed", fields="number")
        assert found["rows"] == [[4]] and found["note"] == "#3 is open. #5 is open."
        found = await call(client, "list_issues", **O, numbers=[3, 4, 5], fields="number,state")
        assert found["rows"] == [[3, "open"], [4, "closed"], [5, "open"]]


@pytest.mark.anyio
async def test_issues_that_do_not_fit_are_named(oracle: Oracle) -> None:
    for number in range(1, 101):
        oracle.answer("GET", f"{HERE}/issues/{number}", issue(number, body="x" * 1500))
    async with served(oracle) as client:
        found = await call(client, "list_issues", **O, numbers=list(range(1, 101)), fields="number,body")
    count = len(found["rows"])
    assert 5 < count < 100 and f"no room for #{count + 1} " in found["note"]


@pytest.mark.anyio
async def test_issues_read_before_github_fails_are_not_lost(oracle: Oracle) -> None:
    oracle.answer("GET", f"{HERE}/issues/3", {**issue(3), "pull_request": {"url": "x"}})
    oracle.answer("GET", f"{HERE}/issues/4", {"message": "limit"}, status=403, headers={"Retry-After": "300"})
    async with served(oracle) as client:
        found = await call(client, "list_issues", **O, numbers=[3, 4, 5], fields="number")
        assert found["rows"] == [[3]] and not oracle.sent("GET", "/issues/5$")
        assert "#3 is a pull request." in found["note"]
        assert "#4 and those behind it are not here." in found["note"]


@pytest.mark.anyio
async def test_a_diff_says_first_what_the_pull_request_is_about(oracle: Oracle) -> None:
    pull = {**sample("pulls/get"), "number": 5, "title": "Share carts", "body": "Why\n=== not a file", "state": "open"}
    oracle.answer("GET", f"{HERE}/pulls/5", {**pull, "merged": False})
    oracle.answer("GET", f"{HERE}/pulls/5/files", [changed("a.py"), changed("b.py")])
    async with served(oracle) as client:
        lines = (await call(client, "read_diff", **O, number=5)).splitlines()
        assert lines[1].startswith("> Share carts (open, ") and lines[2:4] == ["> Why", "> === not a file"]
        assert lines[4].startswith("=== a.py")
        assert "> " not in await call(client, "read_diff", **O, number=5, path="b.py")


@pytest.mark.anyio
async def test_a_red_pull_request_leads_to_the_run_that_failed(oracle: Oracle) -> None:
    oracle.answer("GET", f"{HERE}/pulls/5", {**sample("pulls/get"), "number": 5})
    runs = [
        {**sample("actions/get-workflow-run"), "id": number, "workflow_id": number, "name": f"CI {number}",
         "status": "completed", "conclusion": conclusion}
        for number, conclusion in ((8, "success"), (9, "failure"), (10, "timed_out"))
    ]  # fmt: skip
    oracle.answer("GET", f"{HERE}/actions/runs", {"total_count": 3, "workflow_runs": runs})
    oracle.answer("GET", f"{HERE}/actions/runs/8", runs[0])
    oracle.answer("GET", f"{HERE}/actions/runs/9", runs[1])
    oracle.answer("GET", f"{HERE}/actions/runs/[89]/jobs", {"total_count": 0, "jobs": []})
    async with served(oracle, "--toolsets", "actions") as client:
        found = await call(client, "get_run", **O, number=5)
        assert found["data"]["run_id"] == 9 and "Failed too: CI 10 (run_id 10)." in found["note"]
        (asked,) = oracle.sent("GET", "/actions/runs$")
        assert asked.query["head_sha"] == sample("pulls/get")["head"]["sha"]
        oracle.answer("GET", f"{HERE}/actions/runs", {"total_count": 1, "workflow_runs": runs[:1]})
        found = await call(client, "get_run", **O, number=5)
        assert found["data"]["run_id"] == 8 and "None of 1 runs failed" in found["note"]
        oracle.answer("GET", f"{HERE}/actions/runs/11", {**runs[0], "id": 11, "status": "in_progress"})
        oracle.answer("GET", f"{HERE}/actions/runs/11/jobs", {"total_count": 0, "jobs": []})
        goes_on = {"id": 11, "workflow_id": 11, "status": "in_progress", "conclusion": None}
        both = [runs[0], {**runs[0], **goes_on}]
        oracle.answer("GET", f"{HERE}/actions/runs", {"total_count": 2, "workflow_runs": both})
        found = await call(client, "get_run", **O, number=5)
        assert found["data"]["run_id"] == 11 and "None of 2 runs failed so far; 1 of them" in found["note"]
        oracle.answer("GET", f"{HERE}/actions/runs", {"total_count": 0, "workflow_runs": []})
        assert "No workflow of Actions ran" in await refused(client, "get_run", **O, number=5)
        assert "One of `run_id` and `number`" in await refused(client, "get_run", **O)


@pytest.mark.anyio
async def test_commits_since_the_latest_release(oracle: Oracle) -> None:
    oracle.answer("GET", f"{HERE}/releases/latest", {**sample("repos/get-latest-release"), "tag_name": "v1.2"})
    commit = sample("repos/get-commit")
    compared = {"ahead_by": 1, "behind_by": 0, "total_commits": 1, "commits": [commit], "files": []}
    oracle.answer("GET", rf"{HERE}/compare/v1\.2\.\.\.main", compared)
    async with served(oracle) as client:
        found = await call(client, "list_commits", **O, ref="main", base="releases/latest")
        assert found["note"].startswith("`main` is 1 ahead of `v1.2`") and len(found["rows"]) == 1
        not_found(oracle, "GET", f"{HERE}/releases/latest")
        assert "latest release" in await refused(client, "list_commits", **O, ref="main", base="releases/latest")


EDIT: dict[str, Any] = {"path": "a.txt", "edits": [{"old": "one", "new": "1"}]}


@pytest.mark.anyio
async def test_an_edit_quotes_what_it_replaces_and_needs_no_sha(oracle: Oracle) -> None:
    branch(oracle)
    oracle.answer("GET", f"{HERE}/contents/a.txt", file("a.txt", b"one\n", SHA))
    async with served(oracle, "--write", "--flow", "off") as client:
        await call(client, "write_files", **O, branch="main", message="M", files=[EDIT])
        said = await refused(
            client, "write_files", **O, branch="main", message="M", files=[{"path": "a.txt", "content": "x"}]
        )
        assert "exists already" in said
    (commit,) = [seen for seen in oracle.sent("POST", "/graphql") if "createCommitOnBranch" in seen.json["query"]]
    assert commit.json["variables"]["input"]["fileChanges"]["additions"][0]["contents"] == "MQo="


@pytest.mark.anyio
async def test_a_branch_is_made_with_its_first_commit(oracle: Oracle) -> None:
    branch(oracle, "release-1", OTHER_SHA)
    not_found(oracle, "GET", f"{HERE}/git/ref/heads/backport")
    oracle.answer("GET", f"{HERE}/contents/a.txt", file("a.txt", b"one\n", SHA))
    ask = {**O, "branch": "backport", "message": "M", "files": [EDIT], "ref": "release-1"}
    async with served(oracle, "--write", "--flow", "off", "--workflow-files") as client:
        await call(client, "write_files", **ask)
        (made,) = oracle.sent("POST", "/git/refs$")
        assert made.json == {"ref": "refs/heads/backport", "sha": OTHER_SHA}
        said = await refused(client, "write_files", **{**ask, "files": [{**EDIT, "edits": [{"old": "x", "new": "y"}]}]})
        assert "Branch backport is made, the rest is not" in said and "does not occur" in said
