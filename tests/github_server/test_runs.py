"""What GitHub would run or publish for a model that was talked into it: files of Actions, runs, releases."""

from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from github_server.oracle import Oracle
from github_server.serving import EVERYTHING, call, refused, served
from github_server.test_attacks import ONLY, answering, world
from github_server.world import OTHER_SHA, SHA, branch, changed, not_found, sample


@pytest.mark.anyio
@pytest.mark.parametrize(
    "path",
    [
        ".github/workflows/x.yml",
        ".GitHub/Workflows/x.yml",
        "/.github/workflows/x.yml",
        "action.yml",
        "a/action.yaml",
        ".git/config",
    ],
)
async def test_files_that_run_are_not_written(path: str, oracle: Oracle) -> None:
    branch(oracle)
    async with served(oracle, *ONLY) as client:
        files = [{"path": "a.txt", "content": "x"}, {"path": path, "content": "on: push"}]
        await refused(client, "write_files", repo="octo/app", branch="main", message="m", files=files)
    assert oracle.seen == []


@pytest.mark.anyio
async def test_files_that_run_do_not_come_by_branch_or_merge(oracle: Oracle) -> None:
    not_found(oracle, "GET", f"/repos/octo/app/git/ref/heads/{OTHER_SHA}")
    oracle.answer("GET", f"/repos/octo/app/commits/{OTHER_SHA}", {**sample("repos/get-commit"), "sha": OTHER_SHA})
    files = [changed("a.txt"), changed(".github/workflows/x.yml", status="added")]
    oracle.answer("GET", rf"/repos/octo/app/compare/main\.\.\.{OTHER_SHA}", {"files": files})
    oracle.answer("GET", "/repos/octo/app/pulls/5/files", files)
    async with served(oracle, *ONLY) as client:
        said = await refused(client, "create_branch", repo="octo/app", branch="x", ref=OTHER_SHA)
        assert "workflow" in said
        said = await refused(client, "run_merge", repo="octo/app", number=5, head_sha=SHA)
        assert "not merged" in said
    assert oracle.sent("POST") == oracle.sent("PUT") == []
    not_found(oracle, "GET", "/repos/octo/app/compare/.*")
    async with served(oracle, *ONLY) as client:
        await refused(client, "create_branch", repo="octo/app", branch="x", ref=OTHER_SHA)
    assert oracle.sent("POST") == []
    async with served(oracle, *ONLY, "--workflow-files") as client:
        await call(client, "create_branch", repo="octo/app", branch="x", ref=OTHER_SHA)
        await call(client, "run_merge", repo="octo/app", number=5, head_sha=SHA)


@pytest.mark.anyio
async def test_workflows_do_not_hide_behind_what_github_lists(oracle: Oracle) -> None:
    """A comparison lists 300 files and a pull request 3,000: who names the others chooses which."""
    not_found(oracle, "GET", f"/repos/octo/app/git/ref/heads/{OTHER_SHA}")
    oracle.answer("GET", f"/repos/octo/app/commits/{OTHER_SHA}", {**sample("repos/get-commit"), "sha": OTHER_SHA})
    files = [changed(f"!{number}.txt") for number in range(300)]
    oracle.answer("GET", rf"/repos/octo/app/compare/main\.\.\.{OTHER_SHA}", {"files": files})
    oracle.answer("GET", "/repos/octo/app/pulls/5", {**sample("pulls/get"), "number": 5, "changed_files": 301})
    oracle.pages("/repos/octo/app/pulls/5/files", files)
    away = changed("x.txt", status="renamed", previous_filename=".github/workflows/scan.yml")
    oracle.answer("GET", "/repos/octo/app/pulls/6", {**sample("pulls/get"), "number": 6, "changed_files": 1})
    oracle.answer("GET", "/repos/octo/app/pulls/6/files", [away])
    async with served(oracle, *ONLY) as client:
        said = await refused(client, "create_branch", repo="octo/app", branch="x", ref=OTHER_SHA)
        assert "can't all be told" in said
        assert "300 of the 301" in await refused(client, "run_merge", repo="octo/app", number=5, head_sha=SHA)
        assert "scan.yml" in await refused(client, "run_merge", repo="octo/app", number=6, head_sha=SHA)
    assert oracle.sent("POST") == oracle.sent("PUT") == []


