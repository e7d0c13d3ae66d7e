"""Commits with expected shas, lists that add and remove, numbers instead of ids."""

import base64
import threading
from typing import Any, cast

import anyio
import anyio.to_thread
import pytest

from github_server.oracle import Oracle
from github_server.oracle.server import Reply, Seen
from github_server.serving import call, refused, served, settings
from github_server.world import OTHER_SHA, SHA, branch, file, issue, not_found, sample
from mcp_batteries.sdk import tool_table
from mcp_batteries.server.assemble import Assembled
from mcp_batteries.server.calling.tool import StrictTool
from mcp_github.client import rate_limits
from mcp_github.server import build

O = {"repo": "octo/app"}  # noqa: E741
COMMIT = {**O, "branch": "main", "message": "Subject\n\nBody"}


def tools(server: Assembled) -> dict[str, StrictTool]:
    return cast("dict[str, StrictTool]", tool_table(server))


def world(oracle: Oracle) -> None:
    branch(oracle)
    oracle.answer("GET", "/repos/octo/app/contents/a.txt", file("a.txt", "one\r\ntwo ü\r\n".encode()))
    oracle.answer("GET", "/repos/octo/app/contents/b.bin", file("b.bin", b"\xff\x00"))
    not_found(oracle, "GET", "/repos/octo/app/contents/new.txt")


@pytest.mark.anyio
async def test_several_files_make_one_signed_commit(oracle: Oracle) -> None:
    world(oracle)
    data = base64.b64encode(b"\x00\xff").decode()
    files: list[dict[str, Any]] = [
        {"path": "a.txt", "sha": SHA, "edits": [{"old": "two ü", "new": "2"}, {"old": "one", "new": "1"}]},
        {"path": "new.txt", "content": data, "base64": True},
        {"path": "b.bin", "sha": SHA, "delete": True},
    ]
    async with served(oracle, "--write") as client:
        done = await call(client, "write_files", **COMMIT, files=files)
    assert done["data"]["commit"] == "a" * 40
    given = oracle.sent("POST", "/graphql")[0].json["variables"]["input"]
    assert given["expectedHeadOid"] == SHA and given["message"] == {"headline": "Subject", "body": "Body"}
    sent = {item["path"]: base64.b64decode(item["contents"]) for item in given["fileChanges"]["additions"]}
    assert sent == {"a.txt": b"1\r\n2\r\n", "new.txt": b"\x00\xff"}
    assert given["fileChanges"]["deletions"] == [{"path": "b.bin"}]


LATIN = "// Gr\u00fc\u00dfe\nint x = 1;\n"


async def write_one(oracle: Oracle, change: dict[str, Any]) -> bytes:
    """What becomes of a file `a.c` by `change`."""
    async with served(oracle, "--write") as client:
        files = [{"path": "a.c", "sha": SHA, **change}]
        await call(client, "write_files", **COMMIT, files=files)
    (sent,) = oracle.sent("POST", "/graphql")[-1].json["variables"]["input"]["fileChanges"]["additions"]
    return base64.b64decode(sent["contents"])


@pytest.mark.anyio
async def test_a_file_keeps_its_encoding_however_large_it_is_and_what_is_no_text_gives_none(oracle: Oracle) -> None:
    branch(oracle)
    large = (LATIN * 40_000).encode("utf-16")
    oracle.answer("GET", "/repos/octo/app/contents/a.c", file("a.c", b"", size=len(large), encoding="none"))
    oracle.answer("GET", f"/repos/octo/app/git/blobs/{SHA}", raw=large)
    assert await write_one(oracle, {"content": "x\n"}) == "x\n".encode("utf-16")
    # It begins as UTF-16 does.
    oracle.answer("GET", "/repos/octo/app/contents/a.c", file("a.c", b"\xff\xfe\x01\x02\x00\x00\x05"))
    assert await write_one(oracle, {"content": LATIN}) == LATIN.encode()


@pytest.mark.anyio
async def test_a_line_that_is_added_to_a_file_without_line_ends_ends_as_it_was_sent(oracle: Oracle) -> None:
    branch(oracle)
    oracle.answer("GET", "/repos/octo/app/contents/a.c", file("a.c", b"1.2.3"))
    assert await write_one(oracle, {"edits": [{"old": "1.2.3", "new": "1.2.4\n"}]}) == b"1.2.4\n"
    oracle.answer("GET", "/repos/octo/app/contents/a.c", file("a.c", b"1\r\n2\r\n"))
    assert await write_one(oracle, {"edits": [{"old": "1\n2", "new": "1\n3"}]}) == b"1\r\n3\r\n"


