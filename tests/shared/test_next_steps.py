"""After the advised call the caller is further: the walks of `next_steps`, and that the table is whole."""

import json
import math
import re
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.server.auth.middleware.auth_context import auth_context_var
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.tools import Tool
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequestParams, ElicitResult, TextContent

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.concurrency.threads import run_in_thread
from mcp_batteries.cursors import Cursor
from mcp_batteries.errors import Invalid, Unavailable
from mcp_batteries.remote import disk
from mcp_batteries.remote.disk import DiskStore
from mcp_batteries.sdk import tool_table
from mcp_batteries.server.calling.tool import strict_tool
from mcp_batteries.server.declaration.decorators import DeclaredTool, declarations, tool
from mcp_batteries.testing.wire import MODERN, HttpWire
from mcp_batteries.transports.http.auth.scopes import Scopes
from mcp_batteries.transports.http.gate import fair_queue
from mcp_batteries.transports.http.gate.quota import Quota
from next_steps import check_table, check_walk, walks
from shared.http_subject import TOY, running
from shared.next_steps import NO_STEPS, STEPS

ROOT = Path(__file__).parents[2]


def test_each_next_step_is_in_the_table_with_the_state_in_which_it_helps() -> None:
    check_table(ROOT / "shared" / "src" / "mcp_batteries", STEPS, NO_STEPS)


@pytest.mark.parametrize("walk", walks(STEPS))
def test_each_walk_is_a_test(walk: str) -> None:
    if "/" in walk:
        check_walk(walk)
    else:
        assert callable(globals().get(walk)), walk


def text_of(result: Any) -> str:
    return "".join(block.text for block in result.content if isinstance(block, TextContent))


class Room:
    """Tools whose time grows with what is asked for."""

    def __init__(self) -> None:
        self.items = [*range(9)]

    @tool("Count items", seconds=0.2)
    async def count_items(self, number: int) -> str:
        """Count."""
        await anyio.sleep(number)
        return "counted"

    @tool("Delete items", effect="destroy", seconds=0.2)
    async def delete_items(self, number: int) -> str:
        """Delete one after the other."""
        for _ in range(number):
            self.items.pop()
            await anyio.sleep(0.15)
        return "deleted"

    @tool("List items")
    async def list_items(self) -> str:
        """List what is there."""
        return f"{len(self.items)} items"


def tools_of(room: Room, *, confirm: bool = False) -> list[Tool]:
    return [
        strict_tool(method, declared, confirm=confirm)
        for declared, method in declarations(room)
        if isinstance(declared, DeclaredTool)
    ]


@asynccontextmanager
async def connected(room: Room, *, confirm: bool = False, **options: Any) -> AsyncGenerator[Client]:
    async with Client(MCPServer("toy", tools=tools_of(room, confirm=confirm)), **options) as client:
        yield client


@pytest.mark.anyio
async def test_less_is_answered_in_time() -> None:
    async with connected(Room()) as client:
        assert "Ask for less at once." in text_of(await client.call_tool("count_items", {"number": 60}))
        assert text_of(await client.call_tool("count_items", {"number": 0})) == "counted\n"


@pytest.mark.anyio
async def test_a_look_shows_how_far_a_change_went() -> None:
    async with connected(Room()) as client:
        stopped = text_of(await client.call_tool("delete_items", {"number": 9}))
        assert "look at what it was to change" in stopped and "Ask for less" not in stopped
        count = int(text_of(await client.call_tool("list_items", {})).split()[0])
        assert 0 < count < 9


@pytest.mark.anyio
async def test_another_call_is_asked_about_anew() -> None:
    async def answer(context: Any, params: ElicitRequestParams) -> ElicitResult:
        return ElicitResult(action="accept", content={"confirm": "(number=`1`)" in params.message})

    room = Room()
    async with connected(room, confirm=True, elicitation_callback=answer) as client:
        refused = text_of(await client.call_tool("delete_items", {"number": 9}))
        assert "Ask them what they want instead." in refused and len(room.items) == 9
        await client.call_tool("delete_items", {"number": 1})
        assert len(room.items) == 8


