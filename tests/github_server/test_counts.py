"""Figures in answers: those of a part say that they are of a part."""

import json
from typing import Any

import pytest

from github_server.oracle import Oracle
from github_server.serving import call, refused, served, text_of
from github_server.world import SHA, changed, issue, no_workflow_runs, sample

O = {"repo": "octo/app"}  # noqa: E741
HERE = "/repos/octo/app"


@pytest.mark.anyio
async def test_checks_that_were_not_read_are_not_called_green(oracle: Oracle) -> None:
    run = {**sample("checks/get"), "status": "completed", "conclusion": "success"}
    runs = [{**run, "id": number, "name": f"job {number}"} for number in range(1001)]
    no_workflow_runs(oracle)
    oracle.pages(f"{HERE}/commits/{SHA}/check-runs", runs, "check_runs")
    oracle.answer("GET", f"{HERE}/commits/{SHA}/status", {"state": "success", "statuses": []})
    async with served(oracle) as client:
        note = (await call(client, "list_checks", **O, ref=SHA))["note"]
        assert note.startswith("Green as far as listed: 1000 passed.") and "only 1,000 were read" in note
        oracle.pages(f"{HERE}/commits/{SHA}/check-runs", runs[:1000], "check_runs")
        note = (await call(client, "list_checks", **O, ref=SHA))["note"]
        assert note.startswith("Green: 1000 passed.") and "only" not in note


@pytest.mark.anyio
async def test_a_comparison_that_github_cuts_has_at_least_so_many_files(oracle: Oracle) -> None:
    for count, total in ((300, "at least 300 files"), (299, "299 files")):
        files = [changed(f"{number:03}.py", "@@ -1 +1 @@\n-a\n+" + "b" * 900) for number in range(count)]
        commits: dict[str, Any] = {"ahead_by": 1, "behind_by": 0, "total_commits": 1, "commits": [], "files": files}
        oracle.answer("GET", rf"{HERE}/compare/main\.\.\.dev", commits)
        async with served(oracle) as client:
            head = (await call(client, "read_diff", **O, ref="dev", base="main")).partition("\n")[0]
            assert f"; {total}, +" in head, head


@pytest.mark.anyio
async def test_sub_issues_that_are_left_out_are_counted(oracle: Oracle) -> None:
    summary = {"total": 83, "completed": 0, "percent_completed": 0}
    oracle.answer("GET", f"{HERE}/issues/3", issue(3, sub_issues_summary=summary))
    oracle.pages(f"{HERE}/issues/3/sub_issues", [issue(number) for number in range(10, 93)])
    async with served(oracle) as client:
        found = await call(client, "get_issue", **O, number=3)
    assert len(found["data"]["sub_issue_list"]) == 50
    assert "`sub_issue_list` has the first 50 of 83." in found["note"]


@pytest.mark.anyio
async def test_a_tree_that_was_cut_has_no_total(oracle: Oracle) -> None:
    tree = [{"path": f"{number}.py", "type": "blob", "mode": "100644", "sha": SHA, "size": 1} for number in range(9)]
    for is_cut in (True, False):
        oracle.answer("GET", f"{HERE}/git/trees/HEAD", {"sha": SHA, "truncated": is_cut, "tree": tree})
        async with served(oracle) as client:
            found = await call(client, "list_files", **O, recursive=True, limit=5)
        assert found.get("total") == (None if is_cut else 9)
        assert ("At least 4 more." in found["note"]) == is_cut


@pytest.mark.anyio
async def test_a_list_with_few_of_many_says_of_how_many_they_are_all(oracle: Oracle) -> None:
    pulls = [{**issue(number, labels=[{"name": "bug"}]), "pull_request": {"merged_at": None}} for number in range(70)]
    found_issues = [issue(number, labels=[]) for number in (70, 71)]
    oracle.pages(f"{HERE}/issues", [*pulls, *found_issues])
    ask: dict[str, Any] = {**O, "fields": "number"}
    words = "Complete: {} match; GitHub also listed {}."
    without_labels = words.format(2, "70 pull requests")
    async with served(oracle) as client:
        found = await call(client, "list_issues", **ask, labels="none")
        assert (sorted(found["rows"]), found["total"], found["note"]) == ([[70], [71]], 2, without_labels)
        first = await call(client, "list_issues", **ask, labels="none", limit=1)
        assert first["cursor"] and "Complete" not in str(first.get("note"))
        last = await call(client, "list_issues", **ask, labels="none", limit=1, cursor=first["cursor"])
        while last.get("cursor"):
            last = await call(client, "list_issues", **ask, labels="none", limit=1, cursor=last["cursor"])
        assert last["total"] == 2 and last["note"] == without_labels
        most = await call(client, "list_pull_requests", **ask, labels="bug", limit=100)
        assert most["total"] == 70 and "note" not in most
        merged = await call(client, "list_pull_requests", **ask, labels="bug", state="merged")
        assert merged["rows"] == [] and merged["note"] == words.format(0, "70 closed without a merge, 2 issues")
        elsewhere = await call(client, "list_pull_requests", **ask, labels=["bug", "a, b"], base="next")
        assert elsewhere["note"] == words.format(0, "70 without all of these labels, 2 issues")


