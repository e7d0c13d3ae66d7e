"""Facts of many pull requests in one list: reviews, checks, conflicts, what they close; and lists of many pages."""

from typing import Any

import pytest

from github_server.oracle import Oracle
from github_server.oracle.server import Reply
from github_server.serving import call, refused, served, text_of
from github_server.world import issue, sample

pytestmark = pytest.mark.anyio

O = {"repo": "octo/app"}  # noqa: E741
HERE = "/repos/octo/app"


def facts(number: int, **more: Any) -> dict[str, Any]:
    """A pull request as GraphQL tells it."""
    return {
        "__typename": "PullRequest", "id": f"PR_{number}", "number": number,
        "repository": {"nameWithOwner": "octo/app"}, "reviewDecision": None, "mergeable": "MERGEABLE",
        "latestOpinionatedReviews": {"nodes": []}, "statusCheckRollup": None,
        "closingIssuesReferences": {"totalCount": 0, "nodes": []}, **more,
    }  # fmt: skip


def world(oracle: Oracle) -> None:
    """Pull requests 5 and 6, of which 5 is reviewed, and closes an issue here and one elsewhere."""
    listed = {name: value for name, value in sample("pulls/list")[0].items() if name != "mergeable"}
    pulls = [{**listed, "number": number, "node_id": f"PR_{number}"} for number in (6, 5)]
    oracle.pages(f"{HERE}/pulls", pulls)
    reviews = [
        {"author": {"__typename": "User", "login": "ben"}, "state": "APPROVED"},
        {"author": {"__typename": "Bot", "login": "reviewer"}, "state": "DISMISSED"},
        {"author": None, "state": "CHANGES_REQUESTED"},
    ]
    ours = {"number": 7, "title": "Crash", "state": "OPEN", "repository": {"nameWithOwner": "octo/app"}}
    theirs = {**ours, "number": 8, "repository": {"nameWithOwner": "other/secret"}}
    fifth = facts(
        5, reviewDecision="CHANGES_REQUESTED", latestOpinionatedReviews={"nodes": reviews}, mergeable="CONFLICTING",
        statusCheckRollup={"state": "FAILURE"}, closingIssuesReferences={"totalCount": 3, "nodes": [ours, theirs]},
        headRefName="topic", baseRefName="main", headRepository={"nameWithOwner": "octo/app"},
        reviewRequests={"nodes": [
            {"requestedReviewer": {"__typename": "User", "login": "ada"}},
            {"requestedReviewer": {"__typename": "Team", "slug": "docs"}}, {"requestedReviewer": None},
        ]},
    )  # fmt: skip
    oracle.graphql("PullFacts", {"nodes": [fifth, facts(6, mergeable="UNKNOWN"), None]})


async def test_a_list_tells_reviews_checks_and_conflicts_with_one_more_request(oracle: Oracle) -> None:
    world(oracle)
    async with served(oracle, "--repos", "octo/app") as client:
        found = await call(
            client, "list_pull_requests", **O, fields="number,review_decision,verdicts,checks,mergeable,closes"
        )
        assert found["rows"][0] == [6, None, [], None, None, []]
        assert found["rows"][1] == [
            5, "changes_requested",
            ["ben approved", "reviewer[bot] dismissed", "ghost changes_requested"], "failure", False,
            [["#7", "open", "Crash"], ["other/secret#8", "not served here"]],
        ]  # fmt: skip
        assert found["note"] == "#5 closes 1 more issues."
        (asked,) = oracle.sent("POST", "/graphql")
        tools = {tool.name: tool.description or "" for tool in (await client.list_tools()).tools}
        description = " ".join(tools["list_pull_requests"].split())
        verdicts = "the last of each person or bot, comments aside: `ben approved`, `changes_requested`; `dismissed` if"
        assert verdicts in description
        assert '`closes`, by text or by hand, merged too: `["#7", "open", TITLE]`' in description
        variables = asked.json["variables"]
        assert variables["ids"] == ["PR_6", "PR_5"]
        assert [name for name, value in variables.items() if value is False] == ["branches", "size", "requests"]
        await call(client, "list_pull_requests", **O, fields="number,title,merged_at,milestone,labels,base")
        assert len(oracle.sent("POST", "/graphql")) == 1


async def test_one_that_graphql_does_not_show_hides_no_other(oracle: Oracle) -> None:
    world(oracle)
    error = {"type": "NOT_FOUND", "path": ["nodes", 0], "message": "Could not resolve to a node"}
    checked = {"id": "PR_5", "number": 5, "statusCheckRollup": {"state": "SUCCESS"}}
    oracle.graphql("PullFacts", Reply(200, {"data": {"nodes": [None, checked]}, "errors": [error]}))
    async with served(oracle) as client:
        found = await call(client, "list_pull_requests", **O, fields="number,checks")
    assert found["rows"] == [[6, None], [5, "success"]] and "Could not resolve" in found["note"]
    assert "GitHub tells no details of #6: null there is not known." in found["note"]