@pytest.mark.anyio
async def test_who_quotes_a_byte_that_is_not_shown_hears_that_it_can_not_be_quoted(oracle: Oracle) -> None:
    branch(oracle)
    oracle.answer("GET", "/repos/octo/app/contents/a.c", file("a.c", LATIN.encode("latin-1")))
    edits = [{"old": "// Gr\ufffd\ufffde", "new": "// Hi"}]
    async with served(oracle, "--write") as client:
        files = [{"path": "a.c", "sha": SHA, "edits": edits}]
        said = await refused(client, "write_files", **COMMIT, files=files)
    assert "bytes that can't be quoted" in said and "exactly as" not in said


@pytest.mark.anyio
async def test_lines_are_edited_however_the_file_ends_them(oracle: Oracle) -> None:
    world(oracle)
    edit = {"old": "one\ntwo ü", "new": "one\nand a half\ntwo"}
    async with served(oracle, "--write") as client:
        await call(client, "write_files", **COMMIT, files=[{"path": "a.txt", "sha": SHA, "edits": [edit]}])
    [sent] = oracle.sent("POST", "/graphql")[0].json["variables"]["input"]["fileChanges"]["additions"]
    assert base64.b64decode(sent["contents"]) == b"one\r\nand a half\r\ntwo\r\n"


@pytest.mark.share(6)
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"path": "a.txt", "content": "x", "sha": OTHER_SHA}, f"its sha is `{SHA}` now"),
        ({"path": "a.txt", "content": "x"}, f"exists already; its sha is `{SHA}`"),
        ({"path": "new.txt", "content": "x", "sha": SHA}, "There is no file `new.txt`"),
        ({"path": "new.txt", "delete": True}, "There is no file `new.txt`"),
        ({"path": "a.txt", "sha": SHA, "edits": [{"old": "three", "new": "3"}]}, "does not occur"),
        ({"path": "a.txt", "sha": SHA, "edits": [{"old": "\r\n", "new": "\n"}]}, "occurs 2 times"),
        ({"path": "b.bin", "sha": SHA, "edits": [{"old": "a", "new": "b"}]}, "is not text"),
        ({"path": "a.txt", "sha": SHA}, "needs one of"),
        ({"path": "a.txt", "sha": SHA, "content": "x", "delete": True}, "needs one of"),
        ({"path": "new.txt", "content": "%%%", "base64": True}, "not base64"),
    ],
)
async def test_a_commit_that_is_not_what_was_meant_is_not_made(
    change: dict[str, Any], words: str, oracle: Oracle
) -> None:
    world(oracle)
    async with served(oracle, "--write") as client:
        good = {"path": "other/new.txt", "content": "fine"}
        not_found(oracle, "GET", "/repos/octo/app/contents/other/new.txt")
        assert words in await refused(client, "write_files", **COMMIT, files=[good, change])
    assert oracle.sent("POST") == []


@pytest.mark.anyio
async def test_a_branch_that_moved_is_a_conflict(oracle: Oracle) -> None:
    world(oracle)
    error = {"type": "STALE_DATA", "message": f"Expected branch to point to {SHA}"}
    oracle.answer("POST", "/graphql", {"data": {"createCommitOnBranch": None}, "errors": [error]})
    async with served(oracle, "--write") as client:
        said = await refused(client, "write_files", **COMMIT, files=[{"path": "new.txt", "content": "x"}])
        assert "changed meanwhile" in said and "Read what it holds now, then call again." in said
        not_found(oracle, "GET", "/repos/octo/app/git/ref/heads/none")
        said = await refused(
            client, "write_files", **{**COMMIT, "branch": "none"}, files=[{"path": "a", "content": "x"}]
        )
        assert "`ref` makes a new one" in said


@pytest.mark.anyio
async def test_without_graphql_the_same_commit_is_made_of_objects(oracle: Oracle) -> None:
    world(oracle)
    not_found(oracle, "POST", "/graphql")
    files = [{"path": "new.txt", "content": "x"}, {"path": "b.bin", "sha": SHA, "delete": True}]
    async with served(oracle, "--write") as client:
        await call(client, "write_files", **COMMIT, files=files)
        tree = oracle.sent("POST", "/git/trees")[0].json["tree"]
        assert [(item["path"], item["sha"] is None) for item in tree] == [("new.txt", False), ("b.bin", True)]
        assert oracle.sent("PATCH")[0].json["force"] is False
        oracle.answer("PATCH", "/repos/octo/app/git/refs/heads/main", {"message": "not a fast forward"}, status=422)
        said = await refused(client, "write_files", **COMMIT, files=files)
        assert "moved meanwhile" in said and "Read the files with `read_file`, then call again." in said
        await call(client, "read_file", **O, path="b.bin", ref="main")
        oracle.answer("PATCH", "/repos/octo/app/git/refs/heads/main", {}, status=200)
        await call(client, "write_files", **COMMIT, files=files)


