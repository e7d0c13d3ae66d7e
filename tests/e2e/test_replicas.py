"""Several replicas of one server: what one announces all hear, over each kind of bus, whatever dies meanwhile."""

import json
import secrets
import socket
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import httpx2
import pytest
from anyio import to_thread
from mcp.shared.subscriptions import ResourceUpdated

from benchmarks.bench_http import Client
from e2e.services import KINDS, serving
from mcp_batteries.replicas import bus as module
from mcp_batteries.replicas import connect
from mcp_batteries.testing.wire import MODERN, HttpWire, Wire, WireError
from shared.http_subject import opened, running
from thinning import some

LEGACY = "2025-11-25"
UPDATED, TOOLS = "notifications/resources/updated", "notifications/tools/list_changed"
DIAGNOSTIC = [sys.executable, str(Path(__file__).parent / "diagnostic"), "--transport", "http", "--port", "0"]
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="the services that replicas meet at come as programs for Linux"),
]


async def subscribe(wire: Wire, *uris: str) -> None:
    for uri in uris:
        await wire.subscribe(uri)
    if wire.modern:
        await wire.listen({"toolsListChanged": True})
    else:
        await wire.request("tools/list")


@pytest.mark.slow
@pytest.mark.share(2)
@pytest.mark.parametrize("kind", KINDS)
async def test_replicas_tell_each_other_and_survive_their_bus(kind: str) -> None:
    async with AsyncExitStack() as stack:
        bus = await stack.enter_async_context(serving(kind))
        here, there = [await stack.enter_async_context(running([*DIAGNOSTIC, "--bus", bus.url])) for _ in range(2)]
        caller = await stack.enter_async_context(opened(here, MODERN))
        other = await stack.enter_async_context(opened(there, LEGACY))
        near = [await stack.enter_async_context(opened(here, revision)) for revision in (LEGACY, MODERN)]
        far = [await stack.enter_async_context(opened(there, revision)) for revision in (LEGACY, MODERN)]
        long = f"test://template/{'x' * 9_000}/data"
        uris = [f"test://template/{number}/data" for number in range(10)]
        for wire in (*near, *far):
            await subscribe(wire, *uris, long, "test://template/last/data")
        await _connected(caller, far)

        # Every change, wherever it was announced, to everybody, of both eras.
        for number, uri in enumerate(uris):
            announcing = (caller, other)[number % 2]
            assert not (await announcing.call("announce", uri=uri)).get("isError")
        for wire in (*near, *far):
            for uri in uris:
                await wire.updated(uri)
        await caller.call("test_trigger_tool_change")
        for wire in (*near, *far):
            await wire.notification(TOOLS)
        # What is too long for a message is still told of.
        await caller.call("announce", uri=long)
        for wire in (*near, *far):
            await wire.updated(long)

        # Without the bus no call fails, and who is near hears.
        bus.kill()
        for subject in (here, there):
            await subject.says("the bus is unreachable")
        for wire in (*near, *far):
            wire.messages.clear()
        assert not (await caller.call("announce", uri=uris[0])).get("isError")
        for wire in near:
            await wire.updated(uris[0])

        # Once it is back, everybody is told to look again, and hears what comes then.
        await bus.start()
        for wire in far:
            await wire.updated(uris[0])
            await wire.notification(TOOLS)
        for subject in (here, there):
            await subject.says("the bus is back")
        for wire in (*near, *far):
            wire.messages.clear()
        await caller.call("announce", uri="test://template/last/data")
        for wire in far:
            await wire.updated("test://template/last/data")

        # A replica that is killed takes its streams along; elsewhere they go on.
        there.process.kill()
        assert await there.ends() in (-9, 1)
        with anyio.fail_after(30):
            while not far[0].closed:
                await anyio.sleep(0.01)
        del far[0].headers["mcp-session-id"], other.headers["mcp-session-id"]
        again = await stack.enter_async_context(opened(here, LEGACY))
        await again.subscribe(uris[1])
        await caller.call("announce", uri=uris[1])
        await again.updated(uris[1])
    assert "@127" not in here.said + there.said


