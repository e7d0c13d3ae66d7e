"""What issues wait for, which say the same, Copilot, rules and properties, boards."""

from typing import Any

import pytest

from github_server.oracle import Oracle
from github_server.serving import EVERYTHING, call, refused, served
from github_server.test_every_tool import prepared
from github_server.world import SHA, issue, not_found, sample

pytestmark = pytest.mark.anyio
O = {"repo": "octo/app"}  # noqa: E741 - it stands in every line


async def test_an_issue_shows_what_it_waits_for(oracle: Oracle) -> None:
    summary = {"total_blocked_by": 2, "total_blocking": 0, "blocked_by": 1, "blocking": 0}
    oracle.answer("GET", "/repos/octo/app/issues/3", issue(3, issue_dependencies_summary=summary))
    others = [
        issue(n, title=t, repository_url=f"{oracle.url}/repos/{r}")
        for n, t, r in ((1, "first", "octo/app"), (2, "the secret", "other/x"))
    ]
    oracle.answer("GET", "/repos/octo/app/issues/3/dependencies/blocked_by", others)
    oracle.answer("GET", "/repos/octo/app/issues/1", issue(1, id=77))
    async with served(oracle, *EVERYTHING, "--repos", "octo/app") as client:
        found = (await call(client, "get_issue", **O, number=3))["data"]
        assert found["blocked_by"] == [["#1", "open", "first"], ["other/x#2", "not served here"]]
        assert "blocking" not in found
        await call(client, "edit_dependency", **O, number=3, blocked_by=1)
        assert oracle.sent("POST", "/issues/3/dependencies/blocked_by$")[-1].json == {"issue_id": 77}
        await call(client, "edit_dependency", **O, number=3, blocked_by=1, action="remove")
        assert oracle.sent("DELETE", "/issues/3/dependencies/blocked_by/77$")
        said = await refused(client, "edit_dependency", **O, number=3, blocked_by=2, other_repo="other/x")
        assert "not served here" in said


async def test_the_likeliest_duplicate_comes_first_and_strangers_do_not_come(oracle: Oracle) -> None:
    titles = [
        "Segmentation fault when opening a large TIFF file", "Crash opening huge TIFF images", "Add dark theme",
        "TIFF export drops the colour profile", "Opening a large TIFF file crashes with a segmentation fault",
    ]  # fmt: skip
    here = f"{oracle.url}/repos/octo/app"
    found = [issue(n, title=title, body="", repository_url=here) for n, title in enumerate(titles, 10)]
    oracle.pages("/search/issues", found, "items")
    oracle.answer("GET", "/repos/octo/app/issues/10", found[0])
    async with served(oracle, *EVERYTHING) as client:
        listed = await call(client, "find_duplicates", **O, number=10)
        assert listed["columns"][:3] == ["likeness", "number", "title"]
        numbers = [row[1] for row in listed["rows"]]
        assert numbers[0] == 14 and 12 not in numbers and 10 not in numbers
        assert listed["rows"][0][0] > 0.5
        query = oracle.sent("GET", "/search/issues")[-1].query["q"]
        # Without brackets, GitHub would look for all words but the first in all repositories there are.
        assert query.startswith('("') and query.endswith('") repo:octo/app is:issue')
        assert query.count(" OR ") == 5 and len(query) < 256
        made = await call(client, "find_duplicates", **O, title="A large TIFF file crashes it", limit=1)
        assert [row[1] for row in made["rows"]] == [14]
        assert "no word" in await refused(client, "find_duplicates", **O, title="it is not")
        assert "One of" in await refused(client, "find_duplicates", **O)


async def test_issues_are_listed_by_custom_fields(oracle: Oracle) -> None:
    fields = [{**sample("orgs/list-issue-fields")[0], "id": 5, "name": "Due in Week"}]
    oracle.answer("GET", "/orgs/octo/issue-fields", fields)
    async with served(oracle) as client:
        await call(client, "list_issues", **O, custom={"due in week": "12"})
        assert oracle.sent("GET", "/octo/app/issues$")[-1].query["issue_field_values"] == "due-in-week:12"
        assert "There are: `Due in Week`." in await refused(client, "list_issues", **O, custom={"size": "S"})


async def test_copilot_gets_its_branch_and_words_and_silence_is_no_success(oracle: Oracle) -> None:
    prepared(oracle)
    async with served(oracle, *EVERYTHING) as client:
        await call(client, "run_copilot", **O, number=3, base="next", instructions="With tests.")
        assert oracle.sent("POST", "/assignees$")[-1].json == {
            "assignees": ["copilot-swe-agent[bot]"],
            "agent_assignment": {
                "target_repo": "octo/app",
                "base_branch": "next",
                "custom_instructions": "With tests.",
            },
        }
        oracle.answer("POST", "/repos/octo/app/issues/3/assignees", issue(3, assignees=[]), status=201)
        assert "did not assign Copilot" in await refused(client, "run_copilot", **O, number=3)


