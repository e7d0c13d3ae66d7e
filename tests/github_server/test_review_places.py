"""Reviews say where: lines and sides of threads, all their replies, and which comment is outside the difference."""

from typing import Any

import pytest

from github_server.oracle import Oracle
from github_server.serving import call, refused, served
from github_server.world import changed, sample

O = {"repo": "octo/app"}  # noqa: E741
HERE = {"pullRequest": {"number": 5}, "repository": {"nameWithOwner": "octo/app"}}
HUNK = "@@ -1,9 +1,9 @@\n a\n b\n c\n d\n e\n f\n-old\n+new"

# What GitHub has of a thread, and what is shown: line, side, outdated, original.
THREADS: list[tuple[dict[str, Any], list[Any]]] = [
    ({"line": 7, "diffSide": "RIGHT"}, [7, "RIGHT", False, None]),
    ({"line": 7, "startLine": 3, "diffSide": "LEFT", "startDiffSide": "LEFT"}, ["3-7", "LEFT", False, None]),
    ({"line": 7, "startLine": 3, "diffSide": "RIGHT", "startDiffSide": "LEFT"}, ["3-7", "LEFT-RIGHT", False, None]),
    ({"line": 7, "startLine": 7, "diffSide": "RIGHT", "startDiffSide": "RIGHT"}, [7, "RIGHT", False, None]),
    ({"line": None, "diffSide": "RIGHT", "isOutdated": True, "originalLine": 8, "originalStartLine": 6},
     [None, "RIGHT", True, {"line": "6-8", "hunk": " c\n d\n e\n f\n-old\n+new"}]),
    ({"line": None, "diffSide": "RIGHT", "subjectType": "FILE"}, [None, "FILE", False, None]),
    ({"line": None, "diffSide": "RIGHT", "subjectType": "FILE", "isOutdated": True}, [None, "FILE", True, None]),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_thread_says_where_it_stands(oracle: Oracle) -> None:
    comments = {"totalCount": 1, "nodes": [{"body": "B", "diffHunk": HUNK}]}
    nodes = [{"isOutdated": False, "subjectType": "LINE", "comments": comments, **given} for given, _ in THREADS]
    oracle.graphql("Threads", {"repository": {"pullRequest": {"reviewThreads": {"nodes": nodes}}}})
    async with served(oracle) as client:
        found = await call(client, "list_reviews", **O, number=5, kind="threads")
        at = [found["columns"].index(name) for name in ("line", "side", "outdated", "original")]
        assert [[row[number] for number in at] for row in found["rows"]] == [shown for _, shown in THREADS]


@pytest.mark.anyio
async def test_every_reply_can_be_read_the_newest_first_at_will(oracle: Oracle) -> None:
    """As GraphQL pages a connection: `first` and `after` from its beginning, `last` and `before` from its end."""
    said = [{"databaseId": number, "body": f"reply {number}"} for number in range(75)]

    def thread(given: dict[str, Any]) -> dict[str, Any]:
        assert (given.get("first") is None) != (given.get("last") is None)
        start = int(given["after"]) + 1 if given.get("after") else 0
        end = int(given["before"]) if given.get("before") else len(said)
        if given.get("first"):
            end = min(end, start + given["first"])
        else:
            start = max(start, end - given["last"])
        info = {
            "hasNextPage": end < len(said), "endCursor": str(end - 1),
            "hasPreviousPage": start > 0, "startCursor": str(start),
        }  # fmt: skip
        page = {"totalCount": len(said), "pageInfo": info, "nodes": said[start:end]}
        return {"node": {"__typename": "PullRequestReviewThread", **HERE, "comments": page}}

    oracle.graphql("Thread", thread)
    cut = {"totalCount": 75, "nodes": said[:30]}
    oracle.graphql("Threads", {"repository": {"pullRequest": {"reviewThreads": {"nodes": [{"comments": cut}]}}}})
    async with served(oracle) as client:
        (row,) = (await call(client, "list_reviews", **O, number=5, kind="threads"))["rows"]
        assert row[-1][-1] == ["45 more: kind=threads with this `thread`"]
        for order, numbers in (("asc", list(range(75))), ("desc", list(range(74, -1, -1)))):
            ask: dict[str, Any] = {**O, "number": 5, "thread": "PRRT_kwDOAAAAAQ", "order": order, "limit": 40}
            read: list[int] = []
            while True:
                found = await call(client, "list_reviews", **ask)
                read += [row[0] for row in found["rows"]]
                if "cursor" not in found:
                    break
                assert found["note"] == "35 more."
                ask["cursor"] = found["cursor"]
            assert read == numbers
        assert "has no thread" in await refused(client, "list_reviews", **O, number=6, thread="PRRT_kwDOAAAAAQ")
        assert "Pass `thread`" in await refused(client, "list_reviews", **O, number=5, order="desc")


PATCH = "@@ -1,3 +1,4 @@\n a\n-b\n+c\n+d\n e\n@@ -20,2 +21,2 @@ def f():\n x\n-y\n+z"
# A comment, and what is said of it; nothing of one on a line of the difference.
PLACES: list[tuple[dict[str, Any], str]] = [
    ({"path": "a.py", "line": 4}, ""),
    ({"path": "a.py", "line": 2, "side": "LEFT"}, ""),
    ({"path": "a.py", "line": 3, "start_line": 1}, ""),
    ({"path": "a.py", "line": 99}, "line 99 of `a.py` (RIGHT) is outside the difference, which has RIGHT 1-4, 21-22 "
                                   "and LEFT 1-3, 20-21."),
    ({"path": "a.py", "line": 4, "side": "LEFT"}, "line 4 of `a.py` (LEFT) is outside"),
    ({"path": "a.py", "line": 22, "start_line": 9}, "line 9 of `a.py` (RIGHT) is outside"),
    ({"path": "a.py", "line": 22, "start_line": 2}, "lines 2 and 22 of `a.py` are of two hunks"),
    ({"path": "b.py", "line": 1}, "`b.py` is not a file that this pull request changes"),
    ({"path": "new.py", "line": 3}, "line 3 of `new.py` (RIGHT) is outside the difference, which has RIGHT 1-2."),
    ({"path": "big.bin", "line": 3}, ""),
]  # fmt: skip


@pytest.mark.anyio
async def test_the_comment_outside_of_the_difference_is_named(oracle: Oracle) -> None:
    files = [changed("a.py", PATCH), changed("new.py", "@@ -0,0 +1,2 @@\n+a\n+b"), changed("big.bin", patch=None)]
    oracle.pages("/repos/octo/app/pulls/5/files", [*(changed(f"{n}.md") for n in range(120)), *files])
    no = {"message": "Unprocessable Entity", "errors": ["Line could not be resolved"]}
    good = {"path": "a.py", "line": 1, "body": "B"}
    pending = {**sample("pulls/get-review"), "state": "PENDING"}
    oracle.answer("GET", "/repos/octo/app/pulls/5/reviews/81", pending)
    oracle.graphql("AddThread", {"addPullRequestReviewThread": {"thread": None}})
    async with served(oracle, "--write") as client:
        for place, said in PLACES:
            oracle.answer("POST", "/repos/octo/app/pulls/5/reviews", no, status=422, times=1)
            given: dict[str, Any] = {**O, "number": 5, "event": "COMMENT", "comments": [good, {**place, "body": "C"}]}
            text = await refused(client, "create_review", **given)
            assert "Line could not be resolved" in text
            assert (f"Comment 2 of 2: {said}" in text) if said else "Comment" not in text, (place, text)
            assert "Comment 1" not in text and (not said or "Nothing was posted" in text)
        oracle.answer("POST", "/repos/octo/app/pulls/5/reviews", sample("pulls/get-review"))
        await call(client, "create_review", **O, number=5, event="COMMENT", comments=[good])
        text = await refused(client, "create_review", **O, number=5, review_id=81,
                             comments=[{"path": "a.py", "line": 99, "body": "C"}])  # fmt: skip
        assert "line 99 of `a.py`" in text and "review_id=81" in text