async def test_many_are_asked_for_in_parts_that_github_can_work_out(oracle: Oracle) -> None:
    pulls = [{**sample("pulls/list")[0], "number": n, "node_id": f"PR_{n}"} for n in range(1, 121)]
    oracle.pages(f"{HERE}/pulls", pulls)

    def answer(given: dict[str, Any]) -> dict[str, Any]:
        return {"nodes": [facts(int(name[3:]), statusCheckRollup={"state": "SUCCESS"}) for name in given["ids"]]}

    oracle.graphql("PullFacts", answer)
    async with served(oracle) as client:
        found = await call(client, "list_pull_requests", **O, fields="number,checks", limit=120)
    assert found["rows"] == [[n, "success"] for n in range(1, 121)] and "note" not in found
    assert [len(seen.json["variables"]["ids"]) for seen in oracle.sent("POST", "/graphql")] == [50, 50, 20]


async def test_fields_go_by_the_names_that_github_has_for_them(oracle: Oracle) -> None:
    world(oracle)
    async with served(oracle) as client:
        found = await call(
            client, "list_pull_requests", **O, fields="number,mergedAt,baseRefName,isDraft,user,reviewDecision,base"
        )
        assert found["columns"] == ["number", "merged_at", "base", "draft", "author", "review_decision"]
        found = await call(client, "list_issues", **O, fields="number,createdAt,html_url")
        assert found["columns"] == ["number", "created_at", "url"]
        found = await call(client, "list_commits", **O, fields="sha,committedDate,authoredDate")
        assert found["columns"] == ["sha", "committed_at", "date"]
        said = await refused(client, "list_issues", **O, fields="number,reviewDecision")
        assert "There is no field `reviewDecision`. There are: `repo`, `number`," in said


async def test_a_search_tells_of_pull_requests_what_a_list_does(oracle: Oracle) -> None:
    world(oracle)
    hit = issue(5, node_id="PR_5", repository_url=f"{oracle.url}{HERE}", pull_request={"merged_at": None})
    other = {**hit, "number": 3, "node_id": "PR_3", "repository_url": f"{oracle.url}/repos/other/secret"}
    oracle.answer("GET", "/search/issues", {"total_count": 2, "incomplete_results": False, "items": [hit, other]})
    ask = {
        "kind": "pull_requests",
        "query": "milestone:1",
        "fields": "number,head,base,reviewers,teams,review_decision",
    }
    async with served(oracle, "--repos", "octo/app") as client:
        found = await call(client, "search_github", **ask)
    assert found["rows"] == [[5, "topic", "main", ["ada"], ["docs"], "changes_requested"]] and "note" not in found
    assert oracle.sent("POST", "/graphql")[0].json["variables"]["ids"] == ["PR_5"]


async def test_a_branch_of_a_fork_does_not_look_like_one_of_the_repository(oracle: Oracle) -> None:
    base = {"ref": "main", "repo": {"full_name": "octo/app"}}
    heads: list[dict[str, Any]] = [
        {"ref": "fix", "repo": {"full_name": "octo/app"}, "user": {"login": "octo"}},
        {"ref": "fix", "repo": {"full_name": "ada/app"}, "user": {"login": "ada"}},
        {"ref": "fix", "repo": None, "user": {"login": "ada"}},
        {"ref": "fix", "repo": None, "user": None},
    ]
    pulls = [{**sample("pulls/list")[0], "number": n, "head": head, "base": base} for n, head in enumerate(heads)]
    names = ["fix", "ada:fix", "ada:fix", "ghost:fix"]
    oracle.pages(f"{HERE}/pulls", pulls)
    oracle.answer("GET", f"{HERE}/pulls/5", {**sample("pulls/get"), "number": 5, "head": heads[1], "base": base})
    hits: list[dict[str, Any]] = []
    nodes: list[dict[str, Any]] = []
    for number, head in enumerate(heads):
        url = f"{oracle.url}{HERE}"
        hits.append(issue(number, node_id=f"PR_{number}", repository_url=url, pull_request={"merged_at": None}))
        repo = head["repo"] and {"nameWithOwner": head["repo"]["full_name"]}
        nodes.append(
            facts(number, headRefName="fix", baseRefName="main", headRepository=repo, headRepositoryOwner=head["user"])
        )
    oracle.answer("GET", "/search/issues", {"total_count": 4, "incomplete_results": False, "items": hits})
    oracle.graphql("PullFacts", {"nodes": nodes})
    async with served(oracle) as client:
        found = await call(client, "list_pull_requests", **O, fields="head")
        assert [row[0] for row in found["rows"]] == names
        found = await call(client, "get_pull_request", **O, number=5)
        assert found["data"]["head"] == "ada:fix"
        found = await call(client, "search_github", kind="pull_requests", query="fix", fields="head")
        assert [row[0] for row in found["rows"]] == names