@pytest.mark.anyio
@pytest.mark.parametrize("graphql", [True, False])
async def test_an_executable_file_stays_one_and_a_link_is_not_overwritten(oracle: Oracle, graphql: bool) -> None:
    """All that `createCommitOnBranch` writes has the mode 100644."""
    world(oracle)
    if not graphql:
        not_found(oracle, "POST", "/graphql")
    where, inner = "/repos/octo/app", "a" * 40
    entry = {"type": "blob", "sha": SHA}
    top = [
        {**entry, "path": "a.txt", "mode": "100644"}, {**entry, "path": "link", "mode": "120000"},
        {"path": "bin", "mode": "040000", "type": "tree", "sha": inner},
    ]  # fmt: skip
    oracle.answer("GET", f"{where}/git/trees/{SHA}", {"tree": top, "truncated": False})
    oracle.answer("GET", f"{where}/git/trees/{inner}", {"tree": [{**entry, "path": "run", "mode": "100755"}]})
    for path in ("bin/run", "link"):
        oracle.answer("GET", f"{where}/contents/{path}", file(path, b"#!/bin/sh\n"))
    plain = {"path": "a.txt", "sha": SHA, "content": "x"}
    files = [plain, {"path": "bin/run", "sha": SHA, "content": "#!/bin/bash\n"}, {"path": "new.txt", "content": "y"}]
    async with served(oracle, "--write") as client:
        done = await call(client, "write_files", **COMMIT, files=files)
        assert "`bin/run` is executable" in done["done"]
        modes = {item["path"]: item["mode"] for item in oracle.sent("POST", "/git/trees")[0].json["tree"]}
        assert modes == {"a.txt": "100644", "bin/run": "100755", "new.txt": "100644"}
        assert not graphql or not oracle.sent("POST", "/graphql")
        said = await refused(client, "write_files", **COMMIT, files=[{"path": "link", "sha": SHA, "content": "x"}])
        assert "`link` is a symlink" in said
        oracle.answer("PATCH", f"{where}/git/refs/heads/main", {"message": "Commits must be signed"}, status=422)
        said = await refused(client, "write_files", **COMMIT, files=files)
        assert "must be signed" in said and "moved meanwhile" not in said
        assert (
            "executable" not in (await call(client, "write_files", **COMMIT, files=[plain]))["done"]
            if graphql
            else True
        )


@pytest.mark.anyio
async def test_a_fork_is_known_by_its_network_whatever_its_name(oracle: Oracle) -> None:
    pull = {"repo": "octo/app", "title": "One", "base": "main"}
    for name, root in (("octo/app", None), ("me/app-fork", "octo/app"), ("her/app", None), ("octo/copy", "octo/app")):
        oracle.answer("GET", f"/repos/{name}", {"full_name": name, **({"source": {"full_name": root}} if root else {})})
    async with served(oracle, "--write", "--repos", "octo/app,octo/copy,me/app-fork,me/other,her/app") as client:
        not_found(oracle, "GET", "/repos/me/other")
        created = await call(client, "create_pull_request", **pull, head="me:topic")
        # What the caller said itself is not repeated.
        assert created["data"].keys() == {"number", "head_sha"} and created["url"].startswith("https://")
        assert oracle.sent("POST", "/pulls")[-1].json["head"] == "me:topic"
        await call(client, "create_pull_request", **pull, head="octo/copy:topic")
        assert {"head": "octo:topic", "head_repo": "copy"}.items() <= oracle.sent("POST", "/pulls")[-1].json.items()
        made = len(oracle.sent("POST", "/pulls"))
        # Hers on the list is another project of that name: the fork that GitHub would take is not served.
        for head in ("her:topic", "his:topic", "me/other:topic", "me/app:topic"):
            for dry_run in (True, False):
                said = await refused(client, "create_pull_request", **pull, head=head, dry_run=dry_run)
                assert "not served" in said or "is served here" in said
        assert len(oracle.sent("POST", "/pulls")) == made
        pulls = {**sample("pulls/get"), "number": 3, "head": {"sha": SHA, "repo": {"full_name": "his/app"}}}
        oracle.answer("GET", "/repos/octo/app/pulls/3", pulls)
        ask = {"repo": "octo/app", "number": 3, "title": "x", "update_branch": True}
        assert "not served" in await refused(client, "edit_pull_request", **ask)
        assert not oracle.sent("PATCH") and not oracle.sent("PUT")


