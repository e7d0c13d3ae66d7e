"""Many calls at once: every answer belongs to its question, and a call that is given up harms no other."""

import logging
import sys
import threading

import anyio
import pytest

from github_server.oracle import Oracle
from github_server.oracle.server import Reply
from github_server.serving import call, served, settings
from github_server.world import issue
from mcp_github.client.api import Api
from mcp_github.policy import Policy


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_thousand_calls_get_their_own_answers(oracle: Oracle) -> None:
    template = issue(0)
    oracle.respond(
        "GET",
        "/repos/octo/app/issues/.*",
        lambda seen: Reply(200, {**template, "number": int(seen.path.rpartition("/")[2])}),
    )
    wrong: list[tuple[int, int]] = []
    given = settings(oracle, "--timeout", "100")
    api = Api(given, Policy(given))
    async with api:

        async def ask(number: int) -> None:
            answer = await api.get(f"/repos/octo/app/issues/{number}", "an issue")
            if answer.data["number"] != number:
                wrong.append((number, answer.data["number"]))

        with anyio.fail_after(120):
            async with anyio.create_task_group() as tasks:
                for number in range(1, 1001):
                    tasks.start_soon(ask, number)
    assert wrong == []
    assert len(oracle.seen) == 1000


@pytest.mark.anyio
async def test_no_more_requests_are_under_way_than_there_are_workers(oracle: Oracle) -> None:
    lock, enough = threading.Lock(), threading.Barrier(4)
    under_way = most = 0

    def respond(seen: object) -> Reply:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        enough.wait(30)
        with lock:
            under_way -= 1
        return Reply(200, issue(1))

    oracle.respond("GET", "/repos/octo/app/issues/.*", respond)
    given = settings(oracle, "--workers", "4")
    async with Api(given, Policy(given)) as api, anyio.create_task_group() as tasks:
        for number in range(60):
            tasks.start_soon(api.get, f"/repos/octo/app/issues/{number + 1}", "an issue")
    assert most == 4
    assert len(oracle.seen) == 60


@pytest.mark.anyio
async def test_writes_go_one_by_one(oracle: Oracle) -> None:
    at_once: list[int] = []
    under_way = 0

    def respond(seen: object) -> Reply:
        nonlocal under_way
        under_way += 1
        at_once.append(under_way)
        under_way -= 1
        return Reply(201, issue(1))

    oracle.respond("POST", "/repos/octo/app/issues", respond)
    async with served(oracle, "--write") as client, anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(lambda: call(client, "create_issue", repo="octo/app", title="T"))
    assert at_once == [1] * 10


@pytest.mark.anyio
async def test_a_cancelled_call_leaves_a_pool_that_works(oracle: Oracle) -> None:
    oracle.answer("GET", "/repos/octo/app/issues/1", held=True)
    given = settings(oracle, "--workers", "2")
    async with Api(given, Policy(given)) as api:
        for turn in range(4):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(api.get, "/repos/octo/app/issues/1", "an issue")
                with anyio.fail_after(30):
                    while len(oracle.seen) == turn:
                        await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
        with anyio.fail_after(30):
            await api.get("/repos/octo/app/issues/2", "an issue")


@pytest.mark.slow
def test_pygithub_is_imported_when_first_used() -> None:
    import subprocess

    code = "import sys, mcp_github.server; print(sorted({'github', 'requests', 'jwt'} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.anyio
async def test_pygithub_writes_nothing_to_standard_error(oracle: Oracle) -> None:
    async with served(oracle) as client:
        await call(client, "get_me")
    assert logging.getLogger("github").handlers == []