async def test_rules_and_properties(oracle: Oracle) -> None:
    async with served(oracle, *EVERYTHING) as client:
        ruleset = (await call(client, "get_ruleset", **O, ruleset=42))["data"]
        assert ruleset["rules"] == [["commit_author_email_pattern", {"operator": "contains", "pattern": "github"}]]
        assert ruleset["include"] == ["refs/heads/main", "refs/heads/master"] and ruleset["bypass"] == ["Team"]
        listed = await call(client, "list_rules", **O, kind="branch", branch="main")
        assert listed["rows"][0][0] == "commit_message_pattern" and listed["rows"][0][2] == 42
        assert "Pass `branch`" in await refused(client, "list_rules", **O, kind="branch")
        assert (await call(client, "list_rules", **O, kind="properties"))["rows"][0] == ["environment", "production"]
        await call(client, "write_properties", **O, properties={"environment": "test", "service": None})
        sent: Any = oracle.sent("PATCH", "/properties/values$")[-1].json
        assert sent == {"properties": [{"property_name": "environment", "value": "test"},
                                       {"property_name": "service", "value": None}]}  # fmt: skip
        said = await refused(client, "write_properties", **O, properties={"environmnt": "x"})
        assert "no property `environmnt`" in said and "`environment`, `service`" in said


async def test_a_status_update_is_changed_only_on_its_own_board(oracle: Oracle) -> None:
    prepared(oracle)
    async with served(oracle, *EVERYTHING) as client:
        update = {"update": "PVTSU_kwDOAAAAAQ", "status": "on_track"}
        await call(client, "write_project_update", owner="octo", project=1, **update)
        sent: Any = oracle.sent("POST", "/graphql")[-1].json["variables"]["input"]
        assert sent == {"status": "ON_TRACK", "statusUpdateId": "PVTSU_kwDOAAAAAQ"}
        for owner, project in (("octo", 2), ("octocat", 1)):
            said = await refused(client, "write_project_update", owner=owner, project=project, **update)
            assert "has no update" in said
        assert "Nothing was given" in await refused(client, "write_project_update", owner="octo", project=1)
        said = await refused(client, "create_project_field", owner="octo", project=1, name="A", type="single_select")
        assert "`options`" in said
        oracle.graphql("ProjectViews", {"repositoryOwner": None})
        said = await refused(client, "list_projects", owner="octo", kind="views", project=1)
        assert "does not find project #1" in said


async def test_a_pending_review_grows_until_it_is_submitted(oracle: Oracle) -> None:
    prepared(oracle)
    async with served(oracle, *EVERYTHING) as client:
        comments = [
            {"path": "a.py", "body": "whole"},
            {"path": "a.py", "line": 9, "start_line": 4, "start_side": "LEFT", "body": "lines"},
        ]
        await call(client, "create_review", **O, number=5, event="APPROVE", body="B", comments=comments)
        first = oracle.sent("POST", "/pulls/5/reviews$")[-1].json
        assert first == {"comments": [{"path": "a.py", "body": "lines", "line": 9, "side": "RIGHT", "start_line": 4,
                                       "start_side": "LEFT"}]}  # fmt: skip
        thread: Any = oracle.sent("POST", "/graphql")[-1].json["variables"]["input"]
        assert thread["subjectType"] == "FILE" and thread["body"] == "whole"
        assert oracle.sent("POST", "/reviews/80/events$")[-1].json == {"event": "APPROVE", "body": "B"}
        oracle.seen.clear()
        await call(client, "create_review", **O, number=5, review_id=81, comments=comments)
        inputs = [seen.json["variables"]["input"] for seen in oracle.sent("POST", "/graphql")]
        assert [one.get("line") for one in inputs] == [None, 9] and inputs[1]["startSide"] == "LEFT"
        assert not oracle.sent("POST", "/pulls")
        # What is submitted takes nothing more, and half of a review is not passed off as one.
        assert "only a pending one" in await refused(client, "create_review", **O, number=5, review_id=80)
        oracle.graphql("AddThread", lambda given: not_there(given["input"]["body"]))
        said = await refused(client, "create_review", **O, number=5, review_id=81, comments=comments[::-1])
        assert "with 1 of these 2 comments" in said and "review_id=81" in said
        assert "needs `line`" in await refused(
            client, "create_review", **O, number=5, comments=[{"path": "a", "body": "b", "start_line": 2}]
        )


async def test_a_review_names_its_commit_with_all_digits(oracle: Oracle) -> None:
    prepared(oracle)
    not_found(oracle, "GET", f"/repos/octo/app/git/ref/heads/{SHA[:12]}")
    oracle.answer("GET", f"/repos/octo/app/commits/{SHA[:12]}", {**sample("repos/get-commit"), "sha": SHA})
    async with served(oracle, *EVERYTHING) as client:
        for commit in (SHA, SHA[:12]):
            await call(client, "create_review", **O, number=5, event="APPROVE", commit=commit)
            assert oracle.sent("POST", "/pulls/5/reviews$")[-1].json["commit_id"] == SHA


def not_there(body: str) -> Any:
    from github_server.oracle.server import Reply

    errors = [{"type": "UNPROCESSABLE", "message": "no such file", "path": ["addPullRequestReviewThread"]}]
    return Reply(200, {"data": {"addPullRequestReviewThread": None}, "errors": errors}) if body == "whole" else {}


