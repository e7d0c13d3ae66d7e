"""Pull requests by labels and milestone: GitHub filters only issues by them, and tells less of those."""

from typing import Any

import pytest

from github_server.oracle import Oracle
from github_server.serving import call, refused, served
from github_server.world import issue, sample

pytestmark = pytest.mark.anyio

O = {"repo": "octo/app"}  # noqa: E741
HERE = "/repos/octo/app"


def pull(number: int, *labels: str, merged: bool = True) -> dict[str, Any]:
    """A pull request as the list of issues has it."""
    return issue(
        number, node_id=f"PR_{number}", state="closed", draft=False, labels=[{"name": name} for name in labels],
        pull_request={"url": "x", "merged_at": "2026-10-01T00:00:00Z" if merged else None},
    )  # fmt: skip


def facts(number: int, base: str) -> dict[str, Any]:
    """The branches of a pull request as GraphQL tells them."""
    return {
        "__typename": "PullRequest", "id": f"PR_{number}", "number": number, "headRefName": f"topic-{number}",
        "headRefOid": "a" * 40, "baseRefName": base, "baseRefOid": "b" * 40,
        "headRepository": {"nameWithOwner": "octo/app"}, "repository": {"nameWithOwner": "octo/app"},
    }  # fmt: skip


def world(oracle: Oracle) -> None:
    """Pull requests 5 to 8, of which 6 was not merged and 7 goes to a branch of a release; and an issue."""
    pulls = [pull(8, "Bug", "a, b"), pull(7, "Bug"), pull(6, "Bug", merged=False), pull(5, "Bug")]
    oracle.pages(f"{HERE}/issues", [*pulls, issue(4, labels=[{"name": "Bug"}])])
    oracle.answer("GET", f"{HERE}/milestones", [{**sample("issues/get-milestone"), "number": 3, "title": "2.4.1"}])
    oracle.graphql(
        "PullFacts", {"nodes": [facts(8, "main"), facts(7, "release/2"), facts(6, "main"), facts(5, "main")]}
    )


async def test_labels_and_a_milestone_choose_pull_requests(oracle: Oracle) -> None:
    world(oracle)
    async with served(oracle) as client:
        ask = {**O, "labels": "bug", "milestone": "2.4.1"}
        found = await call(client, "list_pull_requests", **ask, state="merged")
        assert [row[0] for row in found["rows"]] == [8, 7, 5] and found["total"] == 3
        rows = [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]
        assert [(row["head"], row["base"]) for row in rows][:2] == [("topic-8", "main"), ("topic-7", "release/2")]
        (asked,) = oracle.sent("GET", "/issues$")
        assert (asked.query["labels"], asked.query["milestone"], asked.query["state"]) == ("bug", "3", "closed")
        found = await call(
            client, "list_pull_requests", **ask, state="all", base="main", fields="number,merged,merged_at"
        )
        assert found["rows"] == [
            [8, True, "2026-10-01T00:00:00Z"], [6, False, None], [5, True, "2026-10-01T00:00:00Z"],
        ]  # fmt: skip
        assert found["total"] == 3 and oracle.sent("GET", "/issues$")[-1].query["state"] == "all"
    assert not oracle.sent("GET", "/pulls")


async def test_one_whose_branches_nobody_tells_is_not_taken_for_one_of_another(oracle: Oracle) -> None:
    world(oracle)
    oracle.graphql("PullFacts", {"nodes": [facts(8, "main"), facts(7, "release/2"), {}, facts(5, "main")]})
    async with served(oracle) as client:
        found = await call(
            client, "list_pull_requests", **O, labels="bug", state="all", base="main", fields="number,base"
        )
    assert found["rows"] == [[8, "main"], [6, None], [5, "main"]] and found["total"] == 3
    assert "no details of #6: null there is not known" in found["note"]


async def test_what_github_cannot_be_asked_for_is_looked_for_here(oracle: Oracle) -> None:
    world(oracle)
    async with served(oracle) as client:
        ask = {**O, "state": "all", "fields": "number,title"}
        found = await call(client, "list_pull_requests", **ask, labels=["bug", "A, B"])
        assert [row[0] for row in found["rows"]] == [8] and oracle.seen[-1].query["labels"] == "bug"
        found = await call(client, "list_pull_requests", **ask, labels="none", milestone="none")
        assert found["rows"] == [] and oracle.seen[-1].query["milestone"] == "none"
        assert "labels" not in oracle.seen[-1].query and not oracle.sent("POST", "/graphql")


async def test_what_does_not_go_with_labels_is_said(oracle: Oracle) -> None:
    async with served(oracle) as client:
        for more, said in (
            ({"head": "octo:x"}, "`head` can't go with `labels` and `milestone`"),
            ({"commit": "main"}, "`labels` can't go with `commit`"),
            ({"sort": "popularity"}, "By labels or milestone GitHub does not sort by popularity. Leave `sort` out."),
            ({"milestone": "-1"}, "must be a title"),
        ):
            assert said in await refused(client, "list_pull_requests", **O, labels=["bug"], **more)
    assert oracle.seen == []