@pytest.mark.anyio
async def test_signs_add_and_remove(oracle: Oracle) -> None:
    now = issue(3, labels=[{"name": "bug"}, {"name": "Triage"}], assignees=[{"login": "ada"}])
    oracle.answer("GET", "/repos/octo/app/issues/3", now)
    async with served(oracle, "--write") as client:
        await call(client, "edit_issue", **O, number=3, labels=["+ready", "-triage", "+bug"], assignees=["+hubot"])
        assert [seen.json for seen in oracle.sent("POST")] == [{"labels": ["ready"]}, {"assignees": ["hubot"]}]
        assert [seen.path for seen in oracle.sent("DELETE")] == ["/repos/octo/app/issues/3/labels/Triage"]
        await call(client, "edit_issue", **O, number=3, assignees=["-Ada", "-nobody"])
        assert oracle.sent("DELETE")[-1].json == {"assignees": ["ada"]}
        assert not oracle.sent("PATCH")
        await call(client, "edit_issue", **O, number=3, labels=["only"])
        assert oracle.sent("PATCH")[-1].json == {"labels": ["only"]}
        await call(client, "edit_issue", **O, number=3, labels=[])
        assert oracle.sent("PATCH")[-1].json == {"labels": []}
        assert "mixed" in await refused(client, "edit_issue", **O, number=3, labels=["+a", "b"])
        assert "Nothing" in await refused(client, "edit_issue", **O, number=3)


@pytest.mark.anyio
async def test_issues_go_by_number(oracle: Oracle) -> None:
    oracle.answer("GET", "/repos/octo/app/issues/8", issue(8, id=80808))
    async with served(oracle, "--write") as client:
        await call(client, "edit_sub_issue", **O, number=3, sub_issue=8, action="add")
        assert oracle.sent("POST", "/sub_issues")[0].json == {"sub_issue_id": 80808}


@pytest.mark.anyio
async def test_issues_have_fields_of_their_organisation(oracle: Oracle) -> None:
    values = [{"issue_field_id": 2, "issue_field_name": "Priority", "single_select_option": {"name": "High"}}]
    oracle.answer("GET", "/repos/octo/app/issues/3", issue(3, issue_field_values=values))
    oracle.answer("GET", "/repos/octo/app/issues/8", issue(8, id=80808))
    async with served(oracle, "--write") as client:
        assert (await call(client, "get_issue", **O, number=3))["data"]["custom"] == {"Priority": "High"}
        rows = (await call(client, "list_issue_options", **O, kind="custom"))["rows"]
        assert ["Priority", "single_select", ["High", "Medium"]] in rows
        await call(client, "edit_issue", **O, number=3, custom={"priority": "Medium"})
        sent = oracle.sent("POST", "/issues/3/issue-field-values$")[-1].json
        assert sent == {"issue_field_values": [{"field_id": 2, "value": "Medium"}]}
        assert "`Text field`" in await refused(client, "edit_issue", **O, number=3, custom={"prio": 1})
        await call(client, "edit_issue", **O, number=3, duplicate_of=8)
        sent = oracle.sent("PATCH")[-1].json
        assert (sent["state"], sent["state_reason"], sent["duplicate_issue_id"]) == ("closed", "duplicate", 80808)


@pytest.mark.anyio
async def test_a_star_is_given_and_taken(oracle: Oracle) -> None:
    starred = [{"starred_at": "2026-01-01T00:00:00Z", "repo": {**sample("repos/get"), "full_name": name}}
               for name in ("octo/app", "other/x")]  # fmt: skip
    oracle.pages("/user/starred", starred)
    async with served(oracle, "--toolsets", "stars", "--write", "--repos", "octo/*", "--flow", "off") as client:
        rows = (await call(client, "list_stars", fields="repo,starred_at"))["rows"]
        assert rows == [["octo/app", "2026-01-01T00:00:00Z"]]
        await call(client, "edit_star", **O)
        await call(client, "edit_star", **O, starred=False)
        await refused(client, "edit_star", repo="other/x")
    assert [seen.path for verb in ("PUT", "DELETE") for seen in oracle.sent(verb)] == ["/user/starred/octo/app"] * 2