async def test_one_pull_request_tells_the_same(oracle: Oracle) -> None:
    world(oracle)
    oracle.answer("GET", f"{HERE}/pulls/5", {**sample("pulls/get"), "number": 5, "node_id": "PR_5"})
    state = facts(5, reviewDecision="APPROVED", statusCheckRollup={"state": "PENDING"}, mergeQueueEntry=None)
    oracle.graphql("PullLinks", {"repository": {"pullRequest": state}})
    async with served(oracle) as client:
        found = await call(client, "get_pull_request", **O, number=5, fields="verdicts,checks")
        assert found["data"] == {
            "verdicts": ["ben approved", "reviewer[bot] dismissed", "ghost changes_requested"],
            "checks": "failure",
        }
        found = await call(client, "get_pull_request", **O, number=5)
        assert found["data"]["review_decision"] == "approved" and found["data"]["checks"] == "pending"


async def test_merged_ones_are_listed_alone(oracle: Oracle) -> None:
    pulls = [{**sample("pulls/list")[0], "number": n, "merged_at": None if n % 3 else "2026-01-02T00:00:00Z"}
             for n in range(1, 61)]  # fmt: skip
    oracle.pages(f"{HERE}/pulls", pulls)
    async with served(oracle) as client:
        found = await call(client, "list_pull_requests", **O, state="merged", fields="number")
    assert [row[0] for row in found["rows"]] == list(range(3, 61, 3)) and found["total"] == 20
    assert oracle.sent("GET", "/pulls$")[0].query["state"] == "closed"


async def test_a_list_may_be_longer_than_a_page_of_github(oracle: Oracle) -> None:
    oracle.pages(f"{HERE}/issues", [issue(number) for number in range(1, 321)])
    async with served(oracle) as client:
        found = await call(client, "list_issues", **O, limit=250, fields="number")
        assert [row[0] for row in found["rows"]] == list(range(1, 251)) and "more" in found["note"]
        assert [seen.query["per_page"] for seen in oracle.seen] == ["100"] * 3
        found = await call(client, "list_issues", **O, limit=250, fields="number", cursor=found["cursor"])
        assert [row[0] for row in found["rows"]] == list(range(251, 321)) and "cursor" not in found


async def test_what_was_read_before_github_failed_is_shown(oracle: Oracle) -> None:
    oracle.pages(f"{HERE}/issues", [issue(number) for number in range(1, 321)])
    async with served(oracle) as client:
        limit = {"message": "limit"}
        answers = iter([None, Reply(403, limit, {"Retry-After": "300"})])
        pages = oracle._rules[0].respond  # pyright: ignore[reportPrivateUsage]
        oracle.respond("GET", f"{HERE}/issues", lambda seen: next(answers, None) or pages(seen))
        found = await call(client, "list_issues", **O, limit=250, fields="number")
        assert len(found["rows"]) == 100 and "limit is reached. What came before is here." in found["note"]
        assert found["cursor"]


async def test_branches_tell_in_one_list_when_they_changed_and_whether_they_are_protected(oracle: Oracle) -> None:
    commit = {"__typename": "Commit", "oid": "c" * 40, "committedDate": "2026-01-02T03:04:05Z"}
    nodes = [{"name": f"b{number}", "target": commit} for number in range(150)]

    def page(given: dict[str, Any]) -> dict[str, Any]:
        start = int(given["after"] or 0)
        end = start + given["first"]
        about = {"hasNextPage": end < len(nodes), "endCursor": str(end)}
        return {"repository": {"refs": {"totalCount": len(nodes), "pageInfo": about, "nodes": nodes[start:end]}}}

    oracle.graphql("Branches", page)
    protected = [{**sample("repos/list-branches")[0], "name": f"b{number}"} for number in range(0, 150, 2)]
    oracle.pages(f"{HERE}/branches", protected)
    async with served(oracle) as client:
        found = await call(client, "list_refs", **O, fields="name,protected,committedDate", limit=150)
        assert found["rows"][:2] == [["b0", True, "2026-01-02T03:04:05Z"], ["b1", False, "2026-01-02T03:04:05Z"]]
        assert len(found["rows"]) == 150 and "cursor" not in found
        failure = Reply(200, {"data": None, "errors": [{"type": "TIMEOUT", "message": "too slow"}]})

        def fail_later(given: dict[str, Any]) -> Any:
            if given["after"]:
                return failure
            return page(given)

        oracle.graphql("Branches", fail_later)
        result = await client.call_tool("list_refs", {**O, "fields": "name,date", "limit": 150})
        assert len(result.structured_content["rows"]) == 100 and result.structured_content["cursor"]
        assert "What came before is here." in text_of(result)
    assert {seen.query["protected"] for seen in oracle.sent("GET", "/branches")} == {"true"}