@pytest.mark.anyio
async def test_gates_are_closed_one_by_one(oracle: Oracle) -> None:
    gated = {
        "run_merge": "--merge",
        "delete_branch": "--delete",
        "delete_repository": "--delete",
        "delete_comment": "--delete",
        "move_branch": "--force",
    }
    async with served(oracle, "--write") as client:
        offered = {tool.name for tool in (await client.list_tools()).tools}
        assert offered.isdisjoint(gated)
    for name, flag in gated.items():
        async with served(oracle, "--write", flag) as client:
            assert name in {tool.name for tool in (await client.list_tools()).tools}
        with pytest.raises(SystemExit):
            async with served(oracle, flag):
                pytest.fail("a gate alone opens nothing, and is refused")
    async with served(oracle, *EVERYTHING, "--read-only") as client:
        hints = [tool.annotations for tool in (await client.list_tools()).tools]
        assert all(hint and hint.read_only_hint for hint in hints)


RUNS = ("--toolsets", "repos,issues,actions,releases", "--write", "--runs", "--releases", "--flow", "off")


WORKFLOW = changed(".github/workflows/x.yml", status="added")


def compared(oracle: Oracle, sha: str, *files: Any, status: str = "ahead") -> None:
    oracle.answer("GET", rf"/repos/octo/app/compare/main\.\.\.{sha}", {"files": list(files), "status": status})


@pytest.mark.anyio
async def test_nothing_is_run_or_published_without_its_gate(oracle: Oracle) -> None:
    for gate, names in (
        ("--runs", {"run_workflow", "edit_run"}), ("--releases", {"create_release", "edit_release"}),
    ):  # fmt: skip
        async with served(oracle, *(word for word in RUNS if word != gate)) as client:
            assert names.isdisjoint({tool.name for tool in (await client.list_tools()).tools})
            for name in names:
                with pytest.raises(MCPError):
                    await client.call_tool(name, {"repo": "octo/app"})
        async with served(oracle, *RUNS, "--read-only") as client:
            assert names.isdisjoint({tool.name for tool in (await client.list_tools()).tools})
    assert oracle.seen == []


@pytest.mark.anyio
async def test_a_workflow_is_not_run_as_a_branch_changed_it(oracle: Oracle) -> None:
    branch(oracle, "evil", OTHER_SHA)
    branch(oracle, "good", SHA)
    compared(oracle, OTHER_SHA, changed("a.txt"), WORKFLOW)
    compared(oracle, SHA, changed("a.txt"))
    call_it = {"repo": "octo/app", "workflow": "deploy.yml"}
    async with served(oracle, *RUNS) as client:
        assert "workflow" in await refused(client, "run_workflow", **call_it, ref="evil")
        assert oracle.sent("POST") == []
        await call(client, "run_workflow", **call_it, ref="good")
        await call(client, "run_workflow", **call_it, ref="main")
    async with served(oracle, *RUNS, "--workflow-files") as client:
        await call(client, "run_workflow", **call_it, ref="evil")
    assert len(oracle.sent("POST")) == 3


@pytest.mark.share(2)
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("run", "words", "opened"),
    [
        ({"event": "pull_request_target"}, "secrets", True),
        ({"event": "workflow_run"}, "secrets", True),
        ({"event": "pull_request", "status": "completed", "conclusion": "action_required"}, "approval", False),
        ({"event": "pull_request", "status": "action_required", "conclusion": None}, "approval", False),
    ],
)
async def test_a_privileged_run_of_a_fork_is_not_repeated(
    run: dict[str, Any], words: str, opened: bool, oracle: Oracle
) -> None:
    oracle.answer("GET", "/repos/octo/app/actions/runs/9", {**sample("actions/get-workflow-run"), "id": 9, **run})
    ask = {"repo": "octo/app", "run_id": 9}
    async with served(oracle, *RUNS) as client:
        for action in ("rerun", "rerun_failed"):
            assert words in await refused(client, "edit_run", **ask, action=action)
        assert oracle.sent("POST") == []
        await call(client, "edit_run", **ask, action="cancel")
    async with served(oracle, *RUNS, "--workflow-files") as client:
        await (call if opened else refused)(client, "edit_run", **ask, action="rerun")
    oracle.answer("GET", "/repos/octo/app/actions/runs/9", {**sample("actions/get-workflow-run"), "event": "push"})
    async with served(oracle, *RUNS) as client:
        await call(client, "edit_run", **ask, action="rerun")