@pytest.mark.anyio
@pytest.mark.parametrize("limit", [1, 2, 100])
async def test_the_others_are_counted_by_what_they_are_over_all_pages(limit: int, oracle: Oracle) -> None:
    into = {1: "main", 3: "next", 4: "next", 8: "main"}
    items = [issue(number) for number in (0, 5, 6)]
    for number in (1, 2, 3, 4, 7, 8):
        merged_at = "2026-01-02T00:00:00Z" if number in into else None
        items.append({**issue(number), "node_id": f"P{number}", "pull_request": {"merged_at": merged_at}})
    items.sort(key=lambda item: item["number"])
    oracle.pages(f"{HERE}/issues", items)

    def facts(variables: dict[str, Any]) -> dict[str, Any]:
        numbers = [int(node_id[1:]) for node_id in variables["ids"]]
        branches = {"__typename": "PullRequest", "headRefName": "x", "headRefOid": SHA, "baseRefOid": SHA}
        return {"nodes": [{"id": f"P{n}", "number": n, "baseRefName": into[n], **branches} for n in numbers]}

    oracle.graphql("PullFacts", facts)
    ask: dict[str, Any] = {**O, "labels": "bug", "state": "merged", "base": "main", "fields": "number", "limit": limit}
    async with served(oracle) as client:
        page = await call(client, "list_pull_requests", **ask)
        rows = page["rows"]
        while cursor := page.get("cursor"):
            page = await call(client, "list_pull_requests", **ask, cursor=cursor)
            rows += page["rows"]
    assert rows == [[1], [8]] and page["total"] == 2
    kinds = "3 issues, 2 closed without a merge, 2 not into `main`"
    assert page["note"] == f"Complete: 2 match; GitHub also listed {kinds}."


@pytest.mark.anyio
async def test_a_list_that_ends_at_a_round_number_says_that_it_ends(oracle: Oracle) -> None:
    ask: dict[str, Any] = {**O, "fields": "number", "limit": 1000}
    end = "Complete: there are no more than these {}."
    async with served(oracle) as client:
        for count, note in ((99, None), (100, end.format(100)), (200, end.format(200))):
            oracle.pages(f"{HERE}/issues", [issue(number) for number in range(count)])
            found = await call(client, "list_issues", **ask)
            assert (found["total"], found.get("note")) == (count, note)
        # Of a first page that is full, more come.
        first = await call(client, "list_issues", **{**ask, "limit": 100})
        assert first["cursor"] and "Complete" not in first["note"]


@pytest.mark.anyio
async def test_causes_and_jobs_that_are_left_out_are_counted(oracle: Oracle) -> None:
    over = {"status": "completed", "conclusion": "failure"}
    oracle.answer("GET", f"{HERE}/actions/runs/9", {**sample("actions/get-workflow-run"), "id": 9, **over})
    job: dict[str, Any] = {**sample("actions/get-job-for-workflow-run"), **over, "steps": []}
    jobs = [{**job, "id": number, "name": f"job {number}"} for number in range(301)]
    oracle.pages(f"{HERE}/actions/runs/9/jobs", jobs, "jobs")
    oracle.answer("GET", f"{HERE}/actions/jobs/.*/logs", {"message": "Not Found"}, status=404)
    async with served(oracle, "--toolsets", "actions") as client:
        found = await call(client, "get_run", **O, run_id=9)
        assert (
            "more than these 300 jobs" in found["note"] and "300 jobs failed; `causes` has the first 5" in found["note"]
        )
        assert len(found["data"]["causes"]) == 5 and len(found["data"]["jobs"]) == 300
        going_on = {**sample("actions/get-workflow-run"), "id": 9, "status": "in_progress", "conclusion": None}
        oracle.answer("GET", f"{HERE}/actions/runs/9", going_on)
        found = await call(client, "get_run", **O, run_id=9)
        assert "causes" not in found["data"] and "`causes`" not in found["note"]


@pytest.mark.anyio
async def test_unresolved_threads_are_not_counted_with_the_others(oracle: Oracle) -> None:
    async with served(oracle) as client:
        ask = {**O, "number": 5, "kind": "threads"}
        assert (await call(client, "list_reviews", **ask)).get("total") is not None
        assert (await call(client, "list_reviews", **ask, unresolved=True)).get("total") is None


@pytest.mark.anyio
async def test_a_pull_request_that_exists_already_is_named(oracle: Oracle) -> None:
    error = {"resource": "PullRequest", "code": "custom", "message": "A pull request already exists for octo:topic."}
    said = {"message": "Validation Failed", "errors": [error]}
    oracle.answer("POST", f"{HERE}/pulls", said, status=422)
    pull = {**sample("pulls/list")[0], "number": 41, "html_url": "https://github.com/octo/app/pull/41"}
    oracle.answer("GET", f"{HERE}/pulls", [pull])
    ask = {**O, "head": "topic", "base": "main", "title": "T"}
    async with served(oracle, "--write", "--flow", "off") as client:
        text = await refused(client, "create_pull_request", **ask)
        assert "It is #41." in text and "https://github.com/octo/app/pull/41" in text
        (asked,) = oracle.sent("GET", f"{HERE}/pulls$")
        assert asked.query["head"] == "octo:topic"
        oracle.answer("GET", f"{HERE}/pulls", [])
        assert "exists already" in await refused(client, "create_pull_request", **ask)


