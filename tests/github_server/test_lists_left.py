"""Each page of a list says how many are left, wherever GitHub tells it, and what it says is true."""

import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from github_server.oracle import Oracle
from github_server.oracle.server import Reply, Seen
from github_server.serving import EVERYTHING, call, served
from github_server.world import SHA, issue, sample

O = {"repo": "octo/app"}  # noqa: E741 - it stands in every line


def connection(made: random.Random, total: int, node: dict[str, Any]) -> Any:
    """What GraphQL answers of `total` nodes, page by page."""
    sizes = [made.choice((10, 9000)) for _ in range(total)]

    def page(given: dict[str, Any]) -> dict[str, Any]:
        start = int(given["after"] or 0)
        end = min(total, start + given["first"])
        nodes = [{**node, "title": "x" * size, "path": "y" * size} for size in sizes[start:end]]
        more = {"hasNextPage": end < total, "endCursor": str(end)}
        return {"totalCount": total, "pageInfo": more, "nodes": nodes}

    return page


def inside(page: Callable[[dict[str, Any]], Any], *names: str) -> Callable[[dict[str, Any]], Any]:
    """`page` at the end of a path of `names`."""

    def answer(given: dict[str, Any]) -> Any:
        found = page(given)
        for name in reversed(names):
            found = {name: found}
        return found

    return answer


@pytest.mark.share(1, slow=3)
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("tool", "arguments", "exact"),
    [
        ("list_refs", {}, False),
        ("list_issues", {}, False),
        ("search_github", {"kind": "issues", "query": "x"}, False),
        ("list_actions", {"kind": "workflows"}, True),
        ("list_files", {"recursive": True}, True),
        ("list_discussions", {}, True),
        ("list_reviews", {"number": 5, "kind": "threads"}, True),
        ("list_reviews", {"number": 5, "kind": "threads", "unresolved": True}, False),
    ],
    ids=str,
)
async def test_what_a_page_says_is_left_comes(
    tool: str, arguments: dict[str, Any], exact: bool, oracle: Oracle
) -> None:
    made = random.Random(7)
    async with served(oracle, *EVERYTHING) as client:
        for total in (0, 4, 95, 170):
            words = ["w" * made.choice((3, 3, 3, 900, 9000)) for _ in range(total)]
            oracle.pages("/repos/octo/app/branches", [{"name": word, "commit": {"sha": SHA}} for word in words])
            mixed = [issue(n, title=word, **({"pull_request": {}} if n % 3 else {})) for n, word in enumerate(words)]
            oracle.pages("/repos/octo/app/issues", mixed)
            found = [
                issue(n, title=word, repository_url=f"{oracle.url}/repos/octo/app") for n, word in enumerate(words)
            ]
            oracle.pages("/search/issues", found, "items")
            flows = [{"id": n, "name": word, "path": "p", "state": "active"} for n, word in enumerate(words)]
            oracle.pages("/repos/octo/app/actions/workflows", flows, "workflows")
            tree = [{"path": f"{n}{word}", "type": "blob", "sha": SHA, "size": 1} for n, word in enumerate(words)]
            oracle.answer("GET", "/repos/octo/app/git/trees/HEAD", {"tree": tree, "truncated": False})
            graph = connection(made, total, {"isResolved": total == 95, "comments": {"nodes": [], "totalCount": 0}})
            oracle.graphql("Threads", inside(graph, "repository", "pullRequest", "reviewThreads"))
            oracle.graphql("Discussions", inside(graph, "repository", "discussions"))
            limit = {} if tool == "list_reviews" else {"limit": made.choice((3, 30, 100))}
            pages, cursor = list[Any](), None
            while not pages or cursor:
                page = await call(client, tool, **O, **arguments, **limit, **({"cursor": cursor} if cursor else {}))
                pages, cursor = [*pages, page], page.get("cursor")
            for number, page in enumerate(pages):
                left = sum(len(later["rows"]) for later in pages[number + 1 :])
                said = re.search(r"(At least |At most )?(\d+) more\.$", page.get("note") or "")
                assert (said is not None) == (page is not pages[-1]), (total, number, page.get("note"))
                if said is None:
                    continue
                word, count = said[1], int(said[2])
                assert count <= left if word == "At least " else count >= left if word else count == left, (said, left)
                assert word is None or not exact
                assert word != "At least " or left - count < 100


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("path", "inside", "sampled", "tool", "arguments"),
    [
        ("/search/users", "items", "users/get-authenticated", "search_github", {"kind": "users", "query": "x"}),
        ("/repos/octo/app/actions/runs", "workflow_runs", "actions/get-workflow-run", "list_actions",
         {**O, "branch": "main"}),
    ],
)  # fmt: skip
async def test_a_search_ends_after_a_thousand_and_says_so(
    path: str, inside: str, sampled: str, tool: str, arguments: dict[str, Any], oracle: Oracle
) -> None:
    def respond(seen: Seen) -> Reply:
        page = int(seen.query.get("page", 1))
        link = f'<{oracle.url}{path}?page={page + 1}>; rel="next"' if page < 10 else ""
        found = {"total_count": 5000, "incomplete_results": False, inside: [sample(sampled)] * 100}
        return Reply(200, found, {"Link": link} if link else {})

    oracle.respond("GET", path, respond)
    cursor: dict[str, Any] = {}
    shown = 0
    async with served(oracle, *EVERYTHING) as client:
        while True:
            found = await call(client, tool, **arguments, fields="url", limit=100, **cursor)
            shown += len(found["rows"])
            if "cursor" not in found:
                break
            assert found["note"].endswith(f"{1000 - shown} more.") and found["total"] == 5000
            cursor = {"cursor": found["cursor"]}
    assert shown == 1000 and found["note"].startswith("GitHub shows the first 1,000 of 5,000 only")
