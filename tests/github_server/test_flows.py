"""Whole pieces of work, as a model would do them: on an emulator of GitHub that remembers, by somebody else.

It is npm's `emulate`, which has no GraphQL and no runs that fail: the log of one is read from the oracle instead.
"""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp import Client

from e2e import npm
from e2e.services import Service, free_port
from github_server.oracle import Oracle
from github_server.serving import call, refused
from github_server.world import sample
from mcp_batteries.settings import load
from mcp_github.server import build
from mcp_github.settings import Settings

EMULATE = "emulate"
EMULATE_VERSION = "0.12.2"
WORLD = {
    "users": [{"login": "octocat", "name": "The Octocat"}, {"login": "hubot", "name": "A helper"}],
    "repos": [{"owner": "octocat", "name": "app", "auto_init": True}],
}
O = {"repo": "octocat/app"}  # noqa: E741 - it stands in every line

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def emulated(scratch: Path, *arguments: str) -> AsyncGenerator[Client]:
    """A client of a server that works on an emulator of its own."""
    program = npm.program(npm.installed(f"{EMULATE}@{EMULATE_VERSION}"), EMULATE)
    seed, port = scratch / "seed.json", free_port()
    seed.write_text(json.dumps({"github": WORLD}), "utf-8")
    url = f"http://127.0.0.1:{port}"
    command = [npm.NODE, program, "start", "--port", str(port), "--service", "github", "--seed", str(seed)]
    service = Service([*command, "--base-url", url], port, url)
    await service.start()
    try:
        settings = load(Settings, ["--api-url", url, "--write-interval", "0", "--write", *arguments])
        async with Client(build(settings)) as client:
            yield client
    finally:
        service.kill()


def rows(found: dict) -> list[dict]:
    return [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]


async def test_a_change_is_made_reviewed_and_merged(tmp_path: Path) -> None:
    async with emulated(tmp_path, "--merge") as client:
        assert (await call(client, "get_repository", **O))["data"]["default_branch"] == "main"
        await call(client, "create_branch", **O, branch="feature/greeting")
        files = [
            {"path": "src/greet.py", "content": "def greet():\n    return 'hi'\n"},
            {"path": "docs/greet.md", "content": "# Greeting\n"},
        ]
        await call(client, "write_files", **O, branch="feature/greeting", message="Greet", files=files)
        text = await call(client, "read_file", **O, path="src/greet.py", ref="feature/greeting")
        assert "return 'hi'" in text
        # A file that exists is changed by what was read of it, and by nothing else.
        replaced = {"path": "src/greet.py", "content": "x"}
        said = await refused(client, "write_files", **O, branch="feature/greeting", message="x", files=[replaced])
        change = {"path": "src/greet.py", "edits": [{"old": "'hi'", "new": "'hello'"}]}
        sha = said.partition("its sha is `")[2].partition("`")[0]
        assert sha in text
        await call(
            client, "write_files", **O, branch="feature/greeting", message="More", files=[{**change, "sha": sha}]
        )
        await call(client, "create_pull_request", **O, title="Greet", head="feature/greeting", base="main", body="Hi.")
        (pull,) = rows(await call(client, "list_pull_requests", **O))
        number = pull["number"]
        # The emulator knows what differs between branches, and makes up the files of a pull request.
        diff = await call(client, "read_diff", **O, ref="feature/greeting", base="main")
        assert "src/greet.py" in diff and "docs/greet.md" in diff
        await call(client, "create_review", **O, number=number, event="COMMENT", body="Reads well.")
        (review,) = rows(await call(client, "list_reviews", **O, number=number))
        assert "Reads well." in json.dumps(review)
        found = (await call(client, "get_pull_request", **O, number=number))["data"]
        assert "run_merge" in {tool.name for tool in (await client.list_tools()).tools}
        await refused(client, "run_merge", **O, number=number, head_sha="0" * 40)
        head = rows(await call(client, "list_commits", **O, number=number))[-1]["sha"]
        assert found["state"] == "open"
        await call(client, "run_merge", **O, number=number, head_sha=head, method="squash")
        assert "return 'hello'" in await call(client, "read_file", **O, path="src/greet.py")
        assert rows(await call(client, "list_pull_requests", **O)) == []


