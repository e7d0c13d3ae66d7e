"""Who may have how much, and that one caller's hundred calls stand in line behind another's one."""

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from pathlib import Path

import anyio
import pytest

from mcp_batteries.errors import Unavailable
from mcp_batteries.testing.wire import MODERN, HttpWire, Wire
from mcp_batteries.transports.http.auth.tokens import create_token
from mcp_batteries.transports.http.gate.quota import Quota
from shared.http_subject import TOY, Subject, running

pytestmark = pytest.mark.anyio


async def test_calls_and_bytes_run_out_for_one_and_not_for_another() -> None:
    quota = Quota(calls=3, size=1000)
    for _ in range(3):
        async with quota.turn("alice", 10):
            pass
    with pytest.raises(Unavailable, match="3 calls a minute") as refused:
        async with quota.turn("alice", 10):
            pass
    assert refused.value.retry_after
    async with quota.turn("bob", 10) as spend:
        spend(5000)  # An answer is counted when it is known, and paid for by those that follow.
    with pytest.raises(Unavailable, match="1,000 bytes a minute"):
        async with quota.turn("bob", 10):
            pass


async def test_no_more_than_so_many_at_once_and_those_that_wait_go_in_order() -> None:
    quota, order, most, running_now = Quota(parallel=2), list[int](), 0, 0

    async def call(number: int) -> None:
        nonlocal most, running_now
        async with quota.turn("alice", 1):
            order.append(number)
            running_now += 1
            most = max(most, running_now)
            await anyio.sleep(0)
            running_now -= 1

    async with anyio.create_task_group() as tasks:
        for number in range(50):
            tasks.start_soon(call, number)
    assert most == 2
    assert order == list(range(50))


async def test_who_gives_up_waiting_leaves_no_place_taken() -> None:
    quota, held = Quota(parallel=1), anyio.Event()

    async def hold() -> None:
        async with quota.turn("alice", 1):
            await held.wait()

    async def wait(scope: anyio.CancelScope) -> None:
        with scope:
            async with quota.turn("alice", 1):
                raise AssertionError("it was cancelled")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hold)
        await anyio.wait_all_tasks_blocked()
        scopes = [anyio.CancelScope() for _ in range(10)]
        for scope in scopes:
            tasks.start_soon(wait, scope)
        await anyio.wait_all_tasks_blocked()
        for scope in scopes[:5]:
            scope.cancel()
        # The turn and the end of waiting at the same time.
        held.set()
        for scope in scopes[5:]:
            scope.cancel()
    with anyio.fail_after(30):
        async with quota.turn("alice", 1):
            pass


@pytest.mark.parametrize("turns", [0, 1, 2])
async def test_one_call_stands_behind_a_few_of_a_hundred(turns: int) -> None:
    """In order, not in time: once bob has called, what alice starts comes one by one.

    Args:
        turns: of the event loop that a call takes; what is answered in memory takes none.
    """
    quota, order = Quota(), list[str]()

    async def call(who: str) -> None:
        async with quota.turn(who, 1):
            for _ in range(turns):
                await anyio.sleep(0)
            order.append(who)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call, "bob")
        for _ in range(100):
            tasks.start_soon(call, "alice")
        await anyio.sleep(0)
        tasks.start_soon(call, "bob")
    assert len(order) == 102
    second = len(order) - 1 - order[::-1].index("bob")
    assert second < 10


@pytest.mark.parametrize("other", [False, True])
async def test_calls_that_wait_for_something_let_others_of_theirs_begin(other: bool) -> None:
    """A caller alone is not held back; beside a second one a hundred calls are all at work within moments."""
    quota, inside = Quota(), 0
    everybody = anyio.Event()

    async def call() -> None:
        nonlocal inside
        async with quota.turn("alice", 1):
            inside += 1
            if inside == 100:
                everybody.set()
            await everybody.wait()

    with anyio.fail_after(30):
        async with quota.turn("bob", 1) if other else nullcontext(), anyio.create_task_group() as tasks:
            for _ in range(100):
                tasks.start_soon(call)


@asynccontextmanager
async def limited(folder: Path, *more: str) -> AsyncGenerator[tuple[Subject, dict[str, dict[str, str]]]]:
    tokens = {name: create_token(name) for name in ("alice", "bob")}
    (folder / "tokens").write_text("\n".join(line for _, line in tokens.values()), "utf-8")
    command = [sys.executable, "-m", "mcp_example", "--transport", "http", "--port", "0", *more]
    async with running([*command, "--auth-file", str(folder / "tokens")]) as subject:
        yield subject, {name: {"authorization": f"Bearer {token}"} for name, (token, _) in tokens.items()}