@pytest.mark.anyio
async def test_words_that_github_takes_for_qualifiers_are_named_where_nothing_is_found(oracle: Oracle) -> None:
    oracle.answer("GET", "/search/issues", {"total_count": 0, "incomplete_results": False, "items": []})
    async with served(oracle) as client:
        for query, named in (
            ("resolve record:quick_actions does", "`record:`"),
            ("crash in std::vector", "`std:`"),
            ('resolve "record:quick_actions" does', None),
            ("is:open label:bug -author:ada updated:>2026-01-01", None),
            ("TypeError: nothing", None),
        ):
            note = (await call(client, "search_github", kind="issues", query=query)).get("note")
            assert (note is not None) == (named is not None), query
            assert named is None or f"GitHub takes {named} for a qualifier" in str(note)


@pytest.mark.anyio
async def test_a_branch_that_is_missing_leads_to_the_default_one(oracle: Oracle) -> None:
    for path in ("contents/a.py", "commits", "git/trees/main"):
        oracle.answer("GET", f"{HERE}/{path}", {"message": "Not Found"}, status=404)
    async with served(oracle) as client:
        for tool, more in (("read_file", {"path": "a.py"}), ("list_commits", {}), ("list_files", {"recursive": True})):
            said = await refused(client, tool, **O, **more, ref="main")
            assert "at `main`" in said or "of `main`" in said
            assert "without `ref` it is the default branch" in said


@pytest.mark.anyio
async def test_the_last_page_of_a_list_says_how_many_there_are(oracle: Oracle) -> None:
    issues = [issue(number) for number in range(1, 75)]
    pull = {**issue(75), "pull_request": {"url": "x"}}
    oracle.pages(f"{HERE}/issues", [*issues, pull])
    async with served(oracle) as client:
        totals: list[int | None] = []
        cursor = None
        while cursor or not totals:
            page = await call(client, "list_issues", **O, fields="number", cursor=cursor)
            totals.append(page.get("total"))
            cursor = page.get("cursor")
        assert totals == [None, None, 74]
        found = await call(client, "list_issues", **O, fields="number", limit=100)
        assert (found["total"], len(found["rows"]), "note" in found) == (74, 74, False)
        oracle.pages(f"{HERE}/issues", [])
        assert (await call(client, "list_issues", **O))["total"] == 0


@pytest.mark.anyio
async def test_a_search_that_ran_out_of_time_counts_no_more_than_github_does(oracle: Oracle) -> None:
    hit = {
        **sample("search/issues-and-pull-requests")["items"][0],
        "repository_url": "https://api.github.com/repos/o/x",
    }
    answer = {"total_count": 1, "incomplete_results": True, "items": [hit]}
    oracle.answer("GET", "/search/issues", answer)
    async with served(oracle, "--repos", "octo/app") as client:
        found = await call(client, "search_github", kind="issues", query="x")
    assert found["rows"] == [] and "total" not in found and "ran out of time" in found["note"]


@pytest.mark.anyio
async def test_a_note_is_a_part_of_the_json_that_it_is_about(oracle: Oracle) -> None:
    oracle.answer("GET", f"{HERE}/issues/3", issue(3, labels=[]))
    oracle.answer("PATCH", f"{HERE}/issues/3", {**issue(3), "labels": []})
    async with served(oracle, "--write") as client:
        result = await client.call_tool("edit_issue", {**O, "number": 3, "labels": ["bug"], "state": "open"})
    assert len(result.content) == 1
    assert json.loads(text_of(result)) == result.structured_content
    assert "GitHub did not set: labels `bug`" in text_of(result)


@pytest.mark.anyio
async def test_no_page_counts_what_an_earlier_one_did_not_show(oracle: Oracle) -> None:
    def hit(repo: str, path: str) -> dict[str, Any]:
        return {"path": path, "sha": SHA, "html_url": "", "repository": {"full_name": repo}}

    hits = [hit("other/secret", "a"), hit("octo/app", "b"), hit("octo/app", "c"), hit("octo/app", "d")]
    oracle.pages("/search/code", hits, "items")
    async with served(oracle, "--repos", "octo/app") as client:
        ask = {"kind": "code", "query": "x", "fields": "path,repo", "limit": 1}
        totals: list[int | None] = []
        cursor = None
        while cursor or not totals:
            page = await call(client, "search_github", **ask, cursor=cursor)
            totals.append(page.get("total"))
            cursor = page.get("cursor")
        assert totals == [None, None, 3]
        oracle.pages("/search/code", hits[1:], "items")
        page = await call(client, "search_github", **ask)
        assert page["total"] == 3
        assert (await call(client, "search_github", **ask, cursor=page["cursor"]))["total"] == 3