async def test_tags_have_their_messages(oracle: Oracle) -> None:
    tag = {"__typename": "Tag", "message": "One\n", "target": {"__typename": "Commit", "oid": "c" * 40},
           "tagger": {"name": "Ann", "date": "2026-01-02T03:04:05Z", "user": None}}  # fmt: skip
    light = {"__typename": "Commit", "oid": "d" * 40}
    refs = {"totalCount": 3, "pageInfo": {"hasNextPage": True, "endCursor": "E"},
            "nodes": [{"name": "v1", "target": tag}, {"name": "v0", "target": light}]}  # fmt: skip
    oracle.graphql("Tags", {"repository": {"refs": refs}})
    async with served(oracle) as client:
        found = await call(client, "list_refs", **O, kind="tags", fields="name,sha,message,tagger,tagged_at")
        assert found["rows"] == [["v1", "c" * 40, "One\n", "Ann", "2026-01-02T03:04:05Z"],
                                 ["v0", "d" * 40, None, None, None]]  # fmt: skip
        assert found["note"] == "1 more." and found["total"] == 3
        await call(client, "list_refs", **O, kind="tags", fields="message", cursor=found["cursor"])
        assert oracle.sent("POST", "/graphql")[-1].json["variables"]["after"] == "E"


async def test_branches_have_the_day_of_their_last_commit(oracle: Oracle) -> None:
    commit = {
        "__typename": "Commit",
        "oid": "c" * 40,
        "committedDate": "2026-01-02T03:04:05Z",
        "author": {"name": "Ann", "user": None},
    }
    refs = {"totalCount": 1, "pageInfo": {"hasNextPage": False, "endCursor": None},
            "nodes": [{"name": "topic", "target": commit}]}  # fmt: skip
    oracle.graphql("Branches", {"repository": {"refs": refs}})
    async with served(oracle) as client:
        found = await call(client, "list_refs", **O, fields="name,date,author")
        assert found["rows"] == [["topic", "2026-01-02T03:04:05Z", "Ann"]]


async def test_watching_a_repository(oracle: Oracle) -> None:
    async with served(oracle, *EVERYTHING) as client:
        assert (await call(client, "get_subscription", **O))["data"]["state"] == "watching"
        not_found(oracle, "GET", "/repos/octo/app/subscription")
        assert (await call(client, "get_subscription", **O))["data"]["state"] == "participating"
        await call(client, "edit_subscription", **O, state="ignoring")
        assert oracle.sent("PUT", "/subscription$")[-1].json == {"subscribed": False, "ignored": True}
        await call(client, "edit_subscription", **O, state="participating")
        assert oracle.sent("DELETE", "/octo/app/subscription$")


async def test_all_failed_jobs_logs_come_in_one_answer(oracle: Oracle) -> None:
    job = sample("actions/list-jobs-for-workflow-run")["jobs"][0]
    jobs = [
        {**job, "id": n, "name": f"job {n}", "conclusion": "success" if n == 2 else "failure"} for n in range(1, 10)
    ]
    oracle.pages("/repos/octo/app/actions/runs/9/jobs", jobs, "jobs")
    for n in range(1, 10):
        where = {"Location": f"{oracle.url}/_storage/{n}"}
        oracle.answer("GET", f"/repos/octo/app/actions/jobs/{n}/logs", status=302, headers=where)
        noise = "".join(f"line {m} of {n}\n" for m in range(2000))
        oracle.answer("GET", f"/_storage/{n}", raw=f"{noise}##[error]broken {n}\n".encode())
    not_found(oracle, "GET", "/repos/octo/app/actions/jobs/3/logs")
    oracle.answer("GET", "/repos/octo/app/actions/jobs/3", {**job, "id": 3, "status": "completed"})
    async with served(oracle, *EVERYTHING) as client:
        text = await call(client, "read_job_log", **O, run_id=9)
        assert text.startswith("[8 failed jobs of run `9` of `octo/app`; failed too: 8, 9]\n")
        for n in (1, 4, 5, 6, 7):
            assert f"broken {n}\n" in text
        assert "the log of job `3` (job 3) of `octo/app` is missing" in text and "broken 2" not in text
        assert len(text.encode()) < 16_000
        assert "Pass the `job_id`" in await refused(client, "read_job_log", **O, run_id=9, start_line=4)
        some = await call(client, "read_job_log", **O, run_id=9, pattern="line 7 of")
        assert "8: line 7 of 1" in some and "8: line 7 of 6" in some


async def test_what_alerts_say_is_private_wherever_they_are(oracle: Oracle) -> None:
    for tool, arguments in [
        ("list_alerts", {"kind": "dependabot"}), ("get_alert", {"kind": "code_scanning", "number": 2}),
        ("list_advisories", {}),
    ]:  # fmt: skip
        async with served(oracle, "--write", "--toolsets", "all") as client:
            await call(client, tool, **O, **arguments)
            said = await refused(client, "create_issue", **O, title="T")
            assert "private `the alerts of octo/app` was read before" in said