@pytest.mark.anyio
async def test_a_merge_names_the_head_that_was_seen(oracle: Oracle) -> None:
    oracle.answer("GET", "/repos/octo/app/pulls/5", {**sample("pulls/get"), "number": 5, "changed_files": 1})
    async with served(oracle, "--write", "--merge") as client:
        said = await refused(client, "run_merge", **O, number=5, head_sha=OTHER_SHA)
        assert f"is `{SHA}`" in said and oracle.sent("PUT") == []
        await call(client, "run_merge", **O, number=5, head_sha=SHA[:7])
        assert oracle.sent("PUT")[0].json["sha"] == SHA
        oracle.answer("PUT", "/repos/octo/app/pulls/5/merge", {"message": "Pull Request is not mergeable"}, status=405)
        assert "not mergeable" in await refused(client, "run_merge", **O, number=5, head_sha=SHA)


@pytest.mark.anyio
async def test_several_branches_are_shown_and_then_deleted(oracle: Oracle) -> None:
    names = ["old/1", "old/2", "old/3"]
    oracle.pages("/repos/octo/app/pulls", [])
    for name in names:
        branch(oracle, name)
    both = {**O, "branch": names[0], "branches": names}
    async with served(oracle, "--write", "--delete") as client:
        shown = await call(client, "delete_branch", **both)
        assert shown["done"].startswith("Nothing was changed") and [row[0] for row in shown["data"]["rows"]] == names
        assert oracle.sent("DELETE") == []
        oracle.answer("DELETE", "/repos/octo/app/git/refs/heads/old/2", {"message": "Reference is locked"}, status=422)
        done = await call(client, "delete_branch", **both, dry_run=False)
        assert done["done"] == "Deleted 2 of 3 branches."
        # Whatever may be gone can be made again.
        assert done["data"]["was_at"] == dict.fromkeys(names, SHA)
        [[kept, result]] = done["data"]["rows"]
        assert done["data"]["columns"] == ["branch", "result"]
        assert kept == "old/2" and "Reference is locked" in result
        assert len(oracle.sent("DELETE")) == 3
        assert "default branch" in await refused(client, "delete_branch", **O, branch="x", branches=["main"])
        assert "No branch is named" in await refused(client, "delete_branch", **O)
        assert len(oracle.sent("DELETE")) == 3
        done = await call(client, "delete_branch", **O, branches=["old/1", "old/3"], dry_run=False)
        assert done["done"] == "Deleted 2 of 2 branches."
        assert done["data"] == {"was_at": {"old/1": SHA, "old/3": SHA}}