@pytest.mark.slow
@pytest.mark.parametrize("kind", some(KINDS, KINDS[0]))
async def test_a_bus_that_hangs_loses_nothing_unsaid(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped for longer than every timeout, its connections kept: who announced and who listened look again."""
    for name, seconds in (("BEAT_SECONDS", 0.2), ("SEND_SECONDS", 0.5), ("CONNECT_SECONDS", 1.0)):
        monkeypatch.setattr(module, name, seconds)
    async with serving(kind) as service:
        buses = [connect(service.url, "frozen") for _ in range(3)]
        heard: list[list[str]] = [[] for _ in buses]
        for bus, ear in zip(buses, heard, strict=True):
            bus.subscribe(lambda event, ear=ear: ear.append(event.uri))
            bus.on_gap = lambda ear=ear: ear.append("everything")
        async with buses[0].running(), buses[1].running(), buses[2].running():

            async def until(reached: Callable[[], bool]) -> None:
                with anyio.fail_after(30):
                    while not reached():
                        await anyio.sleep(0.02)

            async def announce(name: str) -> None:
                for number in range(10):
                    await buses[0].publish(ResourceUpdated(f"test://{name}/{number}"))

            await until(lambda: all(bus.connected for bus in buses))
            await announce("before")
            await until(lambda: all("test://before/9" in ear for ear in heard))
            service.freeze()
            try:
                await announce("during")
                await until(lambda: not any(bus.connected for bus in buses))
                for ear in heard:
                    ear.clear()
                await announce("away")
                await anyio.sleep(1.5)
            finally:
                service.thaw()
            # Nobody heard of all of it, so everybody looks again, and then hears as before.
            await until(lambda: all("everything" in ear for ear in heard))
            await until(lambda: all(bus.connected for bus in buses))
            await announce("after")
            await until(lambda: all("test://after/9" in ear for ear in heard))


async def _connected(caller: Wire, far: list[HttpWire]) -> None:
    """Wait until the bus carries: replicas serve before it does."""
    for wire in far:
        with anyio.fail_after(60):
            while not any(message.get("method") == UPDATED for message in wire.messages):
                await caller.call("announce", uri="test://template/last/data")
                await anyio.sleep(0.05)
        wire.messages.clear()


@pytest.mark.slow
@pytest.mark.parametrize("resumed", some([{}, {"last-event-id": "7"}], {"last-event-id": "7"}))
async def test_a_stream_that_was_cut_begins_with_all_that_may_have_changed(resumed: dict[str, str]) -> None:
    uri = "test://template/x/data"
    async with running(DIAGNOSTIC) as subject, httpx2.AsyncClient(trust_env=False, timeout=30) as client:
        older = Client(subject.url, LEGACY)
        await older.open()
        headers = {"mcp-session-id": older.session, "mcp-protocol-version": LEGACY, "accept": "text/event-stream"}

        async def hear_all(**more: str) -> None:
            """Read a new stream until it has told of both."""
            found: set[str] = set()
            async with client.stream("GET", subject.url, headers=headers | more) as response:
                async for event in httpx2.EventSource(response.raise_for_status()):
                    message = json.loads(event.data or "{}")
                    found.add(message.get("params", {}).get("uri", message.get("method")))
                    if found == {uri, TOOLS}:
                        break

        for method, params in (("resources/subscribe", {"uri": uri}), ("tools/list", {})):
            await older.post(older.request({"id": 3, "method": method, "params": params}))
        # Nothing is announced from here on: it may have been while there was no stream.
        with anyio.fail_after(30):
            for _ in range(2):
                await hear_all(**resumed)
        # Another replica does not know the session, so its client begins anew.
        async with running(DIAGNOSTIC) as other:
            assert (await client.get(other.url, headers=headers | resumed)).status_code == 404
        older.writer.close()


@pytest.mark.share(1)
@pytest.mark.parametrize("reads", [True, False], ids=["that is open", "that nobody reads"])
async def test_the_newest_stream_of_a_session_takes_the_place_of_one(reads: bool) -> None:
    """A client whose line was cut opens another stream, and the first still looks alive to the server."""
    uri = "test://template/x/data"
    async with running(DIAGNOSTIC) as subject, httpx2.AsyncClient(trust_env=False, timeout=30) as client:
        older = Client(subject.url, LEGACY)
        await older.open()
        await older.post(older.request({"id": 3, "method": "resources/subscribe", "params": {"uri": uri}}))
        headers = {"mcp-session-id": older.session, "mcp-protocol-version": LEGACY, "accept": "text/event-stream"}
        with socket.socket() as first:
            first.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            first.connect(subject.address)
            lines = [f"GET {urlsplit(subject.url).path} HTTP/1.1", f"host: {urlsplit(subject.url).netloc}"]
            lines += [f"{name}: {value}" for name, value in headers.items()]
            first.sendall("\r\n".join([*lines, "", ""]).encode())
            if reads:
                assert b"200 OK" in await to_thread.run_sync(first.recv, 65536)
            else:
                # More than the buffers of both ends hold.
                for number in range(400):
                    long = f"test://template/{'x' * 8000}{number}/data"
                    await older.post(older.request({"id": 5, "method": "resources/subscribe", "params": {"uri": long}}))
                    change = {"name": "announce", "arguments": {"uri": long}}
                    await older.post(older.request({"id": 6, "method": "tools/call", "params": change}))
            with anyio.fail_after(20):
                async with client.stream("GET", subject.url, headers=headers) as response:
                    assert response.status_code == 200
                    change = {"name": "announce", "arguments": {"uri": uri}}
                    await older.post(older.request({"id": 4, "method": "tools/call", "params": change}))
                    async for event in httpx2.EventSource(response):
                        if json.loads(event.data or "{}").get("params", {}).get("uri") == uri:
                            break
        older.writer.close()
        assert "Traceback" not in subject.said


@pytest.mark.slow
async def test_a_bus_that_never_was_holds_nothing_up(tmp_path: Path) -> None:
    async with running([*DIAGNOSTIC, "--bus", "redis://somebody:secret-word@127.0.0.1:1/0"]) as subject:
        async with opened(subject, MODERN) as wire:
            await wire.subscribe("test://template/x/data")
            assert not (await wire.call("announce", uri="test://template/x/data")).get("isError")
            await wire.updated("test://template/x/data")
        status = subject.stop()
        assert await subject.ends() == status
    assert "the bus is unreachable" in subject.said
    assert "secret-word" not in subject.said


@pytest.mark.slow
@pytest.mark.parametrize("shared", [True, False])
async def test_an_answer_may_reach_another_replica_if_they_share_keys(shared: bool, tmp_path: Path) -> None:
    """A question of 2026-07-28 comes with a state, which only who has the key can have made."""
    keys = tmp_path / "keys"
    keys.write_text(f"# the newest first\n{secrets.token_hex(32)}\n{secrets.token_hex(32)}\n", "utf-8")
    command = [*DIAGNOSTIC, *(["--state-key-file", str(keys)] if shared else [])]
    call = {"name": "test_input_required_result_request_state", "arguments": {}}
    async with running(command) as one, running(command) as two:
        async with HttpWire(one.url, revision=MODERN, capabilities={"elicitation": {"form": {}}}) as wire:
            asked = await wire.request("tools/call", call)
            assert asked["resultType"] == "input_required"
        answer = {"confirm": {"action": "accept", "content": {"ok": True}}}
        again = {**call, "requestState": asked["requestState"], "inputResponses": answer}
        async with HttpWire(two.url, revision=MODERN, capabilities={"elicitation": {"form": {}}}) as wire:
            if shared:
                assert "state-ok" in (await wire.request("tools/call", again))["content"][0]["text"]
            else:
                with pytest.raises(WireError) as refused:
                    await wire.request("tools/call", again)
                assert refused.value.code == -32602


@pytest.mark.share(1)
@pytest.mark.parametrize("content", [None, "", "short\n", "a" * 40 + "\n" + "a" * 40 + "\n"])
async def test_keys_that_cannot_be_used_are_said_at_the_start(content: str | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "keys").write_text(content, "utf-8")
    command = [*DIAGNOSTIC, "--state-key-file", str(tmp_path / "keys")]
    done = await anyio.run_process(command, check=False)
    assert done.returncode == 1
    assert b"openssl rand -hex 32" in done.stderr
    assert content is None or not content or content.strip()[:30].encode() not in done.stderr