@pytest.mark.anyio
async def test_nobody_is_told_to_call_again_where_the_client_answers_no_question() -> None:
    """Its answer would be none another time too. The operator can do something, and what is said then works."""

    async def broken(context: Any, params: ElicitRequestParams) -> ElicitResult:
        return ElicitResult(action="accept", content={"confirm": "perhaps"})

    room = Room()
    async with connected(room, confirm=True, mode="legacy", elicitation_callback=broken) as client:
        for _ in range(2):
            refused = text_of(await client.call_tool("delete_items", {"number": 1}))
            assert "again" not in refused and refused.endswith("start the server without `--confirm`.")
    async with connected(room, mode="legacy", elicitation_callback=broken) as client:
        assert text_of(await client.call_tool("delete_items", {"number": 1})) == "deleted\n"


@pytest.mark.anyio
async def test_less_work_is_done_in_time() -> None:
    def work_on(steps: float) -> Callable[[CancelToken], str]:
        def work(cancel: CancelToken) -> str:
            ends = time.monotonic() + steps
            while time.monotonic() < ends:
                cancel.check()
            return "done"

        return work

    with pytest.raises(Unavailable, match="Ask for less"):
        await run_in_thread(work_on(60), seconds=0.1, description="Looking")
    assert await run_in_thread(work_on(0), seconds=5, description="Looking") == "done"


def test_a_list_begins_anew_without_the_cursor_that_was_refused() -> None:
    with pytest.raises(Invalid, match="Call again without `cursor`"):
        Cursor.decode("tools", Cursor.encode("resources", 7))
    assert Cursor.decode("tools", Cursor.encode("tools", 7)) == 7


def test_a_lock_is_free_when_its_process_has_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "_STATE_SECONDS", 0.05)
    store = DiskStore(str(tmp_path / "cache"), ["me"])
    store.update("pause", lambda state: {"count": 1})
    release = DiskStore(str(tmp_path / "cache"), ["me"]).lock("pause")
    assert release is not None
    with pytest.raises(Unavailable, match="Try again in a moment"):
        store.update("pause", lambda state: {"count": 2})
    release()
    assert store.update("pause", lambda state: {"count": state["count"] + 1}) == {"count": 2}


@pytest.mark.anyio
async def test_who_waits_as_long_as_told_is_let_in(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    limited = Quota(calls=7)
    for _ in range(7):
        async with limited.turn("ann", 1):
            pass
    for _ in range(3):
        with pytest.raises(Unavailable) as refused:
            async with limited.turn("ann", 1):
                pass
        seconds = re.search(r"Try again in (\d+) s\.", str(refused.value))
        assert seconds and refused.value.retry_after is not None
        assert int(seconds[1]) == math.ceil(refused.value.retry_after)
        now += int(seconds[1])
        async with limited.turn("ann", 1):
            pass


@pytest.mark.anyio
async def test_a_call_that_is_done_makes_room_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_queue, "_MAX_WAITING", 1)
    limited = Quota(parallel=1)
    done = anyio.Event()
    started: list[int] = []

    async def call(number: int) -> None:
        async with limited.turn("ann", 1):
            started.append(number)
            await done.wait()

    async with anyio.create_task_group() as tasks:
        for number in range(2):
            tasks.start_soon(call, number)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(Unavailable, match="Send fewer at once"):
            await call(2)
        done.set()
    await call(3)
    assert started == [0, 1, 3]


def test_a_stream_that_is_closed_makes_room_for_the_next() -> None:
    limited = Quota(streams=1)
    with (
        limited.hold_stream("ann"),
        pytest.raises(Unavailable, match="Close some"),
        limited.hold_stream("ann"),
    ):
        pass
    with limited.hold_stream("ann"):
        pass


