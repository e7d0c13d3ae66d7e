"""Names that models know from other servers of GitHub, or guess from those of ours."""

from typing import Any

import pytest

from github_server.oracle import Oracle
from github_server.serving import EVERYTHING, call, refused, served

O: dict[str, Any] = {"repo": "octo/app"}  # noqa: E741
CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("list_branches", {}, "/repos/octo/app/branches"),
    ("list_labels", {}, "/repos/octo/app/labels"),
    ("list_milestones", {}, "/repos/octo/app/milestones"),
    ("list_workflow_runs", {"branch": "main"}, "/repos/octo/app/actions/runs"),
    ("list_workflows", {}, "/repos/octo/app/actions/workflows"),
    ("list_jobs", {"run_id": 9}, "/repos/octo/app/actions/runs/9/jobs"),
    ("get_latest_release", {}, "/repos/octo/app/releases/latest"),
    ("search_issues", {"query": "x"}, "/search/issues"),
    ("search_code", {"query": "x"}, "/search/code"),
]


@pytest.mark.anyio
async def test_a_name_that_models_know_is_answered(oracle: Oracle) -> None:
    async with served(oracle, *EVERYTHING) as client:
        for name, arguments, path in CALLS:
            await call(client, name, **O, **arguments)
            assert oracle.seen[-1].path == path, name
        script = 'print(list_labels.all({repo: "octo/app"}).length >= 0)'
        assert "true" in await call(client, "call_tools", script=script)


@pytest.mark.anyio
async def test_another_name_opens_no_gate(oracle: Oracle) -> None:
    async with served(oracle, "--write") as client:
        said = await refused(client, "call_tools", script='merge_pull_request({repo: "octo/app", number: 5})')
        assert "is not defined" in said
        said = await refused(
            client, "call_tools", script='update_issue({repo: "octo/app", number: 5, state: "closed"})'
        )
        assert "changes things" in said
    assert not oracle.seen


@pytest.mark.anyio
@pytest.mark.parametrize("more", [(), ("--repos", "octo/app")], ids=["all", "one"])
async def test_a_repository_whose_owner_is_apart_is_the_one_that_both_name(
    more: tuple[str, ...], oracle: Oracle
) -> None:
    """So the servers have it whose tools are called `get_file_contents` and the like."""
    apart = {"owner": "octo", "repo": "app"}
    async with served(oracle, "--write", *more) as client:
        await call(client, "list_branches", **apart)
        assert oracle.seen[-1].path == "/repos/octo/app/branches"
        done = await call(client, "update_issue", **apart, number=7, title="Mended")
        assert done["uri"] == "github://octo/app/issues/7"
        oracle.seen.clear()
        for mistake in ({"owner": "octo", "repo": "octo/app"}, {"owner": 7, "repo": "app"}):
            assert "no argument `owner`" in await refused(client, "list_branches", **mistake)
    assert oracle.seen == []


@pytest.mark.anyio
async def test_an_owner_apart_opens_no_other_repository(oracle: Oracle) -> None:
    async with served(oracle, "--repos", "octo/app") as client:
        said = await refused(client, "get_issue", owner="octo", repo="other", number=7)
        assert "`octo/other` is not served here" in said
    # A proxy that decides by headers has seen only a part of the name.
    async with served(oracle, "--param-headers", "--transport", "http") as client:
        said = await refused(client, "get_issue", owner="octo", repo="app", number=7)
        assert "`repo` was sent in another form. Send repo=`octo/app`" in said
    assert oracle.seen == []


@pytest.mark.anyio
async def test_the_owner_of_a_project_is_no_part_of_the_name_of_a_repository(oracle: Oracle) -> None:
    async with served(oracle, *EVERYTHING) as client:
        item = {"owner": "octo", "project": 1, "repo": "app", "number": 7}
        assert "names no repository" in await refused(client, "create_project_item", **item)
    assert oracle.seen == []