@pytest.mark.anyio
async def test_a_release_brings_no_workflow_and_nothing_of_a_fork(oracle: Oracle) -> None:
    branch(oracle, "evil", OTHER_SHA)
    compared(oracle, OTHER_SHA, WORKFLOW)
    # A commit that is in no branch here, though GitHub finds it under this repository.
    not_found(oracle, "GET", f"/repos/octo/app/git/ref/heads/{SHA}")
    oracle.answer("GET", f"/repos/octo/app/commits/{SHA}", {**sample("repos/get-commit"), "sha": SHA})
    compared(oracle, SHA, changed("a.txt"), status="diverged")
    not_found(oracle, "GET", "/repos/octo/app/git/ref/tags/v[2-9]")
    # A tag that is there, and holds what the branch does.
    oracle.answer("GET", "/repos/octo/app/commits/tags/v1", {**sample("repos/get-commit"), "sha": OTHER_SHA})
    drafts = [
        {**sample("repos/get-release"), "id": 7, "tag_name": "v3", "draft": True, "target_commitish": "evil"},
        {**sample("repos/get-release"), "id": 8, "tag_name": "v4", "draft": True, "target_commitish": "main"},
    ]
    not_found(oracle, "GET", "/repos/octo/app/releases/tags/.*")
    oracle.answer("GET", "/repos/octo/app/releases", drafts)
    async with served(oracle, *RUNS) as client:
        for draft in (True, False):
            for more, words in (
                ({"tag": "v2", "ref": "evil"}, "workflow"), ({"tag": "v2", "ref": SHA}, "fork"),
                ({"tag": "v1"}, "workflow"),
            ):  # fmt: skip
                assert words in await refused(client, "create_release", repo="octo/app", **more, draft=draft)
        assert "workflow" in await refused(client, "edit_release", repo="octo/app", tag="v3", draft=False)
        assert oracle.sent("POST") == oracle.sent("PATCH") == []
        done = await call(client, "create_release", repo="octo/app", tag="v2", draft=False)
        assert done["done"] == "Created release v2."
        await call(client, "edit_release", repo="octo/app", tag="v4", draft=False)
        compared(oracle, SHA, changed("a.txt"), status="behind")
        await call(client, "create_release", repo="octo/app", tag="v2", ref=SHA)


@pytest.mark.anyio
async def test_running_and_publishing_is_asked_about_after_anybodys_text(oracle: Oracle) -> None:
    world(oracle)
    not_found(oracle, "GET", "/repos/octo/app/git/ref/tags/v2")
    asked: list[str] = []
    arguments = [word for word in RUNS if word not in ("--flow", "off")]
    release = {"repo": "octo/app", "tag": "v2"}
    acts = [
        ("run_workflow", {"repo": "octo/app", "workflow": "deploy.yml", "ref": "main", "inputs": {"x": "$(id)"}}),
        ("create_release", {**release, "draft": False}),
        ("edit_release", {**release, "draft": False}),
    ]
    async with served(oracle, *arguments, elicitation_callback=answering("decline", asked)) as client:
        await call(client, "list_comments", repo="octo/app", number=3)
        for number, (tool, values) in enumerate(acts, 1):
            await refused(client, tool, **values)
            assert len(asked) == number and "anybody" in asked[-1] and tool in asked[-1]
        assert oracle.sent("POST") == oracle.sent("PATCH") == []
        # What a person still has to publish is a text like another.
        done = await call(client, "create_release", **release)
        assert done["done"] == ("Created release v2. It is a draft: `edit_release` with draft=false publishes it.")
        assert len(asked) == 3
    # What nobody else can write was nobody else's idea; nor was a call without any reading before.
    async with served(oracle, *arguments, elicitation_callback=answering("decline", asked)) as client:
        await call(client, *acts[0][:1], **acts[0][1])
        await call(client, "read_file", repo="octo/private", path="secrets.md")
        await call(client, "run_workflow", repo="octo/private", workflow="deploy.yml", ref="main")
    assert len(asked) == 3