async def test_issues_are_triaged(tmp_path: Path) -> None:
    async with emulated(tmp_path, "--toolsets", "issues,labels") as client:
        for name in ("crash", "question"):
            await call(client, "create_label", **O, name=name, color="ff0000")
        for title in ("It crashes", "How do I?", "It crashes too"):
            await call(client, "create_issue", **O, title=title, body="Body.", labels=["question"])
        first, second, third = sorted(item["number"] for item in rows(await call(client, "list_issues", **O)))
        names = {row["name"] for row in rows(await call(client, "list_issue_options", **O, kind="labels"))}
        assert {"crash", "question"} <= names
        await call(client, "edit_issue", **O, number=first, labels=["+crash", "-question"], assignees=["hubot"])
        await call(client, "create_comment", **O, number=second, body="See the handbook.")
        await call(client, "edit_issue", **O, number=second, state="closed", state_reason="completed")
        await call(client, "create_comment", **O, number=third, body=f"The same as #{first}.")
        await call(client, "edit_issue", **O, number=third, state="closed", state_reason="not_planned")
        (left,) = rows(await call(client, "list_issues", **O))
        assert left["number"] == first
        about = (await call(client, "get_issue", **O, number=first))["data"]
        assert about["labels"] == ["crash"] and about["assignees"] == ["hubot"]
        (said,) = rows(await call(client, "list_comments", **O, number=third))
        assert f"#{first}" in json.dumps(said)


async def test_a_failed_run_is_understood(oracle: Oracle) -> None:
    """From the pull request's checks to the line that says why."""
    run, job = sample("actions/get-workflow-run"), sample("actions/get-job-for-workflow-run")
    run = {**run, "id": 9, "status": "completed", "conclusion": "failure"}
    steps = [{**job["steps"][0], "name": "Compile", "conclusion": "success"},
             {**job["steps"][0], "name": "Test", "number": 2, "conclusion": "failure"}]  # fmt: skip
    jobs = [{**job, "id": 7, "run_id": 9, "name": "lint", "status": "completed", "conclusion": "success", "steps": []},
            {**job, "id": 8, "run_id": 9, "name": "test", "status": "completed", "conclusion": "failure",
             "steps": steps}]  # fmt: skip
    oracle.answer("GET", "/repos/octo/app/actions/runs", {"total_count": 1, "workflow_runs": [run]})
    oracle.answer("GET", "/repos/octo/app/actions/runs/9", run)
    oracle.answer("GET", "/repos/octo/app/actions/runs/9/jobs", {"total_count": 2, "jobs": jobs})
    where = {"Location": f"{oracle.url}/_storage/8"}
    oracle.answer("GET", "/repos/octo/app/actions/jobs/8/logs", status=302, headers=where)
    log = "".join(f"2026-01-01T00:00:00.0Z line {number}\n" for number in range(5000))
    oracle.answer("GET", "/_storage/8", raw=(log + "2026-01-01T00:00:01.0Z E  AssertionError: 1 != 2\n").encode())
    settings = load(Settings, ["--api-url", oracle.url, "--toolsets", "pull_requests,actions"])
    async with Client(build(settings)) as client:
        (found,) = rows(await call(client, "list_actions", repo="octo/app", status="failure"))
        about = json.dumps(await call(client, "get_run", repo="octo/app", run_id=found["run_id"]))
        assert "2 Test" in about and "Compile" not in about
        end = await call(client, "read_job_log", repo="octo/app", run_id=9)
        assert end.rstrip().endswith("AssertionError: 1 != 2") and len(end) < 15_000
        only = await call(client, "read_job_log", repo="octo/app", job_id=8, pattern="AssertionError")
        assert "line 4999" not in only and "1 != 2" in only
        assert "line 12" in await call(client, "read_job_log", repo="octo/app", job_id=8, start_line=13)
    assert "authorization" not in oracle.sent("GET", "_storage")[0].headers
