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