@pytest.mark.anyio
async def test_a_token_with_the_scope_that_was_named_may() -> None:
    server = MCPServer[Any]("toy", tools=tools_of(Room()))
    server.middleware.append(Scopes(lambda: tool_table(server)))
    scope = "read"
    for expected in (False, True):
        user = AuthenticatedUser(AccessToken(token="t", client_id="ann", scopes=[scope]))
        before = auth_context_var.set(user)
        try:
            async with Client(server) as client:
                if expected:
                    assert not (await client.call_tool("delete_items", {"number": 0})).is_error
                else:
                    with pytest.raises(MCPError, match="Ask for a token that has it") as refused:
                        await client.call_tool("delete_items", {"number": 0})
                    scope = re.findall("`([a-z]+)`", str(refused.value))[0]
        finally:
            auth_context_var.reset(before)


class Gate:
    """A client over HTTP that does what it is told."""

    def __init__(self, wire: HttpWire) -> None:
        self._wire = wire

    async def send(self, message: dict[str, Any], headers: dict[str, str | None]) -> tuple[int, str]:
        usual: dict[str, str | None] = {**self._wire.headers_for(message), **headers}
        kept = {name: value for name, value in usual.items() if value is not None}
        answer = await self._wire.client.post(self._wire.url, json=message, headers=kept)
        text = answer.text
        if answer.status_code != 200:
            text = answer.json()["error"]["message"]
        return answer.status_code, text


@pytest.mark.anyio
@pytest.mark.slow
async def test_what_the_gate_says_to_send_is_served() -> None:
    async with running(TOY) as subject, HttpWire(subject.url) as old, HttpWire(subject.url, revision=MODERN) as new:
        agreed = (await old.open())["protocolVersion"]
        gate, modern = Gate(old), Gate(new)
        message, newer = old.message("tools/list"), new.message("tools/list")
        client = {"name": "x", "version": "1"}
        params = {"protocolVersion": agreed, "capabilities": {}, "clientInfo": client}
        opening = {"jsonrpc": "2.0", "id": "open", "method": "initialize", "params": params}

        status, said = await gate.send(message, {"accept": "text/html"})
        advised = re.search(r"Send `Accept: ([^`]+)`", said)
        assert status == 406 and advised
        assert (await gate.send(message, {"accept": advised[1]}))[0] == 200

        status, said = await gate.send(message, {"mcp-protocol-version": "2099-01-01"})
        assert status == 400 and "Send the `protocolVersion` of that answer as MCP-Protocol-Version." in said
        assert (await gate.send(message, {"mcp-protocol-version": agreed}))[0] == 200

        without: dict[str, str | None] = {"mcp-session-id": None}
        status, said = await gate.send(opening, {**without, "mcp-protocol-version": "latest"})
        revisions = re.findall(r"\d{4}-\d\d-\d\d", said)
        assert status == 400 and said.endswith("or with `initialize` none.") and agreed in revisions
        assert (await gate.send(opening, {**without, "mcp-protocol-version": agreed}))[0] == 200
        status, said = await gate.send(opening, {**without, "mcp-protocol-version": MODERN})
        assert status == 400 and "Leave the header out of `initialize`" in said
        assert (await gate.send(opening, {**without, "mcp-protocol-version": None}))[0] == 200

        status, said = await modern.send(newer, {"mcp-protocol-version": None})
        advised = re.search(r"`_meta` is of `([^`]+)`\. Send that as (\S+) too", said)
        assert status == 400 and advised
        assert (await modern.send(newer, {advised[2].lower(): advised[1]}))[0] == 200

        for session, expected in ((None, 400), ("0" * 32, 404)):
            status, said = await gate.send(message, {"mcp-session-id": session})
            assert status == expected and "Send `initialize`" in said
        assert (await gate.send(opening, without))[0] == 200

        asked = {**old.headers_for({}), "accept": "text/event-stream", "last-event-id": "call-99-1"}
        gone = await old.client.get(old.url, headers=asked)
        assert gone.status_code == 410 and json.loads(gone.text)["error"]["message"].endswith("then call again.")
        assert await old.call("echo", text="again")