@pytest.mark.slow
@pytest.mark.share(1)
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_the_limit_is_the_callers_and_says_when_it_is_over(revision: str, tmp_path: Path) -> None:
    async with limited(tmp_path, "--rate-calls", "5") as (subject, people):
        async with HttpWire(subject.url, revision=revision, headers=people["alice"]) as alice:
            await alice.open()
            for _ in range(4):
                await alice.call("run_calculation", expression="1")
            message = alice.message("tools/call", {"name": "run_calculation", "arguments": {"expression": "1"}})
            answer = await alice.send_raw(json.dumps(message).encode(), alice.headers_for(message))
            # Older clients would give up their connection.
            assert answer.status_code == (429 if revision == MODERN else 200)
            assert 1 <= int(answer.headers["retry-after"]) <= 60
            assert answer.json()["id"] == message["id"]
            assert "Try again in" in answer.json()["error"]["message"]
        async with HttpWire(subject.url, revision=revision, headers=people["bob"]) as bob:
            await bob.open()
            await bob.call("run_calculation", expression="1")


@pytest.mark.slow
async def test_without_tokens_an_address_is_a_caller() -> None:
    async with running([*TOY, "rate_calls=2"]) as subject, HttpWire(subject.url, revision=MODERN) as wire:
        for status in (200, 200, 429):
            message = wire.message("tools/list")
            answer = await wire.send_raw(json.dumps(message).encode(), wire.headers_for(message))
            assert answer.status_code == status


@pytest.mark.slow
@pytest.mark.share(1)
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_one_caller_cannot_hold_all_streams(revision: str, tmp_path: Path) -> None:
    async with limited(tmp_path, "--max-streams-each", "2") as (subject, people), AsyncExitStack() as stack:
        held = list[HttpWire]()
        for _ in range(2):
            wire = await stack.enter_async_context(HttpWire(subject.url, revision=revision, headers=people["alice"]))
            await wire.open()
            if revision == MODERN:
                await wire.listen({"toolsListChanged": True})
            held.append(wire)
        message = held[0].message("subscriptions/listen", {"notifications": {}})
        method, body = ("POST", message) if revision == MODERN else ("GET", None)
        headers = held[0].headers_for(message)
        answer = await held[0].client.request(method, subject.url, json=body, headers=headers)
        assert answer.status_code == 429
        assert "Close some" in answer.json()["error"]["message"]
        # Calls, and others, are not concerned.
        assert (await held[0].request("tools/list"))["tools"]
        async with HttpWire(subject.url, revision=revision, headers=people["bob"]) as bob:
            await bob.open()
            if revision == MODERN:
                await bob.listen({"toolsListChanged": True})


async def test_who_opens_sessions_and_closes_none_loses_the_oldest_and_nobody_else_any(tmp_path: Path) -> None:
    async with limited(tmp_path, "--max-streams-each", "3") as (subject, people), AsyncExitStack() as stack:

        async def opened(name: str) -> HttpWire:
            wire = await stack.enter_async_context(HttpWire(subject.url, headers=people[name]))
            await Wire.open(wire)
            return wire

        bob = await opened("bob")
        alice = [await opened("alice") for _ in range(3)]
        refused = alice[0].message("initialize", {"protocolVersion": 7})
        answer = await alice[0].send_raw(json.dumps(refused).encode(), people["alice"])
        assert "error" in answer.json() and "mcp-session-id" not in answer.headers
        # Used since, so it is not the oldest.
        assert (await alice[0].request("tools/list"))["tools"]
        alice += [await opened("alice") for _ in range(2)]
        for wire, status in zip((bob, *alice), (200, 200, 404, 404, 200, 200), strict=True):
            message = wire.message("tools/list")
            answer = await wire.send_raw(json.dumps(message).encode(), wire.headers_for(message))
            assert answer.status_code == status
            if status == 404:
                del wire.headers["mcp-session-id"]


async def test_a_second_request_of_an_id_in_flight_costs_no_call() -> None:
    async with (
        running([*TOY, "rate_calls=5"]) as subject,
        HttpWire(subject.url) as wire,
        anyio.create_task_group() as calls,
    ):
        await Wire.open(wire)
        waiting = wire.message("tools/call", {"name": "wait", "arguments": {"seconds": 3600}})
        calls.start_soon(wire.send_raw, json.dumps(waiting).encode(), wire.headers_for(waiting))
        await subject.says("waiting")
        for _ in range(10):
            answer = await wire.send_raw(json.dumps(waiting).encode(), wire.headers_for(waiting))
            assert answer.status_code == 400 and "still in flight" in answer.text
        # Opening took one call, and the one that waits another.
        for _ in range(3):
            await wire.call("echo", text="there")
        calls.cancel_scope.cancel()


async def test_a_request_that_a_limit_refused_may_come_again_under_its_id() -> None:
    async with running([*TOY, "rate_calls=1"]) as subject, HttpWire(subject.url) as wire:
        await Wire.open(wire)
        message = wire.message("tools/list")
        answers = [await wire.send_raw(json.dumps(message).encode(), wire.headers_for(message)) for _ in range(3)]
        assert "Try again in" in answers[0].text
        assert not any("still in flight" in answer.text for answer in answers)