@pytest.mark.anyio
async def test_the_end_of_the_time_leaves_an_answer_that_says_which_branches_are_deleted(
    oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["old/1", "old/2", "old/3"]
    oracle.pages("/repos/octo/app/pulls", [])
    for name in names:
        branch(oracle, name)
    monkeypatch.setattr(anyio, "current_effective_deadline", lambda: anyio.current_time() + 40)
    async with served(oracle, "--write", "--delete") as client:
        done = await call(client, "delete_branch", **O, branch=names[0], branches=names, dry_run=False)
        assert done["done"] == "Deleted 1 of 3 branches." and len(oracle.sent("DELETE")) == 1
        assert list(done["data"]["was_at"]) == names[:1]
        assert done["data"]["rows"] == [[name, "not tried, as too little time is left"] for name in names[1:]]


@pytest.mark.anyio
async def test_a_tag_is_no_branch_to_delete(oracle: Oracle) -> None:
    branch(oracle, "old")
    oracle.answer("GET", "/repos/octo/app/git/ref/heads/v1", {"message": "Not Found"}, status=404)
    oracle.answer("GET", "/repos/octo/app/commits/v1", {"sha": SHA})
    async with served(oracle, "--write", "--delete") as client:
        said = await refused(client, "delete_branch", **O, branch="old", branches=["v1"])
        assert "There is no branch `v1` of `octo/app`. `list_refs` shows branches." in said


@pytest.mark.anyio
async def test_who_deletes_a_branch_of_a_fork_is_told_of_the_parent(oracle: Oracle) -> None:
    oracle.pages("/repos/octo/app/pulls", [])
    branch(oracle, "old")
    repository = {**sample("repos/get"), "default_branch": "main", "parent": {"full_name": "top/app"}}
    oracle.answer("GET", "/repos/octo/app", repository)
    async with served(oracle, "--write", "--delete") as client:
        assert "into `top/app` were not looked for" in str(await call(client, "delete_branch", **O, branches=["old"]))
        oracle.answer("GET", "/repos/octo/app", {**repository, "parent": None})
        assert "not looked for" not in str(await call(client, "delete_branch", **O, branches=["old"]))


@pytest.mark.anyio
async def test_a_branch_of_pull_requests_is_kept_whatever_its_repository_is_called_by_now(oracle: Oracle) -> None:
    branch(oracle, "old")
    end = {"ref": "old", "repo": {"full_name": "octo/renamed"}}
    other = {**end, "ref": "other"}
    for ends in ({"base": end, "head": other}, {"base": other, "head": end}):
        oracle.pages("/repos/octo/app/pulls", [{"number": 7, **ends}])
        async with served(oracle, "--write", "--delete") as client:
            assert "#7" in await refused(client, "delete_branch", **O, branch="old")


@pytest.mark.anyio
async def test_a_branch_of_a_known_pull_request_is_kept_where_others_cannot_be_read(oracle: Oracle) -> None:
    branch(oracle, "old")
    end = {"ref": "old", "repo": {"full_name": "octo/app"}}
    oracle.answer("GET", "/repos/octo/app/pulls", {"message": "Resource not accessible"}, status=403)
    oracle.answer("GET", "/repos/octo/app/pulls", [{"number": 7, "base": end, "head": {**end, "ref": "y"}}], times=1)
    async with served(oracle, "--write", "--delete") as client:
        assert "#7" in await refused(client, "delete_branch", **O, branch="old")
    assert not oracle.sent("DELETE")


@pytest.mark.anyio
async def test_a_branch_of_the_last_of_many_open_pull_requests_is_kept(oracle: Oracle) -> None:
    """GitHub lists those of all branches where it cannot use a filter."""
    branch(oracle, "old")
    end = {"ref": "old", "repo": {"full_name": "octo/app"}}
    others = [{"number": n, "base": {**end, "ref": "main"}, "head": {**end, "ref": f"x{n}"}} for n in range(1, 251)]
    oracle.pages("/repos/octo/app/pulls", [*others, {"number": 7, "base": end, "head": {**end, "ref": "y"}}])
    async with served(oracle, "--write", "--delete") as client:
        assert "#7" in await refused(client, "delete_branch", **O, branch="old")
    assert not oracle.sent("DELETE")


@pytest.mark.anyio
async def test_the_default_branch_is_not_deleted(oracle: Oracle) -> None:
    async with served(oracle, "--write", "--delete") as client:
        assert "default branch" in await refused(client, "delete_branch", **O, branch="main")
        oracle.answer("POST", "/repos/octo/app/git/refs", {"message": "Reference already exists"}, status=422)
        assert "exists already" in await refused(client, "create_branch", **O, branch="x", ref="main")
    assert oracle.sent("DELETE") == []


@pytest.mark.anyio
async def test_a_comment_outside_of_the_diff_is_said(oracle: Oracle) -> None:
    body = {"message": "Unprocessable Entity", "errors": ["Pull request review thread line must be part of the diff"]}
    oracle.answer("POST", "/repos/octo/app/pulls/5/reviews", body, status=422)
    async with served(oracle, "--write") as client:
        said = await refused(client, "create_review", **O, number=5, comments=[{"path": "a", "line": 9, "body": "B"}])
        assert "must be part of the diff" in said


@pytest.mark.anyio
async def test_writes_keep_their_distance(oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(anyio, "sleep", sleep)
    one = rate_limits.RateLimits(1.0)
    for _ in range(3):
        async with one.write_slot():
            await anyio.lowlevel.checkpoint()
    assert waited[0] == 0 and all(0.5 < seconds <= 1.0 for seconds in waited[1:])


@pytest.mark.anyio
async def test_a_write_whose_turn_does_not_come_is_not_begun(oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = threading.Event()

    def hold(seen: Seen) -> Reply:
        begun.set()
        return Reply(held=True)

    oracle.respond("POST", "/repos/octo/app/issues", hold)
    monkeypatch.setattr(rate_limits, "MAX_TURN_SECONDS", 0.1)
    async with served(oracle, "--write") as client, anyio.create_task_group() as calls:
        calls.start_soon(client.call_tool, "create_issue", {**O, "title": "T"})
        assert await anyio.to_thread.run_sync(begun.wait, 20)
        said = await refused(client, "edit_issue", **O, number=3, title="T")
        assert "Other changes are still under way" in said and "this one was not begun" in said
        calls.cancel_scope.cancel()
    assert not oracle.sent("PATCH")


@pytest.mark.anyio
async def test_no_call_ends_before_its_time_for_github(oracle: Oracle) -> None:
    for timeout, seconds in (("1", 60), ("300", 330)):
        table = tools(build(settings(oracle, "--timeout", timeout)))
        assert table["get_issue"].seconds == seconds
        assert table["list_checks"].seconds == 3120


@pytest.mark.anyio
async def test_a_project_goes_by_the_names_people_see(oracle: Oracle) -> None:
    fields = [
        {
            "id": 5,
            "name": "Status",
            "data_type": "single_select",
            "options": [{"id": "f1", "name": {"raw": "Done", "html": ""}}],
        },
        {"id": 6, "name": "Size", "data_type": "single_select", "options": [{"id": "f8", "name": {"raw": "8"}}]},
        {"id": 7, "name": "Days", "data_type": "number"},
        {"id": 8, "name": "Note", "data_type": "text"},
    ]
    oracle.answer("GET", "/users/octo/projectsV2/1/fields", fields)
    oracle.respond(
        "PATCH", "/users/octo/projectsV2/1/items/7", lambda seen: Reply(200, sample("projects/list-items-for-user"))
    )
    async with served(oracle, "--write", "--toolsets", "projects") as client:
        place = {"owner": "octo", "project": 1, "item": 7}
        await call(client, "edit_project_item", **place, field="status", value="done")
        assert oracle.sent("PATCH")[0].json == {"fields": [{"id": 5, "value": "f1"}]}
        assert "`Done`" in await refused(client, "edit_project_item", **place, field="Status", value="Later")
        assert "`Status`" in await refused(client, "edit_project_item", **place, field="State", value="1")
        for field, value, sent in (
            ("Size", 8, "f8"), ("Size", "8", "f8"), ("Days", "3", 3), ("Days", 0.5, 0.5), ("Note", 8, "8"),
            ("Days", None, None),
        ):  # fmt: skip
            await call(client, "edit_project_item", **place, field=field, value=value)
            assert oracle.sent("PATCH")[-1].json["fields"][0]["value"] == sent
        said = await refused(client, "edit_project_item", **place, field="Days", value="soon")
        assert "`Days` takes a number, not `soon`. Pass one such as 3 or 0.5; null clears the field." in said


@pytest.mark.anyio
async def test_a_draft_is_shown_with_its_readers_and_nothing_is_sent(oracle: Oracle) -> None:
    oracle.private.add("octo/own")
    secret = "ghp_" + "a1B2" * 9
    written = {"title": "T", "body": f"see https://a.example and {secret}\u200b", "dry_run": True}
    async with served(oracle, "--write") as client:
        found = (await call(client, "create_issue", repo="octo/app", labels=["bug"], **written))["data"]
        assert (found["repo"], found["public"], found["sends"]["labels"]) == ("octo/app", True, ["bug"])
        assert oracle.sent("POST") == []
        await call(client, "create_issue", repo="octo/app", labels=["bug"], title="T", body="see a.example")
        assert [words in "; ".join(found["notes"]) for words in ("a.example", "GitHub token", "1 invisible")] == [
            True
        ] * 3
        # What would leave is asked about when it leaves, and not before.
        await call(client, "get_issue", repo="octo/app", number=3)
        found = (await call(client, "create_pull_request", repo="octo/own", head="x", base="main", **written))["data"]
        assert found["public"] is False
        assert "cannot ask" in await refused(client, "create_issue", repo="octo/own", title="T")
    assert len(oracle.sent("POST")) == 1


def empty(oracle: Oracle) -> None:
    """A repository without a commit, until a file was put into it."""
    oracle.answer("GET", "/repos/octo/new/git/.*", {"message": "Git Repository is empty."}, status=409)
    made = {"content": None, "commit": {"sha": OTHER_SHA, "html_url": "https://github.com/octo/new/commit/1"}}
    oracle.answer("PUT", "/repos/octo/new/contents/.*", made, status=201)
    not_found(oracle, "GET", "/repos/octo/new/contents/src/.*")


@pytest.mark.anyio
@pytest.mark.parametrize("count", [1, 2])
async def test_an_empty_repository_gets_its_first_commit(count: int, oracle: Oracle) -> None:
    """GitHub makes no git object in it, but takes one file; what else there is goes on top."""
    empty(oracle)
    files = [{"path": "README.md", "content": "# ü"}, {"path": "src/b #.txt", "content": "b"}][:count]
    async with served(oracle, "--write") as client:
        done = await call(client, "write_files", repo="octo/new", branch="main", message="First", files=files)
    (first,) = oracle.sent("PUT")
    assert first.json == {"message": "First", "branch": "main", "content": base64.b64encode("# ü".encode()).decode()}
    if count == 1:
        # The caller knows its files.
        assert done["done"] == "Committed 1 file to main." and done["data"] == {"commit": OTHER_SHA}
        return
    given = oracle.sent("POST", "/graphql")[0].json["variables"]["input"]
    assert given["expectedHeadOid"] == OTHER_SHA and [item["path"] for item in given["fileChanges"]["additions"]] == [
        "src/b #.txt"
    ]
    assert "in two commits" in done["done"] and done["data"]["commit"] == "a" * 40


@pytest.mark.anyio
async def test_what_an_empty_repository_got_already_is_told_with_a_failure(oracle: Oracle) -> None:
    empty(oracle)
    oracle.answer("POST", "/graphql", {"message": "Server Error"}, status=500)
    files = [{"path": "README.md", "content": "a"}, {"path": "b.txt", "content": "b"}]
    async with served(oracle, "--write") as client:
        said = await refused(client, "write_files", repo="octo/new", branch="main", message="First", files=files)
        assert "`README.md` is committed to main" in said and "Call again with the others alone." in said, said
        oracle.graphql("CommitOnBranch", {})
        branch(oracle, "octo/new")
        not_found(oracle, "GET", "/repos/octo/new/contents/b.txt")
        await call(client, "write_files", repo="octo/new", branch="main", message="Second", files=files[1:])


@pytest.mark.anyio
@pytest.mark.parametrize(
    "second",
    [
        {"sha": SHA, "content": "x"}, {"delete": True}, {"edits": [{"old": "a", "new": "b"}]},
        {"content": "%%%", "base64": True},
    ],
)  # fmt: skip
async def test_what_cannot_be_in_an_empty_repository_makes_no_commit(second: dict[str, Any], oracle: Oracle) -> None:
    empty(oracle)
    files = [{"path": "a", "content": "x"}, {"path": "b", **second}]
    async with served(oracle, "--write") as client:
        await refused(client, "write_files", repo="octo/new", branch="main", message="First", files=files)
    assert oracle.sent("PUT") == oracle.sent("POST") == []


@pytest.mark.anyio
async def test_what_was_made_before_a_failure_is_told(oracle: Oracle) -> None:
    where, pull = "/repos/octo/app/pulls", {**sample("pulls/get"), "number": 8}
    oracle.answer("POST", "/repos/octo/app/issues", issue(12), status=201)
    not_found(oracle, "POST", "/repos/octo/app/issues/999/sub_issues")
    oracle.answer("POST", where, pull, status=201)
    oracle.answer("GET", f"{where}/8", pull)
    oracle.answer("PATCH", f"{where}/8", {**pull, "title": "T"})
    said = {"message": "Reviews may only be requested from collaborators."}
    oracle.answer("POST", f"{where}/8/requested_reviewers", said, status=422)
    asked: dict[str, Any] = {**O, "reviewers": ["stranger"]}
    async with served(oracle, "--write") as client:
        text = await refused(client, "create_issue", **O, title="T", parent=999)
        assert "Issue #12 is created, the rest is not" in text and "`edit_sub_issue`" in text
        text = await refused(client, "create_pull_request", **asked, title="T", head="fix", base="main")
        assert "Pull request #8 is created, the rest is not" in text and "only be requested" in text
        text = await refused(client, "edit_pull_request", **asked, number=8, title="T")
        assert "`title` of #8 is changed, the rest is not" in text and "Call again with what is left." in text
        chosen = {**pull, "requested_reviewers": [{"login": "ada"}]}
        oracle.answer("POST", f"{where}/8/requested_reviewers", chosen, status=201, times=1)
        await call(client, "edit_pull_request", **O, number=8, reviewers=["ada"])
        # Where nothing was changed, nothing is said of it.
        assert "the rest" not in await refused(client, "edit_pull_request", **asked, number=8)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("reviewers", "more", "less"),
    [
        (["-octo/Core", "-hubot"], [], ["Hubot", "octo/core"]),
        (["hubot", "octo/core"], [], ["copilot-pull-request-reviewer[bot]"]),
        (["+HUBOT", "copilot", "+octo/docs"][::2], ["octo/docs"], []),
        (["-copilot"], [], ["copilot-pull-request-reviewer[bot]"]),
    ],
)
async def test_reviewers_are_people_teams_and_copilot(
    reviewers: list[str], more: list[str], less: list[str], oracle: Oracle
) -> None:
    asked = [{"login": "Hubot"}, {"login": "Copilot"}]
    pull = {**sample("pulls/get"), "requested_reviewers": asked, "requested_teams": [{"slug": "core"}]}
    oracle.answer("GET", "/repos/octo/app/pulls/8", pull)
    async with served(oracle, "--write") as client:
        await call(client, "edit_pull_request", **O, number=8, reviewers=reviewers)
    for verb, names in (("POST", more), ("DELETE", less)):
        bodies = [seen.json for seen in oracle.sent(verb, "requested_reviewers")]
        assert [name for body in bodies for name in body.get("reviewers", [])] == [
            name for name in names if "/" not in name
        ]
        teams = [f"octo/{name}" for body in bodies for name in body.get("team_reviewers", [])]
        assert teams == [name for name in names if "/" in name]
