"""Walks of `next_steps`: after the advised call the caller is further."""

from typing import Any

import pytest

from github_server.oracle import Oracle
from github_server.oracle.server import Reply, Seen
from github_server.serving import EVERYTHING, call, refused, served
from github_server.world import OTHER_SHA, SHA, branch, file, issue, not_found

pytestmark = pytest.mark.anyio
O = {"repo": "octo/app"}  # noqa: E741
HERE = "/repos/octo/app"
COMMENT = "DC_kwDOAAAAAQ"


async def test_less_is_not_too_much(oracle: Oracle) -> None:
    too_much = {"data": None, "errors": [{"type": "RESOURCE_LIMITS_EXCEEDED", "message": "too much"}]}

    def respond(variables: dict[str, Any]) -> Any:
        if variables["first"] > 9:
            return Reply(200, too_much)
        return {}

    oracle.graphql("Discussions", respond)
    async with served(oracle, *EVERYTHING) as client:
        assert "with a smaller `limit`" in await refused(client, "list_discussions", **O, limit=50)
        await call(client, "list_discussions", **O, limit=5)


async def test_what_github_is_working_on_is_there_later(waited: list[float], oracle: Oracle) -> None:
    oracle.answer("GET", f"{HERE}/issues/3", {}, status=202)
    async with served(oracle) as client:
        assert "Try again in 3 s." in await refused(client, "get_issue", **O, number=3)
        oracle.answer("GET", f"{HERE}/issues/3", issue(3))
        await call(client, "get_issue", **O, number=3)
    assert waited == [3.0, 3.0]


async def test_an_answer_of_another_shape_is_not_kept(oracle: Oracle) -> None:
    oracle.answer("GET", f"{HERE}/issues/3", [1, 2])
    async with served(oracle) as client:
        said = await refused(client, "get_issue", **O, number=3)
        assert "Try again in a moment, or ask for it in another way." in said, said
        oracle.answer("GET", f"{HERE}/issues/3", issue(3))
        await call(client, "get_issue", **O, number=3)


async def test_a_file_that_changed_is_read_and_written(oracle: Oracle) -> None:
    branch(oracle)
    oracle.answer("GET", f"{HERE}/contents/a.txt", file("a.txt", b"one\n"))
    commit: dict[str, Any] = {**O, "branch": "main", "message": "M"}
    async with served(oracle, "--write") as client:
        stale = [{"path": "a.txt", "sha": OTHER_SHA, "content": "x"}]
        said = await refused(client, "write_files", **commit, files=stale)
        assert f"its sha is `{SHA}` now. Read it with `read_file`, then call again with that `sha`." in said
        assert "one" in await call(client, "read_file", **O, path="a.txt", ref="main")
        await call(client, "write_files", **commit, files=[{**stale[0], "sha": SHA}])


async def test_a_commit_on_a_branch_that_is_made_is_made_when_it_can_be(oracle: Oracle) -> None:
    branch(oracle)
    not_found(oracle, "GET", f"{HERE}/git/ref/heads/new")
    not_found(oracle, "GET", f"{HERE}/contents/b.txt")
    commit: dict[str, Any] = {**O, "branch": "new", "message": "M", "files": [{"path": "b.txt", "content": "b"}]}
    errors = [{"type": "UNPROCESSABLE", "message": "A rule forbids it"}]
    oracle.graphql("CommitOnBranch", Reply(200, {"data": {"createCommitOnBranch": None}, "errors": errors}))
    async with served(oracle, "--write") as client:
        said = await refused(client, "write_files", **commit, ref="main")
        assert "Branch new is made" in said and "Call again once that is mended." in said, said
        head = {"ref": "refs/heads/new", "object": {"sha": SHA, "type": "commit"}}
        oracle.answer("GET", f"{HERE}/git/ref/heads/new", head)
        oracle.graphql("CommitOnBranch", {})
        done = await call(client, "write_files", **commit, ref="main")
        assert "`ref` was not used: the branch was there." in done["done"]
        assert "`ref`" not in (await call(client, "write_files", **commit))["done"]


async def test_an_answer_is_marked_alone_when_the_text_is_changed(oracle: Oracle) -> None:
    place = {
        "__typename": "DiscussionComment",
        "discussion": {"number": 4, "repository": {"nameWithOwner": "octo/app"}},
    }
    oracle.graphql("NodePlace", {"node": place})
    errors = [{"type": "UNPROCESSABLE", "message": "not now"}]
    oracle.graphql("MarkAnswer", Reply(200, {"data": {"markDiscussionCommentAsAnswer": None}, "errors": errors}))
    given: dict[str, Any] = {**O, "number": 4, "comment_id": COMMENT}
    async with served(oracle, *EVERYTHING) as client:
        said = await refused(client, "edit_discussion_comment", **given, body="B", answer=True)
        assert "Its text is changed" in said and "Call again with `answer` alone." in said, said
        oracle.graphql("MarkAnswer", {})
        await call(client, "edit_discussion_comment", **given, answer=True)


@pytest.mark.parametrize("status", [405, 409])
async def test_what_stands_in_the_way_is_not_looked_at_but_changed(status: int, oracle: Oracle) -> None:
    def respond(seen: Seen) -> Reply:
        return Reply(status, {"message": "Something else stands in the way"})

    oracle.respond("PATCH", f"{HERE}/issues/3", respond)
    async with served(oracle, "--write") as client:
        said = await refused(client, "edit_issue", **O, number=3, title="T")
        assert "Something else stands in the way" in said and "Change that first: " in said and "again" not in said
